"""Finding text in one run, all of it: the index that searches the store knows only where a run begins to be long.

What is looked for is first looked for in the JSON as it is stored, which is quick; only what has it there is decoded.
The search stops when it has enough, or has decoded enough, and says where it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.store import rows
from seatrial.store.documents import CutText, encode, restored, unpack
from seatrial.store.items import MESSAGES, READING_OF_RUN, cut_texts, long_texts
from seatrial.store.schema import items, runs, steps
from seatrial.transcript.note import pointer as json_pointer

MAX_QUERY = 200
"""Characters of what is looked for."""
MAX_DECODED = 16 * 1024 * 1024
"""Bytes that one search decodes: they have the letters somewhere, and perhaps only where no text is."""
_ROWS_AT_ONCE = 64
_STEPS_AT_ONCE = 1000
_BEFORE, _AFTER = 40, 120
_NAMES = frozenset({"role", "type", "stop_reason", "source", "status"})
"""Keys whose values are no text of anybody."""


class TextHit(msgspec.Struct, frozen=True):
    """A text of a run that has what was looked for."""

    pointer: str
    """Where in the run: `/messages/3/content/0/text`, `/steps/0/result`."""
    role: str
    """Of the message; `step` for what is in a step alone."""
    before: str
    match: str
    after: str
    """What stands around the first occurrence."""
    count: int
    """Occurrences in this text."""
    offset: int
    """Of the first, in bytes of UTF-8."""


class TextHits(msgspec.Struct, frozen=True):
    """What a search of a run found, in order."""

    hits: list[TextHit]
    after: int | None
    """What to give to find more; None when all of the run has been searched."""


class _Wanted:
    """What is looked for."""

    def __init__(self, text: str) -> None:
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        # Letters of other alphabets have cases that bytes know nothing of.
        longest = max(re.findall(r"[\x00-\x7f]+", text), key=len, default="")
        variants = [longest] if longest else [text, text.lower(), text.upper()]
        self._needles = [encode(each)[1:-1].lower() for each in dict.fromkeys(variants)]

    def may_be_in(self, document: bytes) -> bool:
        """Whether a document of JSON has it, in a text or not."""
        lowered = document.lower()
        return any(needle in lowered for needle in self._needles)

    def hit(self, pointer: str, role: str, text: str) -> TextHit | None:
        """Where a text has it."""
        found = self._pattern.search(text)
        if found is None:
            return None
        start, end = found.span()
        return TextHit(
            pointer=pointer,
            role=role,
            before=("…" if start > _BEFORE else "") + text[max(0, start - _BEFORE) : start],
            match=text[start:end],
            after=text[end : end + _AFTER] + ("…" if len(text) > end + _AFTER else ""),
            count=sum(1 for _ in self._pattern.finditer(text)),
            offset=len(text[:start].encode("utf-8", "replace")),
        )


def find_in_run(connection: sa.Connection, run_id: str, text: str, after: int, limit: int) -> TextHits:
    """Texts of a run that have this, whatever its case, behind the place `after` (-1 for all)."""
    head = connection.execute(READING_OF_RUN.add_columns(runs.c.id).where(runs.c.run_id == run_id)).first()
    if head is None:
        raise rows.no_run(run_id)
    text = text[:MAX_QUERY]
    if not text.strip():
        return TextHits([], None)
    wanted = _Wanted(text)
    hits: list[TextHit] = []
    decoded = 0
    count = 0
    if head.run is not None:
        count, some = _messages(connection, head, wanted, after)
        for place, document in some:
            decoded += len(document)
            hits += _hits_in(f"/messages/{place}", wire.decode(document), wanted)
            if len(hits) >= limit or decoded > MAX_DECODED:
                return TextHits(hits, place)
    for place, document in _steps(connection, head.id, wanted, after - count):
        decoded += len(document)
        hits += _hits_in(f"/steps/{place}", wire.decode(document), wanted)
        if len(hits) >= limit or decoded > MAX_DECODED:
            return TextHits(hits, count + place)
    return TextHits(hits, None)


def _messages(
    connection: sa.Connection, head: sa.Row[Any], wanted: _Wanted, after: int
) -> tuple[int, Iterator[tuple[int, bytes]]]:
    """How many messages there are; and those behind a place that may have it."""
    if head.messages is not None:
        return head.messages, _stored_messages(connection, head.run, wanted, after)
    # A short one, or one that an earlier version wrote.
    messages = wire.decode(unpack(head.packed, head.data), rows.READING).transcript.messages
    documents = ((index, encode(message)) for index, message in enumerate(messages) if index > after)
    return len(messages), ((index, document) for index, document in documents if wanted.may_be_in(document))


def _stored_messages(
    connection: sa.Connection, number: int, wanted: _Wanted, after: int
) -> Iterator[tuple[int, bytes]]:
    of_run = (items.c.run == number) & (items.c.part == MESSAGES)
    begin = connection.execute(sa.select(sa.func.max(items.c.first)).where(of_run, items.c.first <= max(0, after + 1)))
    first = begin.scalar() or 0
    while True:
        query = sa.select(items).where(of_run, items.c.first >= first).order_by(items.c.first).limit(_ROWS_AT_ONCE)
        page = connection.execute(query).all()
        if not page:
            return
        cuts = [cut_texts(row) for row in page]
        texts = long_texts(connection, {cut.text.address for some in cuts for cut in some})
        having = {address for address, text in texts.items() if wanted.may_be_in(text)}
        for row, cut in zip(page, cuts, strict=True):
            data = unpack(row.packed, row.data)
            if any(each.text.address in having for each in cut) or wanted.may_be_in(data):
                for index, document in _members(data, cut, texts, having):
                    if row.first + index > after and wanted.may_be_in(document):
                        yield row.first + index, document
        first = page[-1].first + page[-1].count


def _members(
    data: bytes, cut: Sequence[CutText], texts: Mapping[str, bytes], having: set[str]
) -> Iterator[tuple[int, bytes]]:
    """The messages of a row, with those of their long texts that may have what is looked for."""
    kept = [each for each in cut if each.text.address in having]
    messages: list[msgspec.Raw] = wire.decode(restored(data, kept, texts), _RAWS)
    for index, raw in enumerate(messages):
        yield index, bytes(raw)


def _steps(connection: sa.Connection, number: int, wanted: _Wanted, after: int) -> Iterator[tuple[int, bytes]]:
    """Steps behind a place that may have it, but for those that are said in messages already."""
    first = max(0, after + 1)
    while True:
        query = sa.select(steps).where(steps.c.run == number, steps.c.position >= first)
        page = connection.execute(query.order_by(steps.c.position).limit(_STEPS_AT_ONCE)).all()
        if not page:
            return
        cuts = [cut_texts(row) for row in page]
        texts = long_texts(connection, {cut.text.address for some in cuts for cut in some})
        for row, cut in zip(page, cuts, strict=True):
            document = restored(row.data, [each for each in cut if each.text.address in texts], texts)
            if wanted.may_be_in(document) and wire.decode(document, _SOURCE).source not in ("messages", "events"):
                yield row.position, document
        first = page[-1].position + 1


class _Source(msgspec.Struct):
    source: str = ""


_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_SOURCE = msgspec.json.Decoder(_Source)


def _hits_in(at: str, value: Any, wanted: _Wanted) -> Iterator[TextHit]:
    """The texts in a message or a step, and the keys of what is no part of either, in order."""
    role = value.get("role", "step") if isinstance(value, dict) else "step"
    stack: list[tuple[str, Any, bool]] = [(at, value, False)]
    while stack:
        place, inner, open_keys = stack.pop()
        if isinstance(inner, str):
            found = wanted.hit(place, str(role), inner)
            if found is not None:
                yield found
        elif isinstance(inner, list):
            stack += [(f"{place}/{index}", each, open_keys) for index, each in reversed(list(enumerate(inner)))]
        elif isinstance(inner, dict):
            for key, each in reversed(inner.items()):
                if not open_keys and key in _NAMES:
                    continue
                is_open = open_keys or key in ("arguments", "payload", "details", "result")
                member = place + json_pointer(key)
                stack.append((member, each, is_open))
                if open_keys and (found := wanted.hit(member, str(role), key)) is not None:
                    stack.append((member, key, False))
        elif inner is not None and not isinstance(inner, bool):
            found = wanted.hit(place, str(role), _number(inner))
            if found is not None:
                yield found


def _number(value: Any) -> str:
    try:
        return wire.encode(value).decode()
    except (SeatrialError, ValueError):
        return ""
