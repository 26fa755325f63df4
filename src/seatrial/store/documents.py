"""Documents in a store: JSON, compressed where that pays; large ones by the address of their content.

Zstandard takes a quarter of zlib's time and less room. What is to be written together is compressed by one call: for
each call Python gives up its lock, and a writer would wait for a busy main thread before it has it back, every time.
"""

from __future__ import annotations

import hashlib
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError, backend_features

from seatrial._support import wire
from seatrial._support.nesting import MAX_WRITTEN_DEPTH, is_too_deep
from seatrial.errors import SeatrialError
from seatrial.transcript.note import pointer as json_pointer

PACK_FROM = 2048
"""Bytes from which compression saves more than it costs: below, setting up the compressor is most of the work."""

_PLAIN, _ZLIB, _ZSTD = range(3)
"""What `packed` says. Stores of earlier versions have zlib's."""
_LEVEL = 1  # of a few kilobytes of text it saves as much as the default level, in less time
_TOGETHER = "multi_compress_to_buffer" in backend_features  # not on PyPy

MAX_ID_BYTES = 1024
"""Any id of 256 characters fits, and two of them fit into an index entry of PostgreSQL."""
_MAX_NAME = 256

MAX_TEXT = 16 * 1024
"""Bytes of a text as JSON; of a longer one only the beginning is where it was."""
_BEGINNING = 1000
"""Characters of a long text that stay in its place."""
# A string of JSON, whatever is in it. Unrolled, so that it takes one pass.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)

_of_thread = threading.local()
_encode = msgspec.json.Encoder().encode


class Document(msgspec.Struct, gc=False, kw_only=True):
    """A row that has a document: as it is, until a `Packer` has compressed it."""

    data: bytes
    packed: int = _PLAIN


class LongText(msgspec.Struct, frozen=True):
    """A text, or another value of JSON, that is not where it was."""

    pointer: str
    """Where, in its message, in its step or in the head of the run."""
    address: str
    """Content address of it as JSON: `Store.text` gives a text, `Store.body` the JSON of anything."""
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


CUT_TEXTS = msgspec.json.Decoder(list[CutText])


class Packer:
    """Compresses the documents of many operations together. For one thread alone."""

    def __init__(self) -> None:
        self._compressor = ZstdCompressor(level=_LEVEL)
        self._large: list[Document] = []

    def add(self, documents: Iterable[Document]) -> None:
        """Have the next `pack` compress those of these that are worth it."""
        self._large += large(documents)

    def pack(self) -> None:
        """Compress all that were added since the last time."""
        some, self._large = self._large, []
        whole: list[bytes | bytearray | memoryview] = [document.data for document in some]
        if len(whole) > 1 and _TOGETHER:
            segments = self._compressor.multi_compress_to_buffer(whole)
            packed = [segments[index].tobytes() for index in range(len(segments))]
        else:
            packed = [self._compressor.compress(data) for data in whole]
        for document, data in zip(some, packed, strict=True):
            if len(data) < len(document.data):
                document.data, document.packed = data, _ZSTD


def large(documents: Iterable[Document]) -> list[Document]:
    """Those that are worth compressing."""
    return [document for document in documents if len(document.data) >= PACK_FROM]


def address(data: bytes) -> str:
    """The content address of these bytes: SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest(address: str) -> bytes:
    """A content address as the store keeps it."""
    try:
        found = bytes.fromhex(address)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise SeatrialError("not_found", f"{address[:80]!r} is not a content address: 64 hexadecimal digits")
    return found


def packed(data: bytes) -> Document:
    """One document alone, compressed if that is worth it."""
    document = Document(data=data)
    packer = Packer()
    packer.add([document])
    packer.pack()
    return document


def unpack(packed: int, data: bytes) -> bytes:
    """What was packed; `damaged` when that cannot be had any more."""
    try:
        if packed == _PLAIN:
            return data
        if packed == _ZLIB:
            return zlib.decompress(data)
        if packed == _ZSTD:
            return _decompressor().decompress(data)
    except (zlib.error, ZstdError, MemoryError, TypeError) as error:
        # A broken head of a frame may ask for more memory than there is; a wrong type is no document of ours.
        raise SeatrialError("damaged", f"a document in the store cannot be unpacked: {error}") from None
    raise SeatrialError("damaged", f"the store has a document that is packed in an unknown way: {packed!r:.40}")


def _decompressor() -> ZstdDecompressor:
    try:
        found: ZstdDecompressor = _of_thread.decompressor
    except AttributeError:
        found = _of_thread.decompressor = ZstdDecompressor()
    return found


def encode(value: object) -> bytes:
    """JSON of a value of ours; `unstorable` when something in it is not JSON."""
    try:
        written = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _encode_mended(value)
    if len(written) > MAX_WRITTEN_DEPTH and is_too_deep(written, MAX_WRITTEN_DEPTH):
        raise wire.too_deep(MAX_WRITTEN_DEPTH)
    return written


def identifier(kind: str, text: str) -> str:
    """The text, when both databases can keep it as an id and compare it."""
    if len(text) <= MAX_ID_BYTES and text.isascii() and "\0" not in text and text:
        return text
    try:
        fits = 0 < len(text.encode()) <= MAX_ID_BYTES and "\0" not in text
    except UnicodeEncodeError:
        fits = False
    if not fits:
        hint = f"1 to {MAX_ID_BYTES} bytes of UTF-8, without NUL"
        raise SeatrialError("unstorable", f"{text[:80]!r} cannot be the {kind} of anything", hint=hint)
    return text


def column_text(text: str) -> str:
    """Text of an agent as a column can have it; the whole of it, as it was, is in the JSON beside."""
    text = text[:_MAX_NAME]
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _encode_mended(value: object) -> bytes:
    try:
        return wire.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise SeatrialError("unstorable", f"{type(value).__name__} has a part that is not JSON: {error}") from None


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


def without_long_texts(document: bytes, item: int, bodies: dict[str, bytes]) -> tuple[bytes, list[CutText]]:
    """The document with the beginnings of its long texts, and what was taken out."""
    return _cut(document, item, _long_texts(document), bodies) if len(document) > MAX_TEXT else (document, [])


def without_long_values(
    document: bytes, values: Mapping[str, Any], bodies: dict[str, bytes]
) -> tuple[bytes, list[CutText]]:
    """The same of an object that has these values, in this order: long ones are taken out as a whole."""
    if len(document) <= MAX_TEXT:
        return document, []
    found: list[_Place] = []
    for key, value in values.items():
        literal = encode(value)
        if len(literal) <= MAX_TEXT:
            continue
        # Behind the long values before it, the key can only be the object's own: in a text its quotes are escaped.
        start = document.find(b'"%s":%s' % (key.encode(), literal), found[-1].end if found else 0) + len(key) + 3
        text = value if isinstance(value, str) else None
        if document[start : start + len(literal)] == literal:
            found.append(_Place(start, start + len(literal), json_pointer(key), text))
    texts = [text for text in _long_texts(document) if not any(one.start <= text.start < one.end for one in found)]
    return _cut(document, 0, sorted([*found, *texts], key=lambda place: place.start), bodies)


class _Place(msgspec.Struct):
    """A long value in a document."""

    start: int
    end: int
    pointer: str
    text: str | None
    """None when it is not a text."""


def _cut(document: bytes, item: int, places: Iterable[_Place], bodies: dict[str, bytes]) -> tuple[bytes, list[CutText]]:
    parts: list[bytes] = []
    cut: list[CutText] = []
    done = at = 0
    for found in places:
        literal = document[found.start : found.end]
        beginning = b"null" if found.text is None else encode(found.text[:_BEGINNING])
        parts += (document[done : found.start], beginning)
        at += found.start - done
        lines = 1 if found.text is None else found.text.count("\n") + 1
        known = LongText(found.pointer, address(literal), len(literal), lines)
        bodies[known.address] = literal
        cut.append(CutText(item, at, at + len(beginning), known))
        at += len(beginning)
        done = found.end
    return b"".join([*parts, document[done:]]), cut


def _long_texts(document: bytes) -> list[_Place]:
    literals = [found for found in _STRING.finditer(document) if found.end() - found.start() > MAX_TEXT]
    try:
        places = list(_long_strings(wire.decode(document), literals)) if literals else []
    except SeatrialError:
        places = []  # a number that Python has no room for, say: such a document is kept, but not looked into
    # Where not every long string is a value in a place of its own, as with names or keys that occur twice, all stays.
    if len(places) != len(literals):
        return []
    return [
        _Place(found.start(), found.end(), pointer, text)
        for found, (pointer, text) in zip(literals, places, strict=True)
    ]


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
