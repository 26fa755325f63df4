"""Labels that people gave to runs or answers, from a CSV file: what a judge is checked against.

A line has a `label`, and the `run` that it is of, or a `case` and an `answer`. A file that `seatrial report --csv`
wrote, with a column `label` added, is one too. `grader` says which judge a label is for, `comment` why it was given.
"""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec

from seatrial.errors import SeatrialError
from seatrial.problems import Place, meant, quoted
from seatrial.suites.record import TooLongLineError, read_lines
from seatrial.suites.seed_csv import MAX_CELL

MAX_LABELS = 100_000
MAX_LISTED = 20
"""Problems of a file that are listed."""

WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("passed", "pass", "yes", "true", "1", "right", "correct", "good"), True),
    **dict.fromkeys(("failed", "fail", "no", "false", "0", "wrong", "incorrect", "bad"), False),
    **dict.fromkeys(("", "unsure", "?"), None),
}
"""What a label may be; None for one that says neither."""
_COLUMNS = {
    "label": "label",
    "run": "run",
    "run_id": "run",
    "case": "case",
    "case_id": "case",
    "answer": "answer",
    "grader": "grader",
    "comment": "comment",
}
"""Columns by the names that they may have."""


class HumanLabel(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said of a run, or of an answer to a case."""

    line: int
    passed: bool | None
    """None where the person was not sure, or did not say."""
    run: str | None = None
    """Its id, or `EXPERIMENT:CASE[:AGENT[:TRIAL]]`."""
    case_id: str | None = None
    """With `answer`, where there is no run."""
    answer: str | None = None
    grader: str | None = None
    """The judge that it is for, where there are several."""
    comment: str = ""


def read_labels(path: Path) -> list[HumanLabel]:
    """The labels of a file. Raises `SeatrialError` with everything that is wrong with it."""
    if csv.field_size_limit() < MAX_CELL:
        csv.field_size_limit(MAX_CELL)
    file = _LabelFile(path)
    try:
        rows = csv.reader((line.decode() for line in read_lines(path)), strict=True)
        line = 1
        for row in rows:
            place, line = line, rows.line_num + 1
            if not file.read(row, place):
                break
    except OSError as error:
        raise SeatrialError("unreadable_file", f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        file.problem(line, "the file is not UTF-8 text (save it as CSV UTF-8)")
    except (csv.Error, TooLongLineError) as error:
        file.problem(line, f"this is not CSV: {error}")
    return file.labels()


class _LabelFile:
    """A file while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: dict[str, int] | None = None
        self._labels: list[HumanLabel] = []
        self._seen: dict[tuple[str | None, ...], int] = {}
        self._problems: list[str] = []

    def labels(self) -> list[HumanLabel]:
        if self._columns is None and not self._problems:
            self.problem(1, "the file is empty (its first line names the columns; `label` is one)")
        elif not self._labels and not self._problems:
            self.problem(2, "there is no label in it")
        if self._problems:
            listed = "\n".join(f"  {problem}" for problem in self._problems[:MAX_LISTED])
            more = len(self._problems) - MAX_LISTED
            rest = f"\n  and {more} more" if more > 0 else ""
            raise SeatrialError("invalid_config", f"the labels cannot be used\n{listed}{rest}")
        return self._labels

    def problem(self, line: int, message: str) -> None:
        self._problems.append(f"{Place(str(self._path), line)}: {message}")

    def read(self, row: list[str], line: int) -> bool:
        """Take a row; False where the rest of the file cannot be read."""
        if not any(cell and not cell.isspace() for cell in row):
            return True
        if self._columns is None:
            self._columns = self._header(row)
            return not self._problems
        self._row(row, line)
        return len(self._labels) < MAX_LABELS or self._too_many(line)

    def _too_many(self, line: int) -> bool:
        self.problem(line, f"there are more than {MAX_LABELS:,} labels")
        return False

    def _header(self, row: list[str]) -> dict[str, int]:
        columns: dict[str, int] = {}
        names = [cell.strip().lower() for cell in row]
        for index, name in enumerate(names):
            # The id of a run is exact, and so counts before another name for it.
            if (column := _COLUMNS.get(name)) is not None and (column not in columns or name == "run"):
                columns[column] = index
        if "label" not in columns:
            near = meant("label", [name for name in names if name and name not in _COLUMNS])
            self.problem(1, f"there is no column `label`{f' ({near})' if near and 'one of' not in near else ''}")
        if "run" not in columns and not {"case", "answer"} <= set(columns):
            self.problem(1, "a label is of a `run`, or of a `case` and an `answer`, and there are no such columns")
        return columns

    def _row(self, row: list[str], line: int) -> None:
        def cell(name: str) -> str:
            index = (self._columns or {}).get(name)
            return row[index].strip() if index is not None and index < len(row) else ""

        word = cell("label").lower()
        if word not in WORDS:
            self.problem(line, f"{quoted(cell('label'))} is not a label (`passed`, `failed`, or `unsure`)")
            return
        run, case_id, answer = cell("run") or None, cell("case") or None, cell("answer") or None
        if run is None and (case_id is None or answer is None):
            lacking = "case" if case_id is None else "answer"
            self.problem(line, f"there is no `run`, and no `{lacking}` either")
            return
        grader = cell("grader") or None
        of = (run, None, None, grader) if run is not None else (None, case_id, answer, grader)
        if (before := self._seen.setdefault(of, line)) != line:
            what = "run" if run is not None else "answer"
            self.problem(line, f"this {what} has a label in line {before} already (agree on one where people differ)")
            return
        self._labels.append(
            HumanLabel(
                line=line,
                passed=WORDS[word],
                run=run,
                case_id=None if run is not None else case_id,
                answer=None if run is not None else answer,
                grader=grader,
                comment=cell("comment"),
            )
        )
