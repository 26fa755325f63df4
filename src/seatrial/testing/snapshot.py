"""Snapshots: the calls of a run, written into the test that compares them.

`assert result.calls == snapshot()` is filled by `pytest --seatrial-update`. What is written is the configuration of an
expectation: people may loosen it by hand, and it stays as they left it while it still fits.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec

from seatrial._support.whole_file import whole_file
from seatrial.errors import SeatrialError
from seatrial.testing.expected import CallPattern, Expected
from seatrial.trajectory import Step, expected_as_made
from seatrial.trajectory.calls import Calls, NoVerdictError
from seatrial.trajectory.completeness import CALLS_UNKNOWN, what_is_missing, what_to_do

UPDATE: Final = "--seatrial-update"
MAX_CALLS: Final = 200
WIDTH: Final = 88
"""Columns of a line that is written, where that can be done: what most formatters of code begin with."""

Items = list[dict[str, Any]]


class SnapshotPlace(msgspec.Struct, frozen=True):
    """Where the call of `snapshot` stands in a file, as the interpreter counts: lines from 1, columns in bytes."""

    path: str
    line: int
    column: int | None
    end_line: int
    end_column: int | None


class Snapshot(Expected):
    """What `snapshot(...)` gives: equal to just these calls in this order."""

    __hash__ = None  # as for its base

    def __init__(self, items: Sequence[CallPattern] | None, place: SnapshotPlace) -> None:
        self._place = place
        self._empty = items is None
        if items:
            super().__init__("exact", items, {})
        else:
            super().__init__("any_order", [], {"maximums": {"*": 0}})
        self._name = "snapshot"

    def __eq__(self, other: object) -> bool:
        """Whether the calls are those of the snapshot; with `--seatrial-update` those are what is written for it."""
        __tracebackhide__ = True
        if _updates is None:
            if self._empty:
                hint = f"`pytest {UPDATE}` writes the calls of this run into the test: read them before you keep them"
                raise SeatrialError("invalid_config", "the snapshot is empty", hint=hint)
            return super().__eq__(other)
        if not self._empty and super().__eq__(other):
            _updates.keep(self._place)
        else:
            _updates.write(self._place, _as_made(other, self.steps_of(other)))
        return True

    def __ne__(self, other: object) -> bool:
        raise TypeError("a snapshot is compared with `==`")

    def explain(self, steps: list[Step] | Calls[Step]) -> list[str]:
        return [*super().explain(steps), f"If these calls are right, `pytest {UPDATE}` writes them into the test."]


def snapshot(calls: Sequence[CallPattern] | None = None) -> Snapshot:
    """The calls of a run as they were when the test was last updated: `assert result.calls == snapshot()`.

    `pytest --seatrial-update` writes them in between the parentheses. They are items of `exact(...)`, and may be edited
    like these.
    """
    return Snapshot(calls, _place(sys._getframe(1)))


def _place(frame: FrameType) -> SnapshotPlace:
    code = frame.f_code
    # The instruction that is running: several of these can be on one line.
    position = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None))
    line, end_line, column, end_column = position
    line = frame.f_lineno if line is None else line
    return SnapshotPlace(code.co_filename, line, column, line if end_line is None else end_line, end_column)


def _as_made(calls: object, steps: list[Step]) -> Items:
    """The calls as the items that are written. Raises where they are not all known, or not as the agent sent them."""
    __tracebackhide__ = True
    shown: Sequence[Step] = steps
    if isinstance(calls, Calls):
        shown = calls.shown
        if not calls.complete:
            known = calls.completeness
            told = f"{what_is_missing(known)} [{CALLS_UNKNOWN}], so there is no snapshot. To do: {what_to_do(known)}."
            raise NoVerdictError(told)
    if len(steps) > MAX_CALLS:
        raise SeatrialError("too_large", f"{len(steps)} calls are too many for a snapshot: at most {MAX_CALLS}")
    items: Items = expected_as_made(steps).get("expected", [])
    if items != expected_as_made(shown).get("expected", []):
        hint = "use `in_order(...)` with a matcher in its place"
        raise SeatrialError("invalid_config", "a call has a secret of the suite in it, and is not written", hint=hint)
    return items


class SnapshotUpdates:
    """What a session of pytest with `--seatrial-update` found: each snapshot is written once, at its end."""

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}
        self._found: dict[SnapshotPlace, Items | None] = {}
        """None for one that still fits, and is left as it is."""

    def keep(self, place: SnapshotPlace) -> None:
        """A snapshot fits."""
        self._add(place, None)

    def write(self, place: SnapshotPlace, items: Items) -> None:
        """A snapshot is empty, or does not fit. Raises `SeatrialError` where it cannot be written."""
        if place.path not in self._sources:
            self._sources[place.path] = _Source(place.path)
        self._sources[place.path].call(place)
        self._add(place, items)

    def _add(self, place: SnapshotPlace, items: Items | None) -> None:
        if self._found.setdefault(place, items) == items:
            return
        self._found[place] = None
        hint = "it has one list of calls: where a test runs on several cases, compare each with one of its own"
        where = f"the snapshot at {place.path}:{place.line}"
        raise SeatrialError("conflict", f"{where} was compared with runs that made different calls", hint=hint)

    def finish(self) -> Iterator[tuple[str, int]]:
        """Change the files. Gives each with how many snapshots were written; raises `SeatrialError`."""
        for path, source in self._sources.items():
            changes = [
                (place, items) for place, items in self._found.items() if place.path == path and items is not None
            ]
            if changes:
                source.change(changes)
                yield path, len(changes)


_updates: SnapshotUpdates | None = None


def start_updates() -> SnapshotUpdates:
    """From now on, comparing a snapshot that does not fit says what to write in its place."""
    global _updates
    _updates = SnapshotUpdates()
    return _updates


def end_updates() -> None:
    """From now on, snapshots are compared again."""
    global _updates
    _updates = None


class _Source:
    """A file of Python, as it was when the first of its snapshots was compared."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        try:
            self._bytes = self.path.read_bytes()
            text = self._bytes.decode("utf-8")
            tree = ast.parse(text.removeprefix("\ufeff"))
        except (OSError, ValueError, SyntaxError) as error:
            told = f"the source of this test cannot be read, so its snapshot cannot be written: {path}: {error}"
            hint = "snapshots are written into files of Python, in UTF-8"
            raise SeatrialError("unreadable_file", told, hint=hint) from None
        self._calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        self._lines = re.split(rb"(?<=\n)|(?<=\r)(?!\n)", self._bytes)

    def call(self, place: SnapshotPlace) -> ast.Call:
        """The call of `snapshot` at a place."""
        whole = (place.line, place.column, place.end_line, place.end_column)
        for node in self._calls:
            if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == whole:
                return node
        # The interpreter may know no more than the line.
        named = [
            node
            for node in self._calls
            if place.line <= node.lineno <= place.end_line and _name(node) == snapshot.__name__
        ]
        if len(named) != 1:
            why = "it is not there" if not named else "there are several"
            hint = "put it on a line of its own, as `snapshot()`, and run pytest again"
            told = f"the snapshot at {place.path}:{place.line} cannot be found in the file: {why}"
            raise SeatrialError("unreadable_file", told, hint=hint)
        return named[0]

    def change(self, changes: list[tuple[SnapshotPlace, Items]]) -> None:
        """Write the arguments of these calls, the last first, so that the places of the others stay as they are."""
        if not self.path.is_file() or self.path.read_bytes() != self._bytes:
            told = f"{self.path} was changed while the tests were running, and is left as it is"
            raise SeatrialError("conflict", told, hint=f"run `pytest {UPDATE}` again")
        changed = self._bytes
        found = sorted(
            ((self.call(place), items) for place, items in changes), key=lambda entry: -self._span(entry[0])[0]
        )
        newline = b"\r\n" if b"\r\n" in self._bytes else b"\n"
        for node, items in found:
            start, end = self._span(node)
            line = self._lines[node.lineno - 1]
            indent = len(line) - len(line.lstrip(b" \t"))
            written = _arguments(items, line[:indent].decode(), node.col_offset).encode()
            changed = changed[:start] + written.replace(b"\n", newline) + changed[end:]
        with whole_file(self.path) as file:
            file.write(changed)

    def _span(self, node: ast.Call) -> tuple[int, int]:
        """Where the arguments of a call are, as offsets: behind its function, to its end, with the parentheses."""
        name = node.func
        start = self._offset(name.end_lineno or name.lineno, name.end_col_offset or 0)
        return start, self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        return sum(map(len, self._lines[: line - 1])) + column


def _name(node: ast.Call) -> str:
    found = node.func
    return found.attr if isinstance(found, ast.Attribute) else found.id if isinstance(found, ast.Name) else ""


def _arguments(items: Items, indent: str, column: int) -> str:
    """The items as the arguments of `snapshot`: on its line where they are short, else one below the other."""
    line = f"([{', '.join(map(_literal, items))}])"
    if column + len(snapshot.__name__) + len(line) <= WIDTH:
        return line
    blocks = [_block(item, WIDTH - len(indent) - 9) for item in items]
    below = _enclosed("[", blocks, "]")
    return f"(\n{textwrap.indent(below, indent + '    ')}\n{indent})"


def _block(value: Any, width: int) -> str:
    """A value as Python, on one line or, where that is too long, with what it has in it one below the other."""
    line = _literal(value)
    if len(line) <= width or not isinstance(value, dict | list) or not value:
        return line
    if isinstance(value, dict):
        return _enclosed("{", [f"{_literal(key)}: {_block(inner, width - 4)}" for key, inner in value.items()], "}")
    return _enclosed("[", [_block(inner, width - 4) for inner in value], "]")


def _enclosed(opening: str, parts: list[str], closing: str) -> str:
    """The parts one below the other, each with its comma."""
    inner = "".join(f"{part},\n" for part in parts)
    return f"{opening}\n{textwrap.indent(inner, '    ')}{closing}"


def _literal(value: Any) -> str:
    """A JSON value as Python: `repr`, with the quotes that formatters want."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    written = repr(value)
    if isinstance(value, str) and written[0] == "'" and '"' not in written:
        return f'"{written[1:-1]}"'
    return written
