"""The verdict: what follows from an assignment of items to steps, and from the constraints.

Constraints must hold in every mode. One violation fails the verdict and makes the score 0. All but `min_calls` say that
something did not happen, so they hold only when all calls are known.

`forbidden`: no step is such a call. `allowed`: every step is a call of one of these tools, any number of times, or of a
tool that is expected. `max_calls`, `min_calls`: the number of steps. `no_errors`: no step has the status `error`,
`timeout` or `cancelled`. They look at the steps that count, so a failed call that is ignored violates nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from seatrial._support.time_limit import check_time
from seatrial.errors import SeatrialError
from seatrial.trajectory.completeness import (
    CALLS_UNKNOWN,
    COMPLETE,
    Claim,
    Completeness,
    ScoreRange,
    reached,
    what_is_missing,
    what_to_do,
)
from seatrial.trajectory.expectation import Expectation, Mode
from seatrial.trajectory.item import (
    ExpectedCall,
    explain,
    fits,
    fits_or_unknown,
    may_fit,
    missing_fact,
    unrecorded,
)
from seatrial.trajectory.matchers import Names
from seatrial.trajectory.prose import calls, paragraph, shown
from seatrial.trajectory.result import (
    Assertion,
    ConstraintViolation,
    Divergence,
    MatchResult,
    Mismatch,
    Pair,
    Undecided,
)
from seatrial.trajectory.step import FAILED, Step

MAX_QUESTIONS = 5
_OTHERS_ALLOWED = frozenset({"in_order", "superset", "partial_order"})
"""Modes in which calls beside the expected ones do no harm."""
_OPEN_QUESTIONS: dict[Mode, str] = {
    "exact": "it is unknown whether the expected calls, and no others, were made in order",
    "unordered": "it is unknown whether the expected calls, and no others, were made",
    "subset": "the agent may have made calls that were not expected",
    "superset": "it is unknown whether every expected call was made",
    "in_order": "it is unknown whether every expected call was made in order",
    "partial_order": "it is unknown whether every expected call was made after those it waits for",
}
"""What a mode leaves open when not all calls are known; `any_order` asks for each of its bounds."""

WHICH_FAILED = "it is unknown which of the calls failed"
_HOW = {"timeout": "timed out", "cancelled": "was cancelled"}


class ClaimTally(msgspec.Struct, frozen=True, gc=False):
    """What a mode says of the calls that are known: its score as a fraction, and what may change it."""

    hits: int
    total: int
    least: int = 0
    """For `any_order`: bounds that hold, whatever other calls there are."""
    most: int = 0
    """For `any_order`: bounds that are not broken for good."""
    untimed: list[Undecided] = []
    """Matched calls of which it is not known how long they took."""
    open_bounds: list[Undecided] = []
    """For `any_order`: bounds that calls which are not known may break or meet."""
    sure: int = 0
    """Items that are matched whatever the record does not say of the calls that are known."""
    possible: int = 0
    """Items that would be matched if all of that spoke for it."""
    uncounted: bool = False
    """Whether some of the calls that are known may not count."""
    moves: bool = False
    """Whether items with a `max_duration_ms` may be matched with other calls."""
    doubts: list[Undecided] = []
    """What the record does not say, where that makes a difference."""


def blank_result(mode: Mode) -> MatchResult:
    """A result with nothing in it yet."""
    return MatchResult(mode, False, 0.0, 0.0, 0.0, 0.0, [], [], [], [], [], [], "")


def tally_pairs(
    result: MatchResult, expectation: Expectation, kept: Sequence[int], items: list[int], places: list[int]
) -> ClaimTally:
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
    return ClaimTally(found, total, sure=found, possible=found)


def find_differences(
    result: MatchResult,
    called: Sequence[str],
    kept: Sequence[int],
    item_at: Callable[[int], ExpectedCall],
    step_at: Callable[[int], Step],
) -> None:
    """Write down where items and steps part. Both are asked for only where they are needed."""
    if result.missing and result.extra:
        result.mismatches = _mismatches(result, called, item_at, step_at)
    if not result.assertions[0].passed:
        result.first_divergence = _divergence(result.mode, kept, result)


def conclude(
    result: MatchResult,
    expectation: Expectation,
    called: Sequence[str],
    kept: Sequence[int],
    tally: ClaimTally,
    known: Completeness = COMPLETE,
) -> None:
    """Score, pass, fail or neither, and put it into words; `called` are the names of all steps."""
    result.level = known.level
    result.score = tally.hits / tally.total if tally.total else 1.0
    broken = bool(result.undecided)  # whether a constraint may be, which makes the score 0
    lowest, highest, holds = _mode_holds(result, expectation, tally, known)
    if both := result.precision + result.recall:
        result.f1 = 2 * result.precision * result.recall / both
    if result.violations:
        result.score, holds = 0.0, False
    elif holds is not None and (broken or lowest < highest):
        result.score_range = ScoreRange(0.0 if broken else lowest, highest)
    if holds is False:
        result.undecided = []
    elif holds is None or result.undecided:
        give_up(result, known)
    else:
        result.passed = True
    result.prose = paragraph(expectation, called, kept, result, tally.hits, tally.total)


def give_up(result: MatchResult, known: Completeness) -> None:
    """Neither passed nor failed: say what is not known, and what to do about it."""
    result.error_code = CALLS_UNKNOWN
    questions = "; ".join([undecided.message for undecided in result.undecided[:MAX_QUESTIONS]])
    more = len(result.undecided) - MAX_QUESTIONS
    if more > 0:
        questions += f"; and {more} more"
    if known.level == "complete":
        result.errored = questions
        result.hint = "record the results of all calls, with their status and times"
    else:
        result.errored = f"{what_is_missing(known)}. {questions[0].upper()}{questions[1:]}"
        result.hint = what_to_do(known)


def _mode_holds(
    result: MatchResult, expectation: Expectation, tally: ClaimTally, known: Completeness
) -> tuple[float, float, Claim]:
    """The lowest and the highest score, whatever calls there are besides those that are known, and whether the mode
    passes."""
    complete = known.level == "complete"
    bar = 1.0 if expectation.min_score is None else expectation.min_score
    least, most = _score_range(result, expectation, tally, complete)
    if (holds := reached(least, most, bar)) is not None:
        return least, most, holds
    if not complete:
        if bar < 1:
            result.undecided.append(Undecided(expectation.mode, f"the score may be below or above {bar:g}"))
        elif expectation.mode != "any_order":
            result.undecided.append(Undecided(expectation.mode, _OPEN_QUESTIONS[expectation.mode]))
        if expectation.mode != "any_order":
            result.assertions[0].passed, result.assertions[0].skipped = False, True
    result.undecided += [*tally.open_bounds, *tally.untimed, *tally.doubts]
    return least, most, None


def _score_range(
    result: MatchResult, expectation: Expectation, tally: ClaimTally, complete: bool
) -> tuple[float, float]:
    """The lowest and the highest score that the run can have, given what is not known of its calls.

    More calls can only be matched with more items, and one that fits nothing now fits nothing then: so in the modes
    that allow other calls the score cannot fall, and in the others it cannot rise above the share that is left.
    """
    mode, found = expectation.mode, len(result.matched)
    if mode == "any_order":
        return tally.least / tally.total, tally.most / tally.total
    if tally.uncounted and mode not in _OTHERS_ALLOWED:
        return 0.0, 1.0  # one call less is one that is missing, or one that is not too many
    if complete and not tally.moves:
        total = tally.total + len(tally.untimed)
        if not total:
            return 1.0, 1.0
        most = tally.hits - found + tally.possible + len(tally.untimed)
        return (tally.hits - found + tally.sure) / total, min(most / total, 1.0)
    # Which call an item is matched with can change, and with it every duration.
    timed = sum([item.max_duration_ms is not None for item in expectation.items])
    made = found + len(result.extra)
    if complete:
        total = _goal(mode, len(expectation.tools), made)[0] + timed
        return tally.sure / total, min((tally.possible + timed) / total, 1.0)
    size = len(expectation.tools) + timed
    if mode in _OTHERS_ALLOWED:
        return tally.sure / size if size else 1.0, 1.0
    beyond = made - tally.possible
    return 0.0, size / (size + beyond) if beyond > 0 else 1.0


def excuses(
    mode: Mode, items: Iterable[tuple[int, ExpectedCall]], steps: Iterable[tuple[int, Step]]
) -> list[Undecided]:
    """For each item the first call that may be it: nothing speaks against it but what the record does not say."""
    steps = list(steps)
    found = []
    for number, item in items:
        for index, step in steps:
            if may_fit(item, step) and not fits(item, step):
                lacking = " and ".join([fact for difference in explain(item, step) if (fact := unrecorded(difference))])
                text = f"step {index} may be the call that item {number} expects: the record does not have its "
                found.append(Undecided(mode, text + lacking, index))
                break
    return found


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
    result: MatchResult, called: Sequence[str], item_at: Callable[[int], ExpectedCall], step_at: Callable[[int], Step]
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


def check_constraints(
    expectation: Expectation, steps: list[Step], kept: Sequence[int], sure: int, complete: bool, result: MatchResult
) -> list[Assertion]:
    """Write down what is violated and what cannot be decided; one assertion for each constraint that is set. `sure` is
    how many of the calls are sure to count."""
    for found in _findings(expectation, steps, kept, sure, complete):
        if isinstance(found, ConstraintViolation):
            result.violations.append(found)
        else:
            result.undecided.append(found)
    violated = {violation.constraint for violation in result.violations}
    unknown = {undecided.claim for undecided in result.undecided}
    assertions = []
    for key, text, question in _constraints(expectation):
        met = key == "min_calls" and sure >= (expectation.min_calls or 0)
        if not (complete or met or key in violated or key in unknown):
            result.undecided.append(Undecided(key, question))
            unknown.add(key)
        skipped = key in unknown and key not in violated
        assertions.append(Assertion(text, key not in violated and not skipped, skipped))
    return assertions


def _findings(
    expectation: Expectation, steps: list[Step], kept: Sequence[int], sure: int, complete: bool
) -> Iterator[ConstraintViolation | Undecided]:
    """Every constraint that does not hold, once for each step that violates it or may do so."""
    # What must not be called must not be tried either: a failed call is one, whether or not it counts as a call.
    made = agent_steps(steps) if expectation.ignore_failed else kept
    for item in expectation.forbidden:
        for index in made:
            check_time()
            if (fit := fits_or_unknown(item, steps[index])) is False:
                continue
            name = shown(steps[index].name)
            if fit:
                yield ConstraintViolation("forbidden", f"{name} is a forbidden call", index)
            else:
                lacking = _lacking(item, steps[index])
                text = f"step {index} ({name}) may be a forbidden call: the record does not have its {lacking}"
                yield Undecided("forbidden", text, index)
    if (allowed := expectation.allowed) is not None:
        for index in made:
            if not allowed.fits(steps[index].name):
                yield ConstraintViolation(
                    "allowed", f"{shown(steps[index].name)} is not among the allowed tools", index
                )
    if (most := expectation.max_calls) is not None and len(kept) > most:
        if sure > most:
            yield ConstraintViolation("max_calls", f"{calls(len(kept))}, at most {most} allowed")
        else:
            yield Undecided("max_calls", f"{calls(len(kept))}, at most {most} allowed, and {WHICH_FAILED}")
    if (least := expectation.min_calls) is not None and sure < least and complete:
        if len(kept) < least:
            yield ConstraintViolation("min_calls", f"{calls(len(kept))}, at least {least} needed")
        else:
            yield Undecided("min_calls", f"{calls(len(kept))}, at least {least} needed, and {WHICH_FAILED}")
    if expectation.no_errors:
        for index in kept:
            step = steps[index]
            if step.status in FAILED and expectation.collapse_retries and not complete:
                # A call that is not known may be the retry that it is joined with.
                text = f"step {index} ({shown(step.name)}) failed, and may have been made again"
                yield Undecided("no_errors", text, index)
            elif step.status in FAILED:
                status = _HOW.get(step.status, "failed")
                yield ConstraintViolation("no_errors", f"{shown(step.name)} {status}", index)
            # A provider runs its tools itself, often gives no result, and says so when one failed.
            elif step.status == "unknown" and step.executed_by != "provider":
                text = f"step {index} ({shown(step.name)}) may have failed: the record does not have its result"
                yield Undecided("no_errors", text, index)


def agent_steps(steps: Sequence[Step]) -> list[int]:
    """The steps that are the agent's own, whatever became of them."""
    return [index for index, step in enumerate(steps) if step.executed_by != "user"]


def _lacking(item: ExpectedCall, step: Step) -> str:
    try:
        facts = [fact for found in explain(item, step) if (fact := missing_fact(found, step)) is not None]
    except SeatrialError:
        facts = []
    return " and ".join(facts) or "values in a form that can be compared"


def _constraints(expectation: Expectation) -> Iterator[tuple[str, str, str]]:
    """The key of each constraint that is set, what it says, and what it leaves open when not all calls are known."""
    if expectation.forbidden:
        yield "forbidden", "no forbidden call is made", "the agent may have made a forbidden call"
    if expectation.allowed is not None:
        question = "the agent may have called tools that are neither allowed nor expected"
        yield "allowed", "only allowed and expected tools are called", question
    if (most := expectation.max_calls) is not None:
        yield (
            "max_calls",
            f"at most {calls(most)}",
            f"the agent may have made more than {calls(most)}" if most else "the agent may have made calls",
        )
    if (least := expectation.min_calls) is not None:
        yield "min_calls", f"at least {calls(least)}", f"it is unknown whether the agent made at least {calls(least)}"
    if expectation.no_errors:
        yield "no_errors", "no call fails", "a call may have failed"
