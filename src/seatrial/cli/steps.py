"""`seatrial steps FILE`: the tool trajectory of a record."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seatrial import formats, wire
from seatrial.agents.output import read_trace_file
from seatrial.cli.exits import PASSED
from seatrial.cli.files import read_document
from seatrial.cli.terminal import one_line, print_notes
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract
from seatrial.transcript import Note


def configure(parser: argparse.ArgumentParser) -> None:
    names = sorted(formats.FORMATS)
    parser.add_argument("file", metavar="FILE", help="the record, or - for standard input")
    parser.add_argument(
        "--from",
        dest="source",
        choices=names,
        metavar="FORMAT",
        help="what FILE is (default: found out by content)",
    )
    parser.add_argument(
        "--prefer",
        choices=("trace", "messages", "events"),
        help="the source that counts, instead of the first there is",
    )
    parser.add_argument("--json", action="store_true", help="print {source, steps, summary, notes}")


def run(args: argparse.Namespace) -> int:
    reading = formats.read(read_document(args.file), args.source)
    trajectory = extract(reading, prefer=args.prefer, trace_file=_trace_file(reading, args.file))
    notes = [*reading.notes, *trajectory.notes]
    if args.json:
        shown = {
            "source": trajectory.source,
            "steps": trajectory.steps,
            "summary": trajectory.summary,
            "notes": notes,
        }
        sys.stdout.buffer.write(wire.encode(shown) + b"\n")
        return PASSED
    print_notes(notes, "note")
    for step in trajectory.steps:
        arguments = step.arguments if step.arguments_text is None else step.arguments_text
        call = f"{step.name} {wire.encode(arguments).decode()}"
        print(f"{step.index:>4}  {step.status:<9}  {one_line(call, 120)}")
    count = len(trajectory.steps)
    print(f"{count} step{'' if count == 1 else 's'} from {trajectory.source}, {trajectory.summary.errors} failed")
    return PASSED


def _trace_file(reading: Reading, name: str) -> bytes | Note | None:
    """What `trace_ref` names, read only from below the directory of the record."""
    directory = Path.cwd() if name == "-" else Path(name).resolve().parent
    return read_trace_file(reading, str(directory), ())
