"""The native event log as a format: one envelope per line."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from strategies.messages import transcripts
from strategies.mutations import mutations

from seatrial.errors import SeatrialError
from seatrial.events import SequencedOutputEnvelope, read_log
from seatrial.formats import agui, events
from seatrial.transcript import AssistantMessage, RunIdentity, StopReason, TextBlock, Transcript, UserMessage

TRANSCRIPT = Transcript(
    messages=[UserMessage("hi"), AssistantMessage([TextBlock("hello")], StopReason.END_TURN)],
    identity=RunIdentity("run-1", conversation_id="thread-1"),
    answer="hello",
)
LOG = events.write(TRANSCRIPT).data


def test_a_log_is_one_envelope_for_each_event_from_sequence_zero() -> None:
    decoder = msgspec.json.Decoder(SequencedOutputEnvelope)
    envelopes = [decoder.decode(line) for line in LOG.splitlines()]
    assert [envelope.sequence for envelope in envelopes] == list(range(len(envelopes)))
    assert {(envelope.run_id, envelope.thread_id) for envelope in envelopes} == {("run-1", "thread-1")}
    assert LOG.endswith(b"\n")


@settings(max_examples=50)
@given(transcripts())
def test_what_is_written_is_read_back_exactly(transcript: Transcript) -> None:
    written = events.write(transcript)
    assert written.losses == []
    reading = events.read(written.data)
    assert reading.transcript == transcript
    assert (reading.format, reading.id) == ("events", read_log(written.data).run_id)
    assert {note.code for note in reading.notes} <= {"tool_name_unknown"}


def test_both_views_hold_the_same_events() -> None:
    assert events.read(LOG).events == agui.read(agui.write(TRANSCRIPT).data).events


def test_keepalive_and_terminal_frames_are_tolerated() -> None:
    keepalive = b'{"type":"KEEPALIVE","cursor":{"runId":"run-1","sequence":0}}\n'
    terminal = b'{"type":"TERMINAL","runId":"run-1","status":"completed"}\n'
    first, rest = LOG.split(b"\n", 1)
    reading = events.read(first + b"\n" + keepalive + rest + terminal)
    assert reading.transcript == TRANSCRIPT
    assert reading.notes == []


def test_a_missing_line_is_noted() -> None:
    lines = LOG.splitlines(keepends=True)
    reading = events.read(b"".join(lines[:2] + lines[3:]))
    assert [note.code for note in reading.notes] == ["sequence_gap"]


@pytest.mark.parametrize("at", range(1, len(LOG), 7))
def test_a_log_that_was_cut_gives_what_was_written_before(at: int) -> None:
    whole = events.read(LOG).events
    assert whole is not None
    cut = events.read(LOG[:at]).events
    assert cut == whole[: len(cut or [])]


def test_mutated_logs_give_a_reading_or_one_clear_error() -> None:
    read = 0
    for sample in mutations([LOG], 2_000, seed=1):
        try:
            events.read(sample)
        except SeatrialError:
            continue
        read += 1
    assert read > 1_500
