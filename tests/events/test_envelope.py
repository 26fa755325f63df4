"""Envelopes, keepalives, terminal frames and cursors: closed objects, and the text form of a cursor."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import events
from strategies.messages import texts

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.events import (
    Cursor,
    RunStreamTerminal,
    SequencedOutputEnvelope,
    StreamKeepalive,
    cursor_text,
    encode_event,
    envelope_bytes,
    envelope_head,
    parse_cursor,
)
from seatrial.events.types import Event, TextMessageChunk

ENVELOPES = msgspec.json.Decoder(SequencedOutputEnvelope)

SEED_EXAMPLE = (
    b'{"runId":"run-20260328-0001","threadId":"thread-main","sequence":12,"event":{"type":"TEXT_MESSAGE_CHUNK",'
    b'"eventId":"evt-msg-chunk-12","messageId":"msg-assistant-1","delta":"deployment is healthy",'
    b'"createdAt":"2026-03-28T09:59:00Z"}}'
)


def test_the_seeds_example_envelope_is_read() -> None:
    envelope = ENVELOPES.decode(SEED_EXAMPLE)
    assert (envelope.run_id, envelope.thread_id, envelope.sequence) == ("run-20260328-0001", "thread-main", 12)
    assert envelope.event == TextMessageChunk(
        event_id="evt-msg-chunk-12",
        message_id="msg-assistant-1",
        delta="deployment is healthy",
        created_at="2026-03-28T09:59:00Z",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"sequence": -1},
        {"sequence": "0"},
        {"runId": ""},
        {"runId": "x" * 257},
        {"threadId": None},
        {"event": {"type": "NOPE"}},
    ],
)
def test_an_envelope_is_closed_and_typed(change: dict[str, object]) -> None:
    sound = {"runId": "r", "threadId": "t", "sequence": 0, "event": {"type": "TEXT_MESSAGE_CHUNK"}}
    ENVELOPES.decode(msgspec.json.encode(sound))
    with pytest.raises(msgspec.ValidationError):
        ENVELOPES.decode(msgspec.json.encode({**sound, **change}))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Cursor, {"runId": "r", "sequence": 0}),
        (Cursor, {"runId": "r", "threadId": "t", "sequence": 7}),
        (StreamKeepalive, {"type": "KEEPALIVE", "cursor": {"runId": "r", "sequence": 3}}),
        (RunStreamTerminal, {"type": "TERMINAL", "runId": "r", "status": "completed"}),
    ],
)
def test_the_frames_of_a_native_stream_round_trip_and_refuse_unknown_keys(
    kind: type[msgspec.Struct], value: dict[str, object]
) -> None:
    read = msgspec.convert(value, kind)
    assert msgspec.to_builtins(read) == value
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**value, "more": 1}, kind)
    for key in value.keys() - {"threadId", "type"}:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({name: item for name, item in value.items() if name != key}, kind)


def test_a_terminal_frame_has_a_task_status() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"type": "TERMINAL", "runId": "r", "status": "done"}, RunStreamTerminal)


@given(texts(min_size=1), texts(min_size=1), st.integers(0, 2**53), events())
def test_a_spliced_envelope_is_the_encoded_envelope(run_id: str, thread_id: str, sequence: int, event: Event) -> None:
    spliced = envelope_bytes(envelope_head(run_id, thread_id), sequence, encode_event(event))
    assert spliced == wire.encode(SequencedOutputEnvelope(run_id, thread_id, sequence, event))
    assert ENVELOPES.decode(spliced) == SequencedOutputEnvelope(run_id, thread_id, sequence, event)


@given(texts(min_size=1, max_size=60), st.integers(0, 10**18))
def test_a_cursor_survives_its_text_form(run_id: str, sequence: int) -> None:
    text = cursor_text(run_id, sequence)
    assert text.isascii()
    assert text.isprintable()
    assert parse_cursor(text) == Cursor(run_id=run_id, sequence=sequence)


def test_an_ordinary_run_id_stands_in_a_cursor_as_it_is() -> None:
    assert cursor_text("tenant:run-1", 12) == "tenant:run-1:12"
    assert parse_cursor("tenant:run-1:12") == Cursor(run_id="tenant:run-1", sequence=12)


@pytest.mark.parametrize(
    "text", ["", "run", ":3", "run:", "run:-1", "run:01", "run:x", "run:1.0", "r:" + "9" * 40, "%FF:1"]
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        parse_cursor(text)
    assert caught.value.code == "invalid_cursor"
