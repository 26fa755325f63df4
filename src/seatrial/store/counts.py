"""What the runs of an experiment add up to, counted by the database."""

from __future__ import annotations

from typing import Any, TypeVar, get_args

import msgspec
import sqlalchemy as sa

from seatrial.runs import Judgement
from seatrial.store.rows import Outcome
from seatrial.store.schema import cases, runs, verdicts

Word = TypeVar("Word")

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)


class AgentCounts(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one agent."""

    agent: str
    runs: int
    outcomes: dict[Outcome, int]
    error_classes: dict[str, int]
    attempts: int
    steps: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    duration_ms: float


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


def agents(connection: sa.Connection, experiment: int) -> list[AgentCounts]:
    """By agent."""
    counted = connection.execute(
        sa.select(
            runs.c.agent,
            sa.func.count().label("runs"),
            *map(_total, (runs.c.attempts, runs.c.steps, runs.c.input_tokens, runs.c.output_tokens)),
            *map(_total, (runs.c.cost_usd, runs.c.duration_ms)),
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
            steps=int(steps),
            input_tokens=int(tokens_in),
            output_tokens=int(tokens_out),
            cost_usd=cost,
            duration_ms=duration,
        )
        for agent, count, attempts, steps, tokens_in, tokens_out, cost, duration, *outcomes in counted
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


def _total(column: sa.Column[Any]) -> sa.ColumnElement[float]:
    # As floating point: an agent may report any number of tokens, and a sum of integers can overflow.
    return sa.func.coalesce(sa.func.sum(sa.cast(column, sa.Double)), 0.0)


def _present(words: tuple[Word, ...], counts: list[int]) -> dict[Word, int]:
    return {word: count for word, count in zip(words, counts, strict=True) if count}
