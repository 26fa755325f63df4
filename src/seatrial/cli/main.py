"""Finds the command, runs it, and turns what went wrong into an exit code and one clear sentence."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import Protocol

from seatrial._version import __version__
from seatrial.cli.exits import COULD_NOT_RUN, USAGE, interrupted_as, interrupted_exit
from seatrial.cli.parser import Parser
from seatrial.errors import SeatrialError, lacking
from seatrial.garbage import rare_collections

COMMANDS: dict[str, str] = {
    "init": "write a first suite and agent, ready to run",
    "run": "run a suite: every agent on every case, graded, stored, reported",
    "grade": "grade stored runs again, without running them",
    "doctor": "check a suite, and whether its agents can be reached",
    "lint": "check an agent response against response_mode and strictness",
    "convert": "read a record in one format, write it in another",
    "events": "verify an event stream and fold it into messages and state",
    "steps": "extract the tool calls of a record",
    "match": "compare tool calls with what was expected, one JSON line each",
    "report": "show the results of an experiment, and write them to files",
    "compare": "compare two experiments or agents, case by case",
    "serve": "serve agents over HTTP, with streams that can be resumed",
    "tail": "follow a run of a server to its end, across broken connections",
    "keys": "create, list and revoke the keys of a server",
    "schema": "print the JSON Schema of a Seatrial type",
}
"""Every command and what it does; `seatrial.cli.<command>` is its module."""

_LIMITS = (
    "raise its limits (`ulimit -n` for open files, `ulimit -v` for memory), or run fewer at once (`--concurrency`)"
)
_USAGE = frozenset(
    {
        *("usage", "invalid_config", "invalid_suite", "unknown_format"),
        # What the command line names does not exist: a file, a store, an experiment, a run.
        *("unreadable_file", "not_found", "ambiguous"),
    }
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Command(Protocol):
    """What a command's module offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work; returns the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    try:
        code = _main(argv)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - Python's own exit code for it would say that an agent failed
        import traceback

        traceback.print_exc()
        print("seatrial: internal error, see above. What was finished is stored. [internal_error]", file=sys.stderr)
        code = COULD_NOT_RUN
    if argv is None and len(threading.enumerate()) > 1:
        from seatrial.cli.signals import leave_threads_behind

        leave_threads_behind(code)
    return code


def _main(argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else ""
    try:
        if name not in COMMANDS:
            return _without_command(arguments)
        with rare_collections():
            command = _command(name)
            code = command.run(command_parser(name).parse_args(arguments[1:]))
            sys.stdout.flush()  # here, where it can still be told that the disk is full
            return code
    except SeatrialError as error:
        _complain(error)
        return USAGE if error.code in _USAGE else COULD_NOT_RUN
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not an error, and nothing more can be written.
        _leave_stdout()
        return 0
    except (MemoryError, RuntimeError) as error:
        if (what := lacking(error)) is None:
            raise
        print(f"seatrial: this machine has no {what} left: {_LIMITS}", file=sys.stderr)
        return COULD_NOT_RUN
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            print(f"seatrial: this machine has no {lacking(error)} left: {_LIMITS}", file=sys.stderr)
            return COULD_NOT_RUN
        if error.errno not in _FULL:
            raise
        _leave_stdout()
        print(f"seatrial: the output cannot be written: {error.strerror}", file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt as interrupt:
        print(f"seatrial: {interrupted_as(interrupt)}", file=sys.stderr)
        return interrupted_exit(interrupt)


def _leave_stdout() -> None:
    """Let nothing more be written to it, also not by Python when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command_parser(name: str) -> Parser:
    """The parser of a command."""
    summary = COMMANDS[name]
    parser = Parser(prog=f"seatrial {name}", description=f"{summary[0].upper()}{summary[1:]}.")
    _command(name).configure(parser)
    return parser


def _command(name: str) -> Command:
    command: Command = importlib.import_module(f"seatrial.cli.{name}")
    return command


def _without_command(arguments: list[str]) -> int:
    width = max(len(name) for name in COMMANDS)
    listing = "\n".join(f"  {name.ljust(width)}  {summary}" for name, summary in COMMANDS.items())
    parser = Parser(
        prog="seatrial",
        usage="seatrial COMMAND [options]",
        description="Sea trials for AI agents. Whatever the agent speaks, one record.",
        epilog=f"commands:\n{listing}\n\n`seatrial COMMAND --help` says more. FILE may be - for standard input.\n"
        "exit codes: 0 passed, 1 failed, 2 usage (also a file, store or experiment that does not exist),\n"
        "3 could not be run or judged.",
    )
    parser.add_argument("--version", action="version", version=f"seatrial {__version__}")
    known, unknown = parser.parse_known_args(arguments)
    del known
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], COMMANDS, n=1)
        raise SeatrialError(
            "usage",
            f"unknown command {unknown[0]!r}",
            hint=f"did you mean `{near[0]}`?" if near else "`seatrial --help` lists the commands",
        )
    parser.print_help()
    return 0 if arguments else USAGE


def _complain(error: SeatrialError) -> None:
    from seatrial.cli.terminal import printable

    print(f"seatrial: {printable(str(error))} [{error.code}]", file=sys.stderr)
