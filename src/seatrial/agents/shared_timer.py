"""Time limits of very many runs, nearly all of which end long before.

`asyncio.timeout` sets a timer for each of them and takes it back. This is one timer, set for whatever ends first.
"""

from __future__ import annotations

import asyncio
from math import inf
from types import TracebackType
from typing import Any, Self


class SharedTimer:
    """Cancels tasks whose time is over. For one event loop at a time."""

    def __init__(self) -> None:
        self._timeouts: set[Timeout] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        """When the timer goes off: not later than the first of the timeouts."""

    def timeout(self, seconds: float | None) -> Timeout:
        """A context whose task is cancelled after so many seconds, and which then raises `TimeoutError`."""
        return Timeout(self, seconds)

    def _add(self, timeout: Timeout) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._timer, self._due = loop, None, inf
            self._timeouts.clear()
        timeout.end = loop.time() + timeout.seconds
        self._timeouts.add(timeout)
        if timeout.end < self._due:
            self._set_timer(loop, timeout.end)

    def _set_timer(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = loop.call_at(due, self._look, loop, due)

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._timer, self._due = None, inf
        now = max(due, loop.time())  # a loop may be early by the resolution of its clock
        for timeout in self._timeouts:
            if timeout.end <= now:
                timeout.expire()
        # Most that were there when the timer was set have gone, so the next time is far off.
        if left := [timeout.end for timeout in self._timeouts if not timeout.expired]:
            self._set_timer(loop, min(left))


class Timeout:
    """One task's time, as `asyncio.timeout` has it."""

    __slots__ = ("_cancelling", "_shared", "_task", "end", "expired", "seconds")

    def __init__(self, shared: SharedTimer, seconds: float | None) -> None:
        self.seconds = inf if seconds is None else seconds
        self.end = inf
        """On the loop's clock."""
        self.expired = False
        """Whether the task was cancelled because its time was over."""
        self._shared = shared
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0

    def __enter__(self) -> Self:
        if self.seconds != inf:
            task = asyncio.current_task()
            if task is None:
                raise RuntimeError("only a task can be timed out")
            self._task = task
            self._cancelling = task.cancelling()
            self._shared._add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shared._timeouts.discard(self)
        # When somebody else has cancelled the task, too, it is cancelled.
        if self.expired and self._task is not None:
            cancelling = self._task.uncancel()
            if cancelling <= self._cancelling and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def expire(self) -> None:
        """Cancel the task, once."""
        if not self.expired and self._task is not None:
            self.expired = True
            self._task.cancel()
