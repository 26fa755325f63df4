"""`seatrial events FILE`: verify a run's event stream, and fold it to messages, state and pending calls."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from msgspec import UNSET

from seatrial._support import wire
from seatrial.cli.exits import FAILED, PASSED
from seatrial.cli.files import read_document
from seatrial.cli.terminal import one_line, paint, print_notes, printable
from seatrial.events.log import EventLog, read_log
from seatrial.events.projection import to_transcript
from seatrial.events.replay import Replay, replay
from seatrial.events.run_input import read_run_input, start_messages
from seatrial.events.violation import OrderViolation
from seatrial.transcript import Note


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="NDJSON or SSE, bare events or envelopes; - for standard input")
    parser.add_argument(
        "--view",
        choices=("transcript", "agui"),
        default="transcript",
        help="the shape of the messages: the canonical transcript (default), or AG-UI's",
    )
    parser.add_argument("--input", metavar="FILE", help="the RunAgentInput that the run starts from")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print {ok, repaired, error?, index?, repairs, notes, messages, state, pending}",
    )
    parser.epilog = (
        "ok is what a client of AG-UI 1.0 accepts. What it refuses is repaired and read, and is not ok.\n"
        "exit codes: 0 ok, 1 not ok, 2 usage or no such file, 3 the file could not be read."
    )


def run(args: argparse.Namespace) -> int:
    log = read_log(read_document(args.file), check=True)
    notes: list[Note] = list(log.notes)
    start: dict[str, Any] = {}
    if args.input is not None:
        run_input = read_run_input(read_document(args.input))
        start = {"messages": start_messages(run_input, notes), "state": run_input.state}
    result = replay(log.events, **start)
    notes += result.notes
    folded = result.folded
    messages: list[Any] = list(folded.messages)
    if args.view == "transcript":
        messages = list(to_transcript(folded, notes).messages)
    violation = first_violation(log, result)
    if args.json:
        shown: dict[str, Any] = {"ok": violation is None, "repaired": bool(log.refused)}
        if violation is not None:
            shown |= {"error": violation.message, "index": violation.index}
        shown |= {
            "repairs": log.refused,
            "notes": notes,
            "messages": messages,
            "state": None if folded.state is UNSET else folded.state,
            "pending": folded.pending,
        }
        sys.stdout.buffer.write(wire.encode(shown) + b"\n")
    else:
        print_notes(log.refused, "repaired", stream=sys.stdout)
        print_notes(notes, "note", stream=sys.stdout)
        for message in messages:
            print(one_line(wire.encode(message).decode(), 160))
        if violation is None:
            head = paint("ok", "green", sys.stdout)
            print(f"{head}: {len(log.events)} events, {len(messages)} messages, {len(folded.pending)} pending calls")
        else:
            head = paint(f"event {violation.index}", "red", sys.stdout)
            print(f"{head}: {printable(violation.message)}")
    return PASSED if violation is None else FAILED


def first_violation(log: EventLog, result: Replay) -> OrderViolation | None:
    """Where a client of AG-UI ends the stream; None when it takes all of it, up to the end of the run."""
    found = [] if result.violation is None else [result.violation]
    for note in log.refused[:1]:
        _, index, *field = note.pointer.split("/")
        place = f"{'/'.join(field)}: " if field else ""
        found.append(OrderViolation(int(index), "malformed", f"{place}{note.message}"))
    if not found and log.truncated:
        # Clients of 1.0.0 let it pass, and are not to: it may have been cut off anywhere.
        message = "the stream ends without RUN_FINISHED or RUN_ERROR"
        found.append(OrderViolation(len(log.events), "truncated", message))
    return min(found, key=lambda violation: violation.index, default=None)
