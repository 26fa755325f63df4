"""Matching: an expectation and the steps of a run give a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from seatrial._support.patterns import MATCH_S
from seatrial._support.time_limit import TimeLimit, check_time, current_limit
from seatrial.errors import SeatrialError
from seatrial.trajectory.assign import Assignment, any_order_by_key, bits, in_order, in_order_by_key
from seatrial.trajectory.completeness import COMPLETE, MAX_REASONS, Claim, Completeness, at_least, at_most
from seatrial.trajectory.expectation import Expectation, Mode, compile_expectation, expectation_from_steps
from seatrial.trajectory.item import ExpectedCall, fits, is_name_only, leaves_out, may_fit
from seatrial.trajectory.matchers import Names
from seatrial.trajectory.prose import calls as so_many_calls
from seatrial.trajectory.prose import paragraph, shown, times
from seatrial.trajectory.result import Assertion, MatchResult, Undecided
from seatrial.trajectory.sources import steps_from_objects
from seatrial.trajectory.step import FAILED, Step, duration, steps_given
from seatrial.trajectory.values import call_keys, keys
from seatrial.trajectory.verdict import (
    WHICH_FAILED,
    ClaimTally,
    agent_steps,
    blank_result,
    check_constraints,
    conclude,
    excuses,
    find_differences,
    tally_pairs,
)
from seatrial.transcript.arguments import ARGUMENTS_NOT_JSON

_NOT_DECIDED = frozenset({"search_budget", "time_limit", "text_too_long", "invalid_document"})
"""What a match gives up with that can neither be passed nor failed."""


def match_trajectory(
    mode: str, expected: Any, actual: Sequence[Step | Mapping[str, Any]], **options: Any
) -> MatchResult:
    """Compile and match in one go. For `any_order`, `expected` are the minimums."""
    key = "minimums" if mode == "any_order" else "expected"
    return match(compile_expectation({"mode": mode, key: expected, **options}), steps_given(actual))


def match(expectation: Expectation, steps: list[Step], known: Completeness = COMPLETE) -> MatchResult:
    """Say whether the steps are what was expected, how far, and where they are not.

    `known` is how much is known of the calls. What depends on calls that are not is neither passed nor failed, but
    `errored` (see `claims`); so is what cannot be said within the limits of patterns, of the search and of time.
    Without a time limit around it, a match has `MATCH_S`. Calls of a user's own tools are not the agent's, and count
    for nothing.
    """
    try:
        if current_limit() is not None:
            return _match(expectation, steps, known)
        with TimeLimit(MATCH_S):
            return _match(expectation, steps, known)
    except SeatrialError as error:
        if error.code not in _NOT_DECIDED:
            raise
        result = blank_result(expectation.mode)
        result.level = known.level
        result.errored, result.error_code = error.message, error.code
        result.prose = paragraph(expectation, [step.name for step in steps], range(len(steps)), result, 0, 0)
        return result


def _match(expectation: Expectation, steps: list[Step], known: Completeness) -> MatchResult:
    called = [step.name for step in steps]
    result = blank_result(expectation.mode)
    result.level = known.level
    result.user_calls = [step.executed_by for step in steps].count("user")
    kept = _kept(expectation, steps, result.user_calls)
    complete = known.level == "complete"
    uncounted = _uncounted(expectation, steps, kept, complete)
    constraints: list[Assertion] = []
    if expectation.constrained:
        sure = len(kept) - len(uncounted)
        constraints = check_constraints(expectation, steps, kept, sure, complete, result)
    if expectation.mode == "any_order":
        # As with `forbidden`: what must not be called must not be tried either.
        tried = agent_steps(steps) if expectation.ignore_failed else kept
        tally = _count(expectation, called, kept, tried, uncounted, complete, result)
    else:
        items, places = _assign(expectation, steps, kept)
        tally = tally_pairs(result, expectation, kept, items, places)
        find_differences(result, called, kept, expectation.item, steps.__getitem__)
        if expectation.timed:
            tally = _time(expectation, steps, items, places, tally, result.assertions)
        tally = _bounded(expectation, steps, kept, uncounted, complete, result, tally)
    conclude(result, expectation, called, kept, tally, known)
    result.assertions += constraints
    return result


def _kept(expectation: Expectation, steps: list[Step], user_calls: int) -> Sequence[int]:
    """The steps that count: all of the agent's, unless failed calls are ignored or joined with the equal call that
    follows."""
    agents: Sequence[int] = agent_steps(steps) if user_calls else range(len(steps))
    if expectation.ignore_failed:
        return [index for index in agents if steps[index].status not in FAILED]
    if not expectation.collapse_retries:
        return agents
    called_again: set[bytes] = set()
    kept = []
    keys_of = call_keys(steps)
    for index in reversed(agents):
        if keys_of[index] not in called_again or steps[index].status not in FAILED:
            kept.append(index)
        called_again.add(keys_of[index])
    return kept[::-1]


def _uncounted(expectation: Expectation, steps: list[Step], kept: Sequence[int], complete: bool) -> frozenset[int]:
    """Calls that count only if they did not fail, which the record does not say.

    A provider runs its tools itself, often gives no result, and says so when one failed: in a record that is whole.
    """
    if not (expectation.ignore_failed or expectation.collapse_retries):
        return frozenset()
    unknown = [
        index
        for index in kept
        if steps[index].status == "unknown" and not (complete and steps[index].executed_by == "provider")
    ]
    if not expectation.ignore_failed:
        keys_of = call_keys(steps)
        last = {keys_of[index]: index for index in kept}
        unknown = [index for index in unknown if last[keys_of[index]] > index]
    return frozenset(unknown)


def _bounded(
    expectation: Expectation,
    steps: list[Step],
    kept: Sequence[int],
    uncounted: frozenset[int],
    complete: bool,
    result: MatchResult,
    tally: ClaimTally,
) -> ClaimTally:
    """How few and how many items may be matched: each fact that the record does not have once taken as not fitting,
    and once as fitting."""
    doubts: list[Undecided] = []
    if uncounted:
        doubts.append(Undecided("failed_calls" if expectation.ignore_failed else "retries", WHICH_FAILED))
    if expectation.collapse_retries and not complete:
        # A call that is not known may be the retry that a known one is joined with: the same call in another place.
        again = [index for index in kept if steps[index].status in FAILED or steps[index].status == "unknown"]
        if not uncounted.issuperset(again):
            doubts.append(Undecided("retries", "a call that failed may have been made again"))
            uncounted = uncounted.union(again)
    excused: list[Undecided] = []
    if expectation.keys is None and any(leaves_out(item, steps[index]) for item in expectation.items for index in kept):
        order = [*result.missing, *(pair.expected for pair in result.matched)]
        asked = [(number, expectation.items[number]) for number in order]
        excused = excuses(expectation.mode, asked, [(index, steps[index]) for index in kept])
    if not uncounted and not excused:
        return tally
    sure, possible = tally.sure, tally.possible
    if uncounted:
        sure = len(_assign(expectation, steps, [index for index in kept if index not in uncounted])[0])
    if excused:
        possible = len(_assign(expectation, steps, kept, may_fit)[0])
    return msgspec.structs.replace(
        tally,
        sure=sure,
        possible=possible,
        uncounted=bool(uncounted),
        moves=expectation.timed,
        doubts=[*doubts, *excused],
    )


def _assign(
    expectation: Expectation,
    steps: list[Step],
    kept: Sequence[int],
    fit: Callable[[ExpectedCall, Step], bool] = fits,
) -> Assignment:
    """Matched items, and for each the index of its step among all steps."""
    if len(kept) == len(steps):
        return _assign_all(expectation, steps, fit)
    items, places = _assign_all(expectation, [steps[index] for index in kept], fit)
    return items, [kept[place] for place in places]


def _assign_all(expectation: Expectation, steps: list[Step], fit: Callable[[ExpectedCall, Step], bool]) -> Assignment:
    mode = expectation.mode
    ordered = mode in ("in_order", "exact")
    if expectation.keys is not None and mode != "partial_order":
        actual = _step_keys(expectation, steps)
        if actual == expectation.keys:  # just as expected, as it should be
            return list(range(len(actual))), list(range(len(actual)))
        return (in_order_by_key if ordered else any_order_by_key)(expectation.keys, actual)
    table = Compatibility(expectation.items, steps, fit)
    if ordered:
        leftmost = table.leftmost()
        if leftmost is not None:
            return list(range(len(leftmost))), leftmost
        return in_order(table.rows(), len(steps))
    if mode == "partial_order":
        from seatrial.trajectory.partial_order import in_partial_order

        return in_partial_order(table.rows(), expectation.before)
    from seatrial.trajectory.assign import any_order

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
    tally: ClaimTally,
    assertions: list[Assertion],
) -> ClaimTally:
    """One assertion for each matched item with a `max_duration_ms`; those that are known count in the score."""
    hits, total = tally.hits, tally.total
    untimed = []
    for item, place in zip(items, places, strict=True):
        most = expectation.items[item].max_duration_ms
        if most is None:
            continue
        spent = duration(steps[place])
        text = f"{expectation.items[item].tool} (item {item}) takes at most {most:g} ms"
        if spent is None:
            assertions.append(Assertion(f"{text}: how long it took is unknown", False, skipped=True))
            text = f"it is unknown how long step {place} ({shown(steps[place].name)}) took"
            untimed.append(Undecided("max_duration_ms", text, place))
            continue
        assertions.append(Assertion(f"{text}: it took {spent:g} ms", spent <= most))
        hits += spent <= most
        total += 1
    return msgspec.structs.replace(tally, hits=hits, total=total, untimed=untimed)


def _count(
    expectation: Expectation,
    called: list[str],
    kept: Sequence[int],
    tried: Sequence[int],
    uncounted: frozenset[int],
    complete: bool,
    result: MatchResult,
) -> ClaimTally:
    """Mode `any_order`: how often each tool was called. Of one that must not be, also what was only `tried` counts;
    calls that are `uncounted` may or may not."""
    by_name: dict[str, list[int]] = {}
    for index in kept:
        by_name.setdefault(called[index], []).append(index)
    tried_by_name: dict[str, list[int]] = {}
    for index in tried:
        tried_by_name.setdefault(called[index], []).append(index)
    met = wanted = made = total = least = most = 0
    counting: set[int] = set()
    open_bounds: list[Undecided] = []
    for bound in expectation.bounds:
        counted_calls = tried_by_name if bound.most == 0 else by_name
        calls = sorted(index for name, indices in counted_calls.items() if bound.tool.fits(name) for index in indices)
        sure = len(calls) if bound.most == 0 else len([index for index in calls if index not in uncounted])
        claims: list[tuple[str, str, Claim]] = []
        if bound.least is not None:
            text = f"must be called at least {times(bound.least)}"
            question = f"it is unknown whether {bound.tool} was called at least {times(bound.least)}"
            few, many = at_least(sure, bound.least, complete), at_least(len(calls), bound.least, complete)
            claims.append((text, question, few if few is many else None))
            met += len(calls) >= bound.least
            wanted += bound.least
            made += min(len(calls), bound.least)
        if bound.most is not None:
            text = f"must be called at most {times(bound.most)}" if bound.most else "must not be called"
            more = f" more than {times(bound.most)}" if bound.most else ""
            question = f"the agent may have called {bound.tool}{more}"
            few, many = at_most(sure, bound.most, complete), at_most(len(calls), bound.most, complete)
            claims.append((text, question, few if few is many else None))
            met += len(calls) <= bound.most
        for text, question, holds in claims:
            counted = f"it was called {times(len(calls))}" if calls else "it was not called"
            if not complete:
                counted = f"{so_many_calls(len(calls))} {'is' if len(calls) == 1 else 'are'} known"
            result.assertions.append(Assertion(f"{bound.tool} {text}; {counted}", holds is True, holds is None))
            if holds is None:
                open_bounds.append(Undecided("any_order", question))
            least += holds is True
            most += holds is not False
        total += len(claims)
        counting.update(calls if bound.most is None else calls[: bound.most])
    result.extra = [index for index in kept if index not in counting]
    result.recall = made / wanted if wanted else 1.0
    result.precision = len(counting) / len(kept) if kept else 1.0
    doubts = [Undecided("failed_calls" if expectation.ignore_failed else "retries", WHICH_FAILED)] if uncounted else []
    return ClaimTally(met, total, least, most, open_bounds=open_bounds, doubts=doubts)


class Compatibility:
    """A table of items and steps. Names are looked up first, so that only steps of the right tools are compared."""

    def __init__(
        self,
        items: Sequence[ExpectedCall],
        steps: Sequence[Step],
        fit: Callable[[ExpectedCall, Step], bool] = fits,
    ) -> None:
        self._items = items
        self._fits = fit
        self._steps = steps
        self._by_name: dict[str, int] = {}
        for index, step in enumerate(steps):
            self._by_name[step.name] = self._by_name.get(step.name, 0) | 1 << index
        self._open: list[int] = []
        """For each item, the steps that it has not been compared with."""
        self._fit: list[int] = []
        for item in items:
            candidates = self._named(item.tool)
            self._open.append(0 if is_name_only(item) else candidates)
            self._fit.append(candidates if is_name_only(item) else 0)

    def rows(self) -> list[int]:
        """For each item the steps that fit it, one bit each."""
        for item, left in enumerate(self._open):
            for step in bits(left):
                self._compare(item, step)
        return self._fit

    def leftmost(self) -> list[int] | None:
        """For each item the first step that fits it after that of the item before, or None when one has none."""
        found: list[int] = []
        after = 0
        for item in range(len(self._items)):
            left = (self._open[item] | self._fit[item]) >> after << after
            while left:
                step = (left & -left).bit_length() - 1
                if self._compare(item, step):
                    break
                left &= left - 1
            else:
                return None
            found.append(step)
            after = step + 1
        return found

    def _compare(self, item: int, step: int) -> bool:
        bit = 1 << step
        if self._open[item] & bit:
            self._open[item] ^= bit
            check_time()
            if self._fits(self._items[item], self._steps[step]):
                self._fit[item] |= bit
        return bool(self._fit[item] & bit)

    def _named(self, tool: Names) -> int:
        if tool.globs is None:
            names = [name for name in tool.plain if name in self._by_name]
        else:
            names = [name for name in self._by_name if tool.fits(name)]
        union = 0
        for name in names:
            union |= self._by_name[name]
        return union


def match_messages(mode: Mode, expected: list[Any], actual: list[Any]) -> MatchResult:
    """Expect the calls of the reference messages, in every accepted shape, and match those of the others with them.

    Messages of which something was dropped are known in part; a reference that was not read whole is refused.
    """
    reference, lost = steps_from_objects(expected)
    for note in lost:
        # A call with such arguments is there, and equal to none.
        if note.serious and note.code != ARGUMENTS_NOT_JSON:
            raise SeatrialError(
                "invalid_document", f"the reference was not read whole: {note.message}", pointer=note.pointer
            )
    steps, notes = steps_from_objects(actual)
    dropped = [note for note in notes if note.serious]
    known = Completeness("partial", "messages", ["messages"], dropped[:MAX_REASONS]) if dropped else COMPLETE
    return match(expectation_from_steps(mode, reference), steps, known)
