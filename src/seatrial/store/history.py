"""One case over the experiments that ran it."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from seatrial.store.documents import column_text
from seatrial.store.experiments import ExperimentSummary
from seatrial.store.rollups import known_steps
from seatrial.store.rows import RunSummary
from seatrial.store.schema import cases, experiments, runs

MAX_LOOKED_AT = 400
"""Experiments, this one and those before it, among which those are looked for that ran the case."""
MAX_RUNS = 20_000


class CaseTrials(msgspec.Struct, frozen=True):
    """An experiment, and the runs of one case by one agent in it."""

    experiment: ExperimentSummary
    runs: list[RunSummary]
    """By trial."""


class CaseNeighbours(msgspec.Struct, frozen=True):
    """The cases before and after one in its suite."""

    before: str | None
    after: str | None


def case_history(connection: sa.Connection, number: int, case_id: str, agent: str, limit: int) -> list[CaseTrials]:
    """This experiment and those before it in which the agent ran the case, the newest first."""
    columns = [experiments.c[field] for field in ExperimentSummary.__struct_fields__]
    found = connection.execute(
        sa.select(experiments.c.id, *columns)
        .where(experiments.c.id <= number, experiments.c.cases.is_not(None))
        .order_by(experiments.c.id.desc())
        .limit(MAX_LOOKED_AT)
    ).all()
    by_number = {row.id: row for row in found}
    ours = (runs.c.case_id == column_text(case_id)) & (runs.c.agent == column_text(agent))
    having = connection.scalars(sa.select(runs.c.experiment).distinct().where(runs.c.experiment.in_(by_number), ours))
    numbers = sorted(having, reverse=True)[:limit]
    query = sa.select(runs.c.experiment, *[runs.c[field] for field in RunSummary.__struct_fields__])
    trials: dict[int, list[RunSummary]] = {each: [] for each in numbers}
    for row in connection.execute(
        query.where(runs.c.experiment.in_(numbers), ours)
        .order_by(runs.c.experiment.desc(), runs.c.trial)
        .limit(MAX_RUNS)
    ):
        summary = RunSummary(**{field: getattr(row, field) for field in RunSummary.__struct_fields__})
        summary.steps = known_steps(summary)
        trials[row.experiment].append(summary)
    return [
        CaseTrials(
            ExperimentSummary(
                **{field: getattr(by_number[each], field) for field in ExperimentSummary.__struct_fields__}
            ),
            trials[each],
        )
        for each in numbers
    ]


def case_neighbours(connection: sa.Connection, number: int, case_id: str) -> CaseNeighbours:
    """The cases beside one."""
    here = (
        sa.select(cases.c.position)
        .where(cases.c.experiment == number, cases.c.case_id == column_text(case_id))
        .scalar_subquery()
    )
    found = connection.execute(
        sa.select(cases.c.position - here, cases.c.case_id).where(
            cases.c.experiment == number, cases.c.position.in_([here - 1, here + 1])
        )
    )
    beside = {int(distance): case for distance, case in found}
    return CaseNeighbours(beside.get(-1), beside.get(1))
