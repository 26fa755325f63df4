"""What a function that a test gives says of a trial."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from testing.test_run_result import a_result

from seatrial.errors import SeatrialError
from seatrial.runs import Grade
from seatrial.testing import RunResult, TrialResults


def trial() -> RunResult:
    return a_result("Refunded.", grade=Grade(outcome="skipped", verdicts=0))


def asserts(result: RunResult) -> None:
    assert "Refunded" in result.answer


async def never_waited_for(result: RunResult) -> None:
    raise AssertionError(result)


def gives_an_awaitable(result: RunResult) -> Awaitable[None]:
    return never_waited_for(result)


@pytest.mark.parametrize(
    ("passes", "passed"),
    [
        (asserts, 1),
        (lambda result: "Refunded" in result.answer, 1),
        (lambda result: "refused" in result.answer, 0),
    ],
)
def test_a_trial_passes_by_true_or_by_assertions_that_hold(passes: Callable[[RunResult], object], passed: int) -> None:
    assert TrialResults([trial()], at_least=1, passes=passes).passed == passed


@pytest.mark.parametrize(
    "passes",
    [
        never_waited_for,
        gives_an_awaitable,
        lambda result: re.search("refused", result.answer),
        lambda result: re.search("Refunded", result.answer),
        lambda result: "no",
        lambda result: result.answer.count("refused"),
        lambda result: (result.answer == "refused", "it must be refused"),
    ],
)
def test_what_is_neither_true_nor_false_passes_no_trial(passes: Callable[[RunResult], Any]) -> None:
    with pytest.raises(SeatrialError, match="returns true or false, or asserts, and returned"):
        TrialResults([trial()], at_least=1, passes=passes)
