"""The recording of a run that is running: its events are stored while they come.

An agent that sends events faster than the store takes them waits in `emit`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from seatrial.driver.clock import Clock
from seatrial.driver.recording import Recording
from seatrial.driver.redaction import Redaction
from seatrial.errors import SeatrialError
from seatrial.events import Event
from seatrial.events.types import RunStarted

MAX_BUFFER_BYTES = 1 << 20
"""How much may wait for the store; an agent with more to say waits."""


class EventSink(Protocol):
    """Where recorded events go."""

    async def append(self, events: list[bytes], first: int) -> None:
        """Store events, `first` being the sequence of the first. Raises `SeatrialError`."""
        ...


class Recorder(Recording):
    """Stores the log of one run. For the thread of its event loop alone."""

    def __init__(
        self,
        run_id: str,
        thread_id: str,
        clock: Clock,
        redaction: Redaction,
        sink: EventSink,
        *,
        started: RunStarted | None = None,
        flush_after_s: float = 0.0,
        on_failure: Callable[[SeatrialError], None] | None = None,
        on_terminal: Callable[[], None] | None = None,
    ) -> None:
        """`started` is the first event where the store has it already; the log is then of this one run.

        Events are handed to the sink `flush_after_s` after they came, so that a short run is stored at once with its
        end. `on_failure` is called when the sink fails, `on_terminal` when the agent has ended its run.
        """
        super().__init__(run_id, thread_id, clock, redaction, on_terminal=on_terminal)
        self.failure: SeatrialError | None = None
        """What the sink failed with; what was on its way then may be stored or not."""
        self._sink = sink
        self._flush_after_s = flush_after_s
        self._on_failure = on_failure
        self._closed = False
        self._flushing: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        if started is not None:
            self.resume(started)

    async def emit(self, event: Event) -> None:
        """Record an event of the agent's; waits while the store is behind. Dropped once the recorder is closed."""
        if self._closed or self.failure is not None:
            return
        self.receive(event)
        if self.pending and self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        self._news.set()
        while self.pending_bytes > MAX_BUFFER_BYTES and not self._closed and self.failure is None:
            self._room.clear()
            await self._room.wait()

    async def close(self, *, broken_off: bool = False) -> None:
        """Take nothing more from the agent, and wait for what is on its way to the store. `broken_off`: the agent was
        cut off, and a text may break off in the middle of a secret."""
        if not self._closed:
            if broken_off:
                self._drop_broken_off()
            self._record_held_back()
            self._closed = True
        self._news.set()
        self._room.set()
        if self._flushing is not None:
            await self._flushing

    async def abandon(self) -> None:
        """Take nothing more, and do not wait for the store: nobody will conclude this run."""
        self._closed = True
        self._room.set()
        if self._flushing is not None:
            self._flushing.cancel()
            with suppress(asyncio.CancelledError):
                await self._flushing

    async def _flush(self) -> None:
        """Hand what comes to the sink, until the recorder is closed or the sink fails.

        What comes while a batch is being stored is the next batch, so batches grow with the load.
        """
        while not self._closed and self.failure is None:
            if not self.pending:
                self._news.clear()
                await self._news.wait()
                continue
            if self._flush_after_s and not await self._settled():
                return
            events, size = self.pending, self.pending_bytes
            self.pending = []
            try:
                await self._sink.append(events, self.stored)
            except SeatrialError as error:
                self.failure = error
                if self._on_failure is not None:
                    self._on_failure(error)
            else:
                self.stored += len(events)
                self.pending_bytes -= size
            self._room.set()

    async def _settled(self) -> bool:
        """Wait for more to come; False when the run has ended meanwhile, and is stored with its end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._flush_after_s):
                while not self._closed and self.pending_bytes <= MAX_BUFFER_BYTES:
                    self._news.clear()
                    await self._news.wait()
        return not self._closed
