"""Verdicts together: waiting for those that wait, and what their scores come to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

import msgspec

from seatrial.runs import Verdict


async def all_verdicts(found: Sequence[Verdict | Awaitable[Verdict]]) -> list[Verdict]:
    """The verdicts, in order; those that wait do so together."""

    async def settled(waiting: Awaitable[Verdict]) -> Verdict:
        return await waiting

    async with asyncio.TaskGroup() as group:
        tasks = [item if isinstance(item, Verdict) else group.create_task(settled(item)) for item in found]
    return [task if isinstance(task, Verdict) else task.result() for task in tasks]


class WeightedScore(msgspec.Struct):
    """The weighted mean of scores, and how much of the weight has none."""

    gained: float
    total: float
    """The weight of the graders that judged."""
    absent: float = 0.0
    """The weight of those that did not."""

    @property
    def value(self) -> float | None:
        """The mean of those that judged, from 0 to 1: rounding of the sums must not lift it above."""
        return min(self.gained / self.total, 1.0) if self.total else None

    @property
    def lowest(self) -> float:
        """What the mean would be, had every absent grader scored 0."""
        return min(self.gained / (self.total + self.absent), 1.0)

    @property
    def highest(self) -> float:
        """What the mean would be, had every absent grader scored 1."""
        return min((self.gained + self.absent) / (self.total + self.absent), 1.0)

    def reaches(self, threshold: float) -> bool | None:
        """Whether the threshold is reached; None when that depends on the graders that did not judge."""
        if self.total and self.lowest >= threshold:
            return True
        return False if self.highest < threshold else None

    def against(self, threshold: float) -> str:
        """The comparison with a threshold, in words."""
        reached = self.reaches(threshold)
        sign = "cannot be compared with" if reached is None else ">=" if reached else "<"
        if not self.absent:
            score = f"{self.gained:.4g} / {self.total:.4g} = {self.lowest:.4g}"
        else:
            score = f"{self.lowest:.4g} to {self.highest:.4g}, for graders that weigh {self.absent:g} did not judge:"
        return f"weighted score {score} {sign} threshold {threshold:g}"


def weighted_score(verdicts: Sequence[Verdict]) -> WeightedScore | None:
    """What the scores of the verdicts come to; None if nothing weighs anything."""
    weighted = WeightedScore(0.0, 0.0)
    for verdict in verdicts:
        if verdict.score is not None:
            weighted.gained += verdict.weight * verdict.score
            weighted.total += verdict.weight
        else:
            weighted.absent += verdict.weight
    return weighted if weighted.total or weighted.absent else None
