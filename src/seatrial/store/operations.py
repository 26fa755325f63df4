"""What can be written to a store of experiments and gradings; see `recording` for runs and `appending` for events.

An operation is made by the caller and carried out by the writer. What must not change after the call is encoded when
the operation is made; what takes long is left to the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from seatrial import wire
from seatrial._version import __version__
from seatrial.errors import SeatrialError
from seatrial.runs import Case, Experiment, Grade, Verdict
from seatrial.store import inserts, rows, schema
from seatrial.store.bodies import Document, Packer, pack
from seatrial.store.counts import COUNTED_RUNS, counted_runs, signature_in
from seatrial.store.transaction import Operation, Transaction
from seatrial.transcript import Note

_VERDICTS = msgspec.json.Decoder(list[Verdict])
_PROBE = sa.text(f"UPDATE {schema.VERSION_TABLE} SET version_num = version_num")  # noqa: S608 (our name)


class CreateExperiment(Operation[int]):
    """Store an experiment; its cases follow. Gives its integer."""

    def __init__(self, experiment: Experiment) -> None:
        rows.identifier("id", experiment.experiment_id)
        rows.identifier("name", experiment.name)
        self._experiment = experiment
        self._suite = rows.encode(experiment.suite)
        self._notes = [
            (agent, *rows.note_values(position, note))
            for agent, notes in experiment.notes.items()
            for position, note in enumerate(notes)
        ]

    def run(self, to: Transaction) -> int:
        number: int
        experiment = self._experiment
        table = schema.experiments
        found = to.execute(
            sa.select(table.c.id, table.c.cases).where(table.c.experiment_id == experiment.experiment_id)
        ).first()
        if found is not None:
            if found.cases is not None:
                raise SeatrialError("conflict", f"there is an experiment {experiment.experiment_id!r} already")
            # Somebody died, or gave up, before the last case was in.
            to.execute(sa.delete(table).where(table.c.id == found.id))
        packed, suite = pack(self._suite)
        number = to.execute(
            sa.insert(table)
            .values(
                experiment_id=experiment.experiment_id,
                name=experiment.name,
                suite_hash=experiment.suite_hash,
                created_at=experiment.created_at,
                finished_at=experiment.finished_at,
                status=experiment.status,
                stop_reason=experiment.stop_reason,
                version=experiment.version,
                packed=packed,
                suite=suite,
            )
            .returning(table.c.id)
        ).scalar_one()
        for note in self._notes:
            to.add(inserts.AGENT_NOTE, number, *note)
        return number


class BeginServing(Operation[int]):
    """Store what the runs of a server belong to: an experiment that never has all its cases. Gives its integer."""

    def __init__(self, server_id: str, created_at: int) -> None:
        self._server_id = rows.identifier("id of a server", server_id)
        self._created_at = created_at

    def run(self, to: Transaction) -> int | SeatrialError:
        number: int
        table = schema.experiments
        found = to.execute(sa.select(table.c.id, table.c.cases).where(table.c.experiment_id == self._server_id)).first()
        if found is None:
            values = {"experiment_id": self._server_id, "name": "served runs", "suite_hash": "", "packed": 0}
            made = sa.insert(table).values(
                **values, created_at=self._created_at, status="running", version=__version__, suite=b"{}"
            )
            number = to.execute(made.returning(table.c.id)).scalar_one()
        elif found.cases is not None:
            return SeatrialError("conflict", f"there is an experiment {self._server_id!r} already")
        else:
            number = found.id
        return number


class AddCases(Operation[None]):
    """Store cases of an experiment, the first of them at this position."""

    def __init__(self, experiment: int, first: int, cases: Iterable[Case]) -> None:
        self._experiment = experiment
        self._first = first
        self._cases = [(rows.identifier("id", case.id), rows.encode(case)) for case in cases]
        self._packed: list[Document] = []
        self.size = sum([len(document) for _, document in self._cases])

    def prepare(self, packer: Packer) -> None:
        self._packed = [packer.add(document) for _, document in self._cases]

    def run(self, to: Transaction) -> None:
        for position, ((case_id, _), case) in enumerate(zip(self._cases, self._packed, strict=True), self._first):
            to.add(inserts.CASE, self._experiment, position, case_id, case.packed, case.data)


class MarkExperiment(Operation[None]):
    """Change what an experiment says of itself."""

    def __init__(self, experiment: int, **values: object) -> None:
        self._statement = sa.update(schema.experiments).where(schema.experiments.c.id == experiment).values(**values)

    def run(self, to: Transaction) -> None:
        to.execute(self._statement)


class Probe(Operation[None]):
    """Write what is there already: whether that can be done is all that is of interest."""

    def run(self, to: Transaction) -> None:
        to.execute(_PROBE)


class AddNotes(Operation[None]):
    """Store more of what an agent said that belongs to no run of the experiment."""

    def __init__(self, experiment: int, agent: str, notes: Iterable[Note]) -> None:
        self._experiment = experiment
        self._agent = rows.identifier("name of an agent", agent)
        self._notes = [rows.note_values(position, note) for position, note in enumerate(notes)]

    def run(self, to: Transaction) -> None:
        table = schema.agent_notes
        here = (table.c.experiment == self._experiment) & (table.c.agent == self._agent)
        # Another process that adds some at the same time collides with this one at their places, and looks again.
        last = to.execute(sa.select(sa.func.max(table.c.position)).where(here)).scalar()
        first = 0 if last is None else last + 1
        for position, code, weight, data in self._notes:
            to.add(inserts.AGENT_NOTE, self._experiment, self._agent, first + position, code, weight, data)


class RecordVerdicts(Operation[None]):
    """Store the verdicts of a new grading of a run; those before stay, but count no more."""

    def __init__(self, run_id: str, verdicts: Sequence[Verdict], grade: Grade) -> None:
        self._run_id = run_id
        self._grade = grade
        self._json = rows.encode(grade)
        self._verdicts = [rows.verdict_values(position, verdict) for position, verdict in enumerate(verdicts)]
        # As they are now: the caller may go on with them.
        failed = grade.judgement in ("failed", "errored")
        self._failed = wire.decode(rows.encode(list(verdicts)), _VERDICTS) if failed else []

    def run(self, to: Transaction) -> None:
        table = schema.runs
        found = to.execute(COUNTED_RUNS.where(table.c.run_id == self._run_id).with_for_update()).first()
        if found is None:
            raise rows.no_run(self._run_id)
        # What was noted on it counts as before.
        [before] = counted_runs(to.execute, [found], notes=False)
        grading = found.grading + 1
        outcome = rows.outcome(found.status, self._grade.judgement)
        score = rows.number(self._grade.score)
        signature = signature_in(to.execute, found.id, outcome, self._failed)
        to.execute(
            sa.update(table)
            .where(table.c.id == found.id)
            .values(grading=grading, grade=self._json, score=score, outcome=outcome, signature=signature)
        )
        for row in self._verdicts:
            to.add(inserts.VERDICT, found.id, grading, *row)
        if found.counted == rows.COUNTED:
            to.count(before, -1)
            columns = replace(before.columns, score=score, outcome=outcome, signature=signature)
            graders = [(grader, judgement, given) for _, grader, judgement, given, _ in self._verdicts]
            to.count(replace(before, columns=columns, graders=graders))
