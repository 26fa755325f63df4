"""A loop on whose clock a machine that is busy loses no time."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_LOOK_S = 0.01


class UnhurriedLoop(asyncio.SelectorEventLoop):
    """Only time in which it waits for a timer and has nothing else to do passes on its clock.

    So a time limit is not reached because the machine was busy with something else, but only because what the limit
    is for did not come. Before `begun` is true, no time passes at all: that is for limits on a program or a thread
    that has to get going first.
    """

    def __init__(self, begun: Callable[[], bool] | None = None) -> None:
        self._begun = begun
        self._passed_s = 0.0
        super().__init__(_Waits(self._wait))

    def time(self) -> float:
        return self._passed_s

    def skip(self, seconds: float) -> None:
        """Let time pass at once."""
        self._passed_s += seconds

    def _wait(self, select: Callable[[float | None], list[Any]], timeout_s: float | None) -> list[Any]:
        if not timeout_s or timeout_s < 0:
            return select(timeout_s)
        if self._begun is not None:
            if not self._begun():
                return select(min(timeout_s, _LOOK_S))
            self._begun = None
        entered = time.monotonic()
        events = select(timeout_s)
        self._passed_s += min(time.monotonic() - entered, timeout_s)
        # What came while nothing was looked at comes before the timer that it was waited for with.
        return events or select(0)


class _Waits(selectors.DefaultSelector):
    """A selector whose waits are somebody else's."""

    def __init__(self, wait: Callable[[Callable[[float | None], list[Any]], float | None], list[Any]]) -> None:
        super().__init__()
        self._wait = wait

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._wait(super().select, timeout)


def run_unhurried(main: Coroutine[Any, Any, T], begun: Callable[[], bool] | None = None) -> T:
    """Like `asyncio.run`, on such a loop."""
    with asyncio.Runner(loop_factory=lambda: UnhurriedLoop(begun)) as runner:
        return runner.run(main)
