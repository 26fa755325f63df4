"""What is wrong with a suite: every problem, each with its place, and what was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TypeAlias

import msgspec

from seatrial.errors import SeatrialError
from seatrial.transcript.note import pointer

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value is in the suite: keys and indices from the top."""

MAX_PROBLEMS = 100
"""Past this many, problems are counted and no longer listed."""
_MAX_WORD = 64
_FEW = 16


class Place(msgspec.Struct, frozen=True, gc=False):
    """A place in a file. Line and column count from 1."""

    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file or "suite", self.line, self.column) if part is not None)


Locate: TypeAlias = Callable[[KeyPath], Place]


class SuiteProblem(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One thing that is wrong with a suite."""

    message: str
    pointer: str = ""
    """JSON pointer into the suite with its includes in place, or into one record of a file of cases."""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    """What to do about it, often the nearest valid key."""
    not_judged: bool = False
    """Nothing is wrong with how it is written, but no verdict would come of it."""

    def __str__(self) -> str:
        text = f"{Place(self.file, self.line, self.column)}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


class InvalidSuiteError(SeatrialError):
    """A suite that cannot be run, with all of its problems."""

    def __init__(self, problems: list[SuiteProblem], more: int = 0) -> None:
        listed = "\n".join(f"  {problem}" for problem in problems)
        count = len(problems) + more
        head = "the suite has 1 problem" if count == 1 else f"the suite has {count} problems"
        rest = f"\n  and {more} more" if more else ""
        not_judged = not more and all(problem.not_judged for problem in problems)
        super().__init__("not_judged" if not_judged else "invalid_suite", f"{head}\n{listed}{rest}")
        self.problems = problems
        self.more = more
        """How many there are beyond those listed."""


class _Tally(msgspec.Struct):
    found: list[SuiteProblem] = []
    more: int = 0
    """How many there are beyond those found."""


class Problems:
    """Collects the problems of one suite. Views on parts of it, or on other files, share the same collection."""

    def __init__(self, locate: Locate | None = None) -> None:
        self._tally = _Tally()
        self._locate = locate
        self._prefix: KeyPath = ()

    def at(self, locate: Locate | Place) -> Problems:
        """The same collection, for values whose paths and places are another's."""
        return self._view((lambda _: locate) if isinstance(locate, Place) else locate, ())

    def within(self, path: KeyPath) -> Problems:
        """The same collection, for paths that start at this one."""
        return self._view(self._locate, (*self._prefix, *path))

    def add(self, path: KeyPath, message: str, hint: str | None = None, *, not_judged: bool = False) -> None:
        """Tell one problem."""
        tally = self._tally
        if len(tally.found) >= MAX_PROBLEMS:
            tally.more += 1
            return
        place = self.place(path)
        tally.found.append(
            SuiteProblem(
                message=message,
                pointer=pointer(*self._prefix, *path),
                file=place.file,
                line=place.line,
                column=place.column,
                hint=hint,
                not_judged=not_judged,
            )
        )

    def place(self, path: KeyPath = ()) -> Place:
        """Where the value at the path is written."""
        return self._locate((*self._prefix, *path)) if self._locate else Place()

    @property
    def found(self) -> list[SuiteProblem]:
        """Those that are listed: file by file, and from the top of each."""
        files = list(dict.fromkeys(problem.file for problem in self._tally.found))
        return sorted(
            self._tally.found,
            key=lambda problem: (files.index(problem.file), problem.line or 0, problem.column or 0),
        )

    @property
    def count(self) -> int:
        """How many there are, the unlisted ones too."""
        return len(self._tally.found) + self._tally.more

    def error(self) -> InvalidSuiteError:
        """All of them, to be raised."""
        return InvalidSuiteError(self.found, self._tally.more)

    def _view(self, locate: Locate | None, prefix: KeyPath) -> Problems:
        view = Problems(locate)
        view._prefix = prefix
        view._tally = self._tally
        return view


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that was probably meant, if one is near."""
    if not 0 < len(word) <= _MAX_WORD:
        return None
    folded = {candidate.lower(): candidate for candidate in candidates}
    word = word.lower()
    if close := get_close_matches(word, folded, n=1):
        return folded[close[0]]
    # `url` for `endpoint_url`: too short to be close, but a part of it. Not for a letter or two.
    parts = [name for name in folded if len(word) > 2 and (word in name or name in word)]
    return folded[min(parts, key=len)] if parts else None


def suggestion(word: str, candidates: Iterable[str]) -> str | None:
    """A hint that names the nearest candidate."""
    near = nearest(word, candidates)
    return None if near is None else f"did you mean `{near}`?"


def meant(word: str, candidates: Iterable[str]) -> str | None:
    """A hint that names the nearest candidate; where none is near, all of them, if they are few."""
    names = sorted(candidates)
    return suggestion(word, names) or (f"one of {listed(names)}" if 0 < len(names) <= _FEW else None)


def path_of(pointer: str | None) -> KeyPath:
    """The keys and indices of a JSON pointer."""
    parts = (pointer or "").split("/")[1:]
    unescaped = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    return tuple(int(part) if part.isascii() and part.isdigit() else part for part in unescaped)


def listed(names: Iterable[object]) -> str:
    """Names in backquotes, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def quoted(text: str) -> str:
    """Foreign text in backquotes, cut where it is long."""
    return f"`{text}`" if len(text) <= _MAX_WORD else f"`{text[: _MAX_WORD - 1]}…`"
