"""`seatrial lint FILE`: an agent response, or each of a batch, against response_mode x strictness."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import msgspec

from seatrial import formats
from seatrial._support import wire
from seatrial.cli.exits import FAILED, PASSED
from seatrial.cli.files import read_document, title
from seatrial.cli.terminal import paint, print_notes, printable
from seatrial.errors import SeatrialError
from seatrial.formats.contract import ContractReport, check
from seatrial.formats.registry import BatchRecord

# What makes a body no agent response at all: the agent's fault, not a failure to run.
_BODY_ERRORS = frozenset({"not_json", "not_utf8", "too_deep", "invalid_document", "empty_input"})


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="the body that the agent returned, or one in each line; - is stdin"
    )
    parser.add_argument(
        "--response-mode", choices=("thin", "rich"), help="what the agent promised to return (default: nothing)"
    )
    parser.add_argument(
        "--strictness", choices=("soft", "strict"), default="soft", help="whether a broken promise fails the run"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print {ok, message, gradeable, violation?, notes}; for each record of a batch, with line and id",
    )
    parser.epilog = (
        "A bad line of a batch is a violation of its own; the others are checked.\n"
        "exit codes: 0 within the contract, 1 a violation, 2 usage or no such file, 3 the file could not be read."
    )


def run(args: argparse.Namespace) -> int:
    code = PASSED
    for record in _records(args.file):
        report = _checked(record, args)
        if not report.ok:
            code = FAILED
        if args.json:
            shown = {**title(record), **msgspec.to_builtins(report)}
            sys.stdout.buffer.write(wire.encode(shown) + b"\n")
            continue
        print_notes(report.notes, "note", stream=sys.stdout)
        place = "" if record.line is None or record.error is not None else f"line {record.line}: "
        head = paint("ok", "green", sys.stdout) if report.ok else paint(str(report.violation), "red", sys.stdout)
        print(f"{head}: {place}{printable(report.message)}")
    return code


def _records(name: str) -> Iterator[BatchRecord]:
    try:
        yield from formats.read_many(read_document(name), "agent-response")
    except SeatrialError as error:
        if error.code not in _BODY_ERRORS:
            raise
        yield BatchRecord(None, None, error=error)


def _checked(record: BatchRecord, args: argparse.Namespace) -> ContractReport:
    if record.reading is not None:
        return check(record.reading, response_mode=args.response_mode, strictness=args.strictness)
    return ContractReport(ok=False, message=str(record.error), gradeable=False, violation="agent_bad_response")
