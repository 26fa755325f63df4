"""How many runs an agent is given at once: its limit, halved when the agent says that it is too much."""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

RECOVER_AFTER = 8
"""Answers without a complaint after which one more run is let in."""


class Pressure(msgspec.Struct):
    """What an agent's limit stands at, for the progress line."""

    limit: int
    allowed: int
    active: int


class AdaptiveLimit:
    """A semaphore whose size follows the agent: down by half on 429 and 503, up by one after a quiet while."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.allowed = limit
        self.active = 0
        self._quiet = 0
        self._not_before = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        """Wait for a place."""
        loop = asyncio.get_running_loop()
        while True:
            pause = self._not_before - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            elif self.active < self.allowed:
                self.active += 1
                return
            else:
                place = loop.create_future()
                self._waiting.append(place)
                try:
                    await place
                except asyncio.CancelledError:
                    # A place that was given to a cancelled waiter goes to the next one.
                    if place.done() and not place.cancelled():
                        self._wake()
                    raise

    def release(self, *, refused: bool, retry_after_s: float | None = None) -> None:
        """Give the place back; `refused` tells that the agent said it is too much."""
        self.active -= 1
        if refused:
            self.allowed = max(1, self.allowed // 2)
            self._quiet = 0
            if retry_after_s is not None:
                self._not_before = max(self._not_before, asyncio.get_running_loop().time() + retry_after_s)
        elif self.allowed < self.limit:
            self._quiet += 1
            if self._quiet >= RECOVER_AFTER:
                self._quiet = 0
                self.allowed += 1
        self._wake()

    def pressure(self) -> Pressure:
        """Where the limit stands."""
        return Pressure(self.limit, self.allowed, self.active)

    def _wake(self) -> None:
        room = self.allowed - self.active
        while room > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                room -= 1
