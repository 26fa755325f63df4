"""Somebody who follows a run, from a position on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from seatrial.errors import SeatrialError
from seatrial.events.types import TaskStatus
from seatrial.server.block import Block
from seatrial.server.counters import COUNTERS
from seatrial.server.logs import log
from seatrial.server.run_feed import RunFeed


class Subscription:
    """A position in the log of a run, which moves with what is read. Made by `Feeds.open`; close it when done.

    It holds nothing but its position: events are in the feed, for all, or in the store.
    """

    def __init__(self, run_id: str, position: int, join: Callable[[str], RunFeed]) -> None:
        self.run_id = run_id
        self.position = position
        """The sequence of the last event that was given; -1 before the first."""
        self.status: TaskStatus | None = None
        """How the run has ended, once `next` or `take` have given None for that reason."""
        self.interrupted = False
        """Whether it ended before the run did, because the server stops or the log cannot be read."""
        self.closed = False
        self.abort: Callable[[], object] | None = None
        """Cuts the connection off; whoever sends what is read here sets it."""
        self.sending_since: float | None = None
        """Since when a piece has been on its way to somebody who does not take it."""
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
            # Whoever comes back with the cursor is told what is wrong.
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
        """Time has passed: whoever waits is told, and whoever takes nothing is cut off."""
        if self._waiter is not None and now >= self._deadline:
            self.wake()
        since = self.sending_since
        if since is not None and now - since > send_timeout_s:
            log("slow_subscriber", run_id=self.run_id, position=self.position)
            self.cut_off()

    def cut_off(self) -> None:
        """End the connection at once; the other side can come back with its cursor."""
        self.sending_since = None
        if self.abort is not None:
            self.abort()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
