"""The seed's schema: what is valid under it is read, and what we write is valid under it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.messages import json_objects, json_values, texts, transcripts

from seatrial.errors import SeatrialError
from seatrial.events import (
    Cursor,
    RunStreamTerminal,
    StreamKeepalive,
    decode_event,
    encode_event,
    read_event,
    read_log,
    to_native,
)
from seatrial.events import types as t
from seatrial.events.codec import CARRIED_TYPES, EVENT_TYPES
from seatrial.formats import events as native
from seatrial.schemas import schema
from seatrial.transcript import Transcript

SCHEMA = json.loads((Path(__file__).parent.parent / "resources" / "output-event.schema.json").read_text())
SEED_TYPES: list[str] = SCHEMA["$defs"]["OutputEventType"]["enum"]


def validator(name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({**SCHEMA, "$ref": f"#/$defs/{name}"})


EVENT = validator("OutputEvent")
ENVELOPE = validator("SequencedOutputEnvelope")

AGUI_FIELDS = sorted(
    {field for kind in EVENT_TYPES.values() for field in kind.__struct_encode_fields__}
    - SCHEMA["$defs"]["OutputEvent"]["properties"].keys()
)

opaque_ids = texts(min_size=1, max_size=12)


def seed_events() -> st.SearchStrategy[dict[str, Any]]:
    """Everything that the seed's OutputEvent allows."""
    return st.fixed_dictionaries(
        {"type": st.sampled_from(SEED_TYPES)},
        optional={
            "eventId": opaque_ids,
            "threadId": opaque_ids,
            "messageId": opaque_ids,
            "toolCallId": opaque_ids,
            "artifactId": opaque_ids,
            "name": texts(),
            "status": st.sampled_from(SCHEMA["$defs"]["taskStatus"]["enum"]),
            "content": json_values(),
            "delta": json_values(),
            "result": json_values(),
            "error": texts(),
            "metadata": json_objects(),
            "createdAt": st.just("2026-03-28T09:59:00Z"),
            # Any other property may be there too, under AG-UI's names or not.
            **dict.fromkeys(AGUI_FIELDS, json_values()),
            "anything": json_values(),
        },
    )


def test_the_seed_has_27_of_our_types_and_the_other_four_are_carried() -> None:
    assert set(SEED_TYPES) == set(EVENT_TYPES) - CARRIED_TYPES
    assert len(SEED_TYPES) == 27


@given(seed_events())
def test_what_is_valid_under_the_schema_is_read(value: dict[str, Any]) -> None:
    assert EVENT.is_valid(value)
    data = msgspec.json.encode(value)
    event, _ = read_event(data)
    assert isinstance(event, EVENT_TYPES[value["type"]])
    assert decode_event(data) == event
    # What was sent is what is stored.
    assert msgspec.json.decode(encode_event(event)) == msgspec.json.decode(data)


PUBLISHED_EVENT = jsonschema_rs.validator_for(schema("event"))
PUBLISHED_ENVELOPE = jsonschema_rs.validator_for(schema("envelope"))


@given(seed_events())
def test_every_document_of_the_seeds_schema_is_valid_under_the_published_one(value: dict[str, Any]) -> None:
    PUBLISHED_EVENT.validate(value)
    PUBLISHED_ENVELOPE.validate({"runId": "r", "threadId": "t", "sequence": 0, "event": value})


@given(seed_events(), st.data())
def test_what_is_not_of_the_seeds_types_is_refused_by_the_strict_decoder_and_by_the_schema(
    value: dict[str, Any], data: st.DataObject
) -> None:
    wrong = {"eventId": "", "messageId": 5, "name": None, "status": "asleep", "error": {}, "metadata": [], "type": "NO"}
    key = data.draw(st.sampled_from(sorted(wrong)))
    value = {**value, key: wrong[key]}
    assert not EVENT.is_valid(value)
    assert not PUBLISHED_EVENT.is_valid(value)
    with pytest.raises(SeatrialError):
        decode_event(msgspec.json.encode(value))
    assert read_event(msgspec.json.encode(value))[1], "the lenient reader takes it, with a note"


@settings(max_examples=50)
@given(st.lists(seed_events(), min_size=1, max_size=4))
def test_a_log_that_is_valid_under_the_schema_is_read(values: list[dict[str, Any]]) -> None:
    lines = []
    for sequence, value in enumerate(values):
        envelope = {"runId": "r", "threadId": "t", "sequence": sequence, "event": value}
        assert ENVELOPE.is_valid(envelope)
        lines.append(msgspec.json.encode(envelope) + b"\n")
    log = read_log(b"".join(lines))
    assert len(log.events) == len(values)
    assert log.sequences == list(range(len(values)))
    assert (log.run_id, log.thread_id) == ("r", "t")


@settings(max_examples=50)
@given(transcripts())
def test_what_the_native_writer_writes_is_valid(transcript: Transcript) -> None:
    for line in native.write(transcript).data.splitlines():
        ENVELOPE.validate(json.loads(line))


CARRIED = [
    t.ActivityDelta(message_id="m", activity_type="PLAN", patch=[], event_id="e1"),
    t.SubagentStarted(subagent_run_id="s", name="n", created_at="2026-03-28T09:59:00Z"),
    t.SubagentFinished(subagent_run_id="s"),
    t.SubagentError(subagent_run_id="s", message="m"),
]


@pytest.mark.parametrize("event", CARRIED)
def test_the_types_that_the_seed_lacks_are_valid_as_custom(event: t.Event) -> None:
    assert not EVENT.is_valid(json.loads(encode_event(event)))
    EVENT.validate(json.loads(encode_event(to_native(event))))


def test_keepalive_and_terminal_frames_are_valid() -> None:
    cursor = Cursor(run_id="r", sequence=0)
    validator("StreamKeepalive").validate(json.loads(msgspec.json.encode(StreamKeepalive(cursor))))
    terminal = RunStreamTerminal("r", "completed")
    validator("RunStreamTerminal").validate(json.loads(msgspec.json.encode(terminal)))
