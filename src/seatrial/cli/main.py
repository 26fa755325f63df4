"""Finds the command, runs it, and turns what went wrong into an exit code and one clear sentence.

The help is laid out here, too: argparse's own layout differs between Pythons.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn, Protocol

from seatrial._support.garbage import rare_collections
from seatrial._support.stack import reserve_stack
from seatrial._version import __version__
from seatrial.cli.exits import COULD_NOT_RUN, USAGE, interrupted_as, interrupted_exit, signal_exit
from seatrial.cli.output import survive_closed_pipes
from seatrial.errors import SeatrialError, lacking

COMMANDS: dict[str, str] = {
    "init": "write a first suite and agent, ready to run",
    "run": "run a suite: every agent on every case, graded, stored, reported",
    "grade": "grade stored runs again, without running them",
    "judge": "compare a suite's judges with human labels",
    "doctor": "check a suite, and whether its agents can be reached",
    "lint": "check an agent response against response_mode and strictness",
    "convert": "read a record in one format, write it in another",
    "events": "verify an event stream and fold it into messages and state",
    "steps": "extract the tool calls of a record",
    "match": "compare tool calls with what was expected, one JSON line each",
    "list": "list the experiments of a store, the newest first",
    "show": "show an experiment, a case, or one run with its transcript",
    "search": "find runs by what was said or called in them",
    "diff": "compare two runs call by call",
    "case": "make a regression case of a recorded run",
    "report": "show the results of an experiment, and write them to files",
    "export": "write an experiment as pages that open without a server",
    "compare": "compare two experiments or agents, case by case",
    "open": "look at experiments and runs in the browser",
    "serve": "serve agents over HTTP, with streams that can be resumed",
    "tail": "follow a run of a server to its end, across broken connections",
    "keys": "create, list and revoke the keys of a server",
    "schema": "print the JSON Schema of a Seatrial type",
}
"""Every command and what it does; `seatrial.cli.commands.<command>` is its module."""

_LIMITS = (
    "raise its limits (`ulimit -n` for open files, `ulimit -v` for memory), or run fewer at once (`--concurrency`)"
)
_USAGE = frozenset(
    {
        *("usage", "invalid_filter", "invalid_config", "invalid_suite", "unknown_format"),
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
    if argv is None:
        survive_closed_pipes()
    try:
        code = _main(argv)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - Python's own exit code for it would say that an agent failed
        import traceback

        traceback.print_exc()
        print("seatrial: internal error, see above. What was finished is stored. [internal_error]", file=sys.stderr)
        code = COULD_NOT_RUN
    if argv is None and ("seatrial.cli.signals" in sys.modules or len(threading.enumerate()) > 1):
        from seatrial.cli.signals import leave_in_time

        leave_in_time(code)
    return code


def _main(argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else ""
    try:
        if name not in COMMANDS:
            return _without_command(arguments)
        reserve_stack()
        with rare_collections():
            command = _command(name)
            code = command.run(command_parser(name).parse_args(arguments[1:]))
            sys.stdout.flush()  # here, where a full disk can still be reported
            return code
    except SeatrialError as error:
        _complain(error)
        return USAGE if error.code in _USAGE else COULD_NOT_RUN
    except BrokenPipeError:
        # The reader of our output went away, and the command had nothing else to do: it ends as programs do then,
        # not as if what it was to find out were well.
        _leave_stdout()
        return signal_exit(signal.SIGPIPE)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RecursionError) and _limit_was_lowered():
            message = "Python's recursion limit was reached, because a Python agent or grader lowered it"
            print(f"seatrial: {message}", file=sys.stderr)
            return COULD_NOT_RUN
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


def _limit_was_lowered() -> bool:
    from seatrial._support.threads import restore_recursion_limit  # brings asyncio with it

    return restore_recursion_limit()


def _leave_stdout() -> None:
    """Drop all further output, also what Python flushes when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command_parser(name: str) -> Parser:
    """The parser of a command."""
    summary = COMMANDS[name]
    parser = Parser(prog=f"seatrial {name}", description=f"{summary[0].upper()}{summary[1:]}.")
    _command(name).configure(parser)
    return parser


def _command(name: str) -> Command:
    command: Command = importlib.import_module(f"seatrial.cli.commands.{name}")
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


MAX_WIDTH: Final = 100
_MIN_WIDTH: Final = 40
_HELP_COLUMN: Final = 24
"""Where the meaning of an option begins, at most; a longer option has a line of its own."""
_FULL_LINE: Final = 70
_BEGINS: Final = ("exit codes:", "`seatrial")
"""How a paragraph of an epilog may begin behind a full line."""
_ARGUMENTS: Final[dict[str | int | None, str]] = {
    None: "{0}",
    argparse.OPTIONAL: "[{0}]",
    argparse.ZERO_OR_MORE: "[{0} ...]",
    argparse.ONE_OR_MORE: "{0} [{0} ...]",
    argparse.PARSER: "{0} ...",
}


class Parser(argparse.ArgumentParser):
    """Its help is plain text without colours, the same on every version of Python; its errors are ours."""

    width: int | None = None
    """Of the help, in characters; as wide as the terminal, within reason, when there is none."""

    def error(self, message: str) -> NoReturn:
        raise SeatrialError("usage", message, hint=f"see `{self.prog} --help`")

    def format_usage(self) -> str:
        return self._usage(self._help_width()) + "\n"

    def format_help(self) -> str:
        width = self._help_width()
        given = [action for action in self._actions if action.help != argparse.SUPPRESS]
        column = min(
            max(len(name) + indent for action in given for indent, name, _ in self._rows(action)) + 2, _HELP_COLUMN
        )
        parts = [self._usage(width), self.description]
        for title, are_options in (("positional arguments", False), ("options", True)):
            rows = [row for action in given if bool(action.option_strings) is are_options for row in self._rows(action)]
            if rows:
                parts.append("\n".join([f"{title}:", *(line for row in rows for line in _lines(*row, column, width))]))
        return "\n\n".join([part for part in (*parts, _folded(self.epilog or "", width)) if part]) + "\n"

    def _help_width(self) -> int:
        if self.width is not None:
            return self.width
        import shutil  # here and below: most commands show no help

        # Two less, because some terminals break a line that fills them.
        return max(_MIN_WIDTH, min(MAX_WIDTH, shutil.get_terminal_size().columns - 2))

    def _usage(self, width: int) -> str:
        if self.usage is not None:
            return f"usage: {self.usage}"
        head = f"usage: {self.prog} "
        options = [*self._options()]
        positionals = [_argument(action) for action in self._actions if not action.option_strings]
        whole = " ".join([*options, *positionals])
        if len(head) + len(whole) <= width:
            return (head + whole).rstrip()
        indent = " " * len(head)
        return head + f"\n{indent}".join(
            [*_filled(options, width - len(head)), *_filled(positionals, width - len(head))]
        )

    def _options(self) -> Iterator[str]:
        """The options as usage has them; those that exclude each other together."""
        grouped = {id(action): group for group in self._mutually_exclusive_groups for action in group._group_actions}
        for action in self._actions:
            if not action.option_strings or action.help == argparse.SUPPRESS:
                continue
            group = grouped.get(id(action))
            if group is None:
                yield _named(action, action.option_strings[0]) if action.required else f"[{_named(action)}]"
            elif action is group._group_actions[0]:
                inside = " | ".join([_named(each) for each in group._group_actions])
                yield f"({inside})" if group.required else f"[{inside}]"

    def _rows(self, action: argparse.Action) -> Iterator[tuple[int, str, str]]:
        """The lines on an action: how far they are indented, what it is called, and what it means."""
        if action.option_strings:
            yield 2, _named(action, ", ".join(action.option_strings)), self._meaning(action)
        else:
            yield 2, _metavar(action), self._meaning(action)
        if isinstance(action, argparse._SubParsersAction):
            for command in action._get_subactions():
                yield 4, _metavar(command), command.help or ""

    def _meaning(self, action: argparse.Action) -> str:
        values: dict[str, Any] = {**vars(action), "prog": self.prog}
        return (action.help or "") % values


def _named(action: argparse.Action, names: str = "") -> str:
    """An option, and the value that it takes."""
    names = names or action.option_strings[0]
    return names if action.nargs == 0 else f"{names} {_argument(action)}"


def _argument(action: argparse.Action) -> str:
    return _ARGUMENTS[action.nargs].format(_metavar(action))


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


def _filled(words: list[str], width: int) -> list[str]:
    """Lines of as many words as fit."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _folded(text: str, width: int) -> str:
    """Text whose lines are broken by hand, with other breaks where it is too wide. A line that is nearly full continues
    in the next one; indented lines stand alone."""
    lines = text.split("\n")
    if max(map(len, lines)) <= width:
        return text
    import itertools
    import textwrap

    paragraphs = [lines[0]]
    for before, line in itertools.pairwise(lines):
        if len(before) > _FULL_LINE and line and not line.startswith((" ", *_BEGINS)) and not before.startswith(" "):
            paragraphs[-1] += f" {line}"
        else:
            paragraphs.append(line)
    found = []
    for each in paragraphs:
        indent = " " * (len(each) - len(each.lstrip()))
        found += textwrap.wrap(each, width, subsequent_indent=f"{indent}  " if indent else "") or [""]
    return "\n".join(found)


def _lines(indent: int, name: str, meaning: str, column: int, width: int) -> list[str]:
    import textwrap

    head = " " * indent + name
    lines = textwrap.wrap(meaning, max(width - column, 20))
    if not lines:
        return [head]
    first = [f"{head:<{column}}{lines.pop(0)}"] if len(head) + 2 <= column else [head]
    return [*first, *(" " * column + line for line in lines)]
