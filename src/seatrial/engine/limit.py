"""How many runs an agent is given at once: its limit, halved when the agent says that it is too much."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from seatrial.engine.stop import Stop

RECOVER_AFTER = 8
"""Answers without a complaint after which one more run is let in."""
MAX_PAUSE_S = 300.0
"""How long an agent may keep all its runs waiting; one that asks for more is tried again after that."""


class AdaptiveLimit:
    """A semaphore whose size follows the agent: down by half when it refuses, up by one after a quiet while."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.allowed = limit
        self.active = 0
        self._quiet = 0
        self._cuts = 0
        self._not_before = 0.0
        self._waiting: deque[asyncio.Future[int]] = deque()

    async def acquire(self) -> int:
        """Wait for a place; gives a ticket to return it with."""
        if self.active < self.allowed and not self._waiting:
            self.active += 1
            return self._cuts
        place: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()  # it was let in just before it was cancelled
            raise

    def pause_s(self) -> float:
        """How long the agent asked not to be called."""
        return max(self._not_before - asyncio.get_running_loop().time(), 0.0) if self._not_before else 0.0

    def release(self, ticket: int, *, refused: bool = False, retry_after_s: float | None = None) -> None:
        """Give the place back; `refused` says that the agent was overloaded."""
        if refused:
            self._quiet = 0
            # Runs that were under way at the last cut say nothing of what the agent bears since.
            if ticket == self._cuts:
                self._cuts += 1
                self.allowed = max(1, self.allowed // 2)
            if retry_after_s is not None:
                until = asyncio.get_running_loop().time() + min(retry_after_s, MAX_PAUSE_S)
                self._not_before = max(self._not_before, until)
        elif self.allowed < self.limit:
            self._quiet += 1
            if self._quiet >= RECOVER_AFTER:
                self._quiet = 0
                self.allowed += 1
        self._leave()

    def _leave(self) -> None:
        self.active -= 1
        while self._waiting and self.active < self.allowed:
            place = self._waiting.popleft()
            if not place.done():
                self.active += 1
                place.set_result(self._cuts)


class AttemptGate(Protocol):
    """Lets the attempts of an agent's runs begin, wherever they run."""

    async def enter(self) -> int:
        """Wait until the agent may be called; gives a ticket to leave with. `StopRequestedError` after a stop."""

    def leave(self, ticket: int, *, refused: bool = False, retry_after_s: float | None = None) -> None:
        """Say that the attempt is over; `refused` when the agent said that it is too much."""

    def pause_s(self) -> float:
        """How long the agent asked not to be called."""


class AgentGate:
    """The gate of one agent: its own limit, and the places that all agents share."""

    def __init__(self, limit: AdaptiveLimit, stop: Stop, places: asyncio.Semaphore | None = None) -> None:
        self.limit = limit
        self._stop = stop
        self._places = places

    async def enter(self) -> int:
        ticket = await self.limit.acquire()
        entered = False
        try:
            while (pause_s := self.limit.pause_s()) > 0:
                await self._stop.sleep(pause_s)
            self._stop.check()
            if self._places is not None:
                await self._places.acquire()
                if self._stop.reason is not None:
                    self._places.release()
                    self._stop.check()
            entered = True
        finally:
            if not entered:
                self.limit.release(ticket)
        return ticket

    def leave(self, ticket: int, *, refused: bool = False, retry_after_s: float | None = None) -> None:
        if self._places is not None:
            self._places.release()
        self.limit.release(ticket, refused=refused, retry_after_s=retry_after_s)

    def pause_s(self) -> float:
        return self.limit.pause_s()
