"""Constraints: what must hold in every mode. One violation fails the verdict and makes the score 0.

`forbidden`: no step is such a call. `allowed`: every step is a call of one of these tools, any number of times, or of a
tool that is expected. `max_calls`, `min_calls`: the number of steps. `no_errors`: no step has the status `error` or
`timeout`. They look at the steps that count, so a failed call that is ignored violates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.time_limit import check_time
from seatrial.trajectory.expectation import Expectation
from seatrial.trajectory.item import fits
from seatrial.trajectory.prose import calls, shown
from seatrial.trajectory.result import Assertion, Violation
from seatrial.trajectory.step import FAILED, Step


def violations(expectation: Expectation, steps: list[Step], kept: Sequence[int]) -> Iterator[Violation]:
    """Every constraint that does not hold, once for each step that violates it."""
    for item in expectation.forbidden:
        for index in kept:
            check_time()
            if fits(item, steps[index]):
                yield Violation("forbidden", f"{shown(steps[index].name)} must not be called so", index)
    if (allowed := expectation.allowed) is not None:
        for index in kept:
            if not allowed.fits(steps[index].name):
                yield Violation("allowed", f"{shown(steps[index].name)} is not among the allowed tools", index)
    if (most := expectation.max_calls) is not None and len(kept) > most:
        yield Violation("max_calls", f"{calls(len(kept))}, at most {most} allowed")
    if (least := expectation.min_calls) is not None and len(kept) < least:
        yield Violation("min_calls", f"{calls(len(kept))}, at least {least} needed")
    if expectation.no_errors:
        for index in kept:
            if steps[index].status in FAILED:
                status = "timed out" if steps[index].status == "timeout" else "failed"
                yield Violation("no_errors", f"{shown(steps[index].name)} {status}", index)


def check_constraints(expectation: Expectation, found: list[Violation]) -> Iterator[Assertion]:
    """One assertion for each constraint that is set."""
    violated = {violation.constraint for violation in found}
    if expectation.forbidden:
        yield Assertion("no forbidden call is made", "forbidden" not in violated)
    if expectation.allowed is not None:
        yield Assertion("only allowed and expected tools are called", "allowed" not in violated)
    if expectation.max_calls is not None:
        yield Assertion(f"at most {calls(expectation.max_calls)}", "max_calls" not in violated)
    if expectation.min_calls is not None:
        yield Assertion(f"at least {calls(expectation.min_calls)}", "min_calls" not in violated)
    if expectation.no_errors:
        yield Assertion("no call fails", "no_errors" not in violated)
