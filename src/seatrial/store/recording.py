"""Runs on their way into a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import sqlalchemy as sa
from msgspec.structs import astuple

from seatrial.errors import SeatrialError
from seatrial.runs import Run, RunKey
from seatrial.store import inserts, items, rows, schema
from seatrial.store.appending import EventRow, add_events, are_at, divided, following, joined
from seatrial.store.bodies import Document, Packer, address, digest
from seatrial.store.counts import COUNTED_RUNS, counted_runs
from seatrial.store.rollups import Counted, note_counts
from seatrial.store.search import indexed_text
from seatrial.store.transaction import SMALL, Operation, Transaction

_BEGUN = rows.run_columns(Run(run_id="", experiment_id="", key=RunKey("", "", 0), status="running"))
"""What is counted of a run that was begun."""


class BeginRun(Operation[None]):
    """Make room for a run, so that its events can be stored while it goes on."""

    def __init__(
        self, run_id: str, experiment: int, key: RunKey, started_at: int | None = None, replace: bool = False
    ) -> None:
        self._run_id = rows.identifier("id", run_id)
        rows.identifier("name of an agent", key.agent)
        self._experiment = experiment
        self._key = key
        self._replace = replace
        self._columns = rows.run_columns(
            Run(run_id=run_id, experiment_id="", key=key, status="running", started_at=started_at)
        )

    def run(self, to: Transaction) -> None:
        key = self._key
        if to.careful or self._replace:
            holder = _holder(to, self._experiment, key)
            if holder is not None:
                if holder.status not in rows.UNFINISHED and not self._replace:
                    raise SeatrialError("conflict", f"there is a run of {key} already: {holder.run_id}")
                _remove(to, holder.id)
            _refuse_used_id(to, self._run_id)
        number = to.new_run()
        columns = astuple(self._columns)
        to.add(inserts.RUN, number, self._run_id, self._experiment, key.case_id, key.agent, key.trial, *columns)
        to.count(Counted(self._experiment, key.case_id, key.agent, self._columns))
        to.live[self._run_id] = (number, 0)
        to.changed.append(self._run_id)


class Record:
    """A run that has ended, on its way into the rows of all its parts."""

    def __init__(
        self, run: Run, events: Sequence[bytes], bodies: Iterable[bytes] = (), *, counted: int = rows.COUNTED
    ) -> None:
        self.run_id = rows.identifier("id", run.run_id)
        rows.identifier("name of an agent", run.key.agent)
        if run.status in rows.UNFINISHED:
            raise SeatrialError("conflict", f"run {run.run_id} is {run.status}: only a run that has ended is recorded")
        self.key = run.key
        self._lines = joined(events)
        self._count = len(events)
        self._events: list[EventRow] = []
        whole = [(digest(address(data)), data) for data in bodies]
        last = None
        if run.body is not None:
            known = run.attempts[-1].body_hash if run.attempts else None
            last = digest(address(run.body) if known is None else known)
            whole.append((last, run.body))
        elif run.attempts and run.attempts[-1].body_hash is not None:
            last = digest(run.attempts[-1].body_hash)
        self._columns = rows.run_columns(run, last, counted=counted)
        self._attempts = list(map(rows.attempt_values, run.attempts))
        self._steps = list(map(rows.step_values, count(), run.steps))
        self._verdicts = list(map(rows.verdict_values, count(), run.verdicts))
        reading = run.reading
        self._notes = list(map(rows.note_values, count(), reading.notes)) if reading is not None else []
        self._reading = items.divided(items.stored_reading(reading)) if reading is not None else None
        self._text = indexed_text(reading, run.steps)
        self._bodies = whole
        self._head: Document | None = None
        self._items: list[items.ItemRow] = []
        self._packed_bodies: list[tuple[bytes, int, Document]] = []
        self.size = SMALL + len(self._lines) + (self._reading.size if self._reading is not None else 0)
        for _, data in whole:
            self.size += len(data)

    def prepare(self, packer: Packer) -> None:
        """Have compressed what is large."""
        self._events = divided(self._lines, self._count, packer)
        self._packed_bodies = [(hash_, len(data), packer.add(data)) for hash_, data in self._bodies]
        if self._reading is not None:
            self._head, self._items, texts = items.packed_rows(self._reading, packer)
            self._packed_bodies += texts

    def add(self, to: Transaction, number: int, experiment: int, first: int, begun: bool) -> None:
        """Gather all rows; the events from the sequence `first` on."""
        add = to.add
        key = self.key
        run = inserts.BEGUN_RUN if begun else inserts.RUN
        add(run, number, self.run_id, experiment, key.case_id, key.agent, key.trial, *astuple(self._columns))
        if self._columns.counted == rows.COUNTED:
            to.count(self._counted(experiment))
        for attempt in self._attempts:
            add(inserts.ATTEMPT, number, *attempt)
        for step in self._steps:
            add(inserts.STEP, number, *step)
        for note in self._notes:
            add(inserts.NOTE, number, *note)
        for verdict in self._verdicts:
            add(inserts.VERDICT, number, 0, *verdict)
        for hash_, size, body in self._packed_bodies:
            add(inserts.BODY, hash_, size, body.packed, body.data)
        if (reading := self._reading) is not None and (head := self._head) is not None:
            texts = reading.head_texts
            add(inserts.READING, number, head.packed, head.data, reading.messages, reading.trace, texts)
            add_items(to, number, self._items)
        if self._text:
            to.index(number, self._text)
        add_events(to, number, first, self._events)
        to.changed.append(self.run_id)

    def _counted(self, experiment: int) -> Counted:
        key = self.key
        graders = [(grader, judgement, score) for _, grader, judgement, score, _ in self._verdicts]
        notes = note_counts([(code, weight) for _, code, weight, _ in self._notes]) if self._notes else {}
        return Counted(experiment, key.case_id, key.agent, self._columns, graders, notes)

    def is_at(self, to: Transaction, number: int, first: int) -> bool:
        """Whether its events are stored from this sequence on."""
        return are_at(to, number, first, self._events)


def add_items(to: Transaction, number: int, given: Iterable[items.ItemRow]) -> None:
    """Gather the rows of a transcript."""
    for row in given:
        document = row.document
        to.add(inserts.ITEMS, number, row.part, row.first, row.count, document.packed, document.data, row.texts)


class RecordRun(Operation[bool]):
    """Store a run with all its parts. Gives whether the run now stored under this key is this one."""

    def __init__(
        self,
        run: Run,
        experiment: int,
        events: Sequence[bytes],
        first: int | None,
        bodies: Iterable[bytes],
        replace: bool,
    ) -> None:
        self._record = Record(run, events, bodies)
        self._experiment = experiment
        self._replace = replace
        self._first = first
        self.size = self._record.size

    def prepare(self, packer: Packer) -> None:
        self._record.prepare(packer)

    def run(self, to: Transaction) -> bool:
        run_id, key = self._record.run_id, self._record.key
        number, first = to.live.pop(run_id, (None, 0))
        counted = True
        if to.careful or self._replace or (self._first is not None and self._first != first):
            holder = _holder(to, self._experiment, key)
            number, first = None, 0
            if holder is not None and holder.run_id == run_id:
                if holder.status not in rows.UNFINISHED:
                    return True
                if self._first is None or self._first == holder.following:
                    number, first, counted = holder.id, holder.following, holder.counted == rows.COUNTED
            if number is None:
                if self._first:
                    return False  # another process took over, and what was appended is gone
                if holder is not None:
                    if holder.status not in rows.UNFINISHED and not self._replace:
                        return False
                    _remove(to, holder.id)
                _refuse_used_id(to, run_id)
        begun = number is not None
        if number is None:
            number = to.new_run()
        elif counted:
            to.count(Counted(self._experiment, key.case_id, key.agent, _BEGUN), -1)
        self._record.add(to, number, self._experiment, first, begun)
        return True


def _holder(to: Transaction, experiment: int, key: RunKey) -> sa.Row[Any] | None:
    """The run under a key; `not_found` when the experiment has no such case."""
    cases, runs = schema.cases, schema.runs
    same = (runs.c.experiment == cases.c.experiment) & (runs.c.case_id == cases.c.case_id)
    this = (runs.c.agent == key.agent) & (runs.c.trial == key.trial)
    found = to.execute(
        sa.select(runs.c.id, runs.c.run_id, runs.c.status, runs.c.counted, following())
        .select_from(cases.outerjoin(runs, same & this))
        .where(cases.c.experiment == experiment, cases.c.case_id == key.case_id)
    ).first()
    if found is None:
        raise SeatrialError("not_found", f"the experiment has no case {key.case_id!r}")
    return found if found.id is not None else None


def _remove(to: Transaction, number: int) -> None:
    uncount(to, number)
    to.execute(sa.delete(schema.runs).where(schema.runs.c.id == number))


def uncount(to: Transaction, number: int) -> None:
    """Take a run out of the rollups, as it is stored, if they have it. Others who change it wait until this is done."""
    found = to.execute(COUNTED_RUNS.where(schema.runs.c.id == number).with_for_update()).all()
    for run in counted_runs(to.execute, [row for row in found if row.counted == rows.COUNTED]):
        to.count(run, -1)


def _refuse_used_id(to: Transaction, run_id: str) -> None:
    if to.execute(sa.select(schema.runs.c.id).where(schema.runs.c.run_id == run_id)).first() is not None:
        raise SeatrialError("conflict", f"run id {run_id!r} belongs to another run already")
