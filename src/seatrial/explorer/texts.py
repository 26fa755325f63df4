"""Single texts of a run, by their pointers: whole where they are short, a range at a time where they are huge."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.explorer.markup import visible
from seatrial.explorer.passages import text_page
from seatrial.store import Store
from seatrial.store.documents import LongText, encode
from seatrial.transcript import AssistantMessage
from seatrial.transcript.note import pointer as json_pointer

PAGE_BYTES = 64 * 1024
"""Bytes of a text on one page."""
MAX_PAGE_BYTES = 1024 * 1024
MAX_LINES = 2_000
"""Lines on one page."""
MAX_LINE = 2_000
"""Characters of a line; behind them is a link to the rest."""
MAX_IMAGE = 8 * 1024 * 1024
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class PlacedText(msgspec.Struct, frozen=True):
    """A text, or another value as JSON, that stands at a pointer."""

    text: str
    prose: bool
    """Whether somebody said it; else it is the output of a tool, or JSON."""


class TextLine(msgspec.Struct, frozen=True):
    """A line of a text."""

    number: int | None
    """From 1; None for what is left of a line that began before the page."""
    text: str
    rest: int = 0
    """Bytes of it that are not shown."""
    more: str | None = None
    """Where the rest is."""


class TextPage(msgspec.Struct, frozen=True, kw_only=True):
    """A range of a text."""

    run_id: str
    pointer: str
    lines: list[TextLine]
    first: int
    end: int
    size: int
    """Bytes: those before the page, those up to its end, and all."""
    total_lines: int
    before: str | None
    after: str | None


def text_at(store: Store, run_id: str, pointer: str) -> PlacedText:
    """What stands at a pointer into a run; `not_found` when there is nothing."""
    kind, index, path = _parsed(pointer)
    if kind == "answer":
        return PlacedText(_answer(store, run_id), prose=True)
    if kind == "messages":
        items = store.items(run_id, index, 1)
        if not items:
            raise _nothing(run_id, pointer)
        document, long_texts = encode(items[0].message), items[0].long_texts
    else:
        steps = store.steps(run_id, index, 1)
        if not steps:
            raise _nothing(run_id, pointer)
        document, long_texts = encode(steps[0].step), steps[0].long_texts
    value = wire.decode(document)
    prose = kind == "messages" and value.get("role") != "tool_result" and "arguments" not in path
    inside = json_pointer(*path)
    for cut in long_texts:
        # Of a value that holds the place, of one that it holds, or of the place itself.
        if f"{cut.pointer}/".startswith(f"{inside}/") or inside.startswith(f"{cut.pointer}/"):
            _put(value, cut, wire.decode(store.body(cut.address)))
    for key in path:
        value = _member(value, key)
        if value is _MISSING:
            raise _nothing(run_id, pointer)
    if isinstance(value, str):
        return PlacedText(value, prose)
    return PlacedText(msgspec.json.format(encode(value), indent=2).decode(), prose=False)


def text_range(run_id: str, pointer: str, text: str, first: int, count: int) -> TextPage:
    """So many bytes of a text, from one on; ends are moved so that no character is cut."""
    data = text.encode("utf-8", "replace")
    count = min(count or PAGE_BYTES, MAX_PAGE_BYTES)
    first = _boundary(data, min(first, len(data)))
    end = _boundary(data, min(first + count, len(data)))
    # A page ends with a line, unless a line is longer than it.
    if end < len(data) and (line_end := data.rfind(b"\n", first, end)) >= 0:
        end = line_end + 1
    part = data[first:end]
    if part.count(b"\n") > MAX_LINES:
        end = first + sum([len(line) + 1 for line in part.split(b"\n", MAX_LINES)[:MAX_LINES]])
        part = data[first:end]
    number = data.count(b"\n", 0, first) + 1
    continues = first > 0 and data[first - 1] != 10
    page = text_page(run_id, pointer)
    lines: list[TextLine] = []
    at = first
    for index, raw in enumerate(part.removesuffix(b"\n").split(b"\n") if part else []):
        line = raw.decode("utf-8", "replace")
        shown = line[:MAX_LINE]
        rest_at = at + len(shown.encode())
        whole_end = data.find(b"\n", at)
        rest = (len(data) if whole_end < 0 else whole_end) - rest_at
        lines.append(
            TextLine(
                number=None if continues and index == 0 else number + index,
                text=visible(shown.removesuffix("\r")),
                rest=max(rest, 0),
                more=f"{page}?from={rest_at}" if rest > 0 else None,
            )
        )
        at += len(raw) + 1
    before = max(0, first - count)
    return TextPage(
        run_id=run_id,
        pointer=pointer,
        lines=lines,
        first=first,
        end=end,
        size=len(data),
        total_lines=data.count(b"\n") + 1,
        before=f"{page}?from={before}" if first else None,
        after=f"{page}?from={end}" if end < len(data) else None,
    )


def image_at(store: Store, run_id: str, pointer: str) -> tuple[str, bytes]:
    """(media type, bytes) of an image of the record; `not_found` unless its bytes are those of one.

    What the record says of its type counts for nothing: an image that is none could be a page.
    """
    source = text_at(store, run_id, f"{pointer}/source").text
    head, comma, body = source.partition(",")
    if head[:5].lower() != "data:" or not comma or len(body) > 2 * MAX_IMAGE:
        raise _nothing(run_id, pointer)
    try:
        raw = unquote_to_bytes(body)
        data = base64.b64decode(raw, validate=False) if head.lower().endswith(";base64") else raw
    except (binascii.Error, ValueError):
        data = b""
    found = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)
    if found is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        found = "image/webp"
    if found is None or len(data) > MAX_IMAGE:
        kinds = "PNG, JPEG, GIF or WebP image of at most 8 MB"
        raise SeatrialError("not_found", f"{pointer[:200]} of run {run_id} is not a {kinds}")
    return found, data


_MISSING = object()


def _parsed(pointer: str) -> tuple[str, int, list[str]]:
    """The list that a pointer leads into, the index in it, and the rest."""
    kind, *path = [part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/")]
    if kind == "answer" and not path:
        return kind, 0, []
    if kind in ("messages", "steps") and path and path[0].isascii() and path[0].isdigit() and len(path[0]) < 10:
        return kind, int(path[0]), path[1:]
    raise SeatrialError("not_found", f"{pointer[:200]!r} is no place in a run")


def _answer(store: Store, run_id: str) -> str:
    record = store.run_record(run_id)
    for cut in record.long_texts:
        if cut.pointer == "/transcript/answer":
            return store.text(cut.address)
    if record.answer is not None:
        return record.answer
    if record.messages:
        [last] = store.items(run_id, record.messages - 1, 1)
        for cut in last.long_texts:
            if cut.pointer.startswith("/content/"):
                return store.text(cut.address)
        if isinstance(last.message, AssistantMessage):
            return last.message.plain_text()
    raise _nothing(run_id, "/answer")


def _put(value: Any, cut: LongText, whole: Any) -> None:
    """Put a long text back where it was."""
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in cut.pointer.split("/")[1:]]
    for key in path:
        value = _member(value, key)
    if isinstance(value, dict):
        value[last] = whole
    elif isinstance(value, list) and last.isdigit() and int(last) < len(value):
        value[int(last)] = whole


def _member(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return value.get(key, _MISSING)
    if isinstance(value, list) and key.isascii() and key.isdigit() and len(key) < 10 and int(key) < len(value):
        return value[int(key)]
    return _MISSING


def _boundary(data: bytes, at: int) -> int:
    """The beginning of the character that a place is in."""
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _nothing(run_id: str, pointer: str) -> SeatrialError:
    return SeatrialError("not_found", f"run {run_id} has nothing at {pointer[:200]}")
