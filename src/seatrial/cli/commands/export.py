"""`seatrial export EXPERIMENT --html DIR|FILE`: an experiment as pages that open without a server."""

from __future__ import annotations

import argparse
from pathlib import Path

from seatrial.cli.exits import COULD_NOT_RUN, PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.terminal import Progress

ENDINGS = (".html", ".htm")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="its id, the beginning of it, its name, or `latest`")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="DIR|FILE",
        required=True,
        help="what to write: a name that ends with .html is one file, which has the transcripts of the first runs, "
        "those that did not pass before the others; any other name is a folder, which has all of everything",
    )
    add_store_option(parser)
    parser.epilog = (
        "A folder that is there already is replaced if it is empty, or an export.\n"
        "exit codes: 0 the pages were written, whatever they say; 2 usage, or no such store or experiment;\n"
        "3 they could not be written, or runs of a finished experiment are damaged or not in the store any more."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial.explorer.export import write_file, write_folder
    from seatrial.reports import stored_report

    write = write_file if args.html.suffix.lower() in ENDINGS else write_folder
    with opened_store(args, read_only=True) as store:
        report = stored_report(store, args.experiment)
        with Progress("runs written") as progress:
            write(store, report, args.html, progress.advance)
    first = args.html if write is write_file else args.html / "index.html"
    print(f"{report.counted_runs} of {report.experiment.name}: {first}")
    return COULD_NOT_RUN if report.lost is not None or report.damaged else PASSED
