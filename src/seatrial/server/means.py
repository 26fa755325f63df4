"""What runs are carried out with: the store, those who follow, the clock, and what must not be written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Protocol

import msgspec

from seatrial.engine.clock import Clock
from seatrial.engine.redaction import Redaction
from seatrial.server.flow import FLOW
from seatrial.server.history import Histories
from seatrial.store import Store


class Publishing(Protocol):
    """Where committed events go: `Feeds`."""

    def publish(self, run_id: str, first: int, events: Sequence[bytes]) -> None:
        """Events that were committed, and the sequence of the first."""

    def ended(self, run_id: str) -> None:
        """The last event of a run was committed and published."""

    def wake(self, run_id: str) -> None:
        """Something may have changed in the store."""


class Means(msgspec.Struct, kw_only=True):
    """What the runs of one server share."""

    server_id: str
    store: Store
    feeds: Publishing
    histories: Histories
    redaction: Redaction
    clock: Clock
    grace_s: float
    """How long an agent has to clean up when it is not waited for any longer."""
    left_behind: set[asyncio.Task[Any]]
    """Agents that took longer than that."""

    async def append(self, run_id: str, events: Sequence[bytes], first: int) -> None:
        """Commit events of a run, and give them to those who follow it; `first` is the sequence of the first."""
        begun = perf_counter()
        await self.store.append_events(run_id, events, first=first)
        FLOW.committed(perf_counter() - begun)
        self.feeds.publish(run_id, first, events)
