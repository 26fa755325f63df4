"""What a client holds, as our transcript: streams of other producers, and metadata that lies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import events
from strategies.messages import json_objects

from seatrial.events import fold, replay, to_transcript
from seatrial.events import types as t
from seatrial.events.types import Event
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Note,
    ReasoningBlock,
    ReasoningDetailsBlock,
    RunIdentity,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    UserBlock,
    UserMessage,
)
from seatrial.transcript.arguments import detect_unparsed

STARTED = t.RunStarted(thread_id="t", run_id="r")
FINISHED = t.RunFinished(thread_id="t", run_id="r")


def projected(*stream: Event) -> tuple[Transcript, list[str]]:
    notes: list[Note] = []
    result = fold(stream)
    assert result.notes == []
    return to_transcript(result, notes), [note.code for note in notes]


def messages(*stream: Event) -> list[Any]:
    return projected(STARTED, *stream, FINISHED)[0].messages


def text(item: str, content: str, **fields: Any) -> list[Event]:
    return [
        t.TextMessageStart(message_id=item, **fields),
        t.TextMessageContent(message_id=item, delta=content),
        t.TextMessageEnd(message_id=item),
    ]


def thought(item: str, content: str) -> list[Event]:
    return [
        t.ReasoningMessageStart(message_id=item),
        t.ReasoningMessageContent(message_id=item, delta=content),
        t.ReasoningMessageEnd(message_id=item),
    ]


def call(item: str, arguments: str, **fields: Any) -> list[Event]:
    return [
        t.ToolCallStart(tool_call_id=item, tool_call_name="f", **fields),
        t.ToolCallArgs(tool_call_id=item, delta=arguments),
        t.ToolCallEnd(tool_call_id=item),
    ]


def snapshot(*items: dict[str, Any]) -> Event:
    return t.MessagesSnapshot(messages=list(items))


def encrypted(data: str, item_id: str | None = None) -> ReasoningDetailsBlock:
    item = {"type": "reasoning.encrypted", **({"id": item_id} if item_id else {}), "format": "unknown", "data": data}
    return ReasoningDetailsBlock([msgspec.Raw(msgspec.json.encode(item))])


def test_a_conversation_of_another_producer() -> None:
    transcript, notes = projected(
        STARTED,
        *text("s", "be brief", role="system"),
        *text("u", "hi", role="user", timestamp=5),
        *thought("r", "hm"),
        *text("a", "let me look"),
        *call("c", '{"q":1}', parent_message_id="a"),
        t.ToolCallResult(message_id="x", tool_call_id="c", content="found"),
        *text("b", "done"),
        t.RunFinished(thread_id="t", run_id="r", result="done", usage=[t.TokenUsage(input_tokens=3, output_tokens=2)]),
    )
    assert notes == []
    assert transcript == Transcript(
        messages=[
            SystemMessage("be brief"),
            UserMessage("hi", timestamp=5),
            AssistantMessage(
                [ReasoningBlock("hm"), TextBlock("let me look"), ToolCall("c", "f", {"q": 1})], StopReason.TOOL_USE
            ),
            ToolResultMessage("c", "f", [TextBlock("found")]),
            AssistantMessage([TextBlock("done")], StopReason.END_TURN),
        ],
        answer="done",
        identity=RunIdentity("r", conversation_id="t"),
        usage=Usage(input_tokens=3, output_tokens=2),
    )


def test_reasoning_that_no_assistant_message_follows_is_a_message_of_its_own() -> None:
    alone = AssistantMessage([ReasoningBlock("a"), ReasoningBlock("b")], StopReason.END_TURN)
    assert messages(*thought("1", "a"), *thought("2", "b")) == [alone]
    assert messages(*thought("1", "a"), *thought("2", "b"), *text("u", "x", role="user")) == [alone, UserMessage("x")]


def test_encrypted_values_become_reasoning_details_beside_what_they_belong_to() -> None:
    stream = [
        *thought("r", "hm"),
        *text("a", "x"),
        *call("c", "{}", parent_message_id="a"),
        *[
            t.ReasoningEncryptedValue(subtype=subtype, entity_id=item, encrypted_value=value)  # type: ignore[arg-type]
            for subtype, item, value in (("message", "r", "R"), ("tool-call", "c", "C"), ("message", "a", "A"))
        ],
    ]
    assert messages(*stream) == [
        AssistantMessage(
            [
                encrypted("A"),
                ReasoningBlock("hm"),
                encrypted("R"),
                TextBlock("x"),
                encrypted("C", "c"),
                ToolCall("c", "f", {}),
            ],
            StopReason.TOOL_USE,
        )
    ]


def test_hidden_tags_in_an_assistants_text_are_thinking_and_in_reasoning_they_are_text() -> None:
    stream = [*thought("r", "<thought>native</thought>"), *text("a", "a<thought>hid</thought>b<think>open")]
    transcript, notes = projected(STARTED, *stream, FINISHED)
    assert transcript.messages == [
        AssistantMessage(
            [
                ReasoningBlock("<thought>native</thought>"),
                TextBlock("a"),
                ThinkingBlock("hid"),
                TextBlock("b"),
                ThinkingBlock("open"),
            ],
            StopReason.END_TURN,
        )
    ]
    assert notes == ["unclosed_thinking_tag"]
    assert messages(*text("u", "<thought>x</thought>", role="user")) == [UserMessage("<thought>x</thought>")]


def test_arguments_that_are_not_json_are_kept_as_text() -> None:
    transcript, notes = projected(STARTED, *call("c", '{"q":'), *call("d", " "), FINISHED)
    first, second = transcript.messages
    assert isinstance(first, AssistantMessage)
    assert isinstance(second, AssistantMessage)
    unparsed = detect_unparsed(first.tool_calls()[0].arguments)
    assert unparsed is not None
    assert unparsed[1] == '{"q":'
    assert second.tool_calls()[0].arguments == {}
    assert notes == ["arguments_not_json"]


def test_parts_become_blocks_and_other_media_are_noted() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"type": "url", "value": "https://x/y.png", "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "data", "value": "AA", "mimeType": "image/gif"}},
        {"type": "image", "source": {"type": "file", "value": "file-1"}},
        {"type": "audio", "source": {"type": "url", "value": "u"}},
        {"type": "text"},
        {"type": ["odd"]},
    ]
    blocks: list[UserBlock] = [
        TextBlock("a"),
        ImageBlock("https://x/y.png", "image/png"),
        ImageBlock("data:image/gif;base64,AA", "image/gif"),
    ]
    result = t.ToolCallResult(message_id="r", tool_call_id="c", content=parts)
    transcript, notes = projected(STARTED, snapshot({"id": "u", "role": "user", "content": parts}), result, FINISHED)
    assert transcript.messages == [UserMessage(blocks), ToolResultMessage("c", "", blocks)]
    assert notes == ["media_part_dropped"] * 4 + ["tool_name_unknown"] + ["media_part_dropped"] * 4


@pytest.mark.parametrize(
    ("content", "result"),
    [
        ("", ToolResultMessage("c", "f", [TextBlock("boom")], is_error=True)),
        ("out", ToolResultMessage("c", "f", [TextBlock("out")], is_error=True, details={"error": "boom"})),
    ],
)
def test_the_error_of_a_tool_message_makes_it_an_error(content: str, result: ToolResultMessage) -> None:
    made = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    before = {"id": "a", "role": "assistant", "toolCalls": [made]}
    answer = {"id": "r", "role": "tool", "toolCallId": "c", "content": content, "error": "boom"}
    assert messages(snapshot(before, answer))[1] == result


def test_what_a_transcript_has_no_field_for_is_noted() -> None:
    odd: list[dict[str, Any]] = [
        {"id": "d", "role": "developer", "content": "x"},
        {"id": "u", "role": "user", "content": "x", "name": "ann", "metadata": {"k": 1}, "encryptedValue": "e"},
        {"id": "s", "role": "assistant", "content": "x", "subagentRunId": "s1"},
        {"id": "q", "role": "assistant", "content": "x", "subagentRunId": "s1"},
        {"id": "a", "role": "activity", "activityType": "PLAN", "content": {"n": 1}},
    ]
    notes: list[Note] = []
    transcript = to_transcript(fold([STARTED, snapshot(*odd), FINISHED]), notes)
    assert transcript.messages[0] == SystemMessage("x")
    assert transcript.messages[4] == CustomMessage("PLAN", {"n": 1})
    assert [note.code for note in notes] == [
        "developer_as_system",
        "message_metadata_dropped",
        "message_name_dropped",
        "encrypted_value_dropped",
        "subagent_flattened",
    ]
    assert {note.pointer for note in notes} == {"/1"}


def test_a_run_that_fails_ends_the_message_it_was_in() -> None:
    error = t.RunError(message="boom", code="E1")
    transcript, _ = projected(STARTED, *text("a", "x")[:2], error)
    assert transcript.messages == [AssistantMessage([TextBlock("x")], StopReason.ERROR, error_message="boom")]
    assert transcript.metadata == {"error_code": "E1"}
    reasoned, _ = projected(STARTED, *thought("r", "hm"), error)
    assert reasoned.messages == [AssistantMessage([ReasoningBlock("hm")], StopReason.ERROR, error_message="boom")]


def test_a_run_that_fails_in_no_message_gets_one() -> None:
    error = t.RunError(message="boom")
    failed = AssistantMessage([], StopReason.ERROR, error_message="boom")
    assert projected(error)[0].messages == [failed]
    assert projected(STARTED, *text("u", "x", role="user"), error)[0].messages == [UserMessage("x"), failed]
    # What an earlier run said well is not what this one failed in.
    said = AssistantMessage([TextBlock("x")], StopReason.END_TURN)
    assert projected(STARTED, *text("a", "x"), FINISHED, STARTED, error)[0].messages == [said, failed]


def test_a_cancelled_run_aborts_the_message_it_was_in() -> None:
    cancelled = t.RunFinished(thread_id="t", run_id="r", outcome=t.CancelledOutcome())
    assert projected(STARTED, *text("a", "x"), cancelled)[0].messages == [
        AssistantMessage([TextBlock("x")], StopReason.ABORTED)
    ]
    assert projected(STARTED, *text("u", "x", role="user"), cancelled)[0].messages == [UserMessage("x")]


def test_a_message_that_was_cut_off_did_not_end_its_turn() -> None:
    assert projected(STARTED, *text("a", "x")[:2])[0].messages == [AssistantMessage([TextBlock("x")], StopReason.OTHER)]


def test_times_come_from_the_number_or_the_text() -> None:
    created = text("a", "x", created_at="2026-03-28T09:59:00.250Z")
    both = text("b", "x", created_at="2026-03-28T09:59:00Z", timestamp=7)
    odd = text("c", "x", created_at="yesterday")
    early = text("d", "x", timestamp=-5)
    naive = text("e", "x", created_at="1970-01-01T00:00:01")
    got = messages(*created, *both, *odd, *early, *naive)
    assert [message.timestamp for message in got] == [1774691940250, 7, None, None, 1000]


def test_the_result_of_a_run_is_the_answer_or_metadata() -> None:
    assert projected(STARTED, t.RunFinished(thread_id="t", run_id="r", result={"n": 1}))[0].metadata == {
        "result": {"n": 1}
    }
    assert projected(STARTED, FINISHED)[0].answer is None


def test_the_usage_of_all_models_and_runs_is_added_up() -> None:
    one = t.TokenUsage(input_tokens=1, output_tokens=2, cached_input_tokens=3)
    two = t.TokenUsage(input_tokens=10, output_tokens=0, cache_write_input_tokens=4, total_tokens=99)
    transcript, _ = projected(
        STARTED,
        t.RunFinished(thread_id="t", run_id="r", usage=[one, two]),
        STARTED,
        t.RunError(message="m", usage=[one]),
    )
    # The input tokens of AG-UI include those of the cache.
    assert transcript.usage == Usage(2, 4, cache_creation_input_tokens=4, cache_read_input_tokens=6)
    assert projected(STARTED, t.RunFinished(thread_id="t", run_id="r", usage=[]))[0].usage is None


@pytest.mark.parametrize("half", [{"total_tokens": 9000}, {"input_tokens": 1}, {"output_tokens": 1}, {}])
def test_half_a_usage_is_unknown(half: dict[str, Any]) -> None:
    whole = t.TokenUsage(input_tokens=1, output_tokens=2)
    ended = t.RunFinished(thread_id="t", run_id="r", usage=[whole, t.TokenUsage(**half)])
    assert projected(STARTED, ended)[0].usage is None


LIES: list[Any] = [
    None,
    5,
    [],
    {"blocks": [["text", 1]]},
    {"blocks": [["text", -1], ["text", 4]]},
    {"blocks": [["thinking", 1]]},
    {"blocks": [["text", 3], ["call", 0]]},
    {"blocks": [["text", 3], ["reasoning", 0]]},
    {"blocks": [["text", 10**30]]},
    {"blocks": [["dance", 3]]},
    {"stop_reason": "bored"},
    {"usage": {"input_tokens": "many"}},
    {"timestamp": "late"},
]


@pytest.mark.parametrize("lie", LIES)
def test_metadata_that_does_not_fit_is_ignored_with_a_note(lie: Any) -> None:
    stream = text("a", "abc")
    stream[2] = t.TextMessageEnd(message_id="a", metadata={"seatrial": lie})
    transcript, notes = projected(STARTED, *stream, FINISHED)
    assert transcript.messages == [AssistantMessage([TextBlock("abc")], StopReason.END_TURN)]
    assert notes == ["remainder_ignored"]


@given(st.lists(st.tuples(events(), st.sampled_from(LIES) | json_objects()), max_size=6))
def test_any_stream_with_any_metadata_gives_a_transcript(tagged: list[tuple[Event, Any]]) -> None:
    stream = []
    for event, lie in tagged:
        event.metadata = {"seatrial": lie}
        stream.append(event)
    transcript = to_transcript(replay([STARTED, *stream]).folded, [])
    msgspec.json.encode(transcript)
