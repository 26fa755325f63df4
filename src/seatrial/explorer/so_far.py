"""A run that is running, as far as it has gone: its event log, read on and on, in the place of the record to come.

Pages ask a `RunningStore` what they ask of any store, so that a running run looks as it will when it has ended. What
was read is kept, so the next question adds a few events to it. How much is kept is bounded, and how much time goes
into it.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from time import monotonic
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from seatrial.events import Event, EventReader, to_transcript
from seatrial.events import types as t
from seatrial.events.expand import CHUNKS, Expander
from seatrial.events.fold import Folding
from seatrial.store import OutlineEntry, RunRecord, StepLine, Store, StoredStep, TranscriptItem
from seatrial.store.outline import outline_of, overview
from seatrial.store.rows import UNFINISHED
from seatrial.trajectory.sources import steps_from_events
from seatrial.trajectory.step import FAILED, Step
from seatrial.transcript import Transcript

MAX_BYTES = 8 << 20
"""Bytes of the events of one run that are read while it is running; of a longer one, the beginning is shown."""
MAX_KEPT_BYTES = 4 * MAX_BYTES
"""The same of all runs that are being looked at."""
MAX_KEPT = 16
EVENTS_AT_ONCE = 2000
MAX_READ = 20_000
"""Events that are read for one answer; the next one goes on."""
SHARE = 0.2
"""Of the time, at most, that making a transcript of the events may take."""

_CALLS = (
    *(t.ToolCallStart, t.ToolCallArgs, t.ToolCallEnd, t.ToolCallResult),
    *(t.MessagesSnapshot, t.RunStarted, t.SubagentStarted),
)


class RunSoFar(msgspec.Struct, frozen=True, kw_only=True):
    """What the events of a run add up to."""

    transcript: Transcript
    steps: list[Step]
    entries: list[OutlineEntry]
    following: int
    """The sequence of the next event."""
    behind: bool
    """Whether more events are stored than these."""
    cut: bool
    """Whether the log is too long for all of it to be shown now."""
    attempt: int
    started_at: float | None
    """When the first event was recorded, in milliseconds since the epoch."""

    @property
    def changing(self) -> int:
        """The first message that may still change: the one with the first call that has no result, else the last."""
        last = len(self.transcript.messages) - 1
        waiting = [entry.first for entry in self.entries if entry.kind == "call" and entry.status == "unknown"]
        return max(0, min([last, *waiting]))


class _Reading:
    """The log of one run, as far as it was read."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.size = 0
        self._made: RunSoFar | None = None
        self._not_before = 0.0
        self._begin()
        self._following = 0
        self._attempt = 1
        self._failed = False
        self._started_at: float | None = None
        self._behind = False

    def _begin(self) -> None:
        self._reader, self._expander, self._folding = EventReader(), Expander(), Folding()
        self._calls: list[Event] = []

    def so_far(self, store: Store, run_id: str) -> RunSoFar:
        self._read(store, run_id)
        stale = self._made is None or self._made.following != self._following
        if self._made is None or (stale and monotonic() >= self._not_before):
            began = monotonic()
            self._made = self._make()
            took = monotonic() - began
            self._not_before = began + took / SHARE
        elif stale:
            self._made = msgspec.structs.replace(self._made, behind=True)
        return self._made

    def _read(self, store: Store, run_id: str) -> None:
        read = 0
        self._behind = False
        while self.size < MAX_BYTES:
            some = store.events(run_id, after=self._following - 1, limit=EVENTS_AT_ONCE)
            for sequence, data in some:
                self._take(sequence, data)
            read += len(some)
            if len(some) < EVENTS_AT_ONCE:
                return
            if read >= MAX_READ:
                self._behind = True
                return

    def _take(self, sequence: int, data: bytes) -> None:
        self.size += len(data)
        self._following = sequence + 1
        event = self._reader.read(data, sequence)
        if self._started_at is None and event.timestamp is not UNSET:
            self._started_at = event.timestamp
        if isinstance(event, t.RunStarted) and self._failed:
            self._attempt += 1  # the record will have what the last attempt did
            self._begin()
        self._failed = isinstance(event, t.RunError)
        parts: list[Event] = [event]
        if self._expander.lanes or type(event) in CHUNKS:
            expanded = self._expander.feed(event, sequence)
            parts = expanded if isinstance(expanded, list) else []
        for part in parts:
            self._folding.feed(part, sequence)
            if isinstance(part, _CALLS):
                self._calls.append(part)

    def _make(self) -> RunSoFar:
        transcript = to_transcript(self._folding.result())
        # Feeding more events changes messages that are there.
        transcript = msgspec.structs.replace(transcript, messages=[*transcript.messages])
        steps = steps_from_events(self._calls)
        return RunSoFar(
            transcript=transcript,
            steps=steps,
            entries=[*outline_of(transcript, steps)],
            following=self._following,
            behind=self._behind,
            cut=self.size >= MAX_BYTES,
            attempt=self._attempt,
            started_at=self._started_at,
        )


class _Readings:
    """The runs of one store that are being looked at."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: OrderedDict[str, _Reading] = OrderedDict()

    def of(self, run_id: str) -> _Reading:
        with self._lock:
            found = self._of.setdefault(run_id, _Reading())
            self._of.move_to_end(run_id)
            while len(self._of) > 1 and (
                len(self._of) > MAX_KEPT or sum([each.size for each in self._of.values()]) > MAX_KEPT_BYTES
            ):
                self._of.popitem(last=False)
            return found


_READINGS: WeakKeyDictionary[Store, _Readings] = WeakKeyDictionary()
_LOCK = Lock()


def is_running(record: RunRecord) -> bool:
    """Whether the record of a run is still to come."""
    return record.summary.status in UNFINISHED


def run_view(store: Store, run_id: str, now: float) -> Store:
    """What a page of a run reads: the store, or for a run that is running what its events say up to now."""
    record = store.run_record(run_id)
    if not is_running(record):
        return store
    with _LOCK:
        readings = _READINGS.setdefault(store, _Readings())
    reading = readings.of(run_id)
    with reading.lock:
        return RunningStore(store, record, reading.so_far(store, run_id), now)


class RunningStore(Store):
    """A store that answers for one run from its events, as far as they go; for everything else it is the store."""

    def __init__(self, store: Store, record: RunRecord, so_far: RunSoFar, now: float) -> None:
        vars(self).update(vars(store))  # the same connections: it is not to be closed
        self.so_far = so_far
        self._record = _record_so_far(record, so_far, now)
        self._run_id = record.summary.run_id

    def run_record(self, run_id: str) -> RunRecord:
        return self._record if run_id == self._run_id else super().run_record(run_id)

    def items(self, run_id: str, first: int = 0, count: int = 100) -> list[TranscriptItem]:
        if run_id != self._run_id:
            return super().items(run_id, first, count)
        some = self.so_far.transcript.messages[max(0, first) : max(0, first + count)]
        return [TranscriptItem(index, message) for index, message in enumerate(some, max(0, first))]

    def steps(
        self, run_id: str, first: int = 0, count: int = 100, *, whole_arguments: bool = False
    ) -> list[StoredStep]:
        if run_id != self._run_id:
            return super().steps(run_id, first, count, whole_arguments=whole_arguments)
        return [StoredStep(step) for step in self.so_far.steps[max(0, first) : max(0, first + count)]]

    def step_lines(self, run_id: str, first: int = 0, count: int = 1000) -> list[StepLine]:
        if run_id != self._run_id:
            return super().step_lines(run_id, first, count)
        return [_line(step) for step in self.so_far.steps[max(0, first) : max(0, first + count)]]

    def failed_steps(self, run_id: str, limit: int = 50) -> list[StoredStep]:
        if run_id != self._run_id:
            return super().failed_steps(run_id, limit)
        return [StoredStep(step) for step in self.so_far.steps if step.status in FAILED][:limit]

    def good_calls(self, run_id: str, name: str, after: int, limit: int = 200) -> list[StoredStep]:
        if run_id != self._run_id:
            return super().good_calls(run_id, name, after, limit)
        good = [step for step in self.so_far.steps[after + 1 :] if step.name == name and step.status == "ok"]
        return [StoredStep(step) for step in good[:limit]]

    def outline(self, run_id: str, first: int = 0, count: int = 1000) -> list[OutlineEntry]:
        if run_id != self._run_id:
            return super().outline(run_id, first, count)
        return self.so_far.entries[max(0, first) : max(0, first + count)]

    def overview(self, run_id: str) -> list[OutlineEntry]:
        return overview(self.so_far.entries) if run_id == self._run_id else super().overview(run_id)


def _record_so_far(record: RunRecord, so_far: RunSoFar, now: float) -> RunRecord:
    began = record.summary.started_at if record.summary.started_at is not None else so_far.started_at
    summary = msgspec.structs.replace(
        record.summary,
        steps=len(so_far.steps),
        started_at=None if began is None else int(began),
        duration_ms=None if began is None or now < began else now - began,
        attempts=so_far.attempt,
    )
    return msgspec.structs.replace(
        record, summary=summary, messages=len(so_far.transcript.messages), given=[*so_far.transcript.given]
    )


def _line(step: Step) -> StepLine:
    return StepLine(**{name: getattr(step, name) for name in StepLine.__struct_fields__})
