"""Cases from a CSV file: the seed columns of dispatch.md 10 as they are, and the keys of a case beside them.

The file is UTF-8, with or without a byte order mark. A cell that is empty is as good as absent. Prompts are kept to
the character; everything else is trimmed.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.problems import Place, Problems, meant, nearest, quoted
from seatrial.suites.record import SuiteRecord, TooLongLineError, read_lines

MAX_CELL = 16 * 1024 * 1024
MAX_COLUMNS = 1000

CellReading = Literal["text", "word", "json", "json_or_text", "words"]
"""How a cell becomes a value: as it is, trimmed, as JSON, as JSON where it is, as words separated by commas."""


class Column(msgspec.Struct, frozen=True):
    """What a column of the file stands for."""

    target: tuple[str, ...]
    """Where its values go in a case."""
    reading: CellReading = "text"


COLUMNS: dict[str, Column] = {
    # dispatch.md 10
    "user": Column(("instruction",)),
    "behavior": Column(("world", "behavior_instructions")),
    "state": Column(("world", "initial_state"), "json"),
    "failure_rules": Column(("world", "failure_rules"), "json"),
    "expected_outcome": Column(("expected_outcome",), "word"),
    "expected_outcome_detail": Column(("expected_outcome_detail",)),
    "current_state": Column(("input",), "json"),
    "scenario_ref": Column(("world", "scenario_ref"), "word"),
    "workspace_seed": Column(("world", "workspace_seed"), "json_or_text"),
    "setup_command": Column(("world", "setup_command")),
    "eval": Column(("world", "eval"), "json_or_text"),
    "user_goal": Column(("world", "user_goal")),
    "expected_tool_sequence": Column(("world", "expected_tool_sequence"), "json_or_text"),
    "xfail": Column(("world", "xfail"), "json_or_text"),
    "scorers": Column(("world", "scorers"), "json"),
    # dispatch.md 11
    "turn_mode": Column(("world", "turn_mode"), "word"),
    "max_turns": Column(("world", "max_turns"), "json"),
    "memory_mode": Column(("world", "memory_mode"), "word"),
    "simulator_mode": Column(("world", "simulator_mode"), "word"),
    "user_simulator_persona": Column(("world", "user_simulator_persona")),
    "scripted_user_turns": Column(("world", "scripted_user_turns"), "json"),
    "tracked_constraints": Column(("world", "tracked_constraints"), "json"),
    "termination_keyword": Column(("world", "termination_keyword"), "word"),
    # The keys of a case.
    "id": Column(("id",), "word"),
    "instruction": Column(("instruction",)),
    "input": Column(("input",), "json"),
    "messages": Column(("messages",), "json"),
    "files": Column(("files",), "words"),
    "expected": Column(("expected",)),
    "graders": Column(("graders",), "json"),
    "threshold": Column(("threshold",), "json"),
    "tags": Column(("tags",), "words"),
    "metadata": Column(("metadata",), "json"),
    "timeout_s": Column(("timeout_s",), "json"),
}
"""Every column by name. Besides these, `input.NAME` and `metadata.NAME` put text under that key."""

_OPEN = ("input", "metadata")
# An axis is not a column: whoever writes one means the column that fills it.
_AXES = {column.target[-1]: name for name, column in COLUMNS.items() if column.target[0] == "world"} | {
    "user_instruction": "user"
}


def read_csv(path: Path, problems: Problems) -> Iterator[SuiteRecord]:
    """The rows of a file as records. Raises `OSError` when it cannot be read."""
    file = str(path)
    if csv.field_size_limit() < MAX_CELL:
        csv.field_size_limit(MAX_CELL)
    rows = csv.reader((line.decode() for line in read_lines(path)), strict=True)
    columns: list[Column | None] | None = None
    number = 0
    line = 1
    try:
        for row in rows:
            place, line = Place(file, line), rows.line_num + 1
            if columns is None:
                columns = _header(row, problems.at(place))
                if columns is None:
                    return
            elif any(cell and not cell.isspace() for cell in row):
                number += 1
                value = _row(row, columns, problems.at(place))
                if value is not None:
                    yield SuiteRecord(value, number, place)
        if columns is None:
            hint = "its first line names the columns; `user` is one"
            problems.at(Place(file, 1)).add((), "the file is empty", hint)
    except UnicodeDecodeError:
        here = problems.at(Place(file, rows.line_num + 1))
        here.add((), "the file is not UTF-8 text", "save it as CSV UTF-8")
    except (csv.Error, TooLongLineError) as error:
        problems.at(Place(file, line)).add((), f"this is not CSV: {error}")


def _header(row: list[str], problems: Problems) -> list[Column | None] | None:
    before = problems.count
    columns = [_column(name, problems) if (name := cell.strip()) else None for cell in row[:MAX_COLUMNS]]
    if len(row) > MAX_COLUMNS:
        problems.add((), f"there are more than {MAX_COLUMNS} columns")
    filled: dict[tuple[str, ...], str] = {}
    for cell, column in zip(row, columns, strict=False):
        if column is not None:
            _check_clash(cell.strip(), column.target, filled, problems)
            filled.setdefault(column.target, cell.strip())
    if ("instruction",) not in filled and problems.count == before:
        problems.add((), "the column `user` is missing", "it holds the prompt")
    return columns if problems.count == before else None


def _check_clash(name: str, target: tuple[str, ...], filled: dict[tuple[str, ...], str], problems: Problems) -> None:
    for other, earlier in filled.items():
        # `input` and `input.order` would fill the same place, as `user` and `instruction` do.
        shared = min(len(target), len(other))
        if target[:shared] == other[:shared]:
            twice = f"the column {quoted(name)} is here twice"
            both = f"the columns {quoted(earlier)} and {quoted(name)} fill the same place"
            problems.add((), twice if earlier == name else both, "keep one of them")
            return


def _column(name: str, problems: Problems) -> Column | None:
    if name in COLUMNS:
        return COLUMNS[name]
    parent, dot, key = name.partition(".")
    if dot and key and parent in _OPEN:
        return Column((parent, key))
    if name in _AXES:
        problems.add((), f"`{name}` is the name of an axis, not of a column", f"did you mean `{_AXES[name]}`?")
    elif ";" in name or "\t" in name:
        problems.add((), f"unknown column {quoted(name)}", "only commas separate columns")
    else:
        near = nearest(name, [*COLUMNS, *_AXES]) or name
        problems.add((), f"unknown column {quoted(name)}", meant(_AXES.get(near, near), COLUMNS))
    return None


def _row(row: list[str], columns: list[Column | None], problems: Problems) -> dict[str, Any] | None:
    before = problems.count
    value: dict[str, Any] = {}
    for index, cell in enumerate(row):
        if not cell or cell.isspace():
            continue
        column = columns[index] if index < len(columns) else None
        if column is None:
            problems.add((), f"cell {index + 1} has no column", "is a comma in some text not in quotes?")
            return None
        *parents, key = column.target
        inner = value
        for parent in parents:
            inner = inner.setdefault(parent, {})
        try:
            inner[key] = _cell(cell, column.reading)
        except SeatrialError as error:
            what = "is ambiguous" if error.code == "invalid_document" else "is not JSON"
            problems.add(column.target, f"`{_named(column)}` {what}: {_reason(error)}", error.hint)
    if "instruction" not in value and problems.count == before:
        problems.add(("instruction",), "the cell of `user` is empty")
    return value if problems.count == before else None


def _cell(text: str, reading: CellReading) -> Any:
    if reading == "text":
        return text
    text = text.strip()
    if reading == "json":
        return wire.decode_unambiguous(text.encode("utf-8", "replace"))
    if reading == "json_or_text":
        try:
            return wire.decode_unambiguous(text.encode("utf-8", "replace"))
        except SeatrialError as error:
            if error.code == "invalid_document":
                raise  # it is JSON, and has a key twice
            return text
    if reading == "words":
        return [word for part in text.split(",") if (word := part.strip())]
    return text


def _named(column: Column) -> str:
    return next((name for name, known in COLUMNS.items() if known is column), ".".join(column.target))


def _reason(error: SeatrialError) -> str:
    return error.message.removeprefix("the input is not valid JSON: ")
