"""Batches of provider responses: trajectory.md 1 and 4."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.messages import transcripts

from seatrial.formats.batch import BatchRecord, read_batch, write_batch
from seatrial.transcript import AssistantMessage, ReasoningDetailsBlock, StopReason, Transcript


def summary(records: Iterator[BatchRecord]) -> list[tuple[int | None, str | None, str | None]]:
    """Line, id, and the answer or the error's code."""
    found = []
    for record in records:
        assert (record.reading is None) != (record.error is None)
        outcome = record.error.code if record.error else record.reading.transcript.answer if record.reading else None
        found.append((record.line, record.id, outcome))
    return found


def test_a_line_is_a_record() -> None:
    lines = [b'{"id":"a","text":"one"}\n', b"\n", b'{"id":7,"text":"two"}']
    assert summary(read_batch(lines)) == [(1, "a", "one"), (3, "7", "two")]


def test_a_bad_line_affects_that_record_alone() -> None:
    lines = [b'{"id":"a","text":"one"}', b"{oops", b"[]", b'{"id":"d"}', b'{"id":"e","text":"two"}']
    assert summary(read_batch(lines)) == [
        (1, "a", "one"),
        (2, None, "not_json"),
        (3, None, "invalid_document"),
        (4, "d", "invalid_document"),
        (5, "e", "two"),
    ]


def test_the_error_names_its_line() -> None:
    (record,) = read_batch([b"{oops"])
    assert record.error is not None
    assert record.error.line == 1


def test_a_missing_unknown_or_repeated_id_affects_that_record_alone() -> None:
    lines = [
        b'{"id":"a","text":"1"}',
        b'{"text":"2"}',
        b'{"id":"x","text":"3"}',
        b'{"id":"a","text":"4"}',
        b'{"id":"b","text":"5"}',
    ]
    assert summary(read_batch(lines, ["a", "b"])) == [
        (1, "a", "1"),
        (2, None, "bad_record"),
        (3, "x", "bad_record"),
        (4, "a", "bad_record"),
        (5, "b", "5"),
    ]


def test_an_expected_id_without_a_line_is_told_at_the_end() -> None:
    assert summary(read_batch([b'{"id":"b","text":"1"}'], ["a", "b", "c"])) == [
        (1, "b", "1"),
        (None, "a", "bad_record"),
        (None, "c", "bad_record"),
    ]


def test_memory_does_not_grow_with_the_batch() -> None:
    def lines(count: int) -> Iterator[bytes]:
        text = "x" * 10_000
        for number in range(count):
            yield msgspec.json.encode({"id": str(number), "text": text})

    tracemalloc.start()
    try:
        for _ in read_batch(lines(1_000)):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The lines are 10 MB together.
    assert peak < 500_000


def test_a_line_stays_a_line_though_details_have_newlines() -> None:
    details = ReasoningDetailsBlock([msgspec.Raw(b'{\n"signature": "s"\n}')])
    (line,) = write_batch([("a", Transcript([AssistantMessage([details], StopReason.END_TURN)], "b"))])
    assert line.data.count(b"\n") == 1
    assert [(loss.code, loss.pointer) for loss in line.losses] == [("changed", "/messages/0/content/0")]


@settings(max_examples=25)
@given(st.lists(transcripts(), max_size=3))
def test_what_is_written_is_read_line_by_line(batch: list[Transcript]) -> None:
    written = list(write_batch((str(number), transcript) for number, transcript in enumerate(batch)))
    records = list(read_batch([line.data for line in written]))
    assert [record.id for record in records] == [str(number) for number in range(len(batch))]
    for transcript, line, record in zip(batch, written, records, strict=True):
        assert line.data.count(b"\n") == 1
        assert record.reading is not None
        assert (record.reading.transcript == transcript) == (line.losses == [])
