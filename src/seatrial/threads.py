"""Threads for functions that block.

Not the threads of an executor: those are waited for when the process ends, and a function of others may never return.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

_Job: TypeAlias = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Threads:
    """As many threads as calls go on at once. A call that nobody waits for any more keeps its thread to itself."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle = 0
        self._started = 0

    async def call(self, function: Callable[[], T]) -> T:
        """What the function returns, or raises."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._idle:
            self._idle -= 1
        else:
            self._started += 1
            threading.Thread(target=self._work, name=f"seatrial-call-{self._started}", daemon=True).start()
        context = copy_context()
        self._jobs.put((lambda: context.run(function), future))
        return await future

    def close(self) -> None:
        """Let the threads go that have nothing to do, and the others when they are done."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            try:
                settle, outcome = _set_result, function()
            except BaseException as error:  # noqa: BLE001 - it is handed to whoever waits, whatever it is
                settle, outcome = _set_error, error
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._done, settle, future, outcome)

    def _done(
        self, settle: Callable[[asyncio.Future[Any], Any], None], future: asyncio.Future[Any], outcome: Any
    ) -> None:
        self._idle += 1
        if not future.done():
            settle(future, outcome)


def _set_result(future: asyncio.Future[Any], outcome: Any) -> None:
    future.set_result(outcome)


def _set_error(future: asyncio.Future[Any], outcome: Any) -> None:
    # A future takes no StopIteration: a coroutine cannot raise one.
    if isinstance(outcome, StopIteration):
        outcome = RuntimeError(f"the function raised StopIteration: {outcome}")
    future.set_exception(outcome)
