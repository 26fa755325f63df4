"""Asking an experiment to stop: nothing new starts, what runs is finished."""

from __future__ import annotations

import asyncio


class StopRequestedError(Exception):
    """A run was given up before it began, or between two attempts; it stays missing, for a resume to run."""


class Stop:
    """Whether an experiment was asked to stop, and why. For the thread of its event loop alone."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._requested = asyncio.Event()

    def request(self, reason: str) -> None:
        """Stop; the first reason counts."""
        if self.reason is None:
            self.reason = reason
            self._requested.set()

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
