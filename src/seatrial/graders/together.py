"""Verdicts together: waiting for those that wait, and what their scores come to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from math import fsum

import msgspec

from seatrial.runs import Verdict
from seatrial.trajectory.completeness import Claim, reached

GRADER_ERRORED = "grader_errored"


async def all_verdicts(found: Sequence[Verdict | Awaitable[Verdict]]) -> list[Verdict]:
    """The verdicts, in order; those that wait do so together."""

    async def settled(waiting: Awaitable[Verdict]) -> Verdict:
        return await waiting

    async with asyncio.TaskGroup() as group:
        tasks = [item if isinstance(item, Verdict) else group.create_task(settled(item)) for item in found]
    return [task if isinstance(task, Verdict) else task.result() for task in tasks]


class WeightedScore(msgspec.Struct):
    """The weighted mean of scores, and what it would be if all of them were known."""

    gained: float
    total: float
    """The weight of the graders that judged."""
    absent: float
    """The weight of those that did not."""
    lowest: float
    """What the mean would be, had every absent grader scored 0, and every other the lowest that it can."""
    highest: float
    """The same with 1, and the highest."""
    code: str
    """Why the mean is not known exactly: the code of the first grader that is the reason."""

    @property
    def value(self) -> float | None:
        """The mean of those that judged, from 0 to 1: rounding of the sums must not lift it above."""
        return min(self.gained / self.total, 1.0) if self.total else None

    def reaches(self, threshold: float) -> Claim:
        """Whether the threshold is reached; None when that depends on what is not known."""
        return reached(self.lowest, self.highest, threshold) if self.total else None

    def against(self, threshold: float) -> str:
        """The comparison with a threshold, in words."""
        holds = self.reaches(threshold)
        sign = "cannot be compared with" if holds is None else ">=" if holds else "<"
        if not self.code:
            score = f"{self.gained:.4g} / {self.total:.4g} = {self.lowest:.4g}"
        elif self.absent:
            score = f"{self.lowest:.4g} to {self.highest:.4g}, for graders that weigh {self.absent:g} did not judge:"
        else:
            score = f"{self.lowest:.4g} to {self.highest:.4g}, for not all that was scored is known ({self.code}):"
        return f"weighted score {score} {sign} threshold {threshold:g}"


def weighted_score(verdicts: Sequence[Verdict]) -> WeightedScore | None:
    """What the scores of the verdicts come to; None if nothing weighs anything."""
    weighing = [verdict for verdict in verdicts if verdict.weight]
    if not weighing:
        return None
    total = fsum([verdict.weight for verdict in weighing])
    absent = fsum([verdict.weight for verdict in weighing if verdict.score is None])
    ranges = [score_range(verdict) for verdict in weighing]
    return WeightedScore(
        gained=fsum([verdict.weight * (verdict.score or 0.0) for verdict in weighing]),
        total=fsum([verdict.weight for verdict in weighing if verdict.score is not None]),
        absent=absent,
        lowest=_mean(weighing, [lowest for lowest, _ in ranges], total),
        highest=_mean(weighing, [highest for _, highest in ranges], total),
        code=why_inexact(weighing),
    )


def score_range(verdict: Verdict) -> tuple[float, float]:
    """Between what the score of a grader lies: that of one that did not judge may be anything."""
    if verdict.score is None:
        return 0.0, 1.0
    if (known := verdict.score_range) is not None:
        return known.lowest, known.highest
    return verdict.score, verdict.score


def why_inexact(verdicts: Sequence[Verdict]) -> str:
    """The code of the first grader that did not judge, else of the first whose score is a range; else nothing."""
    absent = [verdict.code or GRADER_ERRORED for verdict in verdicts if verdict.score is None]
    return next(iter([*absent, *(verdict.score_range.code for verdict in verdicts if verdict.score_range)]), "")


def _mean(verdicts: Sequence[Verdict], scores: Sequence[float], total: float) -> float:
    gained = fsum([verdict.weight * score for verdict, score in zip(verdicts, scores, strict=True)])
    return min(gained / total, 1.0)
