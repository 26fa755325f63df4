"""Matching: an expectation and the steps of a run give a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.errors import SeatrialError
from seatrial.patterns import MATCH_S
from seatrial.time_limit import TimeLimit, current_limit
from seatrial.trajectory.assign import Assignment, any_order_by_key, in_order, in_order_by_key
from seatrial.trajectory.compatibility import Compatibility
from seatrial.trajectory.constraints import check_constraints, violations
from seatrial.trajectory.expectation import Expectation, compile_expectation
from seatrial.trajectory.given import steps_given
from seatrial.trajectory.keys import call_keys, keys
from seatrial.trajectory.prose import paragraph, times
from seatrial.trajectory.result import Assertion, MatchResult
from seatrial.trajectory.step import FAILED, Step, duration
from seatrial.trajectory.verdict import Tally, blank_result, conclude, find_differences, tally_pairs

_NOT_DECIDED = frozenset({"search_budget", "time_limit", "text_too_long", "invalid_document"})
"""What a match gives up with that can neither be passed nor failed."""


def match_trajectory(
    mode: str, expected: Any, actual: Sequence[Step | Mapping[str, Any]], **options: Any
) -> MatchResult:
    """Compile and match in one go. For `any_order`, `expected` are the minimums."""
    key = "minimums" if mode == "any_order" else "expected"
    return match(compile_expectation({"mode": mode, key: expected, **options}), steps_given(actual))


def match(expectation: Expectation, steps: list[Step]) -> MatchResult:
    """Say whether the steps are what was expected, how far, and where they are not.

    What cannot be said within the limits of patterns, of the search and of time is `errored`, with the reason. Without
    a time limit around it, a match has `MATCH_S`.
    """
    try:
        if current_limit() is not None:
            return _match(expectation, steps)
        with TimeLimit(MATCH_S):
            return _match(expectation, steps)
    except SeatrialError as error:
        if error.code not in _NOT_DECIDED:
            raise
        result = blank_result(expectation.mode)
        result.errored = error.message
        result.prose = paragraph(expectation, [step.name for step in steps], range(len(steps)), result, 0, 0)
        return result


def _match(expectation: Expectation, steps: list[Step]) -> MatchResult:
    called = [step.name for step in steps]
    kept = _kept(expectation, steps)
    result = blank_result(expectation.mode)
    if expectation.constrained:
        result.violations = list(violations(expectation, steps, kept))
    if expectation.mode == "any_order":
        tally = _count(expectation, called, kept, result)
    else:
        items, places = _assign(expectation, steps, kept)
        tally = tally_pairs(result, expectation, kept, items, places)
        find_differences(result, called, kept, expectation.item, steps.__getitem__)
        if expectation.timed:
            tally = _time(expectation, steps, items, places, tally, result.assertions)
    conclude(result, expectation, called, kept, tally)
    if expectation.constrained:
        result.assertions += check_constraints(expectation, result.violations)
    return result


def _kept(expectation: Expectation, steps: list[Step]) -> Sequence[int]:
    """The steps that count: all, unless failed calls are ignored or joined with the equal call that follows."""
    if expectation.ignore_failed:
        return [index for index, step in enumerate(steps) if step.status not in FAILED]
    if not expectation.collapse_retries:
        return range(len(steps))
    called_again: set[bytes] = set()
    kept = []
    for index, key in reversed(list(enumerate(call_keys(steps)))):
        if key not in called_again or steps[index].status not in FAILED:
            kept.append(index)
        called_again.add(key)
    return kept[::-1]


def _assign(expectation: Expectation, steps: list[Step], kept: Sequence[int]) -> Assignment:
    """Matched items, and for each the index of its step among all steps."""
    if len(kept) == len(steps):
        return _assign_all(expectation, steps)
    items, places = _assign_all(expectation, [steps[index] for index in kept])
    return items, [kept[place] for place in places]


def _assign_all(expectation: Expectation, steps: list[Step]) -> Assignment:
    mode = expectation.mode
    ordered = mode in ("in_order", "exact")
    if expectation.keys is not None and mode != "partial_order":
        actual = _step_keys(expectation, steps)
        if actual == expectation.keys:  # just as expected, as it should be
            return list(range(len(actual))), list(range(len(actual)))
        return (in_order_by_key if ordered else any_order_by_key)(expectation.keys, actual)
    table = Compatibility(expectation.items, steps)
    if ordered:
        leftmost = table.leftmost()
        if leftmost is not None:
            return list(range(len(leftmost))), leftmost
        return in_order(table.rows(), len(steps))
    if mode == "partial_order":
        from seatrial.trajectory.order import in_partial_order

        return in_partial_order(table.rows(), expectation.before)
    from seatrial.trajectory.bipartite import any_order

    return any_order(table.rows(), len(steps))


def _step_keys(expectation: Expectation, steps: list[Step]) -> list[bytes]:
    if not expectation.by_name:
        return call_keys(steps)
    return keys(
        [
            [step.name]
            if step.name in expectation.by_name
            else [step.name, step.arguments]
            if step.arguments_text is None
            else [step.name, None, step.arguments_text]
            for step in steps
        ]
    )


def _time(
    expectation: Expectation,
    steps: list[Step],
    items: list[int],
    places: list[int],
    tally: Tally,
    assertions: list[Assertion],
) -> Tally:
    """One assertion for each matched item with a `max_duration_ms`; those that are known count."""
    hits, total, passed = tally.hits, tally.total, tally.passed
    for item, place in zip(items, places, strict=True):
        most = expectation.items[item].max_duration_ms
        if most is None:
            continue
        spent = duration(steps[place])
        text = f"{expectation.items[item].tool} (item {item}) takes at most {most:g} ms"
        if spent is None:
            assertions.append(Assertion(f"{text}: how long it took is not known", False, skipped=True))
            continue
        assertions.append(Assertion(f"{text}: it took {spent:g} ms", spent <= most))
        hits += spent <= most
        total += 1
        passed = passed and spent <= most
    return Tally(hits, total, passed)


def _count(expectation: Expectation, called: list[str], kept: Sequence[int], result: MatchResult) -> Tally:
    """Mode `any_order`: how often each tool was called."""
    by_name: dict[str, list[int]] = {}
    for index in kept:
        by_name.setdefault(called[index], []).append(index)
    met = wanted = made = total = 0
    counting: set[int] = set()
    for bound in expectation.bounds:
        calls = sorted(index for name, indices in by_name.items() if bound.tool.fits(name) for index in indices)
        holds = []
        if bound.least is not None:
            holds.append(len(calls) >= bound.least)
            text = f"{bound.tool} is called at least {times(bound.least)}; it was called {times(len(calls))}"
            result.assertions.append(Assertion(text, holds[-1]))
            wanted += bound.least
            made += min(len(calls), bound.least)
        if bound.most is not None:
            holds.append(len(calls) <= bound.most)
            text = f"{bound.tool} is called at most {times(bound.most)}; it was called {times(len(calls))}"
            result.assertions.append(Assertion(text, holds[-1]))
        met += sum(holds)
        total += len(holds)
        counting.update(calls if bound.most is None else calls[: bound.most])
    result.extra = [index for index in kept if index not in counting]
    result.recall = made / wanted if wanted else 1.0
    result.precision = len(counting) / len(kept) if kept else 1.0
    return Tally(met, total, met == total)
