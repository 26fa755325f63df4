"""Frames of a stream: server-sent events and newline-delimited JSON, out of bytes that arrive in any pieces, and back.

Lines of server-sent events may end in LF, CR or CRLF, wherever a chunk is cut. We write LF only, as AG-UI's clients
demand.
"""

from __future__ import annotations

import re

import msgspec

from seatrial.errors import SeatrialError

MAX_FRAME_BYTES = 10 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_LF, _CR, _COLON = 10, 13, 58


class SseFrame(msgspec.Struct, gc=False):
    """One dispatched frame; several `data` lines are joined with LF."""

    data: bytes
    event: str | None = None
    id: str | None = None
    """The id of this frame; not the one that a browser would remember from an earlier one."""
    retry: int | None = None


class SseParser:
    """Takes bytes in chunks of any size, gives the frames that they complete. The cost is linear in the bytes."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self.retry: int | None = None
        """The last `retry` of the stream, which also counts when it stands alone and no frame is dispatched."""
        self._limit = limit
        self._line = bytearray()
        """The line that has not ended yet."""
        self._first_line = True
        self._after_cr = False
        """The last chunk ended in CR, so an LF at the head of the next one belongs to it."""
        self._data: list[bytes] = []
        self._size = 0
        """Bytes of the frame so far, comments not counted."""
        self._event: str | None = None
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[SseFrame]:
        """The frames that this chunk completes."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        if not chunk:
            return []
        if _LF not in chunk and _CR not in chunk:
            self._line += chunk
            self._check(self._size + len(self._line))
            return []
        if self._line:
            chunk = bytes(self._line) + chunk
            self._line.clear()
        # bytes.splitlines knows LF, CR and CRLF, and nothing else.
        lines = chunk.splitlines()
        last = chunk[-1]
        if last == _CR:
            self._after_cr = True
        elif last != _LF:
            self._line += lines.pop()
        frames = self._take(lines)
        self._check(self._size + len(self._line))
        return frames

    def close(self) -> list[SseFrame]:
        """What is left at the end of the stream: a last frame that lacks its blank line."""
        line = bytes(self._line)
        self._line.clear()
        if self._first_line:
            line = line.removeprefix(_BOM)
        # Only its content shows whether a line was cut, so only data counts: a cut `id` is a wrong id.
        lines = [line] if line.startswith(b"data:") else []
        return self._take([*lines, b""])

    def _take(self, lines: list[bytes]) -> list[SseFrame]:
        frames: list[SseFrame] = []
        if self._first_line and lines:
            self._first_line = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if line.startswith(b"data:"):
                self._size += len(line)
                self._check(self._size)
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    frames.append(SseFrame(data, self._event, self._id, self._retry))
                if self._size:
                    self._begin_frame()
            else:
                self._check(self._size + len(line))
                if line[0] != _COLON:
                    self._field(line)
        return frames

    def _field(self, line: bytes) -> None:
        self._size += len(line)
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"id" and "\0" not in text:
            self._id = text
        elif name == b"event":
            self._event = text
        elif name == b"retry" and text.isascii() and text.isdigit() and len(text) < 19:
            self._retry = self.retry = int(text)
        elif name == b"data":
            self._data.append(b"")

    def _begin_frame(self) -> None:
        self._data = []
        self._size = 0
        self._event = self._id = self._retry = None

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise SeatrialError("too_large", f"a frame is larger than {self._limit} bytes")


def encode_sse(data: bytes, *, id: str | None = None, event: str | None = None) -> bytes:
    """One frame: `id` and `event` where given, then the data, one `data` line for each of its lines."""
    if _LF in data or _CR in data:
        data = b"\ndata: ".join(_LINE_END.split(data))
    frame = b"data: %b\n\n" % data
    if event is not None:
        frame = b"event: %b\n%b" % (_one_line(event), frame)
    if id is not None:
        frame = b"id: %b\n%b" % (_one_line(id), frame)
    return frame


def encode_sse_comment(text: str = "") -> bytes:
    """A comment, which every client ignores: the keepalive of the AG-UI view."""
    return b"".join([b": " + line + b"\n" for line in _LINE_END.split(text.encode("utf-8", "replace"))]) + b"\n"


def _one_line(text: str) -> bytes:
    if "\n" in text or "\r" in text or "\0" in text:
        raise SeatrialError("invalid_cursor", "an SSE field must be one line of text without NUL")
    return text.encode("utf-8", "replace")


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
