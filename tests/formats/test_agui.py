"""AG-UI's event stream as a format: read with notes, written for every client."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from strategies.messages import transcripts
from strategies.mutations import mutations

from seatrial import formats
from seatrial.errors import SeatrialError
from seatrial.events import cursor_text, encode_event, encode_sse, verify
from seatrial.events import types as t
from seatrial.events.types import Event
from seatrial.formats import agui
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    RunIdentity,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)

RUN: list[Event] = [
    t.RunStarted(thread_id="t1", run_id="r1"),
    t.TextMessageStart(message_id="u", role="user"),
    t.TextMessageContent(message_id="u", delta="weather?"),
    t.TextMessageEnd(message_id="u"),
    t.ReasoningMessageChunk(message_id="r", delta="look "),
    t.ReasoningMessageChunk(delta="it up"),
    t.ToolCallChunk(tool_call_id="c1", tool_call_name="weather", delta='{"city":'),
    t.ToolCallChunk(delta='"Kiel"}'),
    t.ToolCallResult(message_id="x", tool_call_id="c1", content="rain"),
    t.TextMessageChunk(message_id="a", delta="Rain."),
    t.RunFinished(thread_id="t1", run_id="r1"),
]
MESSAGES: list[Message] = [
    UserMessage("weather?"),
    AssistantMessage([ReasoningBlock("look it up"), ToolCall("c1", "weather", {"city": "Kiel"})], StopReason.TOOL_USE),
    ToolResultMessage("c1", "weather", [TextBlock("rain")]),
    AssistantMessage([TextBlock("Rain.")], StopReason.END_TURN),
]


def lines(run: list[Event]) -> bytes:
    return b"".join([encode_event(event) + b"\n" for event in run])


def sse(run: list[Event]) -> bytes:
    return b"".join([encode_sse(encode_event(event)) for event in run])


def codes(reading: Reading) -> list[str]:
    return [note.code for note in reading.notes]


@pytest.mark.parametrize("data", [sse(RUN), lines(RUN), msgspec.json.encode(RUN)], ids=["sse", "ndjson", "array"])
def test_a_recorded_stream_is_read(data: bytes) -> None:
    reading = agui.read(data)
    assert reading.format == "agui"
    assert reading.transcript == Transcript(messages=MESSAGES, identity=RunIdentity("r1", conversation_id="t1"))
    assert reading.events == RUN
    assert reading.notes == []


def test_an_illegal_order_is_a_note_and_the_rest_is_read() -> None:
    reading = agui.read(lines([RUN[0], *RUN]))
    assert reading.transcript.messages == MESSAGES
    (note,) = reading.notes
    assert (note.code, note.pointer) == ("event_order_violation", "/1")
    assert "run_still_active" in note.message


def test_a_stream_that_was_cut_is_read_as_far_as_it_goes() -> None:
    whole = sse(RUN)
    reading = agui.read(whole[: whole.index(b"Rain.") + 3])
    assert reading.transcript.messages == MESSAGES[:3]
    assert codes(reading) == ["frame_truncated", "event_stream_truncated"]


def test_what_a_reading_of_ours_went_through_is_told() -> None:
    old: list[Any] = [
        {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "SOMETHING_NEW"},
        {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/x"}]},
        {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": None},
    ]
    reading = agui.read(msgspec.json.encode(old))
    assert reading.transcript.messages == [AssistantMessage([ReasoningBlock("hm")], StopReason.END_TURN)]
    assert codes(reading) == ["legacy_event"] * 3 + ["unknown_event_type", "event_field_dropped", "patch_failed"]


@settings(max_examples=50)
@given(transcripts())
def test_what_is_written_is_read_back_exactly(transcript: Transcript) -> None:
    written = agui.write(transcript)
    reading = agui.read(written.data)
    assert reading.transcript == transcript
    assert reading.events is not None
    assert verify(reading.events) is None


@settings(max_examples=50)
@given(transcripts())
def test_what_is_written_is_what_every_client_takes(transcript: Transcript) -> None:
    data = agui.write(transcript).data
    assert b"\r" not in data
    for sequence, frame in enumerate(data.decode().split("\n\n")[:-1]):
        cursor, event = frame.split("\n")
        assert cursor == f"id: {cursor_text(agui.ids(transcript)[1], sequence)}"
        assert event.startswith('data: {"type":"')


def test_thinking_goes_into_content_and_reasoning_into_its_own_channel() -> None:
    message = AssistantMessage([ReasoningBlock("native"), ThinkingBlock("plan"), TextBlock("hi")], StopReason.END_TURN)
    data = agui.write(Transcript(messages=[message])).data
    assert b'"delta":"<thought>plan</thought>hi"' in data
    assert data.count(b"native") == 1
    assert data.count(b"REASONING_MESSAGE_CONTENT") == 1
    assert agui.read(data).transcript.messages == [message]


def test_what_other_clients_do_not_show_is_a_loss() -> None:
    transcript = Transcript(
        messages=[
            UserMessage([TextBlock("see"), ImageBlock("https://x/y")]),
            UserMessage([TextBlock("no image")]),
            CustomMessage("note", 1),
        ]
    )
    losses = agui.write(transcript).losses
    assert [(loss.code, loss.pointer) for loss in losses] == [
        ("only_seatrial_reads", "/messages/0"),
        ("only_seatrial_reads", "/messages/2"),
    ]


@pytest.mark.parametrize("run_id", ["", "x" * 257])
def test_an_identity_that_cannot_be_an_id_still_comes_back(run_id: str) -> None:
    transcript = Transcript(identity=RunIdentity(run_id, conversation_id=run_id))
    written = agui.write(transcript)
    assert agui.read(written.data).transcript == transcript
    assert agui.ids(transcript) == ("thread-1", "run-1")


@pytest.mark.parametrize("data", [b"", b"\n", b": nothing\n\n"])
def test_input_without_events_is_an_error(data: bytes) -> None:
    with pytest.raises(SeatrialError) as caught:
        agui.read(data)
    assert caught.value.code == "empty_input"


@pytest.mark.parametrize("depth", [300, 900, 985, 1005, 5000])
@pytest.mark.parametrize("nested", [("[", "]", ""), ('{"a":', "}", "1"), ('{"type":"text","content":', "}", "null")])
def test_values_of_any_depth_are_read(depth: int, nested: tuple[str, str, str]) -> None:
    opening, closing, core = nested
    value = opening * depth + core + closing * depth
    stream = [
        '{"type":"RUN_STARTED","threadId":"t","runId":"r","input":%s}',
        '{"type":"STATE_SNAPSHOT","snapshot":%s}',
        '{"type":"STATE_DELTA","delta":[{"op":"copy","from":"","path":"/q"},{"op":"test","path":"","value":%s}]}',
        '{"type":"MESSAGES_SNAPSHOT","messages":[{"id":%s,"role":"user"}]}',
        '{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":%s,"subagentRunId":null}]}',
        '{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[%s]}',
        '{"type":"TEXT_MESSAGE_CHUNK","messageId":"a","metadata":{"seatrial":%s}}',
        '{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":%s}',
        '{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":%s}',
    ]
    reading = agui.read("\n".join([line % value for line in stream]).encode())
    assert len(reading.events or []) == len(stream)
    assert agui.read(agui.write(reading.transcript).data).transcript == reading.transcript


def test_mutated_samples_give_a_reading_or_one_clear_error() -> None:
    rich = Transcript(
        messages=[
            *MESSAGES,
            AssistantMessage([ThinkingBlock("a"), TextBlock("b"), TextBlock("c")], StopReason.OTHER, timestamp=2**60),
            UserMessage([ImageBlock("https://x/y")]),
            CustomMessage("k", [1]),
            ToolResultMessage("c1", "weather", [], is_error=True, details={"a": 1}),
        ],
        metadata={"k": 1},
    )
    extra: list[Event] = [
        RUN[0],
        t.MessagesSnapshot(messages=[{"id": "m", "role": "user", "content": [{"type": "binary", "mimeType": "a/b"}]}]),
        t.StateSnapshot(snapshot={"a": [1]}),
        t.StateDelta(delta=[{"op": "move", "from": "/a/0", "path": "/b"}]),
        t.ActivitySnapshot(message_id="p", activity_type="PLAN", content={"x": 1}),
        t.ActivityDelta(message_id="p", activity_type="PLAN", patch=[{"op": "test", "path": "/x", "value": 1}]),
        t.RunFinished(thread_id="t1", run_id="r1", outcome=t.InterruptOutcome([t.Interrupt("i", "confirmation")])),
    ]
    samples = [sse(RUN), lines(RUN), msgspec.json.encode(RUN), agui.write(rich).data, lines(extra)]
    read = 0
    for sample in mutations(samples, 10_000):
        try:
            reading = agui.read(sample)
        except SeatrialError:
            continue
        read += 1
        if read % 20 == 0:
            agui.read(agui.write(reading.transcript).data)
    assert read > 8_000


@pytest.mark.parametrize(
    "event",
    [
        t.ToolCallChunk(tool_call_id="c9", delta="{}"),
        t.ToolCallChunk(tool_call_id="c9", tool_call_name="", delta="{}"),
        t.ToolCallStart(tool_call_id="c9", tool_call_name=""),
        t.ToolCallStart(tool_call_id="c9", tool_call_name=" "),
        t.MessagesSnapshot(
            messages=[
                {
                    "id": "m",
                    "role": "assistant",
                    "toolCalls": [{"id": "c9", "type": "function", "function": {"name": "", "arguments": "{}"}}],
                }
            ]
        ),
    ],
)
def test_a_call_without_a_name_is_a_serious_finding(event: Event) -> None:
    events: list[Event] = [t.RunStarted(thread_id="t", run_id="r"), event, t.RunFinished(thread_id="t", run_id="r")]
    reading = agui.reading_of(events, [], "agui", "r")
    assert "tool_call_dropped_no_name" in [note.code for note in reading.notes if note.serious]


def test_a_piece_of_a_call_that_belongs_to_none_is_a_serious_finding() -> None:
    events: list[Event] = [
        t.RunStarted(thread_id="t", run_id="r"),
        t.ToolCallChunk(delta='{"id": 7}'),
        t.RunFinished(thread_id="t", run_id="r"),
    ]
    reading = agui.reading_of(events, [], "agui", "r")
    assert "event_order_violation" in [note.code for note in reading.notes if note.serious]


def test_calls_in_chunks_have_their_name_once() -> None:
    events: list[Event] = [
        t.RunStarted(thread_id="t", run_id="r"),
        t.ToolCallChunk(tool_call_id="c", tool_call_name="look_up", delta="{"),
        t.ToolCallChunk(tool_call_id="c", delta="}"),
        t.ToolCallChunk(delta=""),
        t.RunFinished(thread_id="t", run_id="r"),
    ]
    assert [note for note in agui.reading_of(events, [], "agui", "r").notes if note.serious] == []


def test_a_call_that_only_a_raw_event_has_is_a_serious_note_once_for_all_of_its_kind() -> None:
    raw = {"type": "RAW", "event": {"event": "on_tool_start", "name": "delete", "data": {"input": {}}}}
    run = {"threadId": "t", "runId": "r"}
    events = [{"type": "RUN_STARTED", **run}, raw, raw, {"type": "RUN_FINISHED", **run}]
    reading = agui.read(json.dumps(events).encode())
    assert [(note.code, note.pointer) for note in reading.notes if note.serious] == [("calls_in_event", "/1/event")]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "CUSTOM", "name": "tool", "value": '{"name": "NAME", "arguments": {"a": 1}}'},
        {"type": "CUSTOM", "name": "said", "value": '<tool_call>{"name": "NAME", "arguments": {"a": 1}}</tool_call>'},
        {"type": "RAW", "event": ' {"event": "on_tool_start", "name": "NAME", "data": {"input": {"a": 1}}}'},
        {"type": "RAW", "event": {"event": "tool", "data": '{"name": "NAME", "arguments": {"a": 1}}'}},
        {
            "type": "STATE_DELTA",
            "delta": [{"op": "add", "path": "/x", "value": '[{"tool": "NAME", "args": {"a": 1}}]'}],
        },
    ],
)
def test_a_call_that_an_event_has_as_text_is_a_serious_note_unless_another_event_has_it(event: dict[str, Any]) -> None:
    run, made = {"threadId": "t", "runId": "r"}, {"toolCallId": "c"}
    for name, expected in (("find", []), ("delete", ["calls_in_event"])):
        events = [
            {"type": "RUN_STARTED", **run},
            {"type": "TOOL_CALL_START", **made, "toolCallName": "find"},
            {"type": "TOOL_CALL_ARGS", **made, "delta": '{"a": 1}'},
            {"type": "TOOL_CALL_END", **made},
            json.loads(json.dumps(event).replace("NAME", name)),
            {"type": "RUN_FINISHED", **run},
        ]
        notes = agui.read(json.dumps(events).encode()).notes
        assert [note.code for note in notes if note.serious] == expected


@pytest.mark.parametrize("value", ["plain words", '{"progress": 5}', "{not json", '["a", "b"]', ""])
def test_text_in_an_event_that_describes_no_call_is_no_finding(value: str) -> None:
    run = {"threadId": "t", "runId": "r"}
    custom = {"type": "CUSTOM", "name": "progress", "value": value}
    events = [{"type": "RUN_STARTED", **run}, custom, {"type": "RUN_FINISHED", **run}]
    assert [note for note in agui.read(json.dumps(events).encode()).notes if note.serious] == []


def test_the_recorded_stream_of_a_graph_repeats_its_calls_and_stays_complete() -> None:
    call = {"name": "find", "args": {"a": 1}, "id": "c"}
    run, made = {"threadId": "t", "runId": "r"}, {"toolCallId": "c"}
    events = [
        {"type": "RUN_STARTED", **run},
        {"type": "TOOL_CALL_START", **made, "toolCallName": "find", "rawEvent": {"tool_call_chunks": [call]}},
        {"type": "TOOL_CALL_ARGS", **made, "delta": '{"a": 1}', "rawEvent": {"tool_calls": [{**call, "id": None}]}},
        {"type": "TOOL_CALL_END", **made},
        {"type": "STATE_SNAPSHOT", "snapshot": {"messages": [{"type": "ai", "content": "", "tool_calls": [call]}]}},
        {"type": "RUN_FINISHED", **run},
    ]
    assert [note for note in agui.read(json.dumps(events).encode()).notes if note.serious] == []


@pytest.mark.parametrize("format", ["agui", "events"])
def test_what_was_given_is_still_given_when_it_is_read_back(format: str) -> None:
    given: list[Message] = [
        SystemMessage("Be brief."),
        UserMessage("Delete the old one.", 5),
        AssistantMessage([TextBlock("Yes."), ToolCall("a", "delete", {"id": 1})], StopReason.TOOL_USE, timestamp=6),
        ToolResultMessage("a", "delete", [TextBlock("no")], is_error=True, timestamp=7),
        UserMessage("And now?"),
    ]
    done: list[Message] = [
        AssistantMessage([ToolCall("b", "find", {})], StopReason.TOOL_USE),
        ToolResultMessage("b", "find", [TextBlock("ok")]),
        AssistantMessage([TextBlock("Done.")], StopReason.END_TURN),
    ]
    transcript = Transcript([*given, *done], given=[0, 1, 2, 3, 4])
    reading = formats.read(formats.write(transcript, format).data, format)
    assert reading.transcript.messages == transcript.messages
    assert reading.transcript.given == transcript.given
    assert [step.name for step in extract(reading).steps] == ["find"]
    assert [note for note in reading.notes if note.serious] == []


def test_given_messages_that_do_not_stand_at_the_head_keep_their_mark() -> None:
    transcript = Transcript(
        [UserMessage("a"), AssistantMessage([TextBlock("b")], StopReason.END_TURN), UserMessage("c")], given=[0, 2]
    )
    reading = formats.read(formats.write(transcript, "events").data, "events")
    assert (reading.transcript.messages, reading.transcript.given) == (transcript.messages, [0, 2])


def _finished(**finished: object) -> Reading:
    run, made = {"threadId": "t", "runId": "r"}, {"toolCallId": "c"}
    events = [
        {"type": "RUN_STARTED", **run},
        {"type": "TOOL_CALL_START", **made, "toolCallName": "find"},
        {"type": "TOOL_CALL_END", **made},
        {"type": "RUN_FINISHED", **run, **finished},
    ]
    return agui.read(json.dumps(events).encode())


@pytest.mark.parametrize(
    "finished",
    [
        {"outcome": {"type": "success", "pendingToolCallIds": ["c", "d"]}},
        {"result": {"messages": [{"role": "assistant", "toolCalls": [{"id": "d", "function": {"name": "pay"}}]}]}},
        {"result": {"tool_calls": [{"name": "pay", "args": {}}]}},
    ],
)
def test_a_call_that_only_the_end_of_a_run_speaks_of_is_a_serious_finding(finished: dict[str, object]) -> None:
    assert len([note for note in _finished(**finished).notes if note.serious]) == 1


@pytest.mark.parametrize(
    "finished",
    [
        {"outcome": {"type": "success", "pendingToolCallIds": ["c"]}},
        {"result": {"messages": [{"role": "assistant", "toolCalls": [{"id": "c", "function": {"name": "find"}}]}]}},
        {"result": {"answer": "ok", "tags": ["a"]}},
    ],
)
def test_the_end_of_a_run_may_repeat_its_calls(finished: dict[str, object]) -> None:
    assert [note for note in _finished(**finished).notes if note.serious] == []
