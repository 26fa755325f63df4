"""Compressed bodies, decompressed in pieces of limited size: a few kilobytes may become gigabytes.

Ours, because aiohttp takes a gzip body that was cut short for a complete one.
"""

from __future__ import annotations

import zlib

from seatrial.http_client.transport_error import TransportError

ENCODINGS = "gzip, deflate"
"""What servers are asked for, in `Accept-Encoding`."""
PIECE_BYTES = 256 * 1024
MAX_MEMBERS = 1_000
"""Gzip members of one body. Empty ones cost time and no bytes of the limit."""

_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"


class Decompressor:
    """One body. What was fed comes out in pieces, none larger than `PIECE_BYTES`."""

    def __init__(self, *, gzip: bool, server: str) -> None:
        self._gzip = gzip
        self._server = server
        self._decoder: zlib._Decompress | None = None
        self._pending = b""
        self._more = False
        """Whether the decoder may hold more than it was asked for."""
        self._members = 0
        """How many gzip members have ended; several in a row are one body."""

    def feed(self, data: bytes) -> None:
        """Take a part of the compressed body."""
        self._pending += data

    def next_piece(self) -> bytes:
        """The next piece; empty when more has to be fed first. Raises `TransportError`."""
        while self._pending or self._more:
            decoder = self._decoder
            if decoder is None:
                if self._members and not self._another_member():
                    break
                decoder = self._decoder = zlib.decompressobj(self._window_bits(self._pending[0]))
            try:
                piece = decoder.decompress(self._pending, PIECE_BYTES)
            except zlib.error as error:
                message = f"{self._server}'s answer cannot be decompressed"
                raise TransportError("malformed", message, detail=f"{type(error).__name__}: {error}") from None
            self._more = len(piece) == PIECE_BYTES
            self._pending = decoder.unconsumed_tail
            if decoder.eof:
                self._pending, self._decoder, self._more = decoder.unused_data, None, False
                self._members += 1
                if self._members > MAX_MEMBERS:
                    message = f"{self._server}'s answer has more than {MAX_MEMBERS:,} gzip members"
                    raise TransportError("malformed", message)
            if piece:
                return piece
        return b""

    def finish(self) -> None:
        """The body has ended. Raises `TransportError` when its compressed data has not."""
        if self._decoder is not None:
            message = f"{self._server}'s answer broke off"
            raise TransportError("cut_off", message, detail="the compressed data is incomplete")

    def _another_member(self) -> bool:
        """Whether another member follows; what else follows is padding. There may be only a part of the magic yet."""
        if not self._gzip or not _GZIP_MAGIC.startswith(self._pending[: len(_GZIP_MAGIC)]):
            self._pending = b""
        return len(self._pending) >= len(_GZIP_MAGIC)

    def _window_bits(self, first_byte: int) -> int:
        if self._gzip:
            return _GZIP
        # `deflate` means the zlib format; many servers leave its header out.
        return zlib.MAX_WBITS if first_byte & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS


def decompressor_for(encoding: str, server: str) -> Decompressor | None:
    """What decompresses a body of this `Content-Encoding`; None where it is not compressed. Raises `TransportError`."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip", "deflate"):
        # Other values are not shown: a server may put anything there, our credential too.
        named = f": {name}" if name in ("br", "zstd", "compress") else ""
        message = f"{server}'s answer has a content encoding that was not asked for{named}"
        raise TransportError("malformed", message)
    return Decompressor(gzip=name != "deflate", server=server)
