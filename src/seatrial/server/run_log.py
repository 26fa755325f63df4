"""The log of a run while an agent is asked: what the agent says is verified, encoded once, stored, and published.

One loop for each run takes whatever has come to the store, waits for the commit, and takes what came meanwhile. So
groups form by themselves, and an event is on its way the moment it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from seatrial import wire
from seatrial.engine.redaction import Redaction
from seatrial.errors import SeatrialError
from seatrial.events import Event, decode_event, encode_event
from seatrial.events.codec import amended, encode_fields, keep_sent, stamp
from seatrial.events.deltas import Deltas
from seatrial.events.order import Order
from seatrial.events.types import RunError, RunFinished, RunStarted
from seatrial.events.violation import name_of
from seatrial.runs import Fault, ServedRun
from seatrial.server.ending import Terminal, last_events
from seatrial.server.means import Means
from seatrial.transcript import Note, note_code, pointer

MAX_PENDING_BYTES = 64 << 20
"""How much may wait for the store before the run is given up: an agent cannot be told to speak more slowly."""
MAX_NOTES = 100

EVENT_DROPPED = note_code(
    "event_dropped", "An event is not allowed at its position, or cannot be stored; it is not in the log.", "serious"
)
EVENT_AFTER_END = note_code(
    "event_after_end", "An event came after the one that ended the run; the log lacks it.", "serious"
)
SECOND_TERMINAL = note_code(
    "second_terminal",
    "A second event came that ends the run; the log lacks this one. RUN_ERROR fails the run also when it comes second.",
    "look",
)
LEFT_OPEN = note_code(
    "left_open_closed", "The run ended with something open; its ends were added to the log.", "harmless"
)


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


class RunLog:
    """The log of one run, from behind its RUN_STARTED. For the thread of its event loop alone."""

    def __init__(
        self,
        run: ServedRun,
        started: RunStarted,
        means: Means,
        *,
        on_fault: Callable[[Fault], None],
        on_terminal: Callable[[], None],
    ) -> None:
        self.terminal: Terminal | None = None
        """The agent's own terminal event, which is stored when the agent is done."""
        self.failure: SeatrialError | None = None
        """What the store failed with; what was on its way then may be stored or not."""
        self.stored = 1
        """How many events are with the store."""
        self.pending: list[bytes] = []
        self.notes: list[Note] = []
        self._unnoted = 0
        self._run = run
        self._means = means
        self._on_fault = on_fault
        self._on_terminal = on_terminal
        self._order = Order()
        self._order.feed(started)
        self._deltas = Deltas(means.redaction.split) if means.redaction.active else None
        self._taken = 0
        self._pending_bytes = 0
        self._full = False
        self._closed = False
        self._news = asyncio.Event()

    def emit(self, event: Event) -> None:
        """Take an event of the agent's; one of an agent that was given up is nobody's."""
        if self._closed or self._full:
            return
        index = self._taken
        self._taken += 1
        if self.terminal is not None:
            self._refuse_late(event, index)
        elif not (isinstance(event, RunStarted) and index == 0):  # the run was started when it was admitted
            for ready in [event] if self._deltas is None else self._deltas.take(event):
                self._take(ready, index)

    async def flush(self) -> None:
        """Take what comes to the store, until the log is closed or the store fails."""
        while not self._closed and self.failure is None:
            if not self.pending:
                self._news.clear()
                await self._news.wait()
                continue
            events, first = self.pending, self.stored
            self.pending, self._pending_bytes = [], 0
            try:
                await self._means.append(self._run.run_id, events, first)
            except SeatrialError as error:
                self.failure = error
                self._on_fault(Fault("recording_failed", f"the run's events could not be stored: {error.message}"))
                return
            self.stored += len(events)

    def close(self) -> None:
        """Take nothing more from the agent, and let `flush` end with what is on its way now."""
        if self._deltas is not None and self.terminal is None:
            for rest in self._deltas.rest():
                self._take(rest, self._taken)
        self._closed = True
        self._news.set()

    def add(self, event: Event) -> None:
        """Take an event that is made of what the agent brought in the end."""
        self._take(event, self._taken)

    def end(self, terminal: Terminal) -> list[bytes]:
        """All events that are not with the store, the terminal one at the end. Only once `flush` has ended."""
        last = last_events(self._order, terminal, self._means.clock.now_ms())
        if len(last) > 1 and terminal is self.terminal:
            self.note(LEFT_OPEN, f"{len(last) - 1} events were added before {name_of(terminal)}")
        return [*self.pending, *last]

    def note(self, code: str, message: str, index: int | None = None) -> None:
        """Note something about the run, or about the event with this index, of those that the agent sent."""
        if len(self.notes) < MAX_NOTES:
            self.notes.append(Note(code, "" if index is None else pointer(index), message))
        else:
            self._unnoted += 1
            last = Note(code, "", f"{message}; {self._unnoted} more before it are not noted")
            if self.notes[-1].serious:
                last = msgspec.structs.replace(last, weight="serious")
            self.notes[-1] = last

    def _take(self, event: Event, index: int) -> None:
        if isinstance(event, RunFinished):
            # Agents name the run that they know; this is the one that it is.
            event = amended(event, thread_id=self._run.thread_id, run_id=self._run.run_id)
        stamp(event, self._means.clock.now_ms())
        try:
            event, data = recordable(event, self._means.redaction)
        except SeatrialError as error:
            self.note(EVENT_DROPPED, f"{name_of(event)} cannot be stored: {error.message}", index)
            return
        if isinstance(event, RunFinished | RunError):
            self.terminal = event
            self._on_terminal()
            return
        fault = self._order.feed(event)
        if fault is not None:
            self.note(EVENT_DROPPED, f"{fault.message} ({fault.code})", index)
            return
        self.pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes > MAX_PENDING_BYTES:
            self._full = True
            self._on_fault(Fault("recording_failed", "the agent's events come faster than they can be stored"))
        self._news.set()

    def _refuse_late(self, event: Event, index: int) -> None:
        if isinstance(event, RunFinished | RunError):
            self.note(SECOND_TERMINAL, f"{name_of(event)} came after the run had ended", index)
        else:
            self.note(EVENT_AFTER_END, f"{name_of(event)} came after the run had ended", index)
