"""Bodies that came compressed, unpacked in pieces: a few kilobytes may become gigabytes."""

from __future__ import annotations

import zlib

from seatrial.agents.http_faults import ExchangeError, reason
from seatrial.runs import Fault

ENCODINGS = "gzip, deflate"
"""What agents are told that they may use."""
PIECE_BYTES = 256 * 1024

_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"


class Unpacking:
    """One body. What was added comes out in pieces, none larger than `PIECE_BYTES`."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._decoder: zlib._Decompress | None = None
        self._waiting = b""
        self._more = False
        """Whether the decoder may hold more than it was asked for."""
        self._members = 0
        """How many files have ended; several in a row are one body."""

    def add(self, data: bytes) -> None:
        """Take a part of the body."""
        self._waiting += data

    def some(self) -> bytes:
        """The next piece; empty when more has to be added first. Raises `ExchangeError`."""
        while self._waiting or self._more:
            decoder = self._decoder
            if decoder is None:
                if self._members and not self._another():
                    break
                decoder = self._decoder = zlib.decompressobj(self._format(self._waiting[0]))
            try:
                piece = decoder.decompress(self._waiting, PIECE_BYTES)
            except zlib.error as error:
                raise ExchangeError(
                    Fault("agent_bad_response", "the agent's answer cannot be unpacked", detail=reason(error))
                ) from None
            self._more = len(piece) == PIECE_BYTES
            self._waiting = decoder.unconsumed_tail
            if decoder.eof:
                self._waiting, self._decoder, self._more = decoder.unused_data, None, False
                self._members += 1
            if piece:
                return piece
        return b""

    def end(self) -> None:
        """The body is complete. Raises `ExchangeError` when what was packed is not."""
        if self._decoder is not None:
            raise ExchangeError(Fault("answer_cut_off", "the agent's answer broke off", detail="packed, and cut short"))

    def _another(self) -> bool:
        """Whether what waits begins another file; if not, it is padding. A part of the mark may be all there is yet."""
        if not self._gzip or not _GZIP_MAGIC.startswith(self._waiting[: len(_GZIP_MAGIC)]):
            self._waiting = b""
        return len(self._waiting) >= len(_GZIP_MAGIC)

    def _format(self, first: int) -> int:
        if self._gzip:
            return _GZIP
        # `deflate` means the format of zlib; many servers leave its head out.
        return zlib.MAX_WBITS if first & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS


def unpacking(encoding: str) -> Unpacking | None:
    """What unpacks a body of this `Content-Encoding`; None for one that is not packed. Raises `ExchangeError`."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip", "deflate"):
        message = f"the agent's answer is packed in a way that was not asked for: {name[:40]!r}"
        raise ExchangeError(Fault("agent_bad_response", message))
    return Unpacking(gzip=name != "deflate")
