"""What a format is recognised by: the outermost levels of the bytes, opened once for all formats.

A document is opened one level at a time, a stream only at its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.nesting import MAX_DEPTH, is_too_deep

Members: TypeAlias = dict[str, msgspec.Raw]
"""An object whose values are still bytes."""
TextShape: TypeAlias = Literal["object", "array", "lines", "server-sent events", "other"]
T = TypeVar("T")

CERTAIN: Final = 100
"""The bytes name the format themselves."""
SURE: Final = 80
"""Nothing else looks like this."""
LIKELY: Final = 60
"""What comes later may show a dialect of it."""
HINT: Final = 40
COMMON: Final = 10
"""Common ground of several formats, which all of them read alike."""

ENTRIES: Final = 200
"""How many messages, lines or frames are looked at."""
_PREFIX: Final = 256 * 1024
"""How much of a stream is looked at, in bytes."""
_BOM = b"\xef\xbb\xbf"
_SSE = re.compile(rb"(?:data|event|id|retry)?:")


class Sniff(msgspec.Struct, frozen=True):
    """How sure a format is that bytes are its own."""

    confidence: int
    """1 to 100."""
    reason: str
    """What gives it away, for people."""


class Sample(msgspec.Struct):
    """Bytes of unknown format, opened."""

    head: bytes
    """The first bytes, without white space."""
    shape: TextShape
    entries: list[Members]
    """The object; else the first objects of the array, the lines or the frames."""

    @property
    def document(self) -> Members | None:
        """The object, where the bytes are one."""
        return self.entries[0] if self.shape == "object" and self.entries else None

    def surest(self, sniff: Callable[[Members], Sniff | None]) -> Sniff | None:
        """The surest of what one object of the sample says each."""
        return surest(f"{_PREFIXES[self.shape]}", self.entries, sniff)


def open_sample(data: bytes) -> Sample:
    """Open bytes as far as formats need it."""
    text = data.removeprefix(_BOM).lstrip()
    if not text:
        raise SeatrialError("empty_input", "there is nothing in the input to read")
    head = text[:64]
    if text[:1] == b"{":
        first_line, _, more = text.partition(b"\n")
        if more.strip() and members(first_line) is not None:
            return Sample(head, "lines", _objects(text.split(b"\n", ENTRIES)[:ENTRIES]))
        document = members(text)
        if document is None and is_too_deep(text):
            raise wire.too_deep()
        return Sample(head, "object", [] if document is None else [document])
    if text[:1] == b"[":
        entries = items(text)
        if entries is None and is_too_deep(text):
            raise wire.too_deep()
        return Sample(head, "array", _objects(entries or []))
    if _SSE.match(text):
        # Here, because most documents need no parser of frames.
        from seatrial.events.sse import SseParser

        parser = SseParser()
        frames = [*parser.feed(text[:_PREFIX]), *parser.close()]
        return Sample(head, "server-sent events", _objects([frame.data for frame in frames]))
    return Sample(head, "other", [])


def surest(prefix: str, entries: Iterable[Members], sniff: Callable[[Members], Sniff | None]) -> Sniff | None:
    """The surest of what the entries say each; `prefix` says where they stand."""
    best: Sniff | None = None
    for entry in entries:
        found = sniff(entry)
        if found is not None and (best is None or found.confidence > best.confidence):
            best = found
            if best.confidence >= SURE:
                break
    return None if best is None else Sniff(best.confidence, prefix + best.reason)


def members(data: bytes | msgspec.Raw | None) -> Members | None:
    """The members of an object; None when it is something else."""
    return None if data is None else opened(data, _MEMBERS)


def items(data: bytes | msgspec.Raw | None) -> list[msgspec.Raw] | None:
    """The items of an array; None when it is something else."""
    return None if data is None else opened(data, _ITEMS)


def objects(data: bytes | msgspec.Raw | None) -> list[Members]:
    """The first objects of an array; none when it is something else."""
    return _objects(items(data) or [])


def text_of(entry: Members, key: str) -> str | None:
    """The text under a key; None when there is none."""
    return opened(entry[key], _STRING) if key in entry else None


def first_byte(raw: msgspec.Raw | None) -> bytes:
    """The first byte of a value, which tells its kind."""
    return b"" if raw is None else bytes(raw)[:1]


def says_something(raw: msgspec.Raw | None) -> bool:
    """Whether a value is there and not empty."""
    return raw is not None and bytes(raw) not in (b"null", b"[]", b'""')


def opened(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T | None:
    """What is inside, still as bytes; None when it is of another kind, or not JSON."""
    try:
        if len(data) <= MAX_DEPTH or not is_too_deep(data):
            return decoder.decode(data)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return wire.decode(bytes(data), decoder, [])
    except SeatrialError:
        return None


def _objects(entries: Iterable[bytes | msgspec.Raw]) -> list[Members]:
    return [found for entry in islice(entries, ENTRIES) if (found := members(entry)) is not None]


_PREFIXES: Final[dict[TextShape, str]] = {
    "object": "",
    "array": "an array: ",
    "lines": "lines: ",
    "server-sent events": "server-sent events: ",
    "other": "",
}
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_STRING = msgspec.json.Decoder(str)
