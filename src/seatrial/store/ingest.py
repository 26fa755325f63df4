"""Runs and gradings on their way into a store.

An operation is made by the caller and run by the writer. What must not change after the call is encoded when
the operation is made; what takes long is left to the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.runs import Grade, Run, RunKey, Verdict
from seatrial.store import rows, schema
from seatrial.store.counts import COUNTED_RUNS, counted_runs, signature_in
from seatrial.store.database import SMALL, Operation, Transaction
from seatrial.store.documents import Document, Packer, address, digest, encode, identifier, large
from seatrial.store.event_log import add_events, are_at, divided, following, joined
from seatrial.store.items import reading_rows
from seatrial.store.outline import outline_rows
from seatrial.store.rollups import Counted, note_counts
from seatrial.store.search import indexed_text
from seatrial.transcript import Note

_VERDICTS = msgspec.json.Decoder(list[Verdict])


class BeginRun(Operation[None]):
    """Make room for a run, so that its events can be stored while it is running."""

    def __init__(self, run_id: str, experiment: int, key: RunKey, started_at: int | None = None) -> None:
        self._run_id = identifier("id", run_id)
        identifier("name of an agent", key.agent)
        self._experiment = experiment
        self._key = key
        self._row = begun_row(run_id, key, started_at)

    def run(self, to: Transaction) -> None:
        key = self._key
        if to.careful:
            holder = _holder(to, self._experiment, key)
            if holder is not None:
                if holder.status not in rows.UNFINISHED:
                    raise SeatrialError("conflict", f"there is a run of {key} already: {holder.run_id}")
                _remove(to, holder.id)
            _refuse_used_id(to, self._run_id)
        number = to.new_run()
        self._row.id, self._row.experiment = number, self._experiment
        to.add(rows.INSERT_RUN, [self._row])
        to.count(self._experiment, Counted(self._row))
        to.live[self._run_id] = (number, 0)
        to.changed.append(self._run_id)


def begun_row(run_id: str, key: RunKey, started_at: int | None = None, counted: int = rows.COUNTED) -> rows.RunColumns:
    """A run of which nothing is known but that it was begun."""
    run = Run(run_id=run_id, key=key, status="running", started_at=started_at)
    return rows.run_row(run, {}, counted=counted)


class RunRows:
    """A run that has ended, on its way into the rows of all its parts."""

    def __init__(
        self, run: Run, events: Sequence[bytes], bodies: Iterable[bytes] = (), *, counted: int = rows.COUNTED
    ) -> None:
        identifier("id", run.run_id)
        identifier("name of an agent", run.agent)
        if run.status in rows.UNFINISHED:
            raise SeatrialError("conflict", f"run {run.run_id} is {run.status}: only a run that has ended is recorded")
        reading, steps = run.reading, run.steps
        self._bodies = [_body(digest(address(data)), data) for data in bodies]
        long_texts: dict[str, bytes] = {}
        self.run = rows.run_row(run, long_texts, self._add_body(run), counted=counted)
        self._verdicts = list(map(rows.verdict_row, count(), run.verdicts))
        noted = run.notes
        self._notes = list(map(rows.note_row, count(), noted))
        self._events = divided(joined(events), len(events))
        documents: list[Document] = [*self._events]
        parts: list[tuple[rows.Insert[Any], list[Any]]] = [
            (
                rows.INSERT_ATTEMPT,
                [rows.attempt_row(one, attempt) for one in run.exchanges for attempt in one.attempts],
            ),
            (rows.INSERT_STEP, [rows.step_row(position, step, long_texts) for position, step in enumerate(steps)]),
            (rows.INSERT_VERDICT, self._verdicts),
            (rows.INSERT_SPLIT, rows.split_rows(run.verdicts)),
            (rows.INSERT_NOTE, self._notes),
        ]
        if reading is not None:
            head, items, texts = reading_rows(reading)
            documents += [head, *items]
            self._bodies += texts
            parts += [(rows.INSERT_READING, [head]), (rows.INSERT_ITEMS, items)]
            if items:
                outline = outline_rows(reading.transcript, steps)
                documents += outline
                parts.append((rows.INSERT_OUTLINE, outline))
        if long_texts:
            self._bodies += rows.text_rows(long_texts)
        documents += self._bodies
        self._parts = [(insert, some) for insert, some in parts if some]
        self._text = indexed_text(reading, steps)
        self.large = large(documents)
        """What the writer is to compress."""
        self.size = SMALL + sum([len(document.data) for document in documents])

    def add(self, to: Transaction, number: int, experiment: int, first: int, begun: bool) -> None:
        """Gather all rows; the events from the sequence `first` on."""
        run = self.run
        run.id, run.experiment = number, experiment
        to.add(rows.FINISH_RUN if begun else rows.INSERT_RUN, [run])
        if run.counted == rows.COUNTED:
            graders = [(row.grader, row.outcome, row.score) for row in self._verdicts]
            notes = note_counts(self._notes) if self._notes else {}
            to.count(experiment, Counted(run, graders, notes))
        for insert, parts in self._parts:
            for row in parts:
                row.run = number
            to.add(insert, parts)
        if self._bodies:
            to.add(rows.INSERT_BODY, self._bodies)
        if self._text:
            to.index(number, self._text)
        add_events(to, number, first, self._events)
        to.changed.append(run.run_id)

    def is_at(self, to: Transaction, number: int, first: int) -> bool:
        """Whether its events are stored from this sequence on."""
        return are_at(to, number, first, self._events)

    def _add_body(self, run: Run) -> bytes | None:
        """The address of the body of a run, which is stored with it where it is at hand."""
        known = run.attempts[-1].body_hash if run.attempts else None
        if run.body is None:
            return digest(known) if known is not None else None
        body = _body(digest(known if known is not None else address(run.body)), run.body)
        self._bodies.append(body)
        return body.hash


def _body(hash_: bytes, data: bytes) -> rows.BodyRow:
    return rows.BodyRow(hash=hash_, size=len(data), data=data)


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
        self._record = RunRows(run, events, bodies)
        self._experiment = experiment
        self._replace = replace
        self._first = first
        self.size = self._record.size
        self.ready = not self._record.large

    def prepare(self, packer: Packer) -> None:
        packer.add(self._record.large)

    def run(self, to: Transaction) -> bool:
        run_id, key = self._record.run.run_id, self._record.run.key
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
            to.count(self._experiment, Counted(begun_row(run_id, key)), -1)
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
    found = [row for row in found if row.counted == rows.COUNTED]
    for row, run in zip(found, counted_runs(to.execute, found), strict=True):
        to.count(row.experiment, run, -1)


def _refuse_used_id(to: Transaction, run_id: str) -> None:
    if to.execute(sa.select(schema.runs.c.id).where(schema.runs.c.run_id == run_id)).first() is not None:
        raise SeatrialError("conflict", f"run id {run_id!r} belongs to another run already")


class RecordVerdicts(Operation[None]):
    """Store the verdicts of a new grading of a run; those before stay, but count no more."""

    def __init__(self, run_id: str, verdicts: Sequence[Verdict], grade: Grade) -> None:
        self._run_id = run_id
        self._grade = grade
        self._json = encode(grade)
        self._verdicts = [rows.verdict_row(position, verdict) for position, verdict in enumerate(verdicts)]
        self._split = rows.split_rows(verdicts)
        # As they are now: the caller may change them later.
        failed = grade.outcome in ("failed", "errored")
        self._failed = wire.decode(encode(list(verdicts)), _VERDICTS) if failed else []

    def run(self, to: Transaction) -> None:
        table = schema.runs
        found = to.execute(COUNTED_RUNS.where(table.c.run_id == self._run_id).with_for_update()).first()
        if found is None:
            raise rows.no_run(self._run_id)
        # What was noted on it counts as before.
        [before] = counted_runs(to.execute, [found], notes=False)
        grading = found.grading + 1
        outcome = rows.outcome(found.status, self._grade.outcome)
        score = rows.number(self._grade.score)
        signature = signature_in(to.execute, found.id, outcome, self._failed)
        to.execute(
            sa.update(table)
            .where(table.c.id == found.id)
            .values(grading=grading, grade=self._json, score=score, outcome=outcome, signature=signature)
        )
        for row in self._verdicts:
            row.run, row.grading = found.id, grading
        for split in self._split:
            split.run, split.grading = found.id, grading
        to.add(rows.INSERT_VERDICT, self._verdicts)
        to.add(rows.INSERT_SPLIT, self._split)
        if found.counted == rows.COUNTED:
            to.count(found.experiment, before, -1)
            graders = [(row.grader, row.outcome, row.score) for row in self._verdicts]
            run = replace(before.run, score=score, outcome=outcome, signature=signature)
            to.count(found.experiment, Counted(run, graders))


class _ReviseRun(RecordVerdicts):
    """Store what turned out about a run that is stored, and the grading that follows from it."""

    def __init__(self, run: Run, grade: Grade) -> None:
        super().__init__(run.run_id, run.verdicts, grade)
        texts: dict[str, bytes] = {}
        row = rows.run_row(run, texts)
        self._columns = {
            "status": row.status,
            "error_class": row.error_class,
            "calls": row.calls,
            "data": row.data,
            "texts": row.texts,
        }
        self._texts = rows.text_rows(texts)

    def revise(self, to: Transaction, number: int) -> None:
        """Change the parts of the run that are rows of other tables."""
        raise NotImplementedError

    def run(self, to: Transaction) -> None:
        runs = schema.runs
        number = to.execute(sa.select(runs.c.id).where(runs.c.run_id == self._run_id)).scalar()
        if number is None:
            raise rows.no_run(self._run_id)
        uncount(to, number)
        to.execute(sa.update(runs).where(runs.c.id == number).values(self._columns))
        self.revise(to, number)
        to.add(rows.INSERT_BODY, self._texts)
        found = to.execute(COUNTED_RUNS.where(runs.c.id == number)).one()
        if found.counted == rows.COUNTED:
            [now] = counted_runs(to.execute, [found])
            to.count(found.experiment, now)
        super().run(to)


class DoubtRun(_ReviseRun):
    """Less is known of the calls of a run than when it was stored: a note says why."""

    def __init__(self, run: Run, note: Note, grade: Grade) -> None:
        super().__init__(run, grade)
        self._note = rows.note_row(0, note)

    def revise(self, to: Transaction, number: int) -> None:
        notes = schema.notes
        last = to.execute(sa.select(sa.func.max(notes.c.position)).where(notes.c.run == number)).scalar()
        self._note.run, self._note.position = number, 0 if last is None else last + 1
        to.add(rows.INSERT_NOTE, [self._note])


class FailRun(_ReviseRun):
    """A run that was stored as completed has a fault after all, and so has its last attempt."""

    def __init__(self, run: Run, grade: Grade) -> None:
        super().__init__(run, grade)
        last = run.exchanges[-1]
        self._attempt = rows.attempt_row(last, last.attempts[-1])

    def revise(self, to: Transaction, number: int) -> None:
        attempts, row = schema.attempts, self._attempt
        this = (attempts.c.exchange == row.exchange) & (attempts.c.number == row.number)
        to.execute(
            sa.update(attempts).where(attempts.c.run == number, this).values(error_class=row.error_class, data=row.data)
        )
