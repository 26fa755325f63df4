"""Transcripts in ranges: any hundred messages of a long run are read without the rest of it.

A transcript that is short stays in the document of its reading. A longer one is in rows of `items`, which hold a JSON
array of messages each, and the document has what is left: the head. In both, texts that are longer than `MAX_TEXT` are
taken out and kept by the address of their content, once for all runs; in their place stands how they begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.store.bodies import Document, Packer, address, digest
from seatrial.store.rows import StoredReading, encode
from seatrial.transcript import Message
from seatrial.transcript.note import pointer as json_pointer

MAX_ITEMS = 100
MAX_BYTES = 64 * 1024
"""Messages in one row, and bytes of it, unless one message alone has more."""
MAX_TEXT = 16 * 1024
"""Bytes of a text as JSON; of a longer one only the beginning is where it was. Also the bytes of a short transcript."""
_BEGINNING = 1000
"""Characters of a long text that stay in its place."""

MESSAGES, TRACE = range(2)
"""What `items.part` says: which list of the reading a row belongs to."""

# A string of JSON, whatever is in it. Unrolled, so that it takes one pass.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class LongText(msgspec.Struct, frozen=True):
    """A text that is not where it was."""

    pointer: str
    """Where, in its message or in the head of the reading."""
    address: str
    """Content address of the text as JSON: `Store.text` gives it."""
    size: int
    """Bytes as JSON."""
    lines: int


class CutText(msgspec.Struct, array_like=True, frozen=True):
    """What puts a long text back: in a document, these bytes stand for it."""

    item: int
    """Which value of the document's array it is in; 0 where the document is none."""
    start: int
    end: int
    text: LongText


class Item(msgspec.Struct, frozen=True):
    """One message of a transcript."""

    index: int
    message: Message
    """Of a long text, only the beginning."""
    long_texts: list[LongText] = []


class ItemRow(msgspec.Struct):
    """A row of `items`, on its way into a store."""

    part: int
    first: int
    count: int
    document: Document
    texts: bytes | None


PlainRow: TypeAlias = tuple[int, int, int, bytes, bytes | None]
"""A row before it is compressed: part, first, count, array of JSON, cut texts."""


class Divided(msgspec.Struct):
    """A reading on its way into a store."""

    head: bytes
    head_texts: bytes | None = None
    messages: int | None = None
    """How many messages are in rows; None when they are in the head."""
    trace: int | None = None
    """How many entries of the trace are in rows; None when they are in the head, or there is no trace."""
    rows: list[PlainRow] = []
    bodies: dict[str, bytes] = {}
    """Long texts as JSON, by address."""

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return len(self.head) + sum(len(row[3]) for row in self.rows) + sum(map(len, self.bodies.values()))


CUT_TEXTS = msgspec.json.Decoder(list[CutText])
MESSAGE_LIST = msgspec.json.Decoder(list[Message])
TRACE_LIST = msgspec.json.Decoder(list[TraceEvent])


def stored_reading(reading: Reading) -> StoredReading:
    """A reading as one document."""
    return StoredReading(
        format=reading.format,
        transcript=reading.transcript,
        id=reading.id,
        trace=reading.trace,
        trace_ref=reading.trace_ref,
        calls=reading.calls,
        answer_only=reading.answer_only,
        single_turn=reading.single_turn,
    )


def divided(stored: StoredReading, whole: bytes | None = None) -> Divided:
    """A reading as it is stored; `whole` is its document, where that is at hand."""
    whole = encode(stored) if whole is None else whole
    transcript, trace = stored.transcript, stored.trace
    if len(whole) <= MAX_TEXT and len(transcript.messages) <= MAX_ITEMS and len(trace or ()) <= MAX_ITEMS:
        return Divided(whole)
    bodies: dict[str, bytes] = {}
    rows = [*_rows(MESSAGES, transcript.messages, bodies), *_rows(TRACE, trace or (), bodies)]
    head = msgspec.structs.replace(
        stored,
        transcript=msgspec.structs.replace(transcript, messages=[]),
        trace=None if trace is None else [],
    )
    document, cut = _without_long_texts(encode(head), 0, bodies)
    return Divided(
        document,
        encode(cut) if cut else None,
        messages=len(transcript.messages),
        trace=None if trace is None else len(trace),
        rows=rows,
        bodies=bodies,
    )


def restored(document: bytes, texts: Sequence[CutText], bodies: Mapping[str, bytes]) -> bytes:
    """A document with its long texts; `damaged` when one of them is not at hand."""
    if not texts:
        return document
    parts: list[bytes] = []
    done = 0
    for cut in texts:
        literal = bodies.get(cut.text.address)
        if literal is None:
            raise SeatrialError("damaged", f"the store has no text {cut.text.address}, which {cut.text.pointer} is")
        parts += (document[done : cut.start], literal)
        done = cut.end
    return b"".join([*parts, document[done:]])


def _rows(
    part: int, values: Iterable[Any], bodies: dict[str, bytes]
) -> Iterator[tuple[int, int, int, bytes, bytes | None]]:
    first = 0
    some: list[bytes] = []
    texts: list[CutText] = []
    size = 1
    for value in values:
        document, cut = _without_long_texts(encode(value), len(some), bodies)
        if some and (size + len(document) > MAX_BYTES or len(some) == MAX_ITEMS):
            yield _row(part, first, some, texts)
            first += len(some)
            some, texts, size = [], [], 1
            cut = [msgspec.structs.replace(found, item=0) for found in cut]
        # Places are those in the row.
        texts += [msgspec.structs.replace(found, start=found.start + size, end=found.end + size) for found in cut]
        some.append(document)
        size += len(document) + 1
    if some:
        yield _row(part, first, some, texts)


def _row(part: int, first: int, some: list[bytes], texts: list[CutText]) -> PlainRow:
    return part, first, len(some), b"[" + b",".join(some) + b"]", encode(texts) if texts else None


def _without_long_texts(document: bytes, item: int, bodies: dict[str, bytes]) -> tuple[bytes, list[CutText]]:
    """The document with the beginnings of its long texts, and what was taken out."""
    if len(document) <= MAX_TEXT:
        return document, []
    literals = [found for found in _STRING.finditer(document) if found.end() - found.start() > MAX_TEXT]
    try:
        places = list(_long_strings(wire.decode(document), literals)) if literals else []
    except SeatrialError:
        places = []  # a number that Python has no room for, say: such a document is kept, but not looked into
    # Where not every long string is a value in a place of its own, as with names or keys that occur twice, all stays.
    if len(places) != len(literals):
        return document, []
    parts: list[bytes] = []
    cut: list[CutText] = []
    done = place = 0
    for found, (where, text) in zip(literals, places, strict=True):
        literal = found.group()
        beginning = encode(text[:_BEGINNING])
        parts += (document[done : found.start()], beginning)
        place += found.start() - done
        known = LongText(where, address(literal), len(literal), text.count("\n") + 1)
        bodies[known.address] = literal
        cut.append(CutText(item, place, place + len(beginning), known))
        place += len(beginning)
        done = found.end()
    return b"".join([*parts, document[done:]]), cut


def _long_strings(value: Any, literals: Sequence[re.Match[bytes]]) -> Iterator[tuple[str, str]]:
    """Pointers and texts of the values that these literals are, in their order; too few when something is not so."""
    left = (wire.decode(found.group()) for found in literals)
    expected = next(left, None)
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack and expected is not None:
        path, inner = stack.pop()
        if isinstance(inner, str):
            if inner == expected:
                yield json_pointer(*path), inner
                expected = next(left, None)
        elif isinstance(inner, dict):
            stack += [((*path, key), child) for key, child in reversed(inner.items())]
        elif isinstance(inner, list):
            stack += [((*path, index), child) for index, child in reversed(list(enumerate(inner)))]


def packed_rows(found: Divided, packer: Packer) -> tuple[Document, list[ItemRow], list[tuple[bytes, int, Document]]]:
    """The head, the rows and the bodies of a reading, to be compressed by the packer."""
    rows = [ItemRow(part, first, count, packer.add(data), texts) for part, first, count, data, texts in found.rows]
    bodies = [(digest(name), len(data), packer.add(data)) for name, data in found.bodies.items()]
    return packer.add(found.head), rows, bodies
