"""`seatrial convert FILE --to FORMAT`: one record, another format, and a report of what did not fit."""

from __future__ import annotations

import argparse
import sys

from seatrial import formats, wire
from seatrial.cli.exits import PASSED
from seatrial.cli.files import read_document, write_document
from seatrial.cli.terminal import print_notes


def configure(parser: argparse.ArgumentParser) -> None:
    names = sorted(formats.FORMATS)
    parser.add_argument("file", metavar="FILE", help="the record to read, or - for standard input")
    parser.add_argument("--to", required=True, choices=names, metavar="FORMAT", help=f"one of {', '.join(names)}")
    parser.add_argument(
        "--from",
        dest="source",
        choices=names,
        metavar="FORMAT",
        help="what FILE is (default: found out by content)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where the result goes (default: standard output)")
    parser.add_argument("--json", action="store_true", help="the report on standard error as one JSON object")
    parser.epilog = (
        "The result goes to the output, the notes (what had to be dropped, guessed or repaired on reading)\n"
        "and the losses (what FORMAT cannot carry) to standard error."
    )


def run(args: argparse.Namespace) -> int:
    data = read_document(args.file)
    reason = "named with --from"
    source = args.source
    if source is None:
        detection = formats.detect(data)
        source, reason = detection.format, detection.reason
    reading = formats.read(data, source)
    written = formats.write(reading.transcript, args.to)
    write_document(args.output, written.data)
    if args.json:
        report = {
            "from": source,
            "reason": reason,
            "to": args.to,
            "notes": reading.notes,
            "losses": written.losses,
        }
        sys.stderr.buffer.write(wire.encode(report) + b"\n")
    else:
        sys.stderr.write(f"read as {source} ({reason})\n")
        print_notes(reading.notes, "note")
        print_notes(written.losses, "loss")
    return PASSED
