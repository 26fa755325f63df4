"""`seatrial report [EXPERIMENT]`: the results of an experiment, on the terminal and in files."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from seatrial.cli.exits import COULD_NOT_RUN, PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.terminal import Progress, wants_colour

if TYPE_CHECKING:
    from seatrial.reports import Report, ReportForm
    from seatrial.store import Store

FORMS: dict[ReportForm | Literal["html"], str] = {
    "html": "one self-contained page, with every run and its transcript",
    "junit": "JUnit XML",
    "ctrf": "CTRF JSON",
    "markdown": "Markdown, for a CI step summary",
    "csv": "one line for each run",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        nargs="?",
        default="latest",
        help="its id, the beginning of it, or its name (default: the latest)",
    )
    add_store_option(parser)
    add_report_options(parser)
    parser.add_argument("--json", action="store_true", help="the whole report as JSON on standard output")
    parser.epilog = (
        "Of up to 10,000 runs every part is read: one that is damaged in the store is errored, and named.\n"
        "exit codes: 0 the report was made, whatever it says; 2 usage, or no such store or experiment;\n"
        "3 it could not be made, or runs of a finished experiment are damaged or not in the store any more."
    )


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """One option for each form of a report that goes to a file."""
    for form, meaning in FORMS.items():
        parser.add_argument(f"--{form}", type=Path, metavar="FILE", help=f"write the report to a file: {meaning}")
    parser.add_argument(
        "--group-by",
        choices=("tag",),
        help="`tag`: show the results of every tag in the summary, and not only those of the lowest pass rates",
    )
    parser.add_argument("--all-notes", action="store_true", help="count harmless notes in the summary, too")


def run(args: argparse.Namespace) -> int:
    from seatrial.reports import stored_report

    with opened_store(args, read_only=True) as store:
        report = stored_report(store, args.experiment)
        show_report(args, report)
        for _ in written_files(args, store, report):
            pass
    # What cannot be read any more is in the report, but what became of it is not.
    return COULD_NOT_RUN if report.lost is not None or report.damaged else PASSED


def notes_line(args: argparse.Namespace, report: Report, store: str) -> str | None:
    """The last line of a command that made a report, when some notes need a look: how many, and where they are."""
    from seatrial.reports import closing_line

    line = closing_line(report)
    if line is None or args.html is not None:
        return line and f"{line}: {args.html}"
    words = ["seatrial", "report", report.experiment.experiment_id, "--html", "report.html", "--store", store]
    return f"{line}: {shlex.join(words)}"


def show_report(args: argparse.Namespace, report: Report) -> None:
    """A report on standard output: its summary, or with `--json` the whole of it."""
    from seatrial.reports import FORMS as RENDERERS
    from seatrial.reports import MAX_TAG_ROWS, terminal_summary, terminal_width

    if args.json:
        sys.stdout.writelines(RENDERERS["json"](report))
        return
    colour = wants_colour(sys.stdout)
    rows = MAX_TAG_ROWS if args.group_by is None else len(report.by_tag.rows)
    sys.stdout.write(
        terminal_summary(report, colour=colour, harmless=args.all_notes, width=terminal_width(), tags=rows)
    )


def written_files(args: argparse.Namespace, store: Store, report: Report) -> Iterator[tuple[str, Path]]:
    """Write the files that were asked for; each is named once it is there."""
    from seatrial.reports import write_reports

    for form in FORMS:
        path: Path | None = getattr(args, form)
        if path is None:
            continue
        if form == "html":
            from seatrial.explorer.export import write_file

            with Progress("runs written") as progress:
                write_file(store, report, path, progress.advance)
        else:
            write_reports(report, {form: path})
        yield form, path
