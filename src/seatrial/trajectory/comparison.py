"""Run against run: two trajectories aligned, and how the aligned steps differ.

Steps are aligned in order: first as many as possible of those with equal names and arguments, then, between two such
steps that follow each other, as many as possible of those with equal names.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec
from msgspec import UNSET

from seatrial.trajectory.assign import in_order_by_key
from seatrial.trajectory.extraction import Trajectory
from seatrial.trajectory.step import Step, duration
from seatrial.trajectory.values import Difference, TooDeepError, call_keys, differences


class Aligned(msgspec.Struct, omit_defaults=True, gc=False):
    """A step of each run, of the same tool."""

    a: int
    b: int
    differences: list[Difference]
    """Where the arguments differ: `expected` is what run a has, `actual` what run b has. Empty for equal calls."""
    duration_delta_ms: float | None = None
    """How much longer the step took in run b, where both durations are known."""
    tokens_delta: int | None = None


class Parting(msgspec.Struct, omit_defaults=True, gc=False):
    """The first steps that are not equal; a run that has ended before has none."""

    a: int | None = None
    b: int | None = None


class RunDiff(msgspec.Struct, omit_defaults=True):
    """How run b differs from run a."""

    equal: bool
    """Whether both made the same calls in the same order."""
    aligned: list[Aligned]
    only_a: list[int]
    only_b: list[int]
    duration_delta_ms: float | None = None
    """The sum over the aligned steps where it is known."""
    tokens_delta: int | None = None
    first_divergence: Parting | None = None


def compare(a: Trajectory | list[Step], b: Trajectory | list[Step]) -> RunDiff:
    """Align two runs and say how they differ."""
    one = a.steps if isinstance(a, Trajectory) else a
    other = b.steps if isinstance(b, Trajectory) else b
    keys_a, keys_b = call_keys(one, b"a"), call_keys(other, b"b")
    equal = list(zip(*in_order_by_key(keys_a, keys_b), strict=True))
    pairs = []
    for (start_a, start_b), (end_a, end_b) in pairwise([(-1, -1), *equal, (len(one), len(other))]):
        names_a = [step.name for step in one[start_a + 1 : end_a]]
        names_b = [step.name for step in other[start_b + 1 : end_b]]
        if names_a and names_b:
            for index_a, index_b in zip(*in_order_by_key(names_a, names_b), strict=True):
                pairs.append((start_a + 1 + index_a, start_b + 1 + index_b))
        pairs.append((end_a, end_b))
    pairs.pop()
    same = 0
    while same < len(one) and same < len(other) and keys_a[same] == keys_b[same]:
        same += 1
    aligned = [_aligned(one[index_a], other[index_b], index_a, index_b) for index_a, index_b in pairs]
    in_a, in_b = {pair.a for pair in aligned}, {pair.b for pair in aligned}
    times = [pair.duration_delta_ms for pair in aligned if pair.duration_delta_ms is not None]
    tokens = [pair.tokens_delta for pair in aligned if pair.tokens_delta is not None]
    return RunDiff(
        equal=same == len(one) == len(other),
        aligned=aligned,
        only_a=[index for index in range(len(one)) if index not in in_a],
        only_b=[index for index in range(len(other)) if index not in in_b],
        duration_delta_ms=sum(times) if times else None,
        tokens_delta=sum(tokens) if tokens else None,
        first_divergence=None
        if same == len(one) == len(other)
        else Parting(same if same < len(one) else None, same if same < len(other) else None),
    )


def _aligned(one: Step, other: Step, index_a: int, index_b: int) -> Aligned:
    took_a, took_b = duration(one), duration(other)
    return Aligned(
        index_a,
        index_b,
        _differences(one, other),
        None if took_a is None or took_b is None else took_b - took_a,
        None if one.tokens is None or other.tokens is None else other.tokens - one.tokens,
    )


def _differences(one: Step, other: Step) -> list[Difference]:
    if one.arguments_text is not None or other.arguments_text is not None:
        if one.arguments_text == other.arguments_text:
            return []
        sent = [step.arguments if step.arguments_text is None else step.arguments_text for step in (one, other)]
        return [Difference("/arguments", *sent)]
    try:
        return list(differences(one.arguments, other.arguments, "exact", ("arguments",)))
    except TooDeepError:
        return [Difference("/arguments", UNSET, "nested too deeply to be compared")]
