"""Transcripts in ranges: any hundred messages of a long run are read without the rest of it.

A transcript that is short stays in the document of its reading. A longer one is in rows of `items`, which hold a JSON
array of messages each, and the document has what is left: the head. In both, texts that are longer than `MAX_TEXT` are
taken out and kept by the address of their content, once for all runs; in their place stands how they begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.store import rows
from seatrial.store.documents import (
    CUT_TEXTS,
    MAX_TEXT,
    CutText,
    LongText,
    digest,
    encode,
    restored,
    unpack,
    without_long_texts,
)
from seatrial.store.rows import BodyRow, ItemsRow, ReadingRow, StoredReading
from seatrial.store.schema import bodies, items, readings, runs, steps
from seatrial.trajectory.step import Step
from seatrial.transcript import Message

T = TypeVar("T")

MAX_ITEMS = 100
MAX_BYTES = 64 * 1024
"""Messages in one row, and bytes of it, unless one message alone has more."""

MESSAGES, TRACE = range(2)
"""What `items.part` says: which list of the reading a row belongs to."""

_TEXTS_AT_ONCE = 200
_MESSAGES = msgspec.json.Decoder(list[Message])
_TRACE = msgspec.json.Decoder(list[TraceEvent])
READING_OF_RUN = sa.select(readings).select_from(runs).outerjoin(readings, readings.c.run == runs.c.id)


class TranscriptItem(msgspec.Struct, frozen=True):
    """One message of a transcript."""

    index: int
    message: Message
    """Of a long text, only the beginning."""
    long_texts: list[LongText] = []


class StoredStep(msgspec.Struct, frozen=True):
    """One step of a run."""

    step: Step
    """Of a long text, only the beginning; in place of other long arguments and results, null."""
    long_texts: list[LongText] = []


def reading_rows(reading: Reading) -> tuple[ReadingRow, list[ItemsRow], list[BodyRow]]:
    """The rows of a reading."""
    stored = StoredReading(
        format=reading.format,
        transcript=reading.transcript,
        id=reading.id,
        trace=reading.trace,
        trace_ref=reading.trace_ref,
        facts=reading.facts,
        answer_only=reading.answer_only,
        single_turn=reading.single_turn,
    )
    return divided(stored, encode(stored))


def divided(stored: StoredReading, whole: bytes) -> tuple[ReadingRow, list[ItemsRow], list[BodyRow]]:
    """The head of a reading, the rows of a long transcript, and the long texts; `whole` is its document."""
    transcript, trace = stored.transcript, stored.trace
    if len(whole) <= MAX_TEXT and len(transcript.messages) <= MAX_ITEMS and len(trace or ()) <= MAX_ITEMS:
        return ReadingRow(data=whole), [], []
    del whole  # what follows needs the room
    texts: dict[str, bytes] = {}
    some = [*_rows(MESSAGES, transcript.messages, texts), *_rows(TRACE, trace or (), texts)]
    head = replace(stored, transcript=replace(transcript, messages=[]), trace=None if trace is None else [])
    document, cut = without_long_texts(encode(head), 0, texts)
    row = ReadingRow(
        data=document,
        messages=len(transcript.messages),
        trace=None if trace is None else len(trace),
        texts=encode(cut) if cut else None,
    )
    return row, some, rows.text_rows(texts)


def _rows(part: int, values: Iterable[Any], bodies: dict[str, bytes]) -> Iterator[ItemsRow]:
    first = 0
    some: list[bytes] = []
    texts: list[CutText] = []
    size = 1
    for value in values:
        document, cut = without_long_texts(encode(value), len(some), bodies)
        if some and (size + len(document) > MAX_BYTES or len(some) == MAX_ITEMS):
            yield _row(part, first, some, texts)
            first += len(some)
            some, texts, size = [], [], 1
            cut = [replace(found, item=0) for found in cut]
        # Places are those in the row.
        texts += [replace(found, start=found.start + size, end=found.end + size) for found in cut]
        some.append(document)
        size += len(document) + 1
    if some:
        yield _row(part, first, some, texts)


def _row(part: int, first: int, some: list[bytes], texts: list[CutText]) -> ItemsRow:
    data = b"[" + b",".join(some) + b"]"
    return ItemsRow(part=part, first=first, count=len(some), data=data, texts=encode(texts) if texts else None)


class Readings:
    """What was stored of the readings of some runs."""

    def __init__(self, connection: sa.Connection, numbers: Sequence[int]) -> None:
        found = connection.execute(sa.select(readings).where(readings.c.run.in_(numbers)))
        self._heads = {head.run: head for head in found}
        self._items: defaultdict[tuple[int, int], list[sa.Row[Any]]] = defaultdict(list)
        divided = [number for number, head in self._heads.items() if head.messages is not None]
        if divided:
            query = sa.select(items).where(items.c.run.in_(divided)).order_by(*items.primary_key)
            for row in connection.execute(query):
                self._items[row.run, row.part].append(row)
        # Which texts there are is known when the rows are.
        self._texts = long_texts(connection, addresses(self._rows()))

    def reading(self, number: int) -> rows.StoredReading | None:
        """The whole reading of a run; `damaged` when something of it is missing."""
        head = self._heads.get(number)
        if head is None:
            return None
        stored = wire.decode(self._whole(head), rows.READING)
        if head.messages is not None:
            stored.transcript.messages = self._list(number, MESSAGES, head.messages, _MESSAGES)
        if head.trace is not None:
            stored.trace = self._list(number, TRACE, head.trace, _TRACE)
        return stored

    def _list(self, number: int, part: int, count: int, decoder: msgspec.json.Decoder[list[T]]) -> list[T]:
        values: list[T] = []
        for row in self._items[number, part]:
            if row.first != len(values):
                break
            some: list[T] = wire.decode(self._whole(row), decoder)
            values += some
        if len(values) != count:
            raise SeatrialError("damaged", f"it has {len(values)} of {count} items")
        return values

    def _whole(self, row: sa.Row[Any]) -> bytes:
        return restored(unpack(row.packed, row.data), cut_texts(row), self._texts)

    def _rows(self) -> Iterator[sa.Row[Any]]:
        yield from self._heads.values()
        for some in self._items.values():
            yield from some


def cut_texts(row: sa.Row[Any]) -> list[CutText]:
    """The long texts of a row that may have such."""
    if row.texts is None:
        return []
    try:
        return wire.decode(row.texts, CUT_TEXTS)
    except SeatrialError as error:
        raise SeatrialError("damaged", f"its long texts cannot be found: {error.message}") from None


def addresses(some: Iterable[sa.Row[Any]]) -> set[str]:
    """Where the long texts of these rows are, as far as their rows can be read."""
    wanted: set[str] = set()
    for row in some:
        with suppress(SeatrialError):  # it is said where the run is made of its rows
            wanted.update(cut.text.address for cut in cut_texts(row))
    return wanted


def long_texts(connection: sa.Connection, addresses: Iterable[str]) -> dict[str, bytes]:
    """Long texts as JSON, those that can be read."""
    found: dict[str, bytes] = {}
    wanted = [digest(name) for name in sorted(addresses)]
    for start in range(0, len(wanted), _TEXTS_AT_ONCE):
        some = bodies.c.hash.in_(wanted[start : start + _TEXTS_AT_ONCE])
        for row in connection.execute(sa.select(bodies).where(some)):
            with suppress(SeatrialError):
                found[row.hash.hex()] = unpack(row.packed, row.data)
    return found


def item_page(connection: sa.Connection, run_id: str, first: int, count: int) -> list[TranscriptItem]:
    """So many messages of a run, from one on."""
    head = connection.execute(READING_OF_RUN.where(runs.c.run_id == run_id)).first()
    if head is None:
        raise rows.no_run(run_id)
    last = first + count - 1
    if head.run is None or count <= 0 or last < 0:
        return []
    if head.messages is None:
        # A short one, or one that an earlier version wrote.
        stored = wire.decode(unpack(head.packed, head.data), rows.READING)
        some = stored.transcript.messages[max(0, first) : last + 1]
        return [TranscriptItem(index, message) for index, message in enumerate(some, max(0, first))]
    of_run = (items.c.run == head.run) & (items.c.part == MESSAGES)
    begin = sa.select(sa.func.max(items.c.first)).where(of_run, items.c.first <= max(0, first))
    query = sa.select(items).where(of_run, items.c.first.between(begin.scalar_subquery(), last))
    found: list[TranscriptItem] = []
    for row in connection.execute(query.order_by(items.c.first)):
        cut: defaultdict[int, list[LongText]] = defaultdict(list)
        for text in cut_texts(row):
            cut[text.item].append(text.text)
        messages: list[Message] = wire.decode(unpack(row.packed, row.data), _MESSAGES)
        for index, message in enumerate(messages):
            if first <= row.first + index <= last:
                found.append(TranscriptItem(row.first + index, message, cut[index]))
    return found


def step_page(
    connection: sa.Connection, run_id: str, first: int, count: int, *, whole_arguments: bool = False
) -> list[StoredStep]:
    """So many steps of a run, from one on."""
    number = connection.execute(sa.select(runs.c.id).where(runs.c.run_id == run_id)).scalar()
    if number is None:
        raise rows.no_run(run_id)
    query = sa.select(steps).where(steps.c.run == number, steps.c.position.between(first, first + count - 1))
    found = []
    for row in connection.execute(query.order_by(steps.c.position)).all():
        cut = cut_texts(row)
        restoring = [each for each in cut if whole_arguments and each.text.pointer.startswith("/arguments")]
        texts = long_texts(connection, {each.text.address for each in restoring})
        step = wire.decode(restored(row.data, restoring, texts), rows.STEP)
        found.append(StoredStep(step, [each.text for each in cut if each not in restoring]))
    return found
