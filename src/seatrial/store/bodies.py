"""Large bytes in a store: addressed by their content, compressed when that pays."""

from __future__ import annotations

import hashlib
import zlib

from seatrial.errors import SeatrialError
from seatrial.hashing import feed

PACK_FROM = 2048
"""Bytes from which compression saves more than it costs: below, setting up the compressor is most of the work."""

_LEVEL = 1  # at 8 KB of JSON a third of the time of the default level, for an eighth more bytes


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
    """(1, compressed) when that is worth it, else (0, data)."""
    if len(data) >= PACK_FROM:
        packed = zlib.compress(data, _LEVEL)
        if len(packed) < len(data):
            return 1, packed
    return 0, data


def unpack(packed: int, data: bytes) -> bytes:
    """What `pack` was given."""
    return zlib.decompress(data) if packed else data
