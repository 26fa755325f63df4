"""`seatrial tail RUN_ID`: follow a run to its end, over connections that break."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.cli.exits import FAILED, PASSED
from seatrial.cli.output import is_dropped
from seatrial.cli.terminal import one_line, paint, printable
from seatrial.errors import SeatrialError
from seatrial.events import types as t

if TYPE_CHECKING:
    from seatrial.events.envelope import SequencedOutputEnvelope

URL_VARIABLE = "SEATRIAL_URL"
KEY_VARIABLE = "SEATRIAL_KEY"
FIRST_TRIES = 6
"""Before anything has come, the address may be wrong: then there is no point in waiting for minutes."""
_WIDTH = 160
_INDENT = " " * 8
_TEXT = (t.TextMessageContent, t.TextMessageChunk)
_REASONING = (t.ReasoningMessageContent, t.ReasoningMessageChunk)
_ARGUMENTS = (t.ToolCallArgs, t.ToolCallChunk)
# They say nothing that the lines between them do not.
_SILENT = (
    t.TextMessageStart,
    t.TextMessageEnd,
    t.ToolCallEnd,
    t.ReasoningStart,
    t.ReasoningEnd,
    t.ReasoningMessageStart,
    t.ReasoningMessageEnd,
)


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


async def _followed(args: argparse.Namespace, view: _View) -> t.RunStatus | None:
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


class EventLines:
    """Writes events to a stream of text. What agents say cannot steer the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._writing: tuple[str, str] | None = None
        """What the line that has not ended yet belongs to."""
        self._roles: dict[str, str] = {}
        self._tools: dict[str, str] = {}

    def show(self, sequence: int, event: t.Event) -> None:
        """Write what an event says."""
        self._remember(event)
        if isinstance(event, _TEXT):
            role = self._roles.get(_given(event.message_id), "assistant")
            self._piece(sequence, event, "text", _given(event.message_id), role, "bold", event.delta)
        elif isinstance(event, _REASONING):
            self._piece(sequence, event, "reasoning", _given(event.message_id), "reasoning", "dim", event.delta)
        elif isinstance(event, _ARGUMENTS):
            name = self._tools.get(_given(event.tool_call_id), "")
            self._piece(sequence, event, "call", _given(event.tool_call_id), f"call {name}", "yellow", event.delta)
        elif isinstance(event, t.ToolCallStart):
            self._piece(sequence, event, "call", event.tool_call_id, f"call {event.tool_call_name}", "yellow", "")
        elif isinstance(event, _SILENT):
            self.end_line()
        else:
            label, colour, text = self._line_of(event)
            self.end_line()
            self._begin(sequence, event, label, colour)
            self._stream.write(f" {one_line(text, _WIDTH)}\n" if text else "\n")
        self._stream.flush()

    def end_line(self) -> None:
        """End the line that is being written, if there is one."""
        if self._writing is not None:
            self._stream.write("\n")
            self._stream.flush()
            self._writing = None

    def _remember(self, event: t.Event) -> None:
        if isinstance(event, t.TextMessageStart | t.TextMessageChunk) and isinstance(event.role, str):
            self._roles[_given(event.message_id)] = event.role
        elif isinstance(event, t.TextMessageEnd):
            self._roles.pop(event.message_id, None)
        elif isinstance(event, t.ToolCallStart | t.ToolCallChunk) and isinstance(event.tool_call_name, str):
            self._tools[_given(event.tool_call_id)] = event.tool_call_name

    def _piece(
        self, sequence: int, event: t.Event, kind: str, id: str, label: str, colour: str, text: str | UnsetType
    ) -> None:
        """Go on with the line of a message or a call, or begin one."""
        # A chunk may leave its id out, and then continues the last item of its kind.
        same = self._writing is not None and self._writing[0] == kind and id in ("", self._writing[1])
        if not same:
            self.end_line()
            self._begin(sequence, event, label, colour)
            self._stream.write(" ")
            self._writing = (kind, id)
        if isinstance(text, str):
            self._stream.write(printable(text).replace("\n", f"\n{_INDENT}"))

    def _begin(self, sequence: int, event: t.Event, label: str, colour: str) -> None:
        subagent = getattr(event, "subagent_run_id", UNSET)
        if isinstance(subagent, str) and not isinstance(event, t.SubagentStarted):
            label = f"[{subagent}] {label}"
        number = paint(f"{sequence:>6}", "dim", self._stream)
        self._stream.write(f"{number}  {paint(one_line(label), colour, self._stream)}")

    def _line_of(self, event: t.Event) -> tuple[str, str, str]:
        """Label, colour and text of an event that has a line of its own."""
        match event:
            case t.RunStarted():
                return "run started", "bold", f"thread {event.thread_id}"
            case t.RunFinished(outcome=t.InterruptOutcome(interrupts=interrupts)):
                asked = "; ".join(f"{each.id}: {_given(each.message) or each.reason}" for each in interrupts)
                return "run waits for input", "yellow", asked
            case t.RunFinished(outcome=t.CancelledOutcome()):
                return "run cancelled", "yellow", ""
            case t.RunFinished():
                return "run finished", "green", _json(event.result)
            case t.RunError():
                return "run failed", "red", f"{event.message} [{_given(event.code) or 'no code'}]"
            case t.StepStarted():
                return "step", "dim", event.step_name
            case t.StepFinished():
                return "step done", "dim", event.step_name
            case t.ToolCallResult():
                content = event.content if isinstance(event.content, str) else _json(event.content)
                return f"result {self._tools.pop(event.tool_call_id, '')}", "yellow", content
            case t.SubagentStarted():
                return f"[{event.subagent_run_id}] started", "bold", event.name
            case t.SubagentFinished():
                return "finished", "bold", _json(event.result)
            case t.SubagentError():
                return "failed", "red", event.message
            case t.CustomEvent():
                return f"custom {event.name}", "dim", _json(event.value)
        fields = msgspec.to_builtins(event)
        return fields.pop("type").lower().replace("_", " "), "dim", _json(fields)


def _given(value: str | UnsetType) -> str:
    return value if isinstance(value, str) else ""


def _json(value: Any) -> str:
    return "" if value is UNSET else wire.encode(value).decode()
