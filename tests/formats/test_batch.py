"""Files of many provider responses, one in each line: trajectory.md 1 and 4."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.messages import transcripts

from seatrial.formats import output_messages
from seatrial.formats.registry import BatchRecord, read_many
from seatrial.transcript import AssistantMessage, ReasoningDetailsBlock, StopReason, Transcript

FORMAT = "output-messages"


def summary(records: Iterable[BatchRecord]) -> list[tuple[int | None, str | None, str | None]]:
    """Line, id, and the answer or the error's code."""
    found = []
    for record in records:
        assert (record.reading is None) != (record.error is None)
        outcome = record.error.code if record.error else record.reading.transcript.answer if record.reading else None
        found.append((record.line, record.id, outcome))
    return found


def test_a_line_is_a_record() -> None:
    data = b'{"id":"a","text":"one"}\n\n{"id":7,"text":"two"}'
    assert summary(read_many(data, FORMAT)) == [(1, "a", "one"), (3, "7", "two")]


def test_a_bad_line_affects_that_record_alone() -> None:
    lines = [b'{"id":"a","text":"one"}', b"{oops", b"[]", b'{"id":"d"}', b'{"id":"e","text":"two"}']
    assert summary(read_many(b"\n".join(lines), FORMAT)) == [
        (1, "a", "one"),
        (2, None, "not_json"),
        (3, None, "invalid_document"),
        (4, None, "invalid_document"),
        (5, "e", "two"),
    ]


def test_the_error_names_its_line() -> None:
    _, record = read_many(b'{"id":"a","text":"one"}\n{oops', FORMAT)
    assert record.error is not None
    assert record.error.line == 2


def test_a_line_stays_a_line_though_details_have_newlines() -> None:
    details = ReasoningDetailsBlock([msgspec.Raw(b'{\n"signature": "s"\n}')])
    line = output_messages.write(Transcript([AssistantMessage([details], StopReason.END_TURN)], "b"), "a")
    assert line.data.count(b"\n") == 1
    assert [(loss.code, loss.pointer) for loss in line.losses] == [("changed", "/messages/0/content/0")]


@settings(max_examples=25)
@given(st.lists(transcripts(), min_size=2, max_size=3))
def test_what_is_written_is_read_line_by_line(batch: list[Transcript]) -> None:
    written = [output_messages.write(transcript, str(number)) for number, transcript in enumerate(batch)]
    records = list(read_many(b"".join([line.data for line in written]), FORMAT))
    assert [record.id for record in records] == [str(number) for number in range(len(batch))]
    for transcript, line, record in zip(batch, written, records, strict=True):
        assert line.data.count(b"\n") == 1
        assert record.reading is not None
        assert (record.reading.transcript == transcript) == (line.losses == [])
