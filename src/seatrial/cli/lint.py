"""`seatrial lint FILE`: an agent response against response_mode x strictness."""

from __future__ import annotations

import argparse
import sys

from seatrial import wire
from seatrial.cli.exits import FAILED, PASSED
from seatrial.cli.files import read_document
from seatrial.cli.terminal import paint, print_notes, printable
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response
from seatrial.formats.contract import ContractReport, check

# What makes a body no agent response at all: the agent's fault, not a failure to run.
_BODY_ERRORS = frozenset({"not_json", "not_utf8", "too_deep", "invalid_document", "empty_input"})


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the body that the agent returned, or - for standard input")
    parser.add_argument(
        "--response-mode", choices=("thin", "rich"), help="what the agent promised to return (default: nothing)"
    )
    parser.add_argument(
        "--strictness", choices=("soft", "strict"), default="soft", help="whether a broken promise fails the run"
    )
    parser.add_argument("--json", action="store_true", help="print {ok, message, gradeable, violation?, notes}")
    parser.epilog = "exit codes: 0 within the contract, 1 a violation, 3 the file could not be read."


def run(args: argparse.Namespace) -> int:
    report = _checked(args)
    if args.json:
        sys.stdout.buffer.write(wire.encode(report) + b"\n")
    else:
        print_notes(report.notes, "note", stream=sys.stdout)
        head = paint("ok", "green", sys.stdout) if report.ok else paint(str(report.violation), "red", sys.stdout)
        print(f"{head}: {printable(report.message)}")
    return PASSED if report.ok else FAILED


def _checked(args: argparse.Namespace) -> ContractReport:
    try:
        reading = agent_response.read(read_document(args.file))
    except SeatrialError as error:
        if error.code not in _BODY_ERRORS:
            raise
        return ContractReport(ok=False, message=str(error), gradeable=False, violation="agent_bad_response")
    return check(reading, response_mode=args.response_mode, strictness=args.strictness)
