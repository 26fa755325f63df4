"""The verdict: what follows from an assignment of items to steps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import msgspec

from seatrial.trajectory.expectation import Expectation, Mode
from seatrial.trajectory.item import Item, explain
from seatrial.trajectory.names import Names
from seatrial.trajectory.prose import paragraph
from seatrial.trajectory.result import Assertion, Divergence, MatchResult, Mismatch, Pair
from seatrial.trajectory.step import Step


class Tally(msgspec.Struct, frozen=True, gc=False):
    """What a mode says: its score as a fraction, and whether it passes."""

    hits: int
    total: int
    passed: bool


def blank_result(mode: Mode) -> MatchResult:
    """A result with nothing in it yet."""
    return MatchResult(mode, False, 0.0, 0.0, 0.0, 0.0, [], [], [], [], [], [], "")


def tally_pairs(
    result: MatchResult, expectation: Expectation, kept: Sequence[int], items: list[int], places: list[int]
) -> Tally:
    """Write down which items and steps were matched, and say what the mode makes of it."""
    mode, size, made, found = expectation.mode, len(expectation.tools), len(kept), len(items)
    result.matched = list(map(Pair, items, places))
    result.recall = found / size if size else 1.0
    result.precision = found / made if made else 1.0
    if found < size:
        matched = set(items)
        result.missing = [item for item in range(size) if item not in matched]
    if found < made:
        matched = set(places)
        result.extra = [index for index in kept if index not in matched]
    total, text = _goal(mode, size, made)
    result.assertions.append(Assertion(f"{text}: {found} of {total}", found == total))
    return Tally(found, total, found == total)


def find_differences(
    result: MatchResult,
    called: Sequence[str],
    kept: Sequence[int],
    item_at: Callable[[int], Item],
    step_at: Callable[[int], Step],
) -> None:
    """Write down where items and steps part. Both are asked for only where they are needed."""
    if result.missing and result.extra:
        result.mismatches = _mismatches(result, called, item_at, step_at)
    if not result.assertions[0].passed:
        result.first_divergence = _divergence(result.mode, kept, result)


def conclude(
    result: MatchResult, expectation: Expectation, called: Sequence[str], kept: Sequence[int], tally: Tally
) -> None:
    """Score, pass or fail, and put it into words; `called` are the names of all steps."""
    passed = tally.passed
    result.score = tally.hits / tally.total if tally.total else 1.0
    if expectation.min_score is not None:
        passed = passed or result.score >= expectation.min_score
    if result.violations:
        result.score, passed = 0.0, False
    result.passed = passed
    if both := result.precision + result.recall:
        result.f1 = 2 * result.precision * result.recall / both
    result.prose = paragraph(expectation, called, kept, result, tally.hits, tally.total)


def _goal(mode: Mode, size: int, made: int) -> tuple[int, str]:
    """How many pairs the mode asks for, and what that would be."""
    if mode == "exact":
        return max(size, made), "the expected calls in order, and no others"
    if mode == "unordered":
        return max(size, made), "the expected calls in any order, and no others"
    if mode == "subset":
        return made, "no calls beyond the expected ones"
    if mode == "superset":
        return size, "every expected call"
    if mode == "in_order":
        return size, "every expected call in order"
    return size, "every expected call after those it waits for"


def _mismatches(
    result: MatchResult, called: Sequence[str], item_at: Callable[[int], Item], step_at: Callable[[int], Step]
) -> list[Mismatch]:
    """For each missing item the extra step of its name that is nearest to where it would have been."""
    by_name: dict[str, list[int]] = {}
    for index in result.extra:
        by_name.setdefault(called[index], []).append(index)
    found = []
    pairs = iter(result.matched)
    pair = next(pairs, None)
    shift = 0
    for missing in result.missing:
        while pair is not None and pair.expected < missing:
            shift = pair.actual - pair.expected
            pair = next(pairs, None)
        item = item_at(missing)
        nearest = _nearest(item.tool, by_name, missing + shift)
        if nearest is not None:
            found.append(Mismatch(missing, nearest, explain(item, step_at(nearest))))
    return found


def _nearest(tool: Names, by_name: dict[str, list[int]], place: int) -> int | None:
    names = tool.plain if tool.globs is None else [name for name in by_name if tool.fits(name)]
    nearest: int | None = None
    for name in names:
        indices = by_name.get(name, ())
        at = bisect_left(indices, place)
        for index in indices[max(at - 1, 0) : at + 1]:
            if nearest is None or (abs(index - place), index) < (abs(nearest - place), nearest):
                nearest = index
    return nearest


def _divergence(mode: Mode, kept: Sequence[int], result: MatchResult) -> Divergence:
    """Where expectation and trajectory part for the first time, by what the mode looks at."""
    missing = result.missing[0] if result.missing else None
    extra = result.extra[0] if result.extra else None
    if mode == "exact":
        same = 0
        for pair in result.matched:
            if pair.expected != same or pair.actual != kept[same]:
                break
            same += 1
        size = len(result.matched) + len(result.missing)
        return Divergence(same if same < size else None, kept[same] if same < len(kept) else None)
    if mode == "subset":
        return Divergence(None, extra)
    if mode == "unordered":
        return Divergence(missing, extra)
    near = next((mismatch.actual for mismatch in result.mismatches if mismatch.expected == missing), None)
    return Divergence(missing, near)
