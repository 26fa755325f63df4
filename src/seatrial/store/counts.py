"""What the runs of an experiment add up to, counted by the database."""

from __future__ import annotations

from typing import TypeVar, get_args

import msgspec
import sqlalchemy as sa

from seatrial.runs import Judgement
from seatrial.store.queries import weight_of
from seatrial.store.rows import Outcome
from seatrial.store.schema import cases, notes, runs, verdicts
from seatrial.transcript import Weight

Word = TypeVar("Word")

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
WEIGHTS: tuple[Weight, ...] = ("serious", "look", "harmless")


class AgentCounts(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one agent."""

    agent: str
    runs: int
    outcomes: dict[Outcome, int]
    error_classes: dict[str, int]
    attempts: int


class Cell(msgspec.Struct, frozen=True):
    """What one agent made of one case, over all trials."""

    case_id: str
    agent: str
    score: float | None
    """Mean of the trials that have one."""
    outcomes: dict[Outcome, int]


class GraderCounts(msgspec.Struct, frozen=True):
    """What one grader said of one agent."""

    agent: str
    grader: str
    score: float | None
    """Mean of the verdicts that have one."""
    judgements: dict[Judgement, int]


class NoteCounts(msgspec.Struct, frozen=True):
    """Notes of one code and weight on the runs of one agent."""

    agent: str
    code: str
    weight: Weight
    notes: int
    runs: int
    """Runs that have at least one."""


class NoteTotals(msgspec.Struct, frozen=True):
    """All notes on the runs of an experiment."""

    counts: list[NoteCounts] = []
    """By weight, the most serious first, then by agent and code."""
    runs: int = 0
    """Runs with a note that needs a look."""
    serious_runs: int = 0
    """Runs with a serious one."""


def agents(connection: sa.Connection, experiment: int) -> list[AgentCounts]:
    """By agent."""
    counted = connection.execute(
        sa.select(
            runs.c.agent,
            sa.func.count().label("runs"),
            sa.func.sum(runs.c.attempts),
            *[sa.func.count().filter(runs.c.outcome == outcome) for outcome in OUTCOMES],
        )
        .where(runs.c.experiment == experiment)
        .group_by(runs.c.agent)
        .order_by(runs.c.agent)
    )
    faults = _error_classes(connection, experiment)
    return [
        AgentCounts(
            agent=agent,
            runs=count,
            outcomes=_present(OUTCOMES, outcomes),
            error_classes=faults.get(agent, {}),
            attempts=int(attempts),
        )
        for agent, count, attempts, *outcomes in counted
    ]


def matrix(connection: sa.Connection, experiment: int) -> list[Cell]:
    """Every case with every agent that has run it, in the order of the suite."""
    counted = connection.execute(
        sa.select(
            runs.c.case_id,
            runs.c.agent,
            sa.func.avg(runs.c.score),
            *[sa.func.count().filter(runs.c.outcome == outcome) for outcome in OUTCOMES],
        )
        .join(cases, (cases.c.experiment == runs.c.experiment) & (cases.c.case_id == runs.c.case_id))
        .where(runs.c.experiment == experiment)
        .group_by(cases.c.position, runs.c.case_id, runs.c.agent)
        .order_by(cases.c.position, runs.c.agent)
    )
    return [Cell(case_id, agent, score, _present(OUTCOMES, count)) for case_id, agent, score, *count in counted]


def graders(connection: sa.Connection, experiment: int) -> list[GraderCounts]:
    """What each grader said of each agent, in the grading that counts."""
    counted = connection.execute(
        sa.select(
            runs.c.agent,
            verdicts.c.grader,
            sa.func.avg(verdicts.c.score),
            *[sa.func.count().filter(verdicts.c.judgement == judgement) for judgement in JUDGEMENTS],
        )
        .join(verdicts, (verdicts.c.run == runs.c.id) & (verdicts.c.grading == runs.c.grading))
        .where(runs.c.experiment == experiment)
        .group_by(runs.c.agent, verdicts.c.grader)
        .order_by(runs.c.agent, verdicts.c.grader)
    )
    return [GraderCounts(agent, grader, score, _present(JUDGEMENTS, count)) for agent, grader, score, *count in counted]


def note_totals(connection: sa.Connection, experiment: int) -> NoteTotals:
    """What was noted on the runs of each agent, by code."""
    # By run, because a run with notes of two codes is one run to look at.
    grouped = connection.execution_options(stream_results=True).execute(
        sa.select(runs.c.agent, notes.c.run, notes.c.code, notes.c.weight, sa.func.count())
        .join(notes, notes.c.run == runs.c.id)
        .where(runs.c.experiment == experiment)
        .group_by(runs.c.agent, notes.c.run, notes.c.code, notes.c.weight)
    )
    found: dict[tuple[str, str, Weight], tuple[int, int]] = {}
    heaviest: dict[int, int] = {}
    for agent, run, code, stored, count in grouped:
        weight = weight_of(code, stored)
        before = found.get((agent, code, weight), (0, 0))
        found[agent, code, weight] = (before[0] + count, before[1] + 1)
        heaviest[run] = min(heaviest.get(run, len(WEIGHTS)), WEIGHTS.index(weight))
    ordered = sorted(found.items(), key=lambda item: (WEIGHTS.index(item[0][2]), item[0]))
    return NoteTotals(
        [NoteCounts(*key, count, of_runs) for key, (count, of_runs) in ordered],
        runs=sum(WEIGHTS[place] != "harmless" for place in heaviest.values()),
        serious_runs=sum(WEIGHTS[place] == "serious" for place in heaviest.values()),
    )


def _error_classes(connection: sa.Connection, experiment: int) -> dict[str, dict[str, int]]:
    counted = connection.execute(
        sa.select(runs.c.agent, runs.c.error_class, sa.func.count())
        .where(runs.c.experiment == experiment, runs.c.error_class.is_not(None))
        .group_by(runs.c.agent, runs.c.error_class)
        .order_by(runs.c.agent, runs.c.error_class)
    )
    found: dict[str, dict[str, int]] = {}
    for agent, error_class, count in counted:
        found.setdefault(agent, {})[error_class] = count
    return found


def _present(words: tuple[Word, ...], counts: list[int]) -> dict[Word, int]:
    return {word: count for word, count in zip(words, counts, strict=True) if count}
