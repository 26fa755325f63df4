"""`seatrial diff RUN RUN`: where the calls of two runs diverge, and how they ended."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from seatrial.cli.exits import PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.selection import RUN_HELP, find_run
from seatrial.cli.terminal import wants_colour
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.runs import Run
    from seatrial.store import Store


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="RUN", help=f"the first, {RUN_HELP}")
    parser.add_argument("b", metavar="RUN", help="the second, named in the same way")
    add_store_option(parser)
    parser.add_argument("--json", action="store_true", help="the comparison as JSON")
    parser.epilog = (
        "- is a call that only the first made, + one that only the second made, ~ one with other arguments.\n"
        "exit codes: 0 compared, whatever differs; 2 usage, or no such store or run; 3 a run could not be read."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial._support import wire
    from seatrial.reports.layout import terminal_width
    from seatrial.reports.run_diff import compare_runs, run_diff_data, run_diff_text

    with opened_store(args, read_only=True) as store:
        a, b = [whole_run(store, find_run(store, reference)) for reference in (args.a, args.b)]
    found = compare_runs(a, b)
    if args.json:
        sys.stdout.buffer.write(wire.encode(run_diff_data(found)) + b"\n")
    else:
        sys.stdout.write(run_diff_text(found, colour=wants_colour(sys.stdout), width=terminal_width()))
    return PASSED


def whole_run(store: Store, run_id: str) -> Run:
    """A run with all its parts; `damaged`, with its name, when something of it cannot be read."""
    found = store.run(run_id)
    if found.fault is not None and found.fault.error_class == "record_damaged":
        raise SeatrialError("damaged", found.fault.message)
    return found
