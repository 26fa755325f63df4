"""The one door through which every event of a run goes: it gives the sequence, encodes once, and stores.

Events that come while the run goes on are with the store within `FLUSH_S`. A run whose agent says nothing until it
answers costs no timer, and its events are stored with the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from seatrial.engine.clock import Clock
from seatrial.engine.redaction import Redaction
from seatrial.errors import SeatrialError
from seatrial.events import encode_events, unfold
from seatrial.events.codec import stamp, stands_in
from seatrial.events.deltas import Deltas
from seatrial.events.types import Event, RunError, RunFinished, RunStarted
from seatrial.runs import Fault
from seatrial.transcript import Transcript

FLUSH_S = 0.1
MAX_EARLY = 100
"""Events of unknown types that may come before the run has started."""

Append: TypeAlias = Callable[[list[bytes], int], None]
"""Hands encoded events, and the sequence of the first, to the store without waiting."""


class Recorder:
    """The event log of one run, from its first event to its terminal one.

    An attempt that failed ends with RUN_ERROR, and the next one starts with RUN_STARTED: the log keeps every attempt.
    """

    def __init__(self, run_id: str, thread_id: str, clock: Clock, redaction: Redaction, append: Append) -> None:
        self.run_id = run_id
        self.thread_id = thread_id
        self._clock = clock
        self._redaction = redaction
        self._append = append
        self.appended = 0
        """How many events are with the store."""
        self._pending: list[bytes] = []
        self._open = False
        self._closed = False
        self._said_error = False
        """Whether the agent itself ended the attempt with RUN_ERROR."""
        self._timer: asyncio.TimerHandle | None = None
        self._deltas = Deltas(redaction.split) if redaction.active else None
        self._early: list[Event] = []
        """What came before the run started, of types that nobody knows; it is put behind the start."""

    def emit(self, event: Event) -> None:
        """Take an event of the agent's while the run goes on; one that comes later is late, and is dropped."""
        if self._closed:
            return
        kind = type(event)
        if kind is RunStarted:
            if self._open:
                return  # something came before it, and the run was started for that
        elif not self._open:
            if stands_in(event) and len(self._early) < MAX_EARLY:
                self._early.append(event)  # nobody knows what it is: it must not keep the agent from starting its run
                return
            self._put(self._start())
        if self._deltas is None:
            self._put(event)
        elif ready := self._deltas.take(event):
            self._put(*ready)
        self._said_error = kind is RunError
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def fail(self, fault: Fault) -> None:
        """End an attempt that had this fault."""
        if self._said_error:
            self._said_error = False
            return
        self._put_rest()
        if not self._open:
            self._put(self._start())
        self._put(RunError(message=fault.message, code=fault.error_class))

    def finish(self, transcript: Transcript | None) -> None:
        """End the run: with the events of the transcript, unless the agent streamed its own."""
        self._put_rest()
        if transcript is not None:
            events = unfold(transcript, thread_id=self.thread_id, run_id=self.run_id, timestamp=self._clock.now_ms())
            self._write(events[1:] if self._open else events)
        elif self._open:
            self._put(RunFinished(thread_id=self.thread_id, run_id=self.run_id))

    def hold(self) -> None:
        """Send nothing to the store by itself any more: the run is about to be concluded, perhaps in a thread."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> list[bytes]:
        """Stop flushing; returns the events that are not with the store yet."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return self._pending

    def _start(self) -> RunStarted:
        return RunStarted(thread_id=self.thread_id, run_id=self.run_id)

    def _flush(self) -> None:
        self._timer = None
        # A store that takes nothing says so again when the run is recorded, to somebody who can do something about it.
        with suppress(SeatrialError):
            self._append(self._pending, self.appended)
            self.appended += len(self._pending)
            self._pending = []

    def _put_rest(self) -> None:
        if self._deltas is not None and (rest := self._deltas.rest()):
            self._put(*rest)

    def _put(self, *events: Event) -> None:
        now = self._clock.now_ms()
        if self._early and not self._open and type(events[0]) is RunStarted:
            events, self._early = (events[0], *self._early, *events[1:]), []
        for event in events:
            stamp(event, now)
        self._write(events)

    def _write(self, events: Sequence[Event]) -> None:
        # All of them or, when one cannot be encoded, none.
        encoded = encode_events(events)
        if self._redaction.active:
            encoded = [self._redaction.document(document) for document in encoded]
        self._pending += encoded
        self._open = not isinstance(events[-1], (RunFinished, RunError))
