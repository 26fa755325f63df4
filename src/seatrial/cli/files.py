"""Files named on the command line, and the records in them.

`-` is standard input, and outputs appear whole or not at all. A file holds one record, or one in each line, of which a
bad one spoils nothing but itself.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from seatrial._support import wire
from seatrial._support.whole_file import whole_file
from seatrial.cli.terminal import printable
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.formats.registry import BatchRecord

MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
"""A document is read whole; a larger one is refused instead of filling the memory."""
MAX_LINE_BYTES = 64 * 1024 * 1024


def read_document(name: str) -> bytes:
    """The bytes of a file or of standard input."""
    with _opened(name) as stream:
        data = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        raise SeatrialError(
            "too_large",
            f"{name} is larger than {MAX_DOCUMENT_BYTES // 2**20} MiB",
            hint="split it, or use a format of lines",
        )
    if not data.strip():
        raise SeatrialError("empty_input", f"{_named(name)} is empty")
    return data


def read_lines(name: str) -> Iterator[bytes]:
    """The lines of a file or of standard input, one at a time, never more than one line in memory."""
    with _opened(name) as stream:
        number = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise SeatrialError(
                    "too_large", f"a line of {_named(name)} is larger than {MAX_LINE_BYTES // 2**20} MiB", line=number
                )
            yield line


def write_document(name: str | None, data: bytes) -> None:
    """Write to standard output, or to a file that is replaced only when all of it is there. Ends with a newline."""
    if not data.endswith(b"\n"):
        data += b"\n"
    if name is None or name == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with whole_file(Path(name)) as file:
        file.write(data)


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with open(name, "rb") as stream:
            yield stream
    except OSError as error:
        raise SeatrialError("unreadable_file", f"{name} cannot be read: {error.strerror}") from None


def _named(name: str) -> str:
    return "standard input" if name == "-" else name


def format_name(text: str) -> str:
    """The type of an option that names a format; installed packages may offer more than Seatrial has."""
    from seatrial.formats import FORMATS

    if text not in FORMATS:
        raise argparse.ArgumentTypeError(f"there is no format {text[:60]!r}: {FORMATS.nearest(text)}")
    return text


def title(record: BatchRecord) -> dict[str, Any]:
    """What stands before the result of a record in a batch: its line, and its id where it has one."""
    if record.line is None:
        return {}
    return {"line": record.line} if record.id is None else {"line": record.line, "id": record.id}


def report_bad_line(record: BatchRecord, *, as_json: bool) -> None:
    """Say on standard error what is wrong with a line, and in its place on standard output too, as JSON."""
    error = record.error or SeatrialError("bad_record", "the record could not be read", line=record.line)
    print(f"seatrial: {printable(str(error))} [{error.code}]", file=sys.stderr)
    if as_json:
        sys.stdout.buffer.write(wire.encode({**title(record), "error": error_data(error)}) + b"\n")


def error_data(error: SeatrialError) -> dict[str, str]:
    """An error as data: code and message, and pointer and hint where there are any."""
    said = {"code": error.code, "message": error.message, "pointer": error.pointer, "hint": error.hint}
    return {name: value for name, value in said.items() if value is not None}
