"""The calls of a run, for tests and graders to look at: what is not known of them cannot be claimed.

Who looks for a call finds it among those that are known. Who says that there is none, or no other, or how many there
are, needs all of them; where not all are known that raises `NoVerdictError`, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar, overload

from seatrial._support.printable import printable
from seatrial.trajectory.completeness import CALLS_UNKNOWN, Completeness, what_is_missing, what_to_do

T = TypeVar("T")


class NoVerdictError(AssertionError):
    """A test asserts what cannot be decided: there is no answer, too little is known of the calls, or comparing them
    reached a limit."""


class Calls(Sequence[T]):
    """The agent's calls in order, or the names of the tools.

    `in`, `any(...)` and a `for` loop that ends early go by what is known; whatever comes to the end of an incomplete
    list raises.
    """

    __hash__ = None  # type: ignore[assignment]  # compared like a list

    def __init__(
        self,
        known: list[T],
        completeness: Completeness,
        shown: list[T] | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.known = known
        """Those that are known, as a plain list."""
        self.completeness = completeness
        self.shown = known if shown is None else shown
        """The same without secrets of the suite, for what is printed."""
        self.redact = redact
        """Gives a text about them without secrets."""

    @property
    def complete(self) -> bool:
        """Whether these are all."""
        return self.completeness.level == "complete"

    def __iter__(self) -> Iterator[T]:
        yield from self.known
        if not self.complete:
            self._raise()

    def __contains__(self, value: object) -> bool:
        if value in self.known:
            return True
        return False if self.complete else self._raise()

    def __bool__(self) -> bool:
        if self.known:
            return True
        return False if self.complete else self._raise()

    def __len__(self) -> int:
        return len(self.known) if self.complete else self._raise()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        # What comes first or last is known only when all are.
        return self.known[index] if self.complete else self._raise()

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Calls):
            return self == other.known if other.complete else other._raise()
        if not isinstance(other, list | tuple):
            return NotImplemented
        if self.complete:
            return self.known == list(other)
        rest = iter(other)
        # Not equal, whatever is missing, when one that is known is not there or out of order.
        return self._raise() if all(call in rest for call in self.known) else False

    def __repr__(self) -> str:
        return repr(self.shown) if self.complete else f"<{self.completeness.level} calls: {self.shown!r}>"

    def _raise(self) -> NoReturn:
        __tracebackhide__ = True
        known = self.completeness
        raise NoVerdictError(printable(f"{what_is_missing(known)} [{CALLS_UNKNOWN}]. To do: {what_to_do(known)}."))
