"""Large bytes in a store: addressed by their content, compressed when that pays.

Zstandard takes a quarter of zlib's time and less room. What is to be written together is compressed by one call: for
each call Python gives up its lock, and a writer would wait for a busy main thread before it has it back, every time.
"""

from __future__ import annotations

import hashlib
import threading
import zlib

import msgspec
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError, backend_features

from seatrial.errors import SeatrialError
from seatrial.hashing import feed

PACK_FROM = 2048
"""Bytes from which compression saves more than it costs: below, setting up the compressor is most of the work."""

_PLAIN, _ZLIB, _ZSTD = range(3)
"""What `packed` says. Stores of earlier versions have zlib's."""
_LEVEL = 1  # of a few kilobytes of text it saves as much as the default level, in less time
_TOGETHER = "multi_compress_to_buffer" in backend_features  # not on PyPy

_of_thread = threading.local()


class Document(msgspec.Struct, gc=False):
    """Bytes on their way into a store: as they are, until a `Packer` has compressed them."""

    data: bytes
    packed: int = _PLAIN


class Packer:
    """Compresses the documents of many operations together. For one thread alone."""

    def __init__(self) -> None:
        self._compressor = ZstdCompressor(level=_LEVEL)
        self._large: list[Document] = []

    def add(self, data: bytes) -> Document:
        """A document that the next `pack` compresses, if that is worth it."""
        document = Document(data)
        if len(data) >= PACK_FROM:
            self._large.append(document)
        return document

    def pack(self) -> None:
        """Compress all that were added since the last time."""
        large, self._large = self._large, []
        whole: list[bytes | bytearray | memoryview] = [document.data for document in large]
        if len(whole) > 1 and _TOGETHER:
            segments = self._compressor.multi_compress_to_buffer(whole)
            packed = [segments[index].tobytes() for index in range(len(segments))]
        else:
            packed = [self._compressor.compress(data) for data in whole]
        for document, data in zip(large, packed, strict=True):
            if len(data) < len(document.data):
                document.data, document.packed = data, _ZSTD


def address(data: bytes) -> str:
    """The content address of these bytes: SHA-256 in hexadecimal."""
    hash_ = hashlib.sha256()
    feed(hash_, data)
    return hash_.hexdigest()


def digest(address: str) -> bytes:
    """A content address as the store keeps it."""
    try:
        found = bytes.fromhex(address)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise SeatrialError("not_found", f"{address[:80]!r} is not a content address: 64 hexadecimal digits")
    return found


def pack(data: bytes) -> tuple[int, bytes]:
    """One document alone: what its `packed` says, and its bytes."""
    packer = Packer()
    document = packer.add(data)
    packer.pack()
    return document.packed, document.data


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
