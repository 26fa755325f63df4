"""Many provider responses in one file: a JSON line for each, with the `id` of the case that it answers.

A line that cannot be used spoils nothing but its own record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats import output_messages
from seatrial.formats.reading import Reading, Written
from seatrial.transcript import Transcript


class BatchRecord(msgspec.Struct):
    """What came of one line, or of an id for which no line came."""

    line: int | None
    """From 1; blank lines count. None when there is no line for the id."""
    id: str | None
    reading: Reading | None = None
    """None when there is an error."""
    error: SeatrialError | None = None


def read_batch(lines: Iterable[bytes], expected: Collection[str] | None = None) -> Iterator[BatchRecord]:
    """Read a batch line by line: `read_batch(open(path, "rb"), case_ids)`.

    Holds one line and the ids. A line that cannot be read, that has no id, or one that came before or was not
    `expected`, is a record with an error; so is, at the end, each expected id for which no line came.
    """
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if line.isspace() or not line:
            continue
        record = BatchRecord(number, None)
        try:
            reading = output_messages.read(line)
            record.id = reading.id
            _check_id(reading.id, seen, expected)
            record.reading = reading
        except SeatrialError as error:
            error.line = number
            record.error = error
            record.id = record.id or _id_of(line)
        if record.id is not None:
            seen.add(record.id)
        yield record
    for missing in [] if expected is None else expected:
        if missing not in seen:
            yield BatchRecord(None, missing, error=SeatrialError("bad_record", f"no line has the id {missing!r}"))


def write_batch(records: Iterable[tuple[str, Transcript]]) -> Iterator[Written]:
    """Write transcripts as the lines of a batch, each under its id."""
    for record_id, transcript in records:
        yield output_messages.write(transcript, record_id)


def _check_id(record_id: str | None, seen: set[str], expected: Collection[str] | None) -> None:
    if record_id is None:
        raise SeatrialError("bad_record", "the record has no id, so there is no telling what it answers")
    if record_id in seen:
        raise SeatrialError("bad_record", f"an earlier line has the id {record_id!r}")
    if expected is not None and record_id not in expected:
        raise SeatrialError("bad_record", f"no case has the id {record_id!r}")


def _id_of(line: bytes) -> str | None:
    """The id of a record in which nothing else can be read."""
    found = wire.decode_sound(line, _ID)
    return None if found is None or found.id is None else str(found.id)


class _Id(msgspec.Struct):
    id: str | int | None = None


_ID = msgspec.json.Decoder(_Id)
