"""`seatrial case from RUN`: a regression case made of a recorded run, as YAML that is ready to be edited."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.cli.commands.diff import whole_run
from seatrial.cli.exits import COULD_NOT_RUN, PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.selection import RUN_HELP, find_run
from seatrial.cli.terminal import printable
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.suites.case_yaml import RecordedCase


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(prog=parser.prog, dest="command", required=True, metavar="from")
    made = commands.add_parser("from", help="make a case of a run", description="Make a case of a recorded run.")
    made.add_argument("run", metavar="RUN", help=RUN_HELP)
    made.add_argument("--id", metavar="ID", help="the id of the new case (default: the case's, and `-regression`)")
    made.add_argument("--into", type=Path, metavar="SUITE", help="add it to the cases of this suite file")
    add_store_option(made)
    made.add_argument("--json", action="store_true", help="the case as JSON, instead of YAML")
    parser.epilog = (
        "  seatrial case from RUN [--id ID] [--into SUITE] [--store WHERE] [--json]\n\n"
        "RUN is a run: its id, or EXPERIMENT:CASE[:AGENT[:TRIAL]]. The case has the run's instruction, the messages\n"
        "that it was given, and a tool_trajectory check that expects the calls it made. When not all of its calls are\n"
        "known, the case says why, and has no such check: it could pass for the wrong reason.\n"
        "exit codes: 0 written; 2 usage, or no such store, run or suite; 3 the run could not be read, or the case was\n"
        "written without a check."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial._support import wire
    from seatrial.suites.case_yaml import case_yaml

    case = _recorded(args)
    if args.into is not None:
        _insert(args.into, case)
        print(f"added the case {printable(case.id)} to {printable(str(args.into))}", file=sys.stderr)
    if args.json:
        sys.stdout.buffer.write(wire.encode(case.data()) + b"\n")
    elif args.into is None:
        sys.stdout.write(case_yaml(case))
    if case.unknown:
        print(f"seatrial: no check on calls was written: {printable(case.unknown)}", file=sys.stderr)
    return COULD_NOT_RUN if case.unknown else PASSED


def _recorded(args: argparse.Namespace) -> RecordedCase:
    from seatrial.runs import RunKey
    from seatrial.suites.case_yaml import recorded_case

    with opened_store(args, read_only=True) as store:
        run = whole_run(store, find_run(store, args.run))
        case = None
        if run.experiment_id is not None and isinstance(run.key, RunKey):
            case = store.case(run.experiment_id, run.key.case_id)
    return recorded_case(run, case, args.id)


def _insert(path: Path, case: RecordedCase) -> None:
    from seatrial._support.whole_file import whole_file
    from seatrial.suites.case_yaml import with_case

    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason: Any = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SeatrialError("unreadable_file", f"{path} cannot be read: {reason}") from None
    changed = with_case(text, str(path), case)
    with whole_file(path) as file:
        file.write(changed.encode())
