"""Cutting off agents that do not end by themselves.

Nearly all do, so there is one timer for all runs that looks at them now and then, where `asyncio.timeout` would set
one for each of them.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

LOOK_S = 1.0
"""How much later than its end something may be cut off."""


class Watch:
    """Looks for tasks that go on longer than they may. For the thread of one event loop alone."""

    def __init__(self) -> None:
        self._entered: set[Overtime] = set()
        self._timer: asyncio.TimerHandle | None = None

    def after(self, seconds: float | None) -> Overtime:
        """A context whose task is cancelled after so many seconds, and which then raises `TimeoutError`."""
        return Overtime(self, seconds)

    def _enter(self, overtime: Overtime, loop: asyncio.AbstractEventLoop) -> None:
        self._entered.add(overtime)
        if self._timer is None:
            self._timer = loop.call_later(LOOK_S, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for overtime in self._entered:
            overtime._look(now)
        # Not as long as there is nothing to look at: then the next one that enters sets it.
        self._timer = loop.call_later(LOOK_S, self._look, loop) if self._entered else None


class Overtime:
    """What `asyncio.timeout` is, on the watch's timer."""

    __slots__ = ("_end", "_seconds", "_task", "_watch", "expired")

    def __init__(self, watch: Watch, seconds: float | None) -> None:
        self.expired = False
        """Whether the task was cancelled because its time was over."""
        self._watch = watch
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._end = 0.0

    def __enter__(self) -> Self:
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            self._task = asyncio.current_task()
            self._end = loop.time() + self._seconds
            self._watch._enter(self, loop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch._entered.discard(self)
        # When somebody else cancelled the task, too, it is theirs.
        if self.expired and self._task is not None and self._task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _look(self, now: float) -> None:
        if now >= self._end and not self.expired and self._task is not None:
            self.expired = True
            self._task.cancel()
