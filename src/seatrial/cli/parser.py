"""The parser of a command line, and its help: laid out here, because argparse's layout differs between Pythons."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from seatrial.errors import SeatrialError

MAX_WIDTH: Final = 100
_MIN_WIDTH: Final = 40
_HELP_COLUMN: Final = 24
"""Where the meaning of an option begins, at most; a longer option has a line of its own."""
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
        return "\n\n".join([part for part in (*parts, self.epilog) if part]) + "\n"

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


def _lines(indent: int, name: str, meaning: str, column: int, width: int) -> list[str]:
    import textwrap

    head = " " * indent + name
    lines = textwrap.wrap(meaning, max(width - column, 20))
    if not lines:
        return [head]
    first = [f"{head:<{column}}{lines.pop(0)}"] if len(head) + 2 <= column else [head]
    return [*first, *(" " * column + line for line in lines)]
