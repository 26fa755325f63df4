"""A run whose events are stored and published one after the other, and somebody who follows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from strategies import records

from seatrial.events import types as t
from seatrial.events.codec import encode_event
from seatrial.runs import RunKey, RunStatus
from seatrial.server.feed import Feeds, Subscription
from seatrial.store import Store

RUN, THREAD = "run-1", "exp-1"


def event(number: int, size: int = 0) -> bytes:
    """An event that is told from all others."""
    return encode_event(t.TextMessageContent(message_id="m1", delta=f"{number} " + "x" * size))


class Driven:
    """A run of an experiment; `events` are all that were committed."""

    def __init__(self, store: Store, feeds: Feeds, run_id: str = RUN, case: int = 0) -> None:
        self.run_id = run_id
        self.events: list[bytes] = []
        self._store = store
        self._feeds = feeds
        self._case = case
        if not store.experiments():
            store.create_experiment(records.experiment(THREAD), records.cases(20))
        store.begin_run(THREAD, RunKey("crew", f"case-{case}", 1), run_id).wait()

    async def say(self, count: int = 1, *, size: int = 0, publish: bool = True) -> None:
        """Commit so many events more, and publish them unless somebody forgets to."""
        first = len(self.events)
        new = [event(first + number, size) for number in range(count)]
        await self.commit(new, publish=publish)

    async def commit(self, events: Iterable[bytes], *, publish: bool = True) -> None:
        """Commit these events."""
        new, first = list(events), len(self.events)
        await self._store.append_events(self.run_id, new, first=first)
        self.events += new
        if publish:
            self._feeds.publish(self.run_id, first, new)

    async def end(self, count: int = 1, *, status: RunStatus = "completed", publish: bool = True) -> None:
        """Commit the last events, with which the run ends."""
        first = len(self.events)
        new = [event(first + number) for number in range(count)]
        run = records.run(self._case, run_id=self.run_id, status=status)
        assert await self._store.record_run(run, events=new, first=first)
        self.events += new
        if publish:
            self._feeds.publish(self.run_id, first, new)
            self._feeds.ended(self.run_id)


async def until(true: Callable[[], bool], patience_s: float = 60.0) -> None:
    """Wait for something that happens by itself."""
    async with asyncio.timeout(patience_s):
        while not true():
            await asyncio.sleep(0.005)


async def followed(subscription: Subscription, patience_s: float = 60.0) -> list[tuple[int, bytes]]:
    """Everything that a subscription gives until its end."""
    taken: list[tuple[int, bytes]] = []
    async with asyncio.timeout(patience_s):
        while (some := await subscription.next(patience_s)) is not None:
            taken += some
            assert subscription.position == taken[-1][0]
    return taken


async def taken(subscription: Subscription, count: int, patience_s: float = 60.0) -> list[tuple[int, bytes]]:
    """So many events, or more when they come together."""
    events: list[tuple[int, bytes]] = []
    async with asyncio.timeout(patience_s):
        while len(events) < count:
            some = await subscription.next(patience_s)
            assert some is not None, "it has ended"
            events += some
    return events


def numbered(events: list[bytes], after: int = -1) -> list[tuple[int, bytes]]:
    """What somebody is to be given who has everything up to a sequence."""
    return list(enumerate(events))[after + 1 :]
