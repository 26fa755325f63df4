"""`seatrial tail RUN_ID`: follow a run to its end, over connections that break."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from typing import TYPE_CHECKING

from seatrial.cli.exits import FAILED, PASSED
from seatrial.cli.output import is_dropped
from seatrial.cli.terminal import printable
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.cli.event_lines import EventLines
    from seatrial.events.envelope import SequencedOutputEnvelope
    from seatrial.events.types import TaskStatus

URL_VARIABLE = "SEATRIAL_URL"
KEY_VARIABLE = "SEATRIAL_KEY"
FIRST_TRIES = 6
"""Before anything has come, the address may be wrong: then there is no point in waiting for minutes."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_id", metavar="RUN_ID", help="the run")
    parser.add_argument(
        "--url", help=f"where `seatrial serve` listens (default: ${URL_VARIABLE}, else its default on this machine)"
    )
    parser.add_argument("--after", type=int, metavar="N", help="only events after this sequence number (default: all)")
    parser.add_argument("--types", metavar="A,B", help="only events of these types")
    parser.add_argument("--json", action="store_true", help="print envelopes, one JSON line each")
    parser.add_argument(
        "--allow-http",
        action="store_true",
        help="send the key over plain http to another machine, where it can be read",
    )
    parser.epilog = (
        f"A key is taken from the variable {KEY_VARIABLE}: a command line can be seen by others.\n"
        "Ctrl-C disconnects; the run continues, and you are shown how to follow it again.\n"
        "exit codes: 0 the run completed, 1 it failed, was cancelled or waits for input, 2 there is no such\n"
        "run, 3 it could not be followed, 141 nobody reads the output any more."
    )


def run(args: argparse.Namespace) -> int:
    if args.after is not None and args.after < 0:
        raise SeatrialError("usage", f"--after is a sequence, from 0, got {args.after}")
    view = _View(args)
    try:
        status = asyncio.run(_followed(args, view))
    except (SeatrialError, KeyboardInterrupt):
        view.end_line()
        if view.position != args.after:
            print(f"follow it further with\n  {_command(args, view)}", file=sys.stderr)
        raise
    view.end_line()
    print(f"{printable(args.run_id)}: {status}", file=sys.stderr)
    return PASSED if status == "completed" else FAILED


class _View:
    """What is shown of a run, and how far."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.position: int | None = args.after
        self._tries_left: int | None = FIRST_TRIES
        self._lines: EventLines | None = None
        if not args.json:
            from seatrial.cli.event_lines import EventLines

            self._lines = EventLines(sys.stdout)

    def show(self, envelope: SequencedOutputEnvelope, data: bytes) -> None:
        if self._lines is not None:
            self._lines.show(envelope.sequence, envelope.event)
        else:
            sys.stdout.buffer.write(data + b"\n")
            sys.stdout.buffer.flush()
        if is_dropped(sys.stdout):
            raise BrokenPipeError  # nobody is left to follow the run for
        self.position = envelope.sequence
        self._tries_left = None

    def end_line(self) -> None:
        if self._lines is not None:
            self._lines.end_line()

    def lost(self, error: SeatrialError, wait_s: float) -> None:
        if self._tries_left is not None:
            self._tries_left -= 1
            if not self._tries_left:
                hint = "is that where the service is? `--url` names another place, `seatrial serve` starts one"
                raise SeatrialError(error.code, error.message, hint=hint)
        self.end_line()
        print(f"seatrial: {printable(error.message)}; trying again in {wait_s:.1f} s", file=sys.stderr)


async def _followed(args: argparse.Namespace, view: _View) -> TaskStatus | None:
    # An HTTP client takes longer to load than most commands take to run.
    from seatrial.client import Client
    from seatrial.client.address import DEFAULT_URL

    url = args.url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    async with (
        Client(url, os.environ.get(KEY_VARIABLE) or None, allow_plain_http=args.allow_http) as client,
        client.events(args.run_id, after=args.after, types=_types(args), on_retry=view.lost) as stream,
    ):
        async for envelope in stream:
            view.show(envelope, stream.data)
        return stream.status


def _types(args: argparse.Namespace) -> list[str] | None:
    return None if args.types is None else [name.strip() for name in args.types.split(",") if name.strip()]


def _command(args: argparse.Namespace, view: _View) -> str:
    words = ["seatrial", "tail", args.run_id, "--after", str(view.position)]
    for option, value in (("--url", args.url), ("--types", args.types)):
        if value is not None:
            words += [option, value]
    words += [option for option, given in (("--json", args.json), ("--allow-http", args.allow_http)) if given]
    return printable(shlex.join(words))
