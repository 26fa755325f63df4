"""The runs that are followed, and who follows them: one feed for each run, and one clock for all subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, TypeVar

from seatrial.errors import SeatrialError
from seatrial.events.types import RunStatus
from seatrial.runs import RunHead
from seatrial.server.logs import log
from seatrial.server.metrics import COUNTERS
from seatrial.server.run_feed import Block, Reader, RunFeed
from seatrial.store import Store


class Subscription:
    """A position in the log of a run, which moves with what is read. Made by `Feeds.open`; close it when done.

    It holds nothing but its position: events are in the feed, for all, or in the store.
    """

    def __init__(self, run_id: str, position: int, join: Callable[[str], RunFeed]) -> None:
        self.run_id = run_id
        self.position = position
        """The sequence of the last event that was given; -1 before the first."""
        self.status: RunStatus | None = None
        """How the run has ended, once `next` or `take` have given None for that reason."""
        self.interrupted = False
        """Whether it ended before the run did, because the server stops or the log cannot be read."""
        self.closed = False
        self.abort: Callable[[], object] | None = None
        """Closes the connection at once; set by the code that sends the stream."""
        self.sending_since: float | None = None
        """Since when the client has not taken the last piece."""
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._join = join
        self._feed: RunFeed | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = 0.0

    def join(self) -> RunFeed:
        """Begin to follow; `next` and `take` do so, too. One that never begins need not be closed."""
        feed = self._feed = self._join(self.run_id)
        feed.readers.add(self)
        return feed

    async def next(self, timeout_s: float) -> list[tuple[int, bytes]] | None:
        """Some of the events behind the position, as soon as there are any.

        None at the end, when there will be no more; an empty list when there were none for about so many seconds.
        """
        try:
            block = await self.take(self._now() + timeout_s)
        except TimeoutError:
            return []
        return None if block is None else list(enumerate(block.events, block.first))

    async def take(self, deadline: float) -> Block | None:
        """The same events as one block that all readers share; `TimeoutError` soon after the deadline."""
        self._deadline = deadline
        try:
            feed = self._feed or self.join()
            while not (self.closed or self.interrupted or self.status or feed.failed):
                window = feed.window
                if window is None:
                    await feed.refresh()
                    continue
                wanted = self.position + 1
                if wanted < window.following:
                    at_hand = wanted >= window.base
                    block = window.since(self.position) if at_hand else await feed.page(self.position)
                    count = len(block.events)
                    self.position += count
                    COUNTERS.delivered += count
                    return block
                if wanted > window.following:
                    feed.fail()  # this position was given by a log that is no more
                elif feed.head is not None and feed.head.closed:
                    self.status = feed.head.status
                elif self._now() >= deadline:
                    raise TimeoutError
                else:
                    await self._wait()
        except SeatrialError as error:
            # A client that reconnects with its cursor gets the error.
            log("stream_interrupted", run_id=self.run_id, code=error.code)
        self.interrupted = not self.closed and not self.status
        return None

    def close(self) -> None:
        """Stop following. What waits in `next` or `take` is given None."""
        self.closed = True
        if self._feed is not None:
            self._feed.readers.discard(self)
        self.wake()

    def interrupt(self) -> None:
        """End it, because the server stops."""
        self.interrupted = True
        self.wake()

    def wake(self) -> None:
        """There may be something new."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def tick(self, now: float, send_timeout_s: float) -> None:
        """Time has passed: wake a waiter whose deadline is over, and close a connection whose client takes nothing."""
        if self._waiter is not None and now >= self._deadline:
            self.wake()
        since = self.sending_since
        if since is not None and now - since > send_timeout_s:
            log("slow_subscriber", run_id=self.run_id, position=self.position)
            self.cut_off()

    def cut_off(self) -> None:
        """Close the connection at once; the client can reconnect with its cursor."""
        self.sending_since = None
        if self.abort is not None:
            self.abort()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


P = ParamSpec("P")
T = TypeVar("T")

READS_AT_ONCE = 3
"""Of the store, by all feeds together: many clients that reconnect at once must not keep others from it."""
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
        recheck_s: float = 5.0,
    ) -> None:
        """`poll_s`: how often the store is asked about a run that another process drives; `recheck_s`: about a run that
        is driven here, of which everything is published, in case something was missed.
        """
        self.keepalive_s = keepalive_s
        """How long a stream may be idle before it says that it is alive."""
        self._send_timeout_s = send_timeout_s
        self._poll_s = poll_s
        self._recheck_s = recheck_s
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

        Raises `not_found`; `cursor_ahead` with the `head` for an event that does not exist yet; `cursor_expired` with
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
        """End every stream: at its end where the run has ended, elsewhere with a hint to reconnect.

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
        """Do something in the background, until these feeds are closed at the latest."""
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
                reader.cut_off()  # its log does not exist any more, and no feed serves it
            feed = RunFeed(run_id, self._store, self, poll_s=self._poll_s, recheck_s=self._recheck_s, now=now)
            self._feeds[run_id] = feed
            if self._ticking is None or self._ticking.done():
                self._ticking = self.spawn(self._tick())
        feed.used_at = now
        return feed

    def _drop_unread(self, feed: RunFeed) -> None:
        if not feed.readers and self._feeds.get(feed.run_id) is feed:
            del self._feeds[feed.run_id]

    async def _tick(self) -> None:
        """One clock for all: ten thousand timers would cost more."""
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
    """The position to begin at. Raises when the log does not have it."""
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
