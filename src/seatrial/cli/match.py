"""`seatrial match FILE.jsonl`: trajectories against expectations, one JSON line in, one result line out."""

from __future__ import annotations

import argparse
import sys

from seatrial.cli.exits import FAILED, PASSED, USAGE
from seatrial.cli.files import read_lines
from seatrial.cli.progress import Progress
from seatrial.cli.terminal import paint, printable
from seatrial.trajectory.batch import LineResult, match_lines


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE.jsonl", help="lines {id?, mode, expected | minimums, actual: [step], ...}"
    )
    parser.add_argument("--json", action="store_true", help="results as JSON lines (the default)")
    parser.add_argument("--text", action="store_true", help="a paragraph for each line instead of JSON")
    parser.epilog = (
        "Good lines get their result also when others are bad.\n"
        "exit codes: 0 all passed, 1 any failed, 2 a line cannot be used (named by its number)."
    )


def run(args: argparse.Namespace) -> int:
    failed = bad = 0
    write = sys.stdout.buffer.write
    with Progress("lines") as progress:
        for outcome in match_lines(read_lines(args.file)):
            if args.text:
                sys.stdout.write(_paragraph(outcome))
            else:
                write(outcome.json + b"\n")
            if outcome.result is None:
                bad += 1
                print(f"seatrial: {printable(str(outcome.error))}", file=sys.stderr)
            elif not outcome.result.passed:
                failed += 1
            progress.advance()
    if not progress.done:
        print(f"seatrial: there is nothing to match in {args.file} [empty_input]", file=sys.stderr)
        return USAGE
    return USAGE if bad else FAILED if failed else PASSED


def _paragraph(outcome: LineResult) -> str:
    name = f"line {outcome.line}" if outcome.id is None else printable(str(outcome.id))
    if outcome.result is None:
        return f"{paint('unusable', 'yellow', sys.stdout)} {name}: {printable(str(outcome.error))}\n"
    word, colour = ("passed", "green") if outcome.result.passed else ("failed", "red")
    return f"{paint(word, colour, sys.stdout)} {name}: {printable(outcome.result.prose)}\n"
