"""Time limits for work that nothing can interrupt: the work itself looks at the clock, at every turn of a long loop.

Comparing what an agent sent with what a suite expects is plain computing. It runs in the event loop, where no timer
fires meanwhile, or in a thread, which cannot be ended from outside. `check_time` in its loops ends it from inside.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from time import monotonic
from types import TracebackType

from seatrial.errors import SeatrialError


class TimeLimit:
    """A limit for everything inside the `with` block. Of several around each other, the one that ends first counts."""

    __slots__ = ("_around", "_token", "expired", "seconds", "until")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.expired = False
        """Whether something inside was ended by this limit, also when that was not passed on as an error."""
        self.until = 0.0
        self._around: TimeLimit | None = None
        self._token: Token[TimeLimit | None] | None = None

    def __enter__(self) -> TimeLimit:
        self.until = monotonic() + self.seconds
        self._around = _current.get()
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def check(self) -> float:
        """The seconds that are left. Raises `SeatrialError("time_limit")` when none are."""
        left = self.until - monotonic()
        if left <= 0:
            self.expire()
        return left if self._around is None else min(left, self._around.check())

    def expire(self) -> None:
        """End the work. Raises `SeatrialError("time_limit")`."""
        self.expired = True
        raise SeatrialError(
            "time_limit",
            f"it took longer than {self.seconds:g} s",
            hint="raise `timeout_s` of the grader, or compare less",
        )


_current: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)


def check_time() -> None:
    """Raise `SeatrialError("time_limit")` when the time limit around this, if there is one, has passed."""
    limit = _current.get()
    if limit is not None:
        limit.check()


def current_limit() -> TimeLimit | None:
    """The time limit around this."""
    return _current.get()
