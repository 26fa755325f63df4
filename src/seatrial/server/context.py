"""What the runs of one server share: the store, the feeds of subscribers, and the driver."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

import msgspec

from seatrial.driver import Driver
from seatrial.driver.clock import Clock
from seatrial.driver.redaction import Redaction
from seatrial.server.conversation import Histories
from seatrial.server.metrics import COUNTERS
from seatrial.store import Store


class Publishing(Protocol):
    """Where committed events go: `Feeds`."""

    def publish(self, run_id: str, first: int, events: Sequence[bytes]) -> None:
        """Events that were committed, and the sequence of the first."""

    def ended(self, run_id: str) -> None:
        """The last event of a run was committed and published."""

    def wake(self, run_id: str) -> None:
        """Something may have changed in the store."""


class ServiceContext(msgspec.Struct, kw_only=True):
    """What the runs of one server share."""

    server_id: str
    store: Store
    feeds: Publishing
    histories: Histories
    driver: Driver

    @property
    def clock(self) -> Clock:
        """The driver's."""
        return self.driver.clock

    @property
    def redaction(self) -> Redaction:
        """The driver's."""
        return self.driver.redaction

    async def append(self, run_id: str, events: Sequence[bytes], first: int) -> None:
        """Commit events of a run, and publish them to its subscribers; `first` is the sequence of the first."""
        begun = perf_counter()
        await self.store.append_events(run_id, events, first=first)
        COUNTERS.committed(perf_counter() - begun)
        self.feeds.publish(run_id, first, events)
