"""What has a name that one may remember a part of: experiments, cases, runs by the beginning of their id."""

from __future__ import annotations

from typing import Final

import msgspec
import sqlalchemy as sa

from seatrial.store.rows import StoredOutcome
from seatrial.store.schema import cases, experiments, runs, served_runs

EXPERIMENTS_LOOKED_AT: Final = 3
"""The newest experiments, of which the cases are named when no experiment is."""
RUN_ID_FROM: Final = 3
"""Characters from which on the beginning of a run's id is one."""

MAX_WORDS: Final = 8
"""Words of the text that are looked at."""


class NamedExperiment(msgspec.Struct, frozen=True):
    """An experiment whose name has the words, or whose id begins with it."""

    experiment_id: str
    name: str
    created_at: int
    status: str


class NamedCase(msgspec.Struct, frozen=True):
    """A case whose id has the words."""

    case_id: str
    experiment_id: str
    experiment: str
    """The name of its experiment."""


class NamedRun(msgspec.Struct, frozen=True):
    """A run whose id begins with the text."""

    run_id: str
    case_id: str | None
    """None of a run of the run service."""
    agent: str
    outcome: StoredOutcome


class Named(msgspec.Struct, frozen=True):
    """What was found, each kind with the newest first, cases in their order."""

    experiments: list[NamedExperiment]
    cases: list[NamedCase]
    runs: list[NamedRun]


def named(connection: sa.Connection, text: str, experiment: int | None, limit: int) -> Named:
    """What has all words of the text in its name, so many of each kind. An empty text names the newest experiments."""
    # Neither is in any name, and PostgreSQL refuses to compare with them.
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    columns = [experiments.c[name] for name in NamedExperiment.__struct_fields__]
    newest = sa.select(*columns).where(experiments.c.cases.is_not(None)).order_by(experiments.c.id.desc()).limit(limit)
    begins = sa.func.substr(experiments.c.experiment_id, 1, len(text)) == text
    named_so = newest.where(_has(experiments.c.name, text) | begins)
    return Named(
        [NamedExperiment(**row) for row in connection.execute(named_so).mappings()],
        _cases(connection, text, experiment, limit) if text else [],
        _runs(connection, text, limit) if len(text) >= RUN_ID_FROM else [],
    )


def _has(column: sa.Column[str], text: str) -> sa.ColumnElement[bool]:
    """Whether a name has every word of the text in it."""
    return sa.and_(sa.true(), *[column.icontains(word, autoescape=True) for word in text.split()[:MAX_WORDS]])


def _cases(connection: sa.Connection, text: str, experiment: int | None, limit: int) -> list[NamedCase]:
    among: list[int] = [experiment] if experiment is not None else []
    if not among:
        newest = sa.select(experiments.c.id).where(experiments.c.cases.is_not(None)).order_by(experiments.c.id.desc())
        among = list(connection.execute(newest.limit(EXPERIMENTS_LOOKED_AT)).scalars())
    found: dict[str, NamedCase] = {}
    for each in among:
        if len(found) >= limit:
            break
        query = sa.select(cases.c.case_id, experiments.c.experiment_id, experiments.c.name.label("experiment")).join(
            experiments, experiments.c.id == cases.c.experiment
        )
        query = query.where(cases.c.experiment == each, _has(cases.c.case_id, text))
        for row in connection.execute(query.order_by(cases.c.position).limit(limit)).mappings():
            found.setdefault(row["case_id"], NamedCase(**row))
    return list(found.values())[:limit]


def _runs(connection: sa.Connection, text: str, limit: int) -> list[NamedRun]:
    query = (
        sa.select(runs.c.run_id, runs.c.case_id, runs.c.agent, runs.c.outcome, served_runs.c.thread_id)
        .outerjoin(served_runs, served_runs.c.run == runs.c.id)
        # By the index: ids are compared by their bytes.
        .where(runs.c.run_id >= text, runs.c.run_id <= text + "\U0010ffff")
        .order_by(runs.c.run_id)
        .limit(limit)
    )
    return [
        NamedRun(row.run_id, row.case_id if row.thread_id is None else None, row.agent, row.outcome)
        for row in connection.execute(query)
    ]
