"""Events from producers that nobody vouches for: mended with a note, or kept whole; never lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from strategies.events import as_json, events
from strategies.messages import json_objects, json_values, texts

from seatrial.events import EventReader, encode_event, read_event, replay, to_native
from seatrial.events import types as t
from seatrial.events.agui_messages import is_marked_in_doubt
from seatrial.events.codec import EVENT_TYPES, keep_sent
from seatrial.events.types import Event
from seatrial.transcript import Note
from seatrial.transcript.note import MAX_NOTES, NOTES_OMITTED


def read(value: Any) -> tuple[Event, list[str]]:
    event, notes = read_event(msgspec.json.encode(value))
    return event, [note.code for note in notes]


def codes(notes: list[Note]) -> list[str]:
    return [note.code for note in notes]


@given(events())
def test_a_sound_event_is_read_as_it_is(event: Event) -> None:
    assert read_event(encode_event(event)) == (event, [])


@given(events())
def test_an_event_of_the_native_view_becomes_itself_again(event: Event) -> None:
    assert read_event(encode_event(to_native(event))) == (event, [])


def test_thinking_becomes_reasoning_under_ids_that_are_the_same_on_every_reading() -> None:
    stream: list[dict[str, Any]] = [
        {"type": "THINKING_START", "title": "Plan"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "m"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_END"},
    ]
    readings = []
    for _ in range(2):
        reader = EventReader()
        readings.append([reader.read(msgspec.json.encode(value), at) for at, value in enumerate(stream)])
    assert readings[0] == readings[1]
    assert readings[0] == [
        t.ReasoningStart(message_id="seatrial-span-1"),
        t.ReasoningMessageStart(message_id="seatrial-reasoning-2"),
        t.ReasoningMessageContent(message_id="seatrial-reasoning-2", delta="hm"),
        t.ReasoningMessageContent(message_id="seatrial-reasoning-2", delta="m"),
        t.ReasoningMessageEnd(message_id="seatrial-reasoning-2"),
        t.ReasoningMessageStart(message_id="seatrial-reasoning-3"),
        t.ReasoningMessageEnd(message_id="seatrial-reasoning-3"),
        t.ReasoningEnd(message_id="seatrial-span-1"),
    ]
    # One note for each old type, and one for the title.
    assert sorted(codes(reader.notes)) == ["event_field_dropped"] + ["legacy_event"] * 5
    assert next(note.pointer for note in reader.notes if "CONTENT" in note.message) == "/2/type"
    run = [t.RunStarted(thread_id="t", run_id="r"), *readings[0], t.RunFinished(thread_id="t", run_id="r")]
    assert replay(run).violation is None


@pytest.mark.parametrize("field", ["parentMessageId", "rawEvent", "metadata", "timestamp", "subagentRunId"])
def test_a_null_that_means_absence_is_dropped_with_a_note(field: str) -> None:
    event, notes = read({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", field: None})
    assert event == t.ToolCallStart(tool_call_id="c", tool_call_name="f")
    assert notes == ["event_field_dropped"]


@pytest.mark.parametrize("field", ["outcome", "result", "usage"])
def test_a_null_at_the_end_of_a_run_is_dropped_with_a_note(field: str) -> None:
    event, notes = read({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", field: None})
    assert event == t.RunFinished(thread_id="t", run_id="r")
    assert notes == ["event_field_dropped"]


def test_nulls_inside_a_usage_are_dropped_and_the_rest_stays() -> None:
    usage = [{"inputTokens": 3, "outputTokens": None}]
    event, notes = read({"type": "RUN_ERROR", "message": "m", "usage": usage})
    assert event == t.RunError(message="m", usage=[t.TokenUsage(input_tokens=3)])
    assert notes == ["event_field_dropped"]


def test_an_optional_field_of_a_wrong_type_is_dropped() -> None:
    event, notes = read(
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "robot", "name": 5, "timestamp": "now"}
    )
    assert event == t.TextMessageStart(message_id="m")
    assert notes == ["event_field_dropped"] * 3


def test_a_fraction_of_a_millisecond_does_not_cost_the_timestamp() -> None:
    event, notes = read({"type": "TEXT_MESSAGE_END", "messageId": "m", "timestamp": 1700000000000.5})
    assert event == t.TextMessageEnd(message_id="m", timestamp=1700000000000)
    assert notes == ["event_field_dropped"]


SEED_FIELDS: list[tuple[dict[str, Any], Event]] = [
    ({"type": "STEP_STARTED", "name": "plan"}, t.StepStarted(step_name="plan")),
    ({"type": "STEP_FINISHED", "name": "plan"}, t.StepFinished(step_name="plan")),
    (
        {"type": "TOOL_CALL_START", "toolCallId": "c", "name": "search"},
        t.ToolCallStart(tool_call_id="c", tool_call_name="search"),
    ),
    (
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "name": "search", "content": "{"},
        t.ToolCallChunk(tool_call_id="c", tool_call_name="search", delta="{"),
    ),
    (
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": {"q": 1}},
        t.ToolCallArgs(tool_call_id="c", delta='{"q":1}'),
    ),
    (
        {"type": "TOOL_CALL_RESULT", "toolCallId": "c", "messageId": "m", "result": {"ok": True}},
        t.ToolCallResult(tool_call_id="c", message_id="m", content='{"ok":true}'),
    ),
    (
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "content": "hi"},
        t.TextMessageContent(message_id="m", delta="hi"),
    ),
    ({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "content": "hi"}, t.TextMessageChunk(message_id="m", delta="hi")),
    ({"type": "RUN_ERROR", "error": "boom"}, t.RunError(message="boom")),
    ({"type": "STATE_SNAPSHOT", "content": {"a": 1}}, t.StateSnapshot(snapshot={"a": 1})),
    (
        {"type": "STATE_DELTA", "delta": {"op": "remove", "path": "/a"}},
        t.StateDelta(delta=[{"op": "remove", "path": "/a"}]),
    ),
    ({"type": "MESSAGES_SNAPSHOT", "content": []}, t.MessagesSnapshot(messages=[])),
    (
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "name": "PLAN", "content": "x"},
        t.ActivitySnapshot(message_id="m", activity_type="PLAN", content={"value": "x"}),
    ),
    (
        {"type": "REASONING_ENCRYPTED_VALUE", "messageId": "m", "content": "enc"},
        t.ReasoningEncryptedValue(subtype="message", entity_id="m", encrypted_value="enc"),
    ),
    ({"type": "CUSTOM", "name": "n", "content": 5}, t.CustomEvent(name="n", value=5)),
]


@pytest.mark.parametrize(("value", "event"), SEED_FIELDS)
def test_the_seeds_generic_fields_are_read(value: dict[str, Any], event: Event) -> None:
    assert read(value)[0] == event
    assert set(read(value)[1]) == {"event_field_mapped"}


def test_an_error_of_the_seed_makes_a_tool_result_an_error() -> None:
    event, notes = read({"type": "TOOL_CALL_RESULT", "toolCallId": "c", "messageId": "m", "error": "no such file"})
    assert isinstance(event, t.ToolCallResult)
    assert event.content == "no such file"
    assert event.metadata == {"seatrial": {"is_error": True}}
    assert set(notes) == {"event_field_mapped"}


def test_a_stream_without_ids_is_read_as_the_stream_that_it_must_be() -> None:
    reader = EventReader(thread_id="t", run_id="r")
    stream: list[dict[str, Any]] = [
        {"type": "RUN_STARTED"},
        {"type": "TEXT_MESSAGE_START"},
        {"type": "TEXT_MESSAGE_CONTENT", "delta": "a"},
        {"type": "TEXT_MESSAGE_END"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "name": "f"},
        {"type": "TOOL_CALL_ARGS", "delta": "{}"},
        {"type": "TOOL_CALL_END"},
        {"type": "TOOL_CALL_RESULT", "result": "ok"},
        {"type": "RUN_FINISHED"},
    ]
    read = [reader.read(msgspec.json.encode(value)) for value in stream]
    assert read[0] == t.RunStarted(thread_id="t", run_id="r")
    assert read[5] == t.ToolCallArgs(tool_call_id="c", delta="{}")
    result = replay(read)
    assert result.violation is None
    assert [message.content for message in result.folded.messages] == ["a", msgspec.UNSET, "ok"]
    assert "event_field_missing" in codes(reader.notes)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"type":"TOMORROW","x":[1]}', "unknown_event_type"),
        (b'{"type":"KEEPALIVE"}', "unknown_event_type"),
        (b'{"type":5}', "event_unreadable"),
        (b"{}", "event_unreadable"),
        (b"[1]", "event_unreadable"),
        (b"null", "event_unreadable"),
    ],
)
def test_what_cannot_be_typed_is_kept_whole(data: bytes, code: str) -> None:
    event, notes = read_event(data)
    assert event == t.RawEvent(event=msgspec.json.decode(data), source="seatrial")
    assert codes(notes)[-1] == code


@pytest.mark.parametrize("data", [b"", b"{", b"NaN", b'{"type":"RAW","event":1e999}', b"[" * 5000, b"\xff\xfe"])
def test_what_is_not_json_is_kept_as_text(data: bytes) -> None:
    event, notes = read_event(data)
    assert event == t.RawEvent(event=data.decode("utf-8", "replace"), source="seatrial")
    assert codes(notes) == ["event_unreadable"]


def test_bytes_that_are_not_utf8_and_lone_surrogates_are_repaired() -> None:
    event, notes = read_event(b'\xef\xbb\xbf{"type":"TEXT_MESSAGE_CONTENT","messageId":"m\xff","delta":"\\ud800"}')
    assert event == t.TextMessageContent(message_id="m\ufffd", delta="\ufffd")
    assert codes(notes) == ["bom_removed", "invalid_utf8_replaced", "lone_surrogate_replaced"]


def test_notes_point_to_the_field_of_the_event() -> None:
    reader = EventReader()
    reader.read(b'{"type":"RUN_ERROR","error":"boom"}', 7)
    assert [note.pointer for note in reader.notes] == ["/7/message"]


@settings(max_examples=50)
@given(st.sampled_from(sorted(EVENT_TYPES)), json_objects(), st.data())
def test_any_object_with_a_type_is_read_as_some_event(name: str, fields: dict[str, Any], data: st.DataObject) -> None:
    keys = sorted({key for kind in EVENT_TYPES.values() for key in kind.__struct_encode_fields__})
    wild = data.draw(st.dictionaries(st.sampled_from([*keys, "name", "error"]), json_values(), max_size=6))
    event, notes = read_event(msgspec.json.encode({**fields, **wild, "type": name}))
    assert isinstance(event, EVENT_TYPES[name])
    # What was read is written as it was sent, and read again in the same way.
    again, later = read_event(encode_event(event))
    assert (again, later) == (event, notes)
    # And what was made of it, without what was sent, has nothing left to repair.
    keep_sent(event, None)
    assert read_event(encode_event(event)) == (event, [])


@settings(max_examples=50)
@given(events(), texts(), st.data())
def test_an_event_with_one_field_changed_is_never_lost(event: Event, text: str, data: st.DataObject) -> None:
    value = as_json(event)
    key = data.draw(st.sampled_from(sorted(value)))
    value[key] = data.draw(json_values() | st.just(text))
    read, notes = read_event(msgspec.json.encode(value))
    if isinstance(read, t.RawEvent) and not isinstance(event, t.RawEvent):
        assert read.event == value or notes


@pytest.mark.parametrize(
    ("data", "weight"), [(b'{"type":"NO_SUCH"}', "serious"), (b'{"type":"RUN_FINISHED","result":null}', "look")]
)
def test_of_very_many_notes_the_first_are_kept_and_the_others_counted(data: bytes, weight: str) -> None:
    reader = EventReader(thread_id="t", run_id="r")
    for _ in range(5_000):
        reader.read(data)
    assert len(reader.notes) == MAX_NOTES + 1
    assert reader.notes[-1].code == NOTES_OMITTED
    assert reader.notes[-1].weight == weight
    assert int(reader.notes[-1].message.split()[0]) >= 5_000 - MAX_NOTES


@pytest.mark.parametrize("key", ["status", "outcome"])
def test_a_result_that_ended_in_a_word_that_nobody_knows_is_in_doubt(key: str) -> None:
    value = {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "x", key: "weird"}
    reader = EventReader()
    event = reader.read_value(value)
    assert is_marked_in_doubt(event.metadata)
    assert [
        note.weight for note in reader.notes if note.pointer == f"/{key}" and note.code == "event_field_mapped"
    ] == ["look"]


@pytest.mark.parametrize("word", ["pending", "running", "completed", "success", "ok"])
def test_a_result_that_ended_in_a_known_word_is_not_marked(word: str) -> None:
    value = {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "x", "status": word}
    assert EventReader().read_value(value).metadata is UNSET


@pytest.mark.parametrize("name", ["success", "interrupt", "cancelled"])
def test_the_outcome_of_a_run_may_be_the_text_of_its_type(name: str) -> None:
    event, notes = read_event(
        b'{"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": "%s"}' % name.encode()
    )
    assert isinstance(event, t.RunFinished)
    assert event.outcome is not msgspec.UNSET
    assert msgspec.to_builtins(event.outcome)["type"] == name
    assert not any(note.serious for note in notes)


@pytest.mark.parametrize(
    ("outcome", "serious"),
    [(b'"done?"', True), (b'{"type": "odd"}', True), (b"3", True), (b"{}", True), (b"[]", True), (b"null", False)],
)
def test_an_outcome_that_cannot_be_read_leaves_open_how_the_run_ended(outcome: bytes, serious: bool) -> None:
    event, notes = read_event(b'{"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": %s}' % outcome)
    assert isinstance(event, t.RunFinished)
    assert event.outcome is msgspec.UNSET
    assert [(note.code, note.pointer, note.serious) for note in notes] == [("event_field_dropped", "/outcome", serious)]


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (b'{"type": "failure", "error": "boom"}', "boom"),
        (b'{"type": "error", "error": {"message": "boom"}}', "boom"),
        (b'{"type": "failed"}', "the agent says of its run: failed"),
        (b'"timeout"', "the agent says of its run: timeout"),
    ],
)
def test_a_run_that_finishes_with_a_failure_ended_with_an_error(outcome: bytes, message: str) -> None:
    event, notes = read_event(b'{"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": %s}' % outcome)
    assert isinstance(event, t.RunError)
    assert (event.message, event.thread_id) == (message, "t")
    assert [(note.code, note.pointer) for note in notes] == [("event_field_mapped", "/outcome")]
