"""Asking an experiment to stop: nothing new starts, what is running is finished."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class StopRequestedError(Exception):
    """A run was given up before it began, or between two attempts; it stays missing, for a resume to run."""


class Stop:
    """Whether an experiment was asked to stop, and why. For the thread of its event loop alone."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._requested = asyncio.Event()
        self._waits: set[asyncio.Timeout] = set()
        self.abandon: Callable[[str], None] | None = None
        """Saves what has finished, before the process is ended because its event loop does not respond. To be called
        in any thread, with the reason."""

    def request(self, reason: str) -> None:
        """Stop; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            self._requested.set()
            for wait in self._waits:
                wait.reschedule(asyncio.get_running_loop().time())

    async def requested(self) -> str:
        """Wait until a stop is asked for; gives the reason."""
        await self._requested.wait()
        return str(self.reason)

    def check(self) -> None:
        """Raise `StopRequestedError` once a stop was asked for."""
        if self.reason is not None:
            raise StopRequestedError(self.reason)

    async def sleep(self, seconds: float) -> None:
        """Sleep; a stop ends it at once, with `StopRequestedError`."""
        try:
            async with asyncio.timeout(seconds):
                await self._requested.wait()
        except TimeoutError:
            return
        self.check()

    async def unless_asked(self, coming: Awaitable[T]) -> T:
        """Wait for something; a stop ends that, with `StopRequestedError`, but what is there already is given."""
        try:
            async with asyncio.timeout(None if self.reason is None else 0) as wait:
                self._waits.add(wait)
                return await coming
        except TimeoutError:
            if wait.expired():
                self.check()
            raise
        finally:
            self._waits.discard(wait)
