"""The log of one run: every event is verified, redacted, and encoded once.

Events that break the order of AG-UI are kept as RAW events with a note, so that the log can be replayed by any client
and nothing that came is lost. An agent that posts its events itself can be answered that one is not allowed: for such
runs there is `accept`, which takes an event as it is or refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial.driver.clock import Clock
from seatrial.driver.redaction import Redaction
from seatrial.errors import SeatrialError
from seatrial.events import Event, decode_event, encode_event, encode_events, unfold
from seatrial.events.codec import RAW_SOURCE, amended, encode_fields, keep_sent, stamp, stands_in
from seatrial.events.deltas import Deltas
from seatrial.events.order import Order, Terminal, is_worse
from seatrial.events.types import (
    CancelledOutcome,
    CustomEvent,
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
from seatrial.events.violation import OrderFault, name_of
from seatrial.runs import FAULT_CLASSES, Fault
from seatrial.suites.secrets import MIN_SECRET_LENGTH
from seatrial.transcript import Note, Transcript, note_code, pointer
from seatrial.transcript.call_facts import PlacedFacts

MAX_EARLY = 100
"""Events of unknown types that may come before the run has started."""
MAX_NOTES = 100
INTERRUPTED = "seatrial.interrupted"
"""The name of the CUSTOM event that says what was called by a run whose place this one took."""

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
    "the log has the other as a RAW event. Of a pushed run, the worst of the batch that ends it counts; the others, "
    "and all that are pushed later, are not in the log.",
    "look",
)
LEFT_OPEN = note_code(
    "left_open_closed", "The run ended with something open; its ends were added to the log.", "harmless"
)
SECRET_BROKEN_OFF = note_code(
    "secret_broken_off",
    "An attempt ended with a fault, and a text with what may be the beginning of a secret: that is not in the log.",
    "harmless",
)

_CALLS = (ToolCallStart, ToolCallArgs, ToolCallEnd, ToolCallChunk, ToolCallResult, MessagesSnapshot)
_CODES = {"deadline_exceeded": "timeout"}
"""Codes of RUN_ERROR that are not the class of the fault."""
OUR_CODES = frozenset({*FAULT_CLASSES, *_CODES.values()})
"""Every code that we write into RUN_ERROR."""


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


class Recording:
    """The log of one run, from its first event to its terminal one. Does no I/O.

    The agent's own terminal event is held back until the run is concluded: only then is it known how the run ended.
    An attempt that failed ends with RUN_ERROR, and the next one starts with RUN_STARTED: the log keeps every attempt.
    """

    def __init__(
        self,
        run_id: str,
        thread_id: str,
        clock: Clock,
        redaction: Redaction,
        *,
        on_terminal: Callable[[], None] | None = None,
    ) -> None:
        """`on_terminal` is called when the agent has ended its run."""
        self.run_id = run_id
        self.thread_id = thread_id
        self.redaction = redaction.of_run()
        """Knows the secrets of the suite, and the tokens of this run."""
        self.terminal: Terminal | None = None
        """The agent's own terminal event; not in the log yet, unless it was accepted."""
        self.stored = 0
        """How many events are stored."""
        self.pending: list[bytes] = []
        """Events that are neither stored nor on their way to the store."""
        self.pending_bytes = 0
        """How much is not stored yet, on its way or not."""
        self.notes: list[Note] = []
        self.has_calls = False
        """Whether an event of a call has come, or one that may hold calls."""
        self._clock = clock
        self._on_terminal = on_terminal
        self._one_run = False
        """Whether the store had the start of the run before anything was recorded here; the log is then of one run."""
        self._order: Order | None = None
        """Of the attempt that is open; None when none is."""
        self._started_here = False
        """Whether the open attempt's RUN_STARTED is ours, and the agent has not sent its own."""
        self._ids_are_ours = False
        self._deltas = Deltas(self.redaction.split) if redaction.active else None
        self._accepted = Deltas(self.redaction.split) if redaction.active else None
        """The same of texts that are not held back."""
        self._early: list[Event] = []
        """What came before the run started, of unknown types; it is recorded behind the start."""
        self._received = 0
        self._unnoted = 0

    @property
    def following(self) -> int:
        """The sequence that the next event will have."""
        return self.stored + len(self.pending)

    @property
    def ended(self) -> bool:
        """Whether the log has its terminal event."""
        return self._order is not None and self._order.ended

    # A log that the store has

    def resume(self, event: Event, sequence: int = 0) -> None:
        """Take the next event of a log that the store has: what is recorded from now on comes behind it."""
        if self._order is None:
            self._order = Order()
            self._one_run = self._started_here = self._ids_are_ours = True
        self._order.feed(event)
        if self._accepted is not None:
            self._accepted.take(event)
            self._accepted.found = False  # it is there already
        self.has_calls = self.has_calls or isinstance(event, _CALLS)
        self.stored = sequence + 1

    def commit(self) -> None:
        """Everything that was pending is stored."""
        self.stored += len(self.pending)
        self.pending = []
        self.pending_bytes = 0

    # Events that may be refused

    def accept(self, event: Event, data: bytes) -> OrderFault | None:
        """Record an event and its bytes, which `recordable` gave, as they are; or give the reason why it is refused.

        A terminal event ends the log. RUN_ERROR may come at any time: what is open is closed before it. Once an event
        is refused, what is pending cannot be stored, and the recording has to be made again from the stored log.
        """
        order = self._order
        if order is None:
            raise RuntimeError("no attempt is open")
        if isinstance(event, RunFinished) and (event.thread_id, event.run_id) != (self.thread_id, self.run_id):
            return OrderFault("run_ids_disagree", "RUN_FINISHED names another run or thread")
        if isinstance(event, RunError) and not order.ended:
            self._close_open(order, event)
        fault = order.feed(event)
        if fault is not None:
            return fault
        self.has_calls = self.has_calls or isinstance(event, _CALLS)
        self._append([data])
        if isinstance(event, RunFinished | RunError):
            self.terminal = event
        if self._accepted is not None:
            # The pieces before it are stored and acknowledged: it is too late to hold them back.
            self._accepted.take(event)
            if self._accepted.found:
                return OrderFault("secret_in_pieces", f"{name_of(event)} completes a secret that came in pieces")
        return None

    # Events that are all kept

    def hide_token(self, token: str) -> None:
        """Keep the token of an attempt out of the log, and out of what is stored of the run."""
        self.redaction.hide_token(token)
        if self._deltas is None:
            self._deltas = Deltas(self.redaction.split)

    def receive(self, event: Event) -> None:
        """Record an event of the agent's, whatever it is."""
        index = self._received
        self._received += 1
        if self.terminal is not None:
            if isinstance(event, RunFinished | RunError) and is_worse(event, self.terminal):
                self._replace_terminal(event, self.terminal, index)
                return
            if self._one_run or not isinstance(event, RunStarted) or not isinstance(self.terminal, RunFinished):
                self._record_late(event, index)
                return
            self._record_held_back()
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
        if isinstance(event, RunError):
            self._drop_broken_off()
        for ready in [event] if self._deltas is None else self._deltas.take(event):
            self._take(ready, index)

    # Its end

    def fail(self, fault: Fault) -> Terminal:
        """End an attempt that had this fault: with the agent's own RUN_ERROR where it sent one."""
        self._drop_broken_off()
        self._record_held_back()
        return self._end(self.terminal if isinstance(self.terminal, RunError) else run_error(fault))

    def begin_with_interrupted(self, fault: Fault, called: Sequence[str]) -> None:
        """Record an attempt that another process began and did not end, before any other. Its own events are gone with
        its run: should this run be interrupted, too, this is what is left of it."""
        self._start()
        self._take(CustomEvent(name=INTERRUPTED, value={"called": list(called)}), 0)
        self._end(run_error(fault))

    def finish(self) -> Terminal:
        """End the run of an agent that streamed its events: with its own RUN_FINISHED where it sent one."""
        self._record_held_back()
        return self._end(self.terminal or RunFinished(thread_id=self.thread_id, run_id=self.run_id))

    def end(self, terminal: Terminal) -> Terminal:
        """End the run with this event."""
        if isinstance(terminal, RunError) or isinstance(terminal.outcome, CancelledOutcome):
            self._drop_broken_off()
        self._record_held_back()
        return self._end(terminal)

    def unfold(self, transcript: Transcript, facts: Iterable[PlacedFacts] = (), partial: str | None = None) -> Terminal:
        """End a run without a fault with the events of its answer, all of them or, when one cannot be encoded, none;
        `facts` are those of its calls, `partial` says why not all are known."""
        self._record_held_back()
        facts, redaction = list(facts), self.redaction
        terminal, encoded = self._unfolded(transcript, facts, partial)
        # Most answers have no secret in them: they are looked through once, and whole.
        if redaction.active and redaction.may_be_in(transcript, encoded):
            terminal, encoded = self._unfolded(redaction.transcript(transcript), facts, partial)
            encoded = [redaction.document(document) for document in encoded]
        self._append(encoded if self._order is None else encoded[1:])
        self._order = self.terminal = None
        return terminal

    def _unfolded(
        self, transcript: Transcript, facts: Iterable[PlacedFacts], partial: str | None
    ) -> tuple[Terminal, list[bytes]]:
        """The event that ends the run, and all of them as bytes."""
        events = unfold(
            transcript,
            thread_id=self.thread_id,
            run_id=self.run_id,
            timestamp=self._clock.now_ms(),
            facts=facts,
            partial=partial,
        )
        terminal = events[-1]
        if not isinstance(terminal, RunFinished | RunError):
            raise TypeError(f"a run does not end with {terminal!r}")
        if isinstance(terminal, RunError) or terminal.outcome is not UNSET:
            # The record of its last turn was cut off, which does not say how the run ended.
            terminal = events[-1] = RunFinished(
                thread_id=self.thread_id,
                run_id=self.run_id,
                usage=terminal.usage,
                metadata=terminal.metadata,
                timestamp=terminal.timestamp,
            )
        return terminal, encode_events(events)

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
        for ready in [event] if self._deltas is None else self._deltas.take(event):
            self._append_late(ready)

    def _append_late(self, event: Event) -> None:
        try:
            _, data = recordable(event, self.redaction)
        except SeatrialError:
            return
        self._append_raw(data)

    def _record_held_back(self) -> None:
        """Record what was held back because it might have been the beginning of a secret."""
        if self._deltas is None or self._order is None:
            return
        for event in self._deltas.rest():
            if self.terminal is None:
                self._take(event, self._received)
            else:
                self._append_late(event)

    def _drop_broken_off(self) -> None:
        """Drop what was held back of a run that was broken off: the rest of the secret will not come."""
        if self._deltas is not None and self._deltas.drop(MIN_SECRET_LENGTH):
            self.note(SECRET_BROKEN_OFF, "a text breaks off in what may be a secret; its beginning is not in the log")

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
        closed = self._close_open(order, terminal)
        if closed and terminal is own:
            self.note(LEFT_OPEN, f"{closed} events were added before {name_of(terminal)}")
        stamp(terminal, self._clock.now_ms())
        self._append([self.redaction.document(encode_event(terminal))])
        self._order = self.terminal = None
        return terminal

    def _close_open(self, order: Order, terminal: Terminal) -> int:
        """Record the ends of everything that is open when this terminal event comes; gives how many they are."""
        if isinstance(terminal, RunError):
            error: str | None = terminal.message
        else:
            error = "the run was cancelled" if isinstance(terminal.outcome, CancelledOutcome) else None
        ends = order.closing(error)
        for event in ends:
            stamp(event, self._clock.now_ms())
            order.feed(event)
        self._append([self.redaction.document(data) for data in encode_events(ends)])
        return len(ends)

    def _append_raw(self, data: bytes) -> None:
        event = RawEvent(event=wire.decode(data), source=RAW_SOURCE, timestamp=self._clock.now_ms())
        self._append([encode_event(event)])

    def _append(self, encoded: Sequence[bytes]) -> None:
        self.pending += encoded
        self.pending_bytes += sum(map(len, encoded))
