"""`seatrial match FILE.jsonl`: trajectories against expectations, one JSON line in, one result line out."""

from __future__ import annotations

import argparse
import sys

from seatrial.cli.exits import USAGE, exit_of
from seatrial.cli.files import read_lines
from seatrial.cli.terminal import Progress, paint, printable
from seatrial.trajectory.match_batch import LineResult, match_lines


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE.jsonl", help="lines {id?, mode, expected | minimums, actual: [step], level?, ...}"
    )
    parser.add_argument("--json", action="store_true", help="results as JSON lines (the default)")
    parser.add_argument("--text", action="store_true", help="a paragraph for each line instead of JSON")
    parser.epilog = (
        "A bad line does not affect the others.\n"
        "The steps of a line are taken as all calls, unless its `level` is `partial` or `none`.\n"
        "exit codes: 0 all passed, 1 any failed, 2 usage, no such file, or a line that cannot be used (named by\n"
        "its number), 3 there is no verdict on a line: too little is known of the calls, or a limit was reached."
    )


def run(args: argparse.Namespace) -> int:
    failed = bad = errored = 0
    write = sys.stdout.buffer.write
    with Progress("lines") as progress:
        for line in match_lines(read_lines(args.file)):
            if args.text:
                sys.stdout.write(_paragraph(line))
            else:
                write(line.json + b"\n")
            if line.result is None:
                bad += 1
                print(f"seatrial: {printable(str(line.error))}", file=sys.stderr)
            else:
                failed += line.result.outcome == "failed"
                errored += line.result.outcome == "errored"
            progress.advance()
    if not progress.done:
        print(f"seatrial: there is nothing to match in {args.file} [empty_input]", file=sys.stderr)
        return USAGE
    return USAGE if bad else exit_of(failed=failed, errored=errored)


def _paragraph(line: LineResult) -> str:
    name = f"line {line.line}" if line.id is None else printable(str(line.id))
    if line.result is None:
        return f"{paint('unusable', 'yellow', sys.stdout)} {name}: {printable(str(line.error))}\n"
    result = line.result
    hint = f" To do: {result.hint}." if result.hint else ""
    word = paint(result.outcome, _COLOURS[result.outcome], sys.stdout)
    return f"{word} {name}: {printable(result.prose + hint)}\n"


_COLOURS = {"passed": "green", "failed": "red", "errored": "yellow"}
