"""The event log of one run: every event is verified, redacted, encoded once, and stored while the run is running.

An agent that sends events faster than the store takes them waits in `emit`. Events that break the order of AG-UI are
kept as RAW events with a note, so that the log can be replayed by any client and nothing that came is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from seatrial import wire
from seatrial.driver.clock import Clock
from seatrial.driver.redaction import Redaction
from seatrial.errors import SeatrialError
from seatrial.events import Event, decode_event, encode_event, encode_events, unfold
from seatrial.events.codec import RAW_SOURCE, amended, encode_fields, keep_sent, stamp, stands_in
from seatrial.events.deltas import Deltas
from seatrial.events.ending import Terminal, is_worse
from seatrial.events.order import Order
from seatrial.events.types import (
    CancelledOutcome,
    MessagesSnapshot,
    RawEvent,
    RunError,
    RunFinished,
    RunStarted,
    ToolCallArgs,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallResult,
    ToolCallStart,
)
from seatrial.events.violation import name_of
from seatrial.runs import FAULT_CLASSES, Fault
from seatrial.transcript import Note, Transcript, note_code, pointer

MAX_BUFFER_BYTES = 1 << 20
"""How much may wait for the store; an agent with more to say waits."""
MAX_EARLY = 100
"""Events of unknown types that may come before the run has started."""
MAX_NOTES = 100

EVENT_OUT_OF_ORDER = note_code(
    "event_out_of_order",
    "An event is not allowed at its position; the log has it as a RAW event. Serious for a part of a call.",
    "look",
)
EVENT_DROPPED = note_code("event_dropped", "An event cannot be stored; it is not in the log.", "serious")
EVENT_AFTER_END = note_code(
    "event_after_end",
    "An event came after the one that ended the run; the log has it as a RAW event. Serious for a part of a call.",
    "look",
)
SECOND_TERMINAL = note_code(
    "second_terminal",
    "A second event came that ends the run. The worst one counts (RUN_ERROR, then cancelled, then an interrupt), and "
    "the log has the other as a RAW event.",
    "look",
)
LEFT_OPEN = note_code(
    "left_open_closed", "The run ended with something open; its ends were added to the log.", "harmless"
)

_CALLS = (ToolCallStart, ToolCallArgs, ToolCallEnd, ToolCallChunk, ToolCallResult, MessagesSnapshot)
_CODES = {"deadline_exceeded": "timeout"}
"""Codes of RUN_ERROR that are not the class of the fault."""
OUR_CODES = frozenset({*FAULT_CLASSES, *_CODES.values()})
"""Every code that we write into RUN_ERROR."""


class EventSink(Protocol):
    """Where recorded events go."""

    async def append(self, events: list[bytes], first: int) -> None:
        """Store events, `first` being the sequence of the first. Raises `SeatrialError`."""
        ...


def run_error(fault: Fault) -> RunError:
    """The event that ends a run with this fault."""
    return RunError(message=fault.message, code=_CODES.get(fault.error_class, fault.error_class))


def recordable(event: Event, redaction: Redaction) -> tuple[Event, bytes]:
    """An event as it is recorded, and its bytes. Raises `SeatrialError` for one that cannot be written."""
    written = encode_event(event)
    data = redaction.document(written)
    if data is written:
        return event, data
    # What is verified must be what is stored: ids may have been among what was redacted.
    redacted = decode_event(redaction.document(encode_fields(event)))
    if event.sent is not None:
        keep_sent(redacted, wire.decode(data))
    return redacted, data


def closing_events(order: Order, terminal: Terminal, now_ms: int) -> list[bytes]:
    """The ends of everything that is open, and the terminal event. The order then has them."""
    if isinstance(terminal, RunError):
        error: str | None = terminal.message
    else:
        error = "the run was cancelled" if isinstance(terminal.outcome, CancelledOutcome) else None
    events: list[Event] = [*order.closing(error), terminal]
    for event in events:
        stamp(event, now_ms)
        order.feed(event)
    return encode_events(events)


class Recorder:
    """The log of one run, from its first event to its terminal one. For the thread of its event loop alone.

    The agent's own terminal event is held back until the run is concluded: only then is it known how the run ended.
    An attempt that failed ends with RUN_ERROR, and the next one starts with RUN_STARTED: the log keeps every attempt.
    """

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
        self.run_id = run_id
        self.thread_id = thread_id
        self.terminal: Terminal | None = None
        """The agent's own terminal event, not in the log yet."""
        self.failure: SeatrialError | None = None
        """What the sink failed with; what was on its way then may be stored or not."""
        self.stored = 0 if started is None else 1
        """How many events are with the store."""
        self.pending: list[bytes] = []
        """Events that are not with the store, nor on their way to it."""
        self.notes: list[Note] = []
        self.has_calls = False
        """Whether an event of a call has come, or one that may hold calls."""
        self._clock = clock
        self.redaction = redaction
        self._sink = sink
        self._flush_after_s = flush_after_s
        self._on_failure = on_failure
        self._on_terminal = on_terminal
        self._one_run = started is not None
        self._order: Order | None = None
        """Of the attempt that is open; None when none is."""
        self._started_here = False
        """Whether the open attempt's RUN_STARTED is ours, and the agent has not sent its own."""
        if started is not None:
            self._order = Order()
            self._order.feed(started)
            self._started_here = True
        self._ids_are_ours = started is not None
        self._deltas = Deltas(redaction.split) if redaction.active else None
        self._early: list[Event] = []
        """What came before the run started, of unknown types; it is recorded behind the start."""
        self._received = 0
        self._unnoted = 0
        self._unstored_bytes = 0
        self._closed = False
        self._flushing: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()

    # While the agent is running

    async def emit(self, event: Event) -> None:
        """Record an event of the agent's; waits while the store is behind. Dropped once the recorder is closed."""
        if self._closed or self.failure is not None:
            return
        self._receive(event)
        if self.pending and self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())
        self._news.set()
        while self._unstored_bytes > MAX_BUFFER_BYTES and not self._closed and self.failure is None:
            self._room.clear()
            await self._room.wait()

    async def close(self) -> None:
        """Take nothing more from the agent, and wait for what is on its way to the store."""
        if not self._closed:
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

    # Its end

    def fail(self, fault: Fault) -> Terminal:
        """End an attempt that had this fault: with the agent's own RUN_ERROR where it sent one."""
        self._record_held_back()
        return self._end(self.terminal if isinstance(self.terminal, RunError) else run_error(fault))

    def finish(self) -> Terminal:
        """End the run of an agent that streamed its events: with its own RUN_FINISHED where it sent one."""
        self._record_held_back()
        return self._end(self.terminal or RunFinished(thread_id=self.thread_id, run_id=self.run_id))

    def end(self, terminal: Terminal) -> Terminal:
        """End the run with this event."""
        self._record_held_back()
        return self._end(terminal)

    def unfold(self, transcript: Transcript) -> Terminal:
        """End the run with the events of an answer, all of them or, when one cannot be encoded, none."""
        self._record_held_back()
        events = unfold(transcript, thread_id=self.thread_id, run_id=self.run_id, timestamp=self._clock.now_ms())
        terminal = events[-1]
        if not isinstance(terminal, RunFinished | RunError):
            raise TypeError(f"a run does not end with {terminal!r}")
        encoded = encode_events(events)
        if self.redaction.active:
            encoded = [self.redaction.document(document) for document in encoded]
        self._append(encoded if self._order is None else encoded[1:])
        self._order = self.terminal = None
        return terminal

    def note(self, code: str, message: str, index: int | None = None, event: Event | None = None) -> None:
        """Note something about the run, or about the event with this index, of those that the agent sent.

        About an `event` of a call it is serious. Others that may hold calls are looked into when they are read.
        """
        note = Note(code, "" if index is None else pointer(index), message)
        if isinstance(event, _CALLS):
            note = msgspec.structs.replace(note, weight="serious")
        if len(self.notes) < MAX_NOTES:
            self.notes.append(note)
        else:
            self._unnoted += 1
            last = msgspec.structs.replace(
                note, pointer="", message=f"{message}; {self._unnoted} more before it are not noted"
            )
            if self.notes[-1].serious:
                last = msgspec.structs.replace(last, weight="serious")
            self.notes[-1] = last

    # Taking events

    def _receive(self, event: Event) -> None:
        index = self._received
        self._received += 1
        if self.terminal is not None:
            if isinstance(event, RunFinished | RunError) and is_worse(event, self.terminal):
                self._replace_terminal(event, self.terminal, index)
                return
            if self._one_run or not isinstance(event, RunStarted) or not isinstance(self.terminal, RunFinished):
                self._record_late(event, index)
                return
            self._end(self.terminal)  # AG-UI allows a further run in the same stream
        if self._order is None:
            if isinstance(event, RunStarted):
                self._start(event)
                return
            if stands_in(event) and len(self._early) < MAX_EARLY:
                self._early.append(event)  # nobody knows what it is: it must not keep the agent from starting its run
                return
            self._start()
        elif isinstance(event, RunStarted) and self._started_here:
            self._started_here = False  # the run was started before the agent said so
            return
        for ready in [event] if self._deltas is None else self._deltas.take(event):
            self._take(ready, index)

    def _take(self, event: Event, index: int) -> None:
        order = self._order
        if order is None:
            raise RuntimeError("no attempt is open")
        if isinstance(event, RunFinished) and self._ids_are_ours:
            # Agents name the run that they know; this is the one that it is.
            event = amended(event, thread_id=self.thread_id, run_id=self.run_id)
        stamp(event, self._clock.now_ms())
        try:
            event, data = recordable(event, self.redaction)
        except SeatrialError as error:
            self.note(EVENT_DROPPED, f"{name_of(event)} cannot be stored: {error.message}", index)
            return
        if isinstance(event, RunFinished | RunError):
            self.terminal = event
            if self._on_terminal is not None:
                self._on_terminal()
            return
        self.has_calls = self.has_calls or isinstance(event, _CALLS)
        violation = order.feed(event)
        if violation is None:
            self._append([data])
        else:
            self.note(EVENT_OUT_OF_ORDER, f"{violation.message} ({violation.code})", index, event)
            self._append_raw(data)

    def _replace_terminal(self, event: Terminal, replaced: Terminal, index: int) -> None:
        """End with a worse end than the one that came first, which the log then has as a RAW event."""
        self._take(event, index)
        if self.terminal is replaced:
            return  # the worse one cannot be stored, and that is noted
        self.note(SECOND_TERMINAL, f"{name_of(event)} came after the run had ended, and is how it ended", index)
        self._append_raw(recordable(replaced, self.redaction)[1])

    def _record_late(self, event: Event, index: int) -> None:
        code = SECOND_TERMINAL if isinstance(event, RunFinished | RunError) else EVENT_AFTER_END
        self.has_calls = self.has_calls or isinstance(event, _CALLS)
        self.note(code, f"{name_of(event)} came after the run had ended", index, event)
        try:
            _, data = recordable(event, self.redaction)
        except SeatrialError:
            return
        self._append_raw(data)

    def _record_held_back(self) -> None:
        """Record what was held back because it might have been the beginning of a secret."""
        if self._deltas is not None and self._order is not None and self.terminal is None:
            for event in self._deltas.rest():
                self._take(event, self._received)

    # Writing

    def _start(self, started: RunStarted | None = None) -> None:
        """Open an attempt: with the agent's own event, or with ours."""
        self._started_here = self._ids_are_ours = started is None
        event = RunStarted(thread_id=self.thread_id, run_id=self.run_id) if started is None else started
        self._order = Order()
        early, self._early = self._early, []
        for each in (event, *early):
            stamp(each, self._clock.now_ms())
            recorded, data = recordable(each, self.redaction)
            self._order.feed(recorded)
            self._append([data])

    def _end(self, terminal: Terminal) -> Terminal:
        if self._order is None:
            self._start()
        order = self._order
        if order is None:
            raise RuntimeError("no attempt is open")
        own = self.terminal
        if own is not None and own is not terminal:
            # The agent said that its run was over, and it did not end that way.
            self._append_raw(recordable(own, self.redaction)[1])
        last = closing_events(order, terminal, self._clock.now_ms())
        if len(last) > 1 and terminal is own:
            self.note(LEFT_OPEN, f"{len(last) - 1} events were added before {name_of(terminal)}")
        self._append([self.redaction.document(data) for data in last])
        self._order = self.terminal = None
        return terminal

    def _append_raw(self, data: bytes) -> None:
        event = RawEvent(event=wire.decode(data), source=RAW_SOURCE, timestamp=self._clock.now_ms())
        self._append([encode_event(event)])

    def _append(self, encoded: Sequence[bytes]) -> None:
        self.pending += encoded
        self._unstored_bytes += sum(map(len, encoded))

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
            events, size = self.pending, self._unstored_bytes
            self.pending = []
            try:
                await self._sink.append(events, self.stored)
            except SeatrialError as error:
                self.failure = error
                if self._on_failure is not None:
                    self._on_failure(error)
            else:
                self.stored += len(events)
                self._unstored_bytes -= size
            self._room.set()

    async def _settled(self) -> bool:
        """Wait for more to come; False when the run has ended meanwhile, and is stored with its end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._flush_after_s):
                while not self._closed and self._unstored_bytes <= MAX_BUFFER_BYTES:
                    self._news.clear()
                    await self._news.wait()
        return not self._closed
