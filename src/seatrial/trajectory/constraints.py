"""Constraints: what must hold in every mode. One violation fails the verdict and makes the score 0.

All but `min_calls` say that something did not happen, so they hold only when all calls are known.

`forbidden`: no step is such a call. `allowed`: every step is a call of one of these tools, any number of times, or of a
tool that is expected. `max_calls`, `min_calls`: the number of steps. `no_errors`: no step has the status `error`,
`timeout` or `cancelled`. They look at the steps that count, so a failed call that is ignored violates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.errors import SeatrialError
from seatrial.time_limit import check_time
from seatrial.trajectory.expectation import Expectation
from seatrial.trajectory.item import ExpectedCall, explain, fits_or_unknown, missing_fact
from seatrial.trajectory.prose import calls, shown
from seatrial.trajectory.result import Assertion, ConstraintViolation, MatchResult, Undecided
from seatrial.trajectory.step import FAILED, Step

_HOW = {"timeout": "timed out", "cancelled": "was cancelled"}


def check_constraints(
    expectation: Expectation, steps: list[Step], kept: Sequence[int], complete: bool, result: MatchResult
) -> list[Assertion]:
    """Write down what is violated and what cannot be decided; one assertion for each constraint that is set."""
    for found in _findings(expectation, steps, kept, complete):
        if isinstance(found, ConstraintViolation):
            result.violations.append(found)
        else:
            result.undecided.append(found)
    violated = {violation.constraint for violation in result.violations}
    unknown = {undecided.claim for undecided in result.undecided}
    assertions = []
    for key, text, question in _constraints(expectation):
        met = key == "min_calls" and len(kept) >= (expectation.min_calls or 0)
        if not (complete or met or key in violated or key in unknown):
            result.undecided.append(Undecided(key, question))
            unknown.add(key)
        skipped = key in unknown and key not in violated
        assertions.append(Assertion(text, key not in violated and not skipped, skipped))
    return assertions


def _findings(
    expectation: Expectation, steps: list[Step], kept: Sequence[int], complete: bool
) -> Iterator[ConstraintViolation | Undecided]:
    """Every constraint that does not hold, once for each step that violates it or may do so."""
    for item in expectation.forbidden:
        for index in kept:
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
        for index in kept:
            if not allowed.fits(steps[index].name):
                yield ConstraintViolation(
                    "allowed", f"{shown(steps[index].name)} is not among the allowed tools", index
                )
    if (most := expectation.max_calls) is not None and len(kept) > most:
        yield ConstraintViolation("max_calls", f"{calls(len(kept))}, at most {most} allowed")
    if (least := expectation.min_calls) is not None and len(kept) < least and complete:
        yield ConstraintViolation("min_calls", f"{calls(len(kept))}, at least {least} needed")
    if expectation.no_errors:
        for index in kept:
            step = steps[index]
            if step.status in FAILED:
                status = _HOW.get(step.status, "failed")
                yield ConstraintViolation("no_errors", f"{shown(step.name)} {status}", index)
            # A provider runs its tools itself, often gives no result, and says so when one failed.
            elif step.status == "unknown" and step.executed_by != "provider":
                text = f"step {index} ({shown(step.name)}) may have failed: the record does not have its result"
                yield Undecided("no_errors", text, index)


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
