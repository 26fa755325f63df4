"""Runs whose agent posts its events itself: batches that are verified, and stored as a whole or not at all.

Nobody owns such a run: any server takes its events. The recording that a server keeps of one saves reading its log
again, and is made again from the log when another server has appended.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from typing import Any

import msgspec
from msgspec import UNSET

from seatrial.api import PushEvents, PushResult
from seatrial.driver import Recording, recordable
from seatrial.driver.recording import SECOND_TERMINAL
from seatrial.errors import SeatrialError
from seatrial.events import Event, EventReader
from seatrial.events.codec import stands_in
from seatrial.events.event_reader import (
    EVENT_FIELD_DROPPED,
    EVENT_FIELD_MISSING,
    EVENT_UNREADABLE,
)
from seatrial.events.order import Terminal, is_worse
from seatrial.events.types import RunError, RunFinished, RunStarted
from seatrial.events.violation import name_of
from seatrial.runs import ServedRun
from seatrial.server.context import ServiceContext
from seatrial.server.ending import LOST, cancelled, end_by_log, end_of_log, store_end
from seatrial.server.stored_log import read_log, stored_events
from seatrial.store.served import Ending
from seatrial.transcript import Note, note_code, pointer

RUN_STARTED_DROPPED = note_code(
    "run_started_dropped",
    "RUN_STARTED was pushed; the run was started when it was admitted, and its log has one.",
    "harmless",
)

RUNS = 256
"""How many runs are remembered."""
EVENT_IDS = 500_000
"""How many ids of their events, roughly."""
AT_ONCE = 64
"""Batches of more events are looked at in a thread, so that streams are not held up."""
AT_ONCE_BYTES = 64 * 1024
"""And so are larger ones, however few their events."""
TRIES = 8
"""How often other servers may be quicker before a push is refused."""

_REFUSED = frozenset({EVENT_UNREADABLE, EVENT_FIELD_MISSING})
"""Notes of events that say too little to be taken."""
_TERMINAL = ("RUN_FINISHED", "RUN_ERROR")


class Batch(msgspec.Struct):
    """Pushed events that may be stored: where they are, and what the recording of their run does not have."""

    sequences: list[int | None] = []
    ids: dict[str, tuple[int, bytes]] = {}
    terminal: Terminal | None = None
    notes: list[Note] = []
    dropped: list[Note] = []
    """Those of the notes that are on events which are not in the log."""

    def drop(self, code: str, index: int, message: str) -> None:
        """Leave an event out, with a note."""
        self.notes.append(Note(code, pointer("events", index), message))
        self.dropped.append(Note(code, "", message))


class PushedRun:
    """What is known of one run: its recording, and the ids of its events."""

    def __init__(self, run: ServedRun, context: ServiceContext) -> None:
        self.run = run
        self._context = context
        self.recording = self._new_recording()
        self.lock = asyncio.Lock()
        self.stale = True
        """Whether the store may know more."""
        self.ids: dict[str, tuple[int, bytes]] = {}
        """Event id -> its sequence, and a digest of what it was used for."""
        self._reader = EventReader()

    @property
    def ended(self) -> bool:
        """Whether the run takes no further events."""
        return self.run.ended_at is not None or self.recording.ended

    def load(self) -> None:
        """Read the run again. Blocks."""
        store = self._context.store
        run = self.run = store.served_run(self.run.run_id)
        self.recording, self.ids = self._new_recording(), {}
        self._reader = EventReader(thread_id=run.thread_id, run_id=run.run_id)
        for sequence, data, event in stored_events(store, run.run_id, self._reader):
            self.recording.resume(event, sequence)
            if isinstance(event.event_id, str):
                self.ids[event.event_id] = (sequence, _digest(data))
        self.stale = False

    def fill(self, batch: Batch, pushed: PushEvents) -> None:
        """Record what there is to store of pushed events. Raises `SeatrialError` when one is refused.

        Unless everything that the recording then has is stored, the run has to be loaded again. (A copy of the
        recording would cost with every push what the whole run holds.)
        """
        following = self.recording.following
        ends = {} if self.ended else self._ends(pushed.events)
        worst = _worst(ends)
        for index, value in enumerate(pushed.events):
            event = self._read(value, index, batch.notes)
            if worst is not None and index < worst and index in ends:
                if index + 1 not in ends:
                    raise refused(index + 1, "an event came after the run had ended", "run_ended")
                batch.drop(SECOND_TERMINAL, index, f"{name_of(event)} came before {name_of(ends[worst])}, which counts")
                batch.sequences.append(None)
            else:
                batch.sequences.append(self._place(event, index, batch))
        first = next((sequence for sequence in batch.sequences if sequence is not None), following)
        if pushed.first is not UNSET and pushed.first != first:
            raise SeatrialError(
                "sequence_conflict",
                f"the first of these events has the sequence {first}, and not {pushed.first}",
                details={"head": following - 1},
            )

    def take(self, batch: Batch) -> None:
        """A batch was stored."""
        self.recording.commit()
        self.ids.update(batch.ids)
        self.stale = False

    def _read(self, value: dict[str, Any], index: int, notes: list[Note]) -> Event:
        reader = self._reader
        reader.notes.clear()
        event = reader.read_value(value, index)
        for note in reader.notes:
            field = note.pointer.removeprefix(pointer(index)).lstrip("/")
            if note.code in _REFUSED or (note.code == EVENT_FIELD_DROPPED and _was_malformed(field, value, event)):
                raise refused(index, self._quoting(note.message), note.code, field)
            # A type or a property may be a secret, too.
            place = [self._context.redaction.text(_unescaped(key)) for key in field.split("/") if key]
            at = pointer("events", index, *place)
            notes.append(msgspec.structs.replace(note, pointer=at, message=self._quoting(note.message)))
        if stands_in(event) and _is_id(value.get("eventId")):
            event.event_id = value["eventId"]  # of a type that nobody knows, but it must not be stored twice
        return event

    def _place(self, event: Event, index: int, batch: Batch) -> int | None:
        """The sequence of one event; None when it is not stored."""
        if isinstance(event, RunStarted):
            batch.drop(RUN_STARTED_DROPPED, index, "the run was started already")
            return None
        try:
            event, data = recordable(event, self._context.redaction)
        except SeatrialError as error:
            raise refused(index, error.message, error.code) from None
        if isinstance(event.event_id, str):
            known = self.ids.get(event.event_id) or batch.ids.get(event.event_id)
            if known is not None:
                if known[1] != _digest(data):
                    raise SeatrialError(
                        "idempotency_conflict",
                        f"the event id {event.event_id!r} was used for another event",
                        pointer=pointer("events", index),
                        details={"index": index},
                    )
                return known[0]
        terminal = event if isinstance(event, RunFinished | RunError) else None
        if terminal is not None and self.ended:
            batch.drop(SECOND_TERMINAL, index, f"{name_of(event)} came after the run had ended")
            return None
        if self.ended and batch.terminal is None:
            raise SeatrialError("run_ended", f"run {self.run.run_id} has ended, and takes no more events")
        fault = self.recording.accept(event, data)
        if fault is not None:
            raise refused(index, fault.message, fault.code)
        if batch.terminal is not None:
            # The order of events allows one of a type that nobody knows everywhere.
            raise refused(index, "an event came after the run had ended", "run_ended")
        sequence = self.recording.following - 1
        batch.terminal = terminal
        if isinstance(event.event_id, str):
            batch.ids[event.event_id] = (sequence, _digest(data))
        return sequence

    def _ends(self, values: list[dict[str, Any]]) -> dict[int, Terminal]:
        """The terminal events of a batch, by their index, where there are several."""
        ends: dict[int, Terminal] = {}
        places = [index for index, value in enumerate(values) if value.get("type") in _TERMINAL]
        for index in places if len(places) > 1 else ():
            event = EventReader(thread_id=self.run.thread_id, run_id=self.run.run_id).read_value(values[index], index)
            if isinstance(event, RunFinished | RunError):
                ends[index] = event
        return ends

    def _quoting(self, message: str) -> str:
        """A message that quotes what was pushed, without secrets."""
        return self._context.redaction.quoting(message)

    def _new_recording(self) -> Recording:
        return Recording(self.run.run_id, self.run.thread_id, self._context.clock, self._context.redaction)


class Pushes:
    """The pushed runs that this server has seen lately."""

    def __init__(self, context: ServiceContext, *, runs: int = RUNS, event_ids: int = EVENT_IDS) -> None:
        self._context = context
        self._runs = runs
        self._event_ids = event_ids
        self._known: OrderedDict[str, PushedRun] = OrderedDict()

    async def push(self, run_id: str, pushed: PushEvents, size: int = 0) -> PushResult:
        """Store events, of so many bytes: all of them, or none when one is refused."""
        known = self._known.get(run_id)
        if known is None:
            run = await asyncio.to_thread(self._context.store.served_run, run_id)
            if not run.pushed:
                raise SeatrialError(
                    "conflict",
                    f"run {run_id} is run by a server, which records what its agent says",
                    hint="ask for a run with `push` to post its events yourself",
                )
            known = self._known.setdefault(run_id, PushedRun(run, self._context))
        async with known.lock:
            for _ in range(TRIES):
                if known.stale:
                    await asyncio.to_thread(known.load)
                batch = await self._filled(known, pushed, size)
                if not known.recording.pending or await self._stored(known, batch):
                    known.take(batch)
                    self._remember(known)
                    return PushResult(sequences=batch.sequences, head=known.recording.following - 1, notes=batch.notes)
        raise SeatrialError("sequence_conflict", "others append to this run all the time", hint="push again")

    async def cancel(self, run: ServedRun) -> None:
        """End a run as cancelled, whatever its agent still pushes."""
        for _ in range(TRIES):
            try:
                await end_by_log(self._context, run, cancelled(run), None)
                return
            except SeatrialError as error:
                if error.code != "sequence_conflict":
                    raise
        raise SeatrialError("sequence_conflict", "events are pushed to this run all the time", hint="cancel again")

    async def _filled(self, known: PushedRun, pushed: PushEvents, size: int) -> Batch:
        # Should this be interrupted, nobody knows what the recording has taken, or what was stored.
        known.stale = True
        batch = Batch()
        try:
            if len(pushed.events) > AT_ONCE or size > AT_ONCE_BYTES:
                await asyncio.to_thread(known.fill, batch, pushed)
            else:
                known.fill(batch, pushed)
        except SeatrialError:
            known.stale = bool(known.recording.pending)
            raise
        return batch

    async def _stored(self, known: PushedRun, batch: Batch) -> bool:
        """Store a batch; False when another server was quicker."""
        context, run, recording = self._context, known.run, known.recording
        try:
            if batch.terminal is not None:
                ending = await asyncio.to_thread(self._ending, run, recording, batch)
                stored = await store_end(context, run, ending)
            else:
                await context.append(run.run_id, recording.pending, recording.stored)
                stored = True
        except SeatrialError as error:
            if error.code not in LOST:
                raise
            return False
        return stored

    def _ending(self, served: ServedRun, recording: Recording, batch: Batch) -> Ending:
        recording.notes += batch.dropped
        log = read_log(self._context.store, served.run_id, recording.pending[:-1])
        return end_of_log(self._context, served, recording, log)

    def _remember(self, known: PushedRun) -> None:
        runs = self._known
        runs[known.run.run_id] = known
        runs.move_to_end(known.run.run_id)
        ids = sum([len(run.ids) for run in runs.values()])
        while len(runs) > self._runs or (ids > self._event_ids and len(runs) > 1):
            _, forgotten = runs.popitem(last=False)
            ids -= len(forgotten.ids)


def refused(index: int, message: str, code: str, field: str = "") -> SeatrialError:
    """The error for an event that keeps a batch from being stored."""
    return SeatrialError(
        "event_refused",
        f"{message} ({code})",
        pointer=pointer("events", index, *([field] if field else [])),
        details={"index": index, "rule": code},
    )


def _worst(ends: dict[int, Terminal]) -> int | None:
    """Which of these ends is how the run ended; None when there are none."""
    worst: int | None = None
    for index, end in ends.items():
        if worst is None or is_worse(end, ends[worst]):
            worst = index
    return worst


def _was_malformed(field: str, value: dict[str, Any], event: Event) -> bool:
    """Whether what was dropped is more than a null, a part of something that was kept, or the title of an old type."""
    if field == "outcome" and getattr(event, "outcome", None) is not UNSET:
        return False  # how the run ended was kept; without it, a run that failed would look completed
    return value.get(field) is not None and field not in ("usage", "title")


def _unescaped(key: str) -> str:
    """A key as it was before it became a part of a pointer."""
    return key.replace("~1", "/").replace("~0", "~")


def _is_id(value: Any) -> bool:
    return type(value) is str and 1 <= len(value) <= 256


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
