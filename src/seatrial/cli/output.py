"""Standard output and standard error whose reader may go away (`| head`) without changing how a command ends."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def survive_closed_pipes() -> None:
    """Let what is written to a pipe that nobody reads any more be dropped, instead of stopping the command.

    The exit code is the verdict, and reports are files: neither may depend on who reads the output."""
    sys.stdout = _surviving(sys.stdout)
    sys.stderr = _surviving(sys.stderr)


def is_dropped(stream: TextIO) -> bool:
    """Whether the reader of a stream has gone away, so that what is written is dropped."""
    raw = _raw(stream)
    return isinstance(raw, _Pipe) and raw.dropped


class _Pipe(io.FileIO):
    """Writes to a file descriptor until its reader goes away, then to nowhere."""

    dropped = False

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            self.dropped = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            # The descriptor itself: programs that the command starts inherit it.
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)


def _surviving(stream: TextIO) -> TextIO:
    # A stream that something has replaced (a test, a notebook) or closed is left as it is.
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(_raw(stream), io.FileIO):
        return stream
    stream.flush()
    pipe = _Pipe(stream.fileno(), "wb", closefd=False)
    unbuffered = isinstance(stream.buffer, io.FileIO)  # as with PYTHONUNBUFFERED
    return io.TextIOWrapper(
        pipe if unbuffered else io.BufferedWriter(pipe),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _raw(stream: TextIO) -> object:
    buffer = getattr(stream, "buffer", None)
    return getattr(buffer, "raw", buffer)
