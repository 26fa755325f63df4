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
    """The weighted mean of scores."""

    gained: float
    total: float

    @property
    def value(self) -> float:
        """From 0 to 1; rounding of the sums must not lift it above."""
        return min(self.gained / self.total, 1.0)

    def __str__(self) -> str:
        return f"weighted score {self.gained:.4g} / {self.total:.4g} = {self.value:.4g}"


def weighted_score(verdicts: Sequence[Verdict]) -> WeightedScore | None:
    """What the verdicts that have a score come to; None if they have no weight."""
    gained = total = 0.0
    for verdict in verdicts:
        if verdict.score is not None:
            gained += verdict.weight * verdict.score
            total += verdict.weight
    return WeightedScore(gained, total) if total else None
