"""Cases as they come out of a file or a function, before they are checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from seatrial.problems import Place

MAX_LINE = 64 * 1024 * 1024


class SuiteRecord(msgspec.Struct, gc=False):
    """One row, line or item."""

    value: Any
    """A case whose types are right, or a plain value that is still to be checked."""
    number: int
    """Which record of its source this is, from 1."""
    place: Place


class TooLongLineError(ValueError):
    """A line that would fill the memory."""


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, one at a time, without a byte order mark."""
    with path.open("rb") as stream:
        mark = b"\xef\xbb\xbf"
        while line := stream.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                raise TooLongLineError(f"a line is longer than {MAX_LINE // 2**20} MiB")
            yield line.removeprefix(mark) if mark else line
            mark = b""
