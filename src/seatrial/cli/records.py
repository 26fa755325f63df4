"""Records on the command line: a file holds one, or one in each line, of which a bad one spoils nothing but itself."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from seatrial import wire
from seatrial.cli.terminal import printable
from seatrial.errors import SeatrialError
from seatrial.formats.batch import BatchRecord


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
