"""`seatrial steps FILE`: the tool trajectory of a record, or of each record of a batch."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from seatrial import formats
from seatrial._support import wire
from seatrial.agents.output import read_trace_file
from seatrial.cli.exits import COULD_NOT_RUN, PASSED
from seatrial.cli.files import format_name, read_document, report_bad_line, title
from seatrial.cli.terminal import one_line, paint, print_notes, printable
from seatrial.formats.reading import Reading
from seatrial.trajectory import Trajectory, extract
from seatrial.trajectory.completeness import what_is_missing, what_to_do
from seatrial.transcript import Note


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the record, or lines of records, or - for standard input")
    parser.add_argument(
        "--from",
        dest="source",
        type=format_name,
        metavar="FORMAT",
        help="the format of FILE (default: recognised by content)",
    )
    parser.add_argument(
        "--prefer",
        choices=("trace", "messages", "events"),
        help="the source to use, instead of the first that exists",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print {source, basis, completeness, steps, summary, notes}; for each record of a batch, with line and id",
    )
    parser.epilog = (
        "Says how much is known of the calls: complete, partial or none, and why.\n"
        "exit codes: 0 all was read, 2 usage or no such file, 3 the file or a line of it could not be\n"
        "read (the others are shown)."
    )


def run(args: argparse.Namespace) -> int:
    code = PASSED
    for record in formats.read_many(read_document(args.file), args.source):
        if record.reading is None:
            report_bad_line(record, as_json=args.json)
            code = COULD_NOT_RUN
            continue
        reading = record.reading
        trajectory = extract(reading, prefer=args.prefer, trace_file=_trace_file(reading, args.file))
        notes = [*reading.notes, *trajectory.notes]
        if args.json:
            shown = {
                **title(record),
                "source": trajectory.source,
                "basis": trajectory.completeness.basis,
                "completeness": trajectory.completeness,
                "steps": trajectory.steps,
                "summary": trajectory.summary,
                "notes": notes,
            }
            sys.stdout.buffer.write(wire.encode(shown) + b"\n")
            continue
        if record.line is not None:
            print(f"line {record.line}{f' ({one_line(record.id, 80)})' if record.id else ''}:")
        print_notes(notes, "note")
        _show(trajectory)
    return code


def _show(trajectory: Trajectory) -> None:
    for step in trajectory.steps:
        arguments = step.arguments if step.arguments_text is None else step.arguments_text
        call = f"{step.name} {wire.encode(arguments).decode()}"
        whose = "" if step.executed_by == "agent" else f"  [{step.executed_by}]"
        print(f"{step.index:>4}  {step.status:<9}  {one_line(call, 120)}{whose}")
    known, summary = trajectory.completeness, trajectory.summary
    count = summary.steps or 0
    steps = f"{count} step{'' if count == 1 else 's'}"
    if known.level == "complete":
        print(f"{steps} from {trajectory.source}, {summary.errors} failed (calls: complete, basis: {known.basis})")
        return
    counted = f"at least {steps} from {trajectory.source}, {summary.errors} failed" if count else "no calls are known"
    level = paint(known.level, "yellow", sys.stdout)
    print(f"{counted} (calls: {level}, basis: {known.basis})")
    print(printable(f"{what_is_missing(known)}. To do: {what_to_do(known)}."))


def _trace_file(reading: Reading, name: str) -> bytes | Note | None:
    """What `trace_ref` names, read only from below the directory of the record."""
    directory = Path.cwd() if name == "-" else Path(name).resolve().parent
    return read_trace_file(reading, str(directory), ())
