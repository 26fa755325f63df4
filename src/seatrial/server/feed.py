"""The runs that somebody follows: one feed for each, and one clock for all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

from seatrial.errors import SeatrialError
from seatrial.runs import RunHead
from seatrial.server.counters import COUNTERS
from seatrial.server.run_feed import Reader, RunFeed
from seatrial.server.subscription import Subscription
from seatrial.store import Store

P = ParamSpec("P")
T = TypeVar("T")

READS_AT_ONCE = 3
"""Of the store, by all feeds together: a crowd that comes back must not keep others from it."""
TICKS_PER_KEEPALIVE = 20
LONGEST_TICK_S = 0.25
UNUSED_S = 10.0
"""How long a feed is kept that nobody reads."""
LEAVING_S = 2.0
"""How long streams may take to end when the server stops."""


class Feeds:
    """All feeds of a server. For the thread of its event loop alone."""

    def __init__(
        self,
        store: Store,
        *,
        keepalive_s: float = 10.0,
        send_timeout_s: float = 30.0,
        poll_s: float = 0.25,
        heal_s: float = 5.0,
    ) -> None:
        """`poll_s`: how often the store is asked about a run that goes on elsewhere; `heal_s`: about one that is
        driven here, of which everything is published, in case something was missed.
        """
        self.keepalive_s = keepalive_s
        """How long a stream may be idle before it says that it is alive."""
        self._send_timeout_s = send_timeout_s
        self._poll_s = poll_s
        self._heal_s = heal_s
        self._store = store
        self._feeds: dict[str, RunFeed] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._reads = asyncio.Semaphore(READS_AT_ONCE)
        self._stopping = False

    @property
    def subscribers(self) -> int:
        """How many follow a run now."""
        return sum(len(feed.readers) for feed in self._feeds.values())

    def publish(self, run_id: str, first: int, events: Sequence[bytes]) -> None:
        """Give events that were committed to those who follow the run; `first` is the sequence of the first."""
        COUNTERS.appended += len(events)
        if (feed := self._feeds.get(run_id)) is not None:
            feed.publish(first, events)

    def ended(self, run_id: str) -> None:
        """The last event of a run was committed and published. A hint: what holds is what the store says."""
        self.wake(run_id)

    def wake(self, run_id: str) -> None:
        """Something may be new in the store."""
        if (feed := self._feeds.get(run_id)) is not None:
            feed.wake()

    async def head(self, run_id: str) -> RunHead:
        """Where the log of a run begins and ends."""
        return await self.read(self._store.run_head, run_id)

    async def open(self, run_id: str, *, after: int | None, tail: bool = False) -> Subscription:
        """Follow a run from behind the sequence `after`, from its beginning, or (`tail`) from what comes now.

        Raises `not_found`; `cursor_ahead` with the `head` for an event that there is not yet; `cursor_expired` with
        the `first` that is kept when the events that would come next are not; `shutting_down`.
        """
        if after is not None and after < 0:
            raise SeatrialError("invalid_cursor", f"a sequence is not negative, and {after} is")
        feed = self._feed(run_id)
        if after is not None and feed.holds(after):
            return Subscription(run_id, after, self._feed)
        try:
            await feed.refresh()
        except SeatrialError:
            self._drop_unread(feed)
            raise
        if feed.failed or feed.head is None:
            return await self.open(run_id, after=after, tail=tail)
        return Subscription(run_id, _position(feed.head, after, tail), self._feed)

    async def close(self) -> None:
        """End every stream: at its end where the run has ended, elsewhere with a hint to come back.

        Those that do not take it in time are cut off.
        """
        self._stopping = True
        if self._ticking is not None:
            self._ticking.cancel()
        if self._tasks:
            # A run that ended a moment ago may not be known to have: the store has been asked, and is about to answer.
            await asyncio.wait(self._tasks, timeout=LEAVING_S)
        for feed in self._feeds.values():
            if not feed.closed:
                for reader in feed.readers:
                    reader.interrupt()
        await self._all_left(LEAVING_S)
        for reader in self._readers():
            reader.cut_off()
        self._feeds.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that blocks, in a thread; not many at once."""
        async with self._reads:
            return await asyncio.to_thread(function, *args, **kwargs)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something beside, at the longest until these feeds are closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _feed(self, run_id: str) -> RunFeed:
        if self._stopping:
            raise SeatrialError("shutting_down", "the server is about to stop")
        feed = self._feeds.get(run_id)
        now = asyncio.get_running_loop().time()
        if feed is None or feed.failed:
            for reader in feed.readers if feed is not None else ():
                reader.cut_off()  # it was told that the log is no more, and nobody will look after it
            feed = RunFeed(run_id, self._store, self, poll_s=self._poll_s, heal_s=self._heal_s, now=now)
            self._feeds[run_id] = feed
            if self._ticking is None or self._ticking.done():
                self._ticking = self.spawn(self._tick())
        feed.used_at = now
        return feed

    def _drop_unread(self, feed: RunFeed) -> None:
        if not feed.readers and self._feeds.get(feed.run_id) is feed:
            del self._feeds[feed.run_id]

    async def _tick(self) -> None:
        """One clock for all: ten thousand timers would be dearer."""
        loop = asyncio.get_running_loop()
        pause = min(LONGEST_TICK_S, self.keepalive_s / TICKS_PER_KEEPALIVE, self._poll_s)
        while self._feeds:
            await asyncio.sleep(pause)
            now = loop.time()
            for feed in list(self._feeds.values()):
                if feed.readers:
                    feed.used_at = now
                    feed.look_if_due(now)
                    feed.let_go()
                elif now - feed.used_at > UNUSED_S:
                    self._drop_unread(feed)
            for reader in self._readers():
                reader.tick(now, self._send_timeout_s)

    async def _all_left(self, within_s: float) -> None:
        now = asyncio.get_running_loop().time
        end = now() + within_s
        while self.subscribers and now() < end:
            await asyncio.sleep(0.01)

    def _readers(self) -> list[Reader]:
        return [reader for feed in self._feeds.values() for reader in feed.readers]


def _position(head: RunHead, after: int | None, tail: bool) -> int:
    """Where to begin, if there one can."""
    last = head.following - 1
    if tail:
        return last
    position = after if after is not None else -1
    if position > last:
        known = f"its last event is {last}" if head.following else "it has no events yet"
        raise SeatrialError(
            "cursor_ahead",
            f"run {head.run_id!r} has no event {position}: {known}",
            details={"head": last if head.following else None},
        )
    if position + 1 < head.first:
        raise SeatrialError(
            "cursor_expired",
            f"run {head.run_id!r} is kept from event {head.first} on; what follows {position} is not",
            hint=f"begin behind {head.first - 1}, or at the end with from=tail",
            details={"first": head.first},
        )
    return position
