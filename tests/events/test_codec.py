"""Events to bytes and back, strictly; and the four types that the native view carries as CUSTOM."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import events

from seatrial.errors import SeatrialError
from seatrial.events import codec, decode_event, encode_event, encode_events, from_native, read_event, to_native
from seatrial.events import types as t
from seatrial.events.codec import CARRIED_TYPES, EVENT_TYPES, amended, native_bytes, stamp
from seatrial.events.types import Event

# contracts B1: the 31 types.
NAMES = [
    "RUN_STARTED",
    "RUN_FINISHED",
    "RUN_ERROR",
    "STEP_STARTED",
    "STEP_FINISHED",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "TEXT_MESSAGE_CHUNK",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_END",
    "TOOL_CALL_CHUNK",
    "TOOL_CALL_RESULT",
    "STATE_SNAPSHOT",
    "STATE_DELTA",
    "MESSAGES_SNAPSHOT",
    "ACTIVITY_SNAPSHOT",
    "ACTIVITY_DELTA",
    "REASONING_START",
    "REASONING_END",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_END",
    "REASONING_MESSAGE_CHUNK",
    "REASONING_ENCRYPTED_VALUE",
    "SUBAGENT_STARTED",
    "SUBAGENT_FINISHED",
    "SUBAGENT_ERROR",
    "RAW",
    "CUSTOM",
]


def test_all_types_are_there() -> None:
    assert sorted(EVENT_TYPES) == sorted(NAMES)
    assert len(NAMES) == 31


@given(st.lists(events(), max_size=5))
def test_many_events_are_written_like_each_of_them(some: list[Event]) -> None:
    assert encode_events(some) == [encode_event(event) for event in some]


def test_events_of_any_length_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []

    def counted(event: Event) -> bytes:
        encoded.append(event)
        return msgspec.json.encode(event)

    monkeypatch.setattr(codec, "_encode", counted)
    some: list[Event] = [t.CustomEvent(name="short", value=1), t.CustomEvent(name="long", value="x" * 10_000)]
    encode_events(some)
    assert encoded == some


@pytest.mark.parametrize("odd", [msgspec.Raw(b'{\n"a": 1}'), "a lone surrogate: \ud800"])
def test_an_event_that_is_not_one_line_as_it_is_leaves_the_others_alone(odd: object) -> None:
    some: list[Event] = [t.StepStarted(step_name="a"), t.RawEvent(event=odd), t.StepFinished(step_name="a")]
    assert encode_events(some) == [encode_event(event) for event in some]


@given(events())
def test_every_event_round_trips(event: Event) -> None:
    data = encode_event(event)
    assert data.startswith(b'{"type":"')
    assert decode_event(data) == event
    assert encode_event(decode_event(data)) == data


@given(events())
def test_the_native_view_carries_every_event(event: Event) -> None:
    native = to_native(event)
    name = msgspec.to_builtins(event)["type"]
    if name in CARRIED_TYPES:
        assert isinstance(native, t.CustomEvent)
        assert native.name == name
        assert (native.timestamp, native.metadata, native.event_id) == (event.timestamp, event.metadata, event.event_id)
        assert from_native(native) == event
        assert from_native(decode_event(encode_event(native))) == event  # type: ignore[arg-type]  # it is CUSTOM
    else:
        assert native is event


@pytest.mark.parametrize("value", [None, 5, {}, {"subagentRunId": 7, "name": "n"}])
def test_a_custom_event_that_only_has_the_name_of_a_type_stays_custom(value: object) -> None:
    assert from_native(t.CustomEvent(name="SUBAGENT_STARTED", value=value)) is None
    assert from_native(t.CustomEvent(name="mine", value=value)) is None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not_json"),
        (b"{", "not_json"),
        (b"[]", "invalid_document"),
        (b"{}", "invalid_document"),
        (b'{"type":"NOPE"}', "invalid_document"),
        (b'{"type":"TEXT_MESSAGE_END","messageId":5}', "invalid_document"),
        (b'{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":null}', "invalid_document"),
        (b'{"type":"RUN_ERROR","error":{}}', "invalid_document"),
        (b'{"type":"RUN_STARTED","status":"asleep"}', "invalid_document"),
        (b'{"type":"RAW","event":' + b"[" * 5000 + b"]" * 5000 + b"}", "too_deep"),
    ],
)
def test_the_strict_decoder_refuses(data: bytes, code: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        decode_event(data)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}', t.TextMessageContent(message_id="m", delta="")),
        (b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":1}', t.TextMessageContent(message_id="m", delta="1")),
        (b'{"type":"TEXT_MESSAGE_END","messageId":"m","subagentRunId":null}', t.TextMessageEnd(message_id="m")),
        (b'{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":9007199254740992}', t.TextMessageEnd(message_id="m")),
        (b'{"type":"TEXT_MESSAGE_START","messageId":"m","role":"tool"}', t.TextMessageStart(message_id="m")),
        (b'{"type":"STATE_SNAPSHOT"}', t.StateSnapshot()),
        (b'{"type":"MESSAGES_SNAPSHOT","messages":5}', t.MessagesSnapshot()),
        (b'{"type":"STATE_DELTA","delta":[5]}', t.StateDelta(delta=[])),
    ],
)
def test_the_strict_decoder_asks_for_no_more_than_the_seed_and_keeps_what_was_sent(data: bytes, event: Event) -> None:
    decoded = decode_event(data)
    assert decoded == event
    assert json.loads(encode_event(decoded)) == json.loads(data)


def test_what_an_event_was_sent_with_stays_with_it_in_the_native_view() -> None:
    for sent in (
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "colour": {"r": 1}},
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "eventId": "e", "colour": [1]},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "usage": [{"inputTokens": 1, "free": True}]},
    ):
        event = decode_event(json.dumps(sent).encode())
        data = encode_event(event)
        assert json.loads(data) == sent
        assert data.startswith(b'{"type":')
        native = json.loads(native_bytes(data))
        assert json.loads(encode_event(to_native(event))) == native
        read, _ = read_event(native_bytes(data))
        assert read == event
        kept = native if native["type"] == sent["type"] else {**native, **native["value"], "type": sent["type"]}
        assert kept.items() >= sent.items()


def test_a_field_that_we_add_stands_beside_what_was_sent_and_overrides_nothing() -> None:
    event = decode_event(b'{"type":"TEXT_MESSAGE_END","messageId":"m","colour":1}')
    stamp(event, 7)
    assert event.timestamp == 7
    assert json.loads(encode_event(event)) == {
        "type": "TEXT_MESSAGE_END",
        "messageId": "m",
        "colour": 1,
        "timestamp": 7,
    }
    odd = decode_event(b'{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":"now"}')
    stamp(odd, 7)
    assert (odd.timestamp, json.loads(encode_event(odd))["timestamp"]) == (7, "now")
    moved = amended(event, message_id="other")
    assert json.loads(encode_event(moved)) == {**json.loads(encode_event(event)), "messageId": "other"}


def test_null_is_a_value_where_any_json_is() -> None:
    assert decode_event(b'{"type":"STATE_SNAPSHOT","snapshot":null}') == t.StateSnapshot(snapshot=None)
    assert encode_event(t.CustomEvent(name="n", value=None)) == b'{"type":"CUSTOM","name":"n","value":null}'


def test_absent_fields_are_left_out_and_the_role_of_reasoning_is_always_there() -> None:
    assert encode_event(t.TextMessageEnd(message_id="m")) == b'{"type":"TEXT_MESSAGE_END","messageId":"m"}'
    started = encode_event(t.ReasoningMessageStart(message_id="m"))
    assert started == b'{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}'
    assert decode_event(b'{"type":"REASONING_MESSAGE_START","messageId":"m"}') == t.ReasoningMessageStart(
        message_id="m"
    )


def test_lone_surrogates_are_replaced_when_written() -> None:
    data = encode_event(t.TextMessageContent(message_id="m", delta="a\ud800b"))
    assert decode_event(data) == t.TextMessageContent(message_id="m", delta="a\ufffdb")


@given(events())
def test_the_bytes_of_the_native_view_are_those_of_the_event_that_it_knows(event: t.Event) -> None:
    assert native_bytes(encode_event(event)) == encode_event(to_native(decode_event(encode_event(event))))
