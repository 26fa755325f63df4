"""Run against run: two trajectories aligned, and how the aligned steps differ.

Steps are aligned in order: first as many as possible of those with equal names and arguments, then, between two such
steps that follow each other, as many as possible of those with equal names. Very long runs are aligned in parts, so
that time and memory grow with their length, and not with its square.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET

from seatrial.trajectory.assign import in_order_by_key
from seatrial.trajectory.extraction import Trajectory
from seatrial.trajectory.step import Step, duration
from seatrial.trajectory.values import Difference, TooDeepError, call_keys, differences

K = TypeVar("K", bound=Hashable)

MAX_TABLE = 250_000_000
"""Pairs of steps that are compared at once; more of them are aligned in parts."""
PART = 4096
"""Steps of a part."""


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


class Alignment(msgspec.Struct, frozen=True):
    """Which steps of two runs belong together."""

    a: array[int]
    b: array[int]
    """The steps of each pair, ascending on both sides."""
    first_divergence: Parting | None
    whole: bool
    """False when the runs were aligned in parts: then more of their steps may be equal than were paired."""


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
    found = align(keys_a, keys_b, [step.name for step in one], [step.name for step in other])
    aligned = [
        _aligned(one[at_a], other[at_b], at_a, at_b, equal=keys_a[at_a] == keys_b[at_b])
        for at_a, at_b in zip(found.a, found.b, strict=True)
    ]
    in_a, in_b = set(found.a), set(found.b)
    times = [pair.duration_delta_ms for pair in aligned if pair.duration_delta_ms is not None]
    tokens = [pair.tokens_delta for pair in aligned if pair.tokens_delta is not None]
    return RunDiff(
        equal=found.first_divergence is None,
        aligned=aligned,
        only_a=[index for index in range(len(one)) if index not in in_a],
        only_b=[index for index in range(len(other)) if index not in in_b],
        duration_delta_ms=sum(times) if times else None,
        tokens_delta=sum(tokens) if tokens else None,
        first_divergence=found.first_divergence,
    )


def align(calls_a: list[K], calls_b: list[K], names_a: Sequence[str], names_b: Sequence[str]) -> Alignment:
    """Align two runs by their calls, which are equal or not, and by the names of the tools."""
    same, shorter = 0, min(len(calls_a), len(calls_b))
    while same < shorter and calls_a[same] == calls_b[same]:
        same += 1
    equal, whole = _in_order(calls_a[same:], calls_b[same:])
    steps_a, steps_b = array("l", range(same)), array("l", range(same))
    before = -1, -1
    for pair in [*equal, (len(calls_a) - same, len(calls_b) - same)]:
        start_a, start_b = before[0] + 1 + same, before[1] + 1 + same
        end_a, end_b = pair[0] + same, pair[1] + same
        if start_a < end_a and start_b < end_b:
            named, all_of_it = _in_order(list(names_a[start_a:end_a]), list(names_b[start_b:end_b]))
            whole = whole and all_of_it
            for index_a, index_b in named:
                steps_a.append(start_a + index_a)
                steps_b.append(start_b + index_b)
        steps_a.append(end_a)
        steps_b.append(end_b)
        before = pair
    steps_a.pop()
    steps_b.pop()
    divergence = None
    if not same == len(calls_a) == len(calls_b):
        divergence = Parting(same if same < len(calls_a) else None, same if same < len(calls_b) else None)
    return Alignment(steps_a, steps_b, divergence, whole)


def _in_order(one: list[K], other: list[K]) -> tuple[list[tuple[int, int]], bool]:
    """Equal values of both in their order, as many as possible; and whether that is certain."""
    if len(one) * len(other) <= MAX_TABLE:
        return list(zip(*in_order_by_key(one, other), strict=True)), True
    found: list[tuple[int, int]] = []
    at_a = at_b = 0
    while at_a < len(one) and at_b < len(other):
        part_a, part_b = one[at_a : at_a + PART], other[at_b : at_b + PART]
        pairs = list(zip(*in_order_by_key(part_a, part_b), strict=True))
        if at_a + PART < len(one) or at_b + PART < len(other):
            # The later half of a part may go better with what follows it.
            pairs = [pair for pair in pairs if max(pair) < PART // 2]
        found += [(at_a + index_a, at_b + index_b) for index_a, index_b in pairs]
        if pairs:
            at_a, at_b = at_a + pairs[-1][0] + 1, at_b + pairs[-1][1] + 1
        if len(pairs) < PART // 4:
            # Little of this is equal: the longer of both has what the other lacks.
            if len(one) - at_a > len(other) - at_b:
                at_a += PART // 4
            else:
                at_b += PART // 4
    return found, False


def _aligned(one: Step, other: Step, index_a: int, index_b: int, *, equal: bool) -> Aligned:
    took_a, took_b = duration(one), duration(other)
    return Aligned(
        index_a,
        index_b,
        [] if equal else call_differences(one, other),
        None if took_a is None or took_b is None else took_b - took_a,
        None if one.tokens is None or other.tokens is None else other.tokens - one.tokens,
    )


def call_differences(one: Step, other: Step) -> list[Difference]:
    """Where the arguments of two calls differ: `expected` is what the first has, `actual` what the second has."""
    if one.arguments_text is not None or other.arguments_text is not None:
        if one.arguments_text == other.arguments_text:
            return []
        sent = [step.arguments if step.arguments_text is None else step.arguments_text for step in (one, other)]
        return [Difference("/arguments", *sent)]
    try:
        return list(differences(one.arguments, other.arguments, "exact", ("arguments",)))
    except TooDeepError:
        return [Difference("/arguments", UNSET, "nested too deeply to be compared")]
