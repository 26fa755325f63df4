"""Patterns of a suite on text of an agent: in the syntax of Python's `re`, and with a time limit, which `re` has not.

They are matched by the `regex` package, which reads the syntax of `re` and can be given a time limit
(docs/decisions/2026-11-17-patterns-with-a-time-limit.md). What the two would read differently is refused or escaped,
so that a pattern means what the documentation of `re` says.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from seatrial._support.time_limit import TimeLimit, current_limit
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    import regex

T = TypeVar("T")

MAX_SUBJECT = 100_000
"""Characters of a text that a pattern is matched with: backtracking takes memory too, about 100 bytes for each."""
MAX_NESTING = 50
"""How deeply groups of a pattern may stand in each other. Both compilers recurse; this is far from where they would
give up at Python's own recursion limit, in a thread that has nothing else on its stack."""
MATCH_S = 10.0
"""How long a match may take where no time limit is around it."""

# `regex` reads `{...}` behind something as approximate matching; `re` reads all but these as plain text.
_BRACE = re.compile(r"\\N\{[^}]*\}|\\.|\{(?!\d*,?\d*\})|\{(?=\})", re.DOTALL)
_BRACKETS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\()|(\))", re.DOTALL)
"""What opens and closes a group, and what may hold a parenthesis that does not: escapes and sets of characters."""
_COMMENT = re.compile(r"(?<!\\)#[^\n]*")
_POSIX_CLASS = re.compile(r"(?<!\\)\[:\^?[A-Za-z]+:\]")


class Pattern:
    """A pattern that can be searched for in foreign text."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str) -> None:
        """Raises `SeatrialError("invalid_config")` when it is not a pattern of Python's `re`."""
        self.text = text
        # In the verbose syntax, a bracket in a comment opens no set of characters.
        if (depth := max(_nesting(text), _nesting(_COMMENT.sub("", text)))) > MAX_NESTING:
            message = f"the pattern has groups in each other {depth:,} deep; at most {MAX_NESTING} are read"
            raise SeatrialError("invalid_config", message)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of `[[a]`, which may mean something else one day
                _with_room(lambda: re.compile(text))
        except (re.error, RecursionError, OverflowError) as error:
            raise SeatrialError("invalid_config", f"the pattern cannot be used: {error}") from None
        if (posix := _POSIX_CLASS.search(text)) is not None:
            message = f"the pattern has {posix.group()!r}, which Python's `re` reads as single characters"
            raise SeatrialError("invalid_config", message, hint="write `\\d`, `\\w`, `\\s` or the range that is meant")
        self._compiled = _compiled(text)

    def search(self, text: str) -> str | None:
        """The first place where the pattern fits. Raises `SeatrialError`, `time_limit` or `text_too_long`."""
        return self._matched(text, whole=False)

    def covered(self, text: str) -> str | None:
        """The whole text, when the pattern fits all of it. Raises as `search` does."""
        return self._matched(text, whole=True)

    def _matched(self, text: str, *, whole: bool) -> str | None:
        check_length(text)
        limit = current_limit()
        if limit is None:
            with TimeLimit(MATCH_S):
                return self._matched(text, whole=whole)
        left_s = limit.check()
        match = self._compiled.fullmatch if whole else self._compiled.search
        try:
            # Other threads run meanwhile.
            found = match(text, timeout=left_s, concurrent=True)
        except TimeoutError:
            limit.expire()
            raise
        except MemoryError:
            raise SeatrialError("time_limit", "the pattern takes too much memory on this text") from None
        return None if found is None else found.group()


def check_length(text: str) -> None:
    """Refuse text that is too long for a pattern, rather than say that it does not fit."""
    if len(text) > MAX_SUBJECT:
        raise SeatrialError(
            "text_too_long",
            f"a text of {len(text):,} characters; patterns are matched with {MAX_SUBJECT:,} at most",
        )


def _compiled(text: str) -> regex.Pattern[str]:
    import regex  # here: most commands need no patterns

    try:
        return _with_room(lambda: regex.compile(_BRACE.sub(_as_text, text), regex.VERSION0))
    except (regex.error, RecursionError, OverflowError) as error:
        raise SeatrialError("invalid_config", f"the pattern cannot be used: {error}") from None


def _with_room(compile: Callable[[], T]) -> T:
    """What a compiler gives, however deep the caller is in calls of its own: then in a thread, whose stack is empty."""
    try:
        return compile()
    except RecursionError:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(compile).result()


def _nesting(text: str) -> int:
    """How deeply its groups stand in each other."""
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        depth += (found[1] is not None) - (found[2] is not None)
        deepest = max(deepest, depth)
    return deepest


def _as_text(found: re.Match[str]) -> str:
    return r"\{" if found.group() == "{" else found.group()
