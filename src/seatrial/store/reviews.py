"""What people say of runs, and which runs their word would tell most of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.runs import Outcome, RunKey
from seatrial.store import rows
from seatrial.store.database import Operation, Transaction
from seatrial.store.documents import column_text
from seatrial.store.rows import StoredOutcome
from seatrial.store.schema import cases, reviews, runs, split_votes, verdicts

MAX_COMMENT = 4000
"""Characters."""
MAX_LOOKED_AT = 5000
"""Runs among which those are looked for of which graders say different things."""

ReviewWord: TypeAlias = Literal["right", "wrong", "unsure"]
"""What a person says of what the agent did."""
Chosen: TypeAlias = Literal["split", "contradicts", "random", "own"]
"""How a run was chosen for review: its votes were split, graders contradict each other, it was drawn at random, or the
person came across it."""


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """One person's word on one run."""

    at: int
    """Milliseconds since the epoch."""
    reviewer: str
    grader: str | None = None
    """The grader whose question it answers; None for the run as a whole."""
    word: ReviewWord
    comment: str = ""
    blind: bool = False
    """Whether what the grader said was hidden until the person had answered."""
    chosen: Chosen = "own"
    draw: int | None = None
    """Of a run that was drawn at random, which draw it was, from 0."""


class ReviewedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A review with what the run came to."""

    run_id: str
    key: RunKey
    outcome: StoredOutcome
    said: Outcome | None
    """What the grader says of it now; of a review of the run as a whole, what all graders together say. None when the
    grader said nothing."""
    review: Review


class ReviewCandidate(msgspec.Struct, frozen=True):
    """A run that somebody should look at."""

    run_id: str
    key: RunKey
    chosen: Chosen
    draw: int | None = None


class AddReview(Operation[int]):
    """Store a person's word, behind those that they gave before."""

    def __init__(self, run_id: str, review: Review) -> None:
        if review.word not in get_args(ReviewWord) or review.chosen not in get_args(Chosen):
            raise SeatrialError("invalid_request", "a review says `right`, `wrong` or `unsure`")
        if len(review.comment) > MAX_COMMENT:
            message = f"the comment has {len(review.comment):,} characters, and {MAX_COMMENT:,} are allowed"
            raise SeatrialError("invalid_request", message)
        reviewer = column_text(review.reviewer.strip())
        if not reviewer:
            raise SeatrialError("invalid_request", "a review needs the name of its reviewer")
        self._run_id = run_id
        self._values: dict[str, object] = {
            "at": review.at,
            "reviewer": reviewer,
            "grader": None if review.grader is None else column_text(review.grader),
            "word": review.word,
            "blind": int(review.blind),
            "chosen": review.chosen,
            "draw": review.draw,
            "comment": review.comment.encode("utf-8", "replace") or None,
        }

    def run(self, to: Transaction) -> int | SeatrialError:
        found = to.execute(sa.select(runs.c.id, runs.c.grading).where(runs.c.run_id == self._run_id)).first()
        if found is None:
            return rows.no_run(self._run_id)
        grader = self._values["grader"]
        of_run = (verdicts.c.run == found.id) & (verdicts.c.grading == found.grading)
        known = sa.select(verdicts.c.grader).where(of_run, verdicts.c.grader == grader)
        if grader is not None and to.execute(known).first() is None:
            return SeatrialError("not_found", f"no grader {str(grader)[:80]!r} judged the run {self._run_id}")
        if (before := to.execute(self._same(found.id)).scalar()) is not None:
            return int(before)  # a first try was committed, and nobody knew
        return int(
            to.execute(sa.insert(reviews).values(run=found.id, **self._values).returning(reviews.c.id)).scalar_one()
        )

    def _same(self, run: int) -> sa.Select[Any]:
        query = sa.select(reviews.c.id).where(reviews.c.run == run)
        for name, value in self._values.items():
            column = reviews.c[name]
            query = query.where(column.is_(None) if value is None else column == value)
        return query


def of_experiment(connection: sa.Connection, experiment: int) -> list[ReviewedRun]:
    """All reviews of the runs of an experiment, the oldest first."""
    return _read(connection, runs.c.experiment == experiment)


def of_run(connection: sa.Connection, run_id: str) -> list[ReviewedRun]:
    """All reviews of a run, the oldest first."""
    return _read(connection, runs.c.run_id == run_id)


def _read(connection: sa.Connection, where: sa.ColumnElement[bool]) -> list[ReviewedRun]:
    said = (
        (verdicts.c.run == runs.c.id) & (verdicts.c.grading == runs.c.grading) & (verdicts.c.grader == reviews.c.grader)
    )
    query: sa.Select[Any] = (
        sa.select(
            *[runs.c[name] for name in ("run_id", "agent", "case_id", "trial", "outcome")],
            verdicts.c.outcome.label("said"),
            *[reviews.c[name] for name in ("at", "reviewer", "grader", "word", "blind", "chosen", "draw", "comment")],
        )
        .select_from(reviews)
        .join(runs, runs.c.id == reviews.c.run)
        .outerjoin(verdicts, said)
        .where(where)
        .order_by(reviews.c.id)
    )
    return [_reviewed(row) for row in connection.execute(query)]


def _reviewed(row: sa.Row[Any]) -> ReviewedRun:
    judged = row.outcome if row.outcome in get_args(Outcome) else None
    return ReviewedRun(
        run_id=row.run_id,
        key=RunKey(row.agent, row.case_id, row.trial),
        outcome=row.outcome,
        said=judged if row.grader is None else row.said,
        review=Review(
            at=row.at,
            reviewer=row.reviewer,
            grader=row.grader,
            word=row.word,
            comment="" if row.comment is None else row.comment.decode("utf-8", "replace"),
            blind=bool(row.blind),
            chosen=row.chosen,
            draw=row.draw,
        ),
    )


def split(connection: sa.Connection, experiment: int, grader: str, limit: int) -> list[ReviewCandidate]:
    """Runs of which the votes of a judge are split, the closest votes first."""
    query: sa.Select[Any] = (
        sa.select(runs.c.run_id, runs.c.agent, runs.c.case_id, runs.c.trial)
        .join(split_votes, (split_votes.c.run == runs.c.id) & (split_votes.c.grading == runs.c.grading))
        .where(runs.c.experiment == experiment, split_votes.c.grader == grader)
        .order_by(split_votes.c.agreement, runs.c.position, runs.c.agent, runs.c.trial)
        .limit(limit)
    )
    return [_candidate(row, "split") for row in connection.execute(query)]


def contradicted(connection: sa.Connection, experiment: int, grader: str, limit: int) -> list[ReviewCandidate]:
    """Runs of which a grader says another thing than all graders together, among the first of those that failed and of
    those that passed; what it passes and others fail comes first."""
    found: list[ReviewCandidate] = []
    for together, alone in (("failed", "passed"), ("passed", "failed")):
        some = (
            sa.select(
                runs.c.id, runs.c.grading, runs.c.run_id, runs.c.agent, runs.c.case_id, runs.c.trial, runs.c.position
            )
            .where(runs.c.experiment == experiment, runs.c.outcome == together)
            .order_by(runs.c.position)
            .limit(MAX_LOOKED_AT)
            .subquery()
        )
        query = (
            sa.select(some)
            .join(verdicts, (verdicts.c.run == some.c.id) & (verdicts.c.grading == some.c.grading))
            .where(verdicts.c.grader == grader, verdicts.c.outcome == alone)
            .order_by(some.c.position, some.c.agent, some.c.trial)
            .limit(limit)
        )
        found += [_candidate(row, "contradicts") for row in connection.execute(query)]
    return found[:limit]


def judged(connection: sa.Connection, experiment: int, grader: str | None, keys: Sequence[RunKey]) -> dict[RunKey, str]:
    """The ids of those of these runs that a grader judged as passed or failed; with None, all graders together."""
    if not keys:
        return {}
    place = sa.tuple_(runs.c.case_id, runs.c.agent, runs.c.trial)
    query = sa.select(runs.c.run_id, runs.c.agent, runs.c.case_id, runs.c.trial).where(
        runs.c.experiment == experiment, place.in_([(key.case_id, key.agent, key.trial) for key in keys])
    )
    if grader is None:
        query = query.where(runs.c.outcome.in_(("passed", "failed")))
    else:
        query = query.join(verdicts, (verdicts.c.run == runs.c.id) & (verdicts.c.grading == runs.c.grading)).where(
            verdicts.c.grader == grader, verdicts.c.outcome.in_(("passed", "failed"))
        )
    return {RunKey(row.agent, row.case_id, row.trial): row.run_id for row in connection.execute(query)}


def case_ids(connection: sa.Connection, experiment: int, positions: Sequence[int]) -> dict[int, str]:
    """The cases at these places of the suite."""
    query = sa.select(cases.c.position, cases.c.case_id).where(
        cases.c.experiment == experiment, cases.c.position.in_(positions)
    )
    return {row.position: row.case_id for row in connection.execute(query)}


def _candidate(row: sa.Row[Any], chosen: Chosen) -> ReviewCandidate:
    return ReviewCandidate(row.run_id, RunKey(row.agent, row.case_id, row.trial), chosen)
