"""Newline-delimited JSON: lines out of bytes that arrive in any pieces, and back."""

from __future__ import annotations

from seatrial.errors import SeatrialError
from seatrial.events.sse import MAX_FRAME_BYTES

_BOM = b"\xef\xbb\xbf"
_LF, _CR = 10, 13


class NdjsonParser:
    """Takes bytes in chunks of any size, gives the lines that they complete. The cost is linear in the bytes.

    Blank lines are skipped, and white space around a line (the CR of a CRLF too) is not part of it.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._line = bytearray()
        """The line that has not ended yet."""
        self._first_line = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        end = chunk.rfind(b"\n")
        if end < 0:
            self._line += chunk
            self._check(len(self._line))
            return []
        lines = (bytes(self._line) + chunk[:end]).split(b"\n")
        self._line = bytearray(chunk[end + 1 :])
        self._check(max(map(len, lines)))
        self._check(len(self._line))
        return self._stripped(lines)

    def close(self) -> list[bytes]:
        """The last line, when it lacks its newline."""
        line = bytes(self._line)
        self._line.clear()
        return self._stripped([line])

    def _stripped(self, lines: list[bytes]) -> list[bytes]:
        if self._first_line:
            self._first_line = False
            lines[0] = lines[0].removeprefix(_BOM)
        return [stripped for line in lines if (stripped := line.strip())]

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise SeatrialError("too_large", f"a line is larger than {self._limit} bytes")


def encode_ndjson(data: bytes) -> bytes:
    """One line. JSON has line ends only as white space between its parts, so they become spaces."""
    if _LF in data or _CR in data:
        data = data.replace(b"\r", b" ").replace(b"\n", b" ")
    return data + b"\n"
