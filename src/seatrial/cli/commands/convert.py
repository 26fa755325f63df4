"""`seatrial convert FILE --to FORMAT`: records in another format, and a report of what did not fit."""

from __future__ import annotations

import argparse
import sys

from seatrial import formats
from seatrial._support import wire
from seatrial.cli.exits import COULD_NOT_RUN, PASSED
from seatrial.cli.files import error_data, format_name, read_document, report_bad_line, title, write_document
from seatrial.cli.terminal import print_notes
from seatrial.errors import SeatrialError
from seatrial.formats import output_messages
from seatrial.formats.reading import Reading, Written
from seatrial.formats.registry import BatchRecord


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the record, or lines of records, or - for standard input")
    parser.add_argument(
        "--to", required=True, type=format_name, metavar="FORMAT", help=f"one of {', '.join(formats.WRITABLE)}"
    )
    parser.add_argument(
        "--from",
        dest="source",
        type=format_name,
        metavar="FORMAT",
        help="the format of FILE (default: recognised by content)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where the result goes (default: standard output)")
    parser.add_argument(
        "--json", action="store_true", help="the report on standard error as JSON, one object for each record"
    )
    parser.epilog = (
        "The result goes to the output, the notes (what had to be dropped, guessed or repaired on reading)\n"
        "and the losses (what FORMAT cannot carry) to standard error. Lines of records give lines of records.\n"
        "exit codes: 0 all was read, 2 usage or no such file, 3 the file or a line of it could not be\n"
        "read (the others are written)."
    )


def run(args: argparse.Namespace) -> int:
    data = read_document(args.file)
    reason = _reason(data, args.source)
    results: list[bytes] = []
    code = PASSED
    for record in formats.read_many(data, args.source):
        if record.reading is None:
            code = COULD_NOT_RUN
            _report_error(record, args)
            continue
        written = _written(record.reading, record, args.to)
        results.append(written.data if record.line is None else written.data.rstrip(b"\n"))
        _report(record, record.reading, written, reason, args)
    if not results:
        return COULD_NOT_RUN
    write_document(args.output, b"\n".join(results))
    return code


def _written(reading: Reading, record: BatchRecord, to: str) -> Written:
    if record.line is None:
        return formats.write(reading, to)
    written = formats.write(reading, to)
    if to == "output-messages":
        written.data = output_messages.write(reading.transcript, record.id).data
    if b"\n" in written.data.strip():
        raise SeatrialError(
            "usage",
            f"a record in the format {to} takes several lines, so lines of records cannot be written in it",
            hint="convert them one at a time",
        )
    return written


def _reason(data: bytes, source: str | None) -> str:
    if source is not None:
        return "named with --from"
    try:
        return formats.detect(data).reason
    except SeatrialError:
        return "by the first line that can be read"


def _report(record: BatchRecord, reading: Reading, written: Written, reason: str, args: argparse.Namespace) -> None:
    if args.json:
        report = {
            **title(record),
            "from": reading.format,
            "reason": reason,
            "to": args.to,
            "notes": reading.notes,
            "losses": written.losses,
        }
        sys.stderr.buffer.write(wire.encode(report) + b"\n")
        return
    place = "" if record.line is None else f"line {record.line}: "
    sys.stderr.write(f"{place}read as {reading.format} ({reason})\n")
    print_notes(reading.notes, "note")
    print_notes(written.losses, "loss")


def _report_error(record: BatchRecord, args: argparse.Namespace) -> None:
    if args.json and record.error is not None:
        sys.stderr.buffer.write(wire.encode({**title(record), "error": error_data(record.error)}) + b"\n")
    else:
        report_bad_line(record, as_json=False)
