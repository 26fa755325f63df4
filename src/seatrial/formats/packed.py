"""Records that are packed with Zstandard, as older rollouts of Codex are."""

from __future__ import annotations

from typing import Final

from zstandard import ZstdDecompressor, ZstdError

from seatrial.errors import SeatrialError

MAX_BYTES: Final = 256 * 1024 * 1024
_PIECE: Final = 1024
_MAGIC: Final = b"\x28\xb5\x2f\xfd"


def unpacked(data: bytes) -> bytes:
    """The data itself, unpacked where it is packed. Raises `SeatrialError` for what is broken, or too large."""
    if not data.startswith(_MAGIC):
        return data
    found = bytearray()
    unpacking = ZstdDecompressor().decompressobj()
    try:
        # In small pieces: a few bytes can stand for very many.
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            while piece:
                if unpacking.eof:
                    unpacking = ZstdDecompressor().decompressobj()  # another frame follows
                found += unpacking.decompress(piece)
                piece = unpacking.unused_data if unpacking.eof else b""
                if len(found) > MAX_BYTES:
                    text = f"the record is larger than {MAX_BYTES:,} bytes when it is unpacked"
                    raise SeatrialError("too_large", text)
    except ZstdError as error:
        raise SeatrialError("invalid_document", f"the record is packed with Zstandard, and broken: {error}") from None
    if not unpacking.eof:
        raise SeatrialError("invalid_document", "the record is packed with Zstandard, and cut off")
    return bytes(found)
