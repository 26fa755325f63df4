"""What the subscribers of a run share: where its log ends, its last events, framed once for all, and what was read from
the store lately.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from seatrial.errors import SeatrialError
from seatrial.events import cursor_text, envelope_bytes, envelope_head
from seatrial.events.codec import CARRIED_TYPES, native_bytes, type_of
from seatrial.runs import RunHead
from seatrial.server.logs import log
from seatrial.server.metrics import COUNTERS
from seatrial.store import Store

FrameForm: TypeAlias = Literal["sse", "ndjson"]


class EventFraming:
    """The envelopes and frames around the events of one run."""

    __slots__ = ("_cursor", "_head")

    def __init__(self, run_id: str, thread_id: str) -> None:
        self._head = envelope_head(run_id, thread_id)
        self._cursor = cursor_text(run_id, 0)[:-1].encode()

    def framed(self, form: FrameForm, sequence: int, event: bytes) -> bytes:
        """One event in its envelope; in a frame of SSE its cursor is the id."""
        envelope = envelope_bytes(self._head, sequence, native_event(event))
        if form == "ndjson":
            return envelope + b"\n"
        return b"id: %b%d\ndata: %b\n\n" % (self._cursor, sequence, envelope)


class Block:
    """Events that follow each other. It is shared by all who read it, and never changes."""

    __slots__ = ("_filtered", "_framing", "_whole", "events", "first", "size")

    def __init__(self, framing: EventFraming, first: int, events: Sequence[bytes]) -> None:
        self.first = first
        """The sequence of the first event."""
        self.events = events
        self.size = sum(map(len, events))
        self._framing = framing
        self._whole: dict[FrameForm, bytes] = {}
        self._filtered: tuple[FrameForm, frozenset[str], bytes] | None = None

    @property
    def following(self) -> int:
        """The sequence behind the last event."""
        return self.first + len(self.events)

    def behind(self, position: int) -> Block:
        """The events behind this sequence, which is one of the block's, or the one before it."""
        passed = position + 1 - self.first
        return Block(self._framing, position + 1, self.events[passed:]) if passed else self

    def framed(self, form: FrameForm, types: frozenset[str] | None = None) -> bytes:
        """The events, or those of these types, as they are sent."""
        if types is None:
            data = self._whole.get(form)
            if data is None:
                data = self._whole[form] = self._framed(form, None)
            return data
        # There are as many sets of types as clients make up, so only the last one is kept.
        if self._filtered is None or self._filtered[:2] != (form, types):
            self._filtered = (form, types, self._framed(form, types))
        return self._filtered[2]

    def _framed(self, form: FrameForm, types: frozenset[str] | None) -> bytes:
        framed = self._framing.framed
        return b"".join(
            [
                framed(form, sequence, event)
                for sequence, event in enumerate(self.events, self.first)
                if types is None or not types.isdisjoint(_types_of(event))
            ]
        )


def native_event(event: bytes) -> bytes:
    """A stored event as the native view has it: of a type that the view knows, and in one line."""
    with suppress(SeatrialError):  # what cannot be read as what it says it is stays as it is
        event = native_bytes(event)
    if b"\n" in event or b"\r" in event:
        event = event.replace(b"\r", b" ").replace(b"\n", b" ")  # in JSON they are white space between its parts
    return event


def _types_of(event: bytes) -> tuple[str, ...]:
    """The type of a stored event, and the one that it has in the native view when that is another."""
    name = type_of(event)
    if name is None:
        return ()
    return (name, "CUSTOM") if name in CARRIED_TYPES else (name,)


P = ParamSpec("P")
T = TypeVar("T")

PAGES_KEPT = 4
"""After a restart everybody asks for the same pages; each is read once."""
PAGE_EVENTS = 512
PAGE_BYTES = 128 * 1024
"""About so much is read at once; the size of events is guessed by those that came before."""
QUIETEST = 4.0
"""A run that has been quiet is looked at less and less often, down to so many times less."""


class Reader(Protocol):
    """A subscriber of the run."""

    position: int

    def wake(self) -> None:
        """There may be something new."""

    def interrupt(self) -> None:
        """The server stops."""

    def tick(self, now: float, send_timeout_s: float) -> None:
        """Time has passed."""

    def cut_off(self) -> None:
        """There is no time left."""


class Work(Protocol):
    """How a feed gets things done that take a while."""

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that blocks, in a thread."""

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something in the background."""


class RunFeed:
    """One run that somebody follows. For the thread of its event loop alone.

    Events that are committed here are published to it, and it remembers the last of them. Of what others commit it
    learns by asking the store how far the log goes, when it is woken or when it is time; readers then get the events
    out of the store by pages. Asking also makes up for a wake-up that was missed.
    """

    def __init__(self, run_id: str, store: Store, work: Work, *, poll_s: float, recheck_s: float, now: float) -> None:
        self.run_id = run_id
        self.readers: set[Reader] = set()
        self.head: RunHead | None = None
        """The answer of the store that came last. None before the first one."""
        self.window: Window | None = None
        """There is one as soon as there is a head."""
        self.failed = False
        """Whether its log does not exist any more: the run was removed, or started again."""
        self.used_at = now
        self._store = store
        self._work = work
        self._framing: EventFraming | None = None
        self._asked = 0
        self._answered = 0
        self._asking = asyncio.Lock()
        self._waking = False
        self._pages: deque[Block] = deque(maxlen=PAGES_KEPT)
        self._page_events = PAGE_EVENTS
        self._reading: dict[int, asyncio.Task[Block]] = {}
        self._poll_s = poll_s
        self._recheck_s = recheck_s
        self._driven_here = False
        self._changed_at = self._asked_at = now

    @property
    def closed(self) -> bool:
        """Whether no event will follow those that are known."""
        return self.head is not None and self.head.closed

    def holds(self, position: int) -> bool:
        """Whether everything behind this position, up to what comes next, can be had without asking the store."""
        return self.window is not None and not self.closed and self.window.holds(position)

    def publish(self, first: int, events: Sequence[bytes]) -> None:
        """Take events that were committed; what is known already is passed over."""
        self._driven_here = True
        window = self.window
        if window is None or first > window.following:
            self.wake()  # what came before these is not known here
        elif fresh := events[window.following - first :]:
            window.append(fresh)
            self._wake_readers()

    def wake(self) -> None:
        """Ask the store, soon."""
        if not self._waking:
            self._waking = True
            self._work.spawn(self._look())

    def look_if_due(self, now: float) -> None:
        """Ask the store when that was long ago."""
        if self.closed or self.failed:
            return
        often = self._recheck_s if self._driven_here else self._poll_s
        if now - self._asked_at >= min(max(often, (now - self._changed_at) / 8), QUIETEST * often):
            self._asked_at = now
            self.wake()

    def let_go(self) -> None:
        """Forget events that all readers have been given."""
        if self.window is not None and self.readers:
            self.window.release(min([reader.position for reader in self.readers]))

    async def refresh(self) -> None:
        """Learn how far the log goes, by an answer of the store to a question that was asked after this was called.

        Those who want to know at the same time share an answer.
        """
        self._asked += 1
        ticket = self._asked
        async with self._asking:
            if self._answered < ticket:
                answering = self._asked
                window = self.window
                known = window.following if window is not None else 0
                self._learn(await self._work.read(self._store.run_head, self.run_id), known)
                self._answered = answering

    async def page(self, position: int) -> Block:
        """Events behind a position that the window does not hold any more, out of the store."""
        for block in self._pages:
            if block.first <= position + 1 < block.following:
                return block.behind(position)
        reading = self._reading.get(position)
        if reading is None:
            reading = self._reading[position] = self._work.spawn(self._read_page(position))
        # Others may wait for the same page when this one leaves.
        return await asyncio.shield(reading)

    def fail(self) -> None:
        """The log was replaced: its subscribers cannot continue."""
        self.failed = True
        self._wake_readers()

    def _learn(self, head: RunHead, known: int) -> None:
        if head.following < known:
            self.fail()
            return
        news = self.head is None or (head.closed, head.status) != (self.head.closed, self.head.status)
        self.head = head
        if self.window is None:
            self._framing = EventFraming(head.run_id, head.thread_id)
            self.window = Window(self._framing, head.following)
        elif head.following > self.window.following:
            self.window.jump(head.following)
            COUNTERS.recovered += self._driven_here
            news = True
        if news:
            self._changed_at = asyncio.get_running_loop().time()
            self._wake_readers()

    async def _look(self) -> None:
        self._waking = False
        try:
            await self.refresh()
        except SeatrialError as error:
            if error.code == "not_found":
                self.fail()
            else:
                # The store is asked again when it is time; readers wait meanwhile.
                log("feed_waits", run_id=self.run_id, code=error.code)

    async def _read_page(self, position: int) -> Block:
        try:
            found = await self._work.read(self._store.events, self.run_id, after=position, limit=self._page_events)
        finally:
            del self._reading[position]
        window = self.window
        if self._framing is None or window is None or not found or found[0][0] != position + 1:
            raise SeatrialError("cursor_expired", f"the events behind {position} of run {self.run_id!r} are not kept")
        # What was committed meanwhile is not known here yet: it comes when it is.
        block = Block(self._framing, position + 1, [event for sequence, event in found if sequence < window.following])
        self._page_events = max(1, min(PAGE_EVENTS, PAGE_BYTES * len(block.events) // max(block.size, 1)))
        self._pages.append(block)
        return block

    def _wake_readers(self) -> None:
        for reader in self.readers:
            reader.wake()


BLOCK_BYTES = 32 * 1024
"""Those who are behind get this much at once; an event that is larger alone comes alone."""
WINDOW_BYTES = 1024 * 1024
KEPT_BYTES = 64 * 1024
"""What is kept of events that all have been given: somebody may come back after a short break."""
JOINED_AT_MOST = 16
"""Positions for which it is remembered what comes next. Those who keep up are at the same one."""
EVENT_OVERHEAD = 64
"""Memory of an event in addition to its bytes."""


class Window:
    """Blocks of events without a gap between them, up to the end of the log as it is known here."""

    def __init__(self, framing: EventFraming, following: int) -> None:
        self._framing = framing
        self._blocks: list[Block] = []
        self._size = 0
        self._joined: dict[int, Block] = {}
        """What those at a position are given next: all of them the same, until there is more."""
        self.base = following
        """The sequence of the first event that is here."""
        self.following = following
        """The sequence that the next event will have."""

    def append(self, events: Sequence[bytes]) -> None:
        """Add events behind the last one."""
        start = size = 0
        for index, event in enumerate(events):
            if index > start and size + len(event) > BLOCK_BYTES:
                self._add(events[start:index])
                start, size = index, 0
            size += len(event)
        self._add(events[start:])
        self._joined.clear()
        self._drop(WINDOW_BYTES, self.following)

    def jump(self, following: int) -> None:
        """There is more in the store, up to here; it is read from there when it is needed."""
        self._blocks.clear()
        self._joined.clear()
        self._size = 0
        self.base = self.following = following

    def holds(self, position: int) -> bool:
        """Whether everything behind this position is here."""
        return self.base <= position + 1 <= self.following

    def since(self, position: int) -> Block:
        """Some of the events behind this position, which is held and not the last."""
        block = self._joined.get(position)
        if block is None:
            if len(self._joined) == JOINED_AT_MOST:
                self._joined.clear()
            block = self._joined[position] = self._join(position)
        return block

    def release(self, position: int) -> None:
        """Let go of events up to this position, which all have been given."""
        self._drop(KEPT_BYTES, position + 1)

    def _add(self, events: Sequence[bytes]) -> None:
        block = Block(self._framing, self.following, events)
        self._blocks.append(block)
        self._size += block.size + EVENT_OVERHEAD * len(events)
        self.following = block.following

    def _drop(self, limit: int, before: int) -> None:
        """Drop the oldest blocks while the window is larger than this, and they lie wholly before a sequence."""
        dropped = 0
        for block in self._blocks:
            if self._size <= limit or block.following > before:
                break
            self._size -= block.size + EVENT_OVERHEAD * len(block.events)
            self.base = block.following
            dropped += 1
        if dropped:
            del self._blocks[:dropped]
            self._joined.clear()

    def _join(self, position: int) -> Block:
        blocks = self._blocks
        index = bisect_right(blocks, position + 1, key=lambda block: block.first) - 1
        first = blocks[index].behind(position)
        end, size = index + 1, first.size
        while end < len(blocks) and size + blocks[end].size <= BLOCK_BYTES:
            size += blocks[end].size
            end += 1
        if end == index + 1:
            return first
        events = list(first.events)
        for block in blocks[index + 1 : end]:
            events += block.events
        return Block(self._framing, first.first, events)
