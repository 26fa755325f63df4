"""The trajectory grader: the matching has its own tests, here is what becomes of its result."""

from __future__ import annotations

import pytest

from graders.subjects import calls, grade, step, subject, verdict
from seatrial.errors import SeatrialError
from seatrial.graders import build_graders
from seatrial.trajectory.result import MatchResult

IN_ORDER = {"kind": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "find"}, {"tool": "refund"}]}


def test_a_matching_trajectory_passes_and_points_at_its_steps() -> None:
    found = verdict(subject(steps=calls("find", "look", "refund")), IN_ORDER)
    assert (found.outcome, found.score, found.evidence) == ("passed", 1.0, ["/steps/0", "/steps/2"])
    assert isinstance(found.details, MatchResult)
    assert found.details.extra == [1]


def test_a_missing_call_fails_with_the_arithmetic_in_the_reason() -> None:
    found = verdict(subject(steps=calls("find", "look")), IN_ORDER)
    assert (found.outcome, found.score) == ("failed", 0.5)
    assert "Missing: refund (item 1)." in found.reasons[0]
    assert "0.5 (1 of 2)" in found.reasons[0]


def test_the_nearest_wrong_call_is_the_evidence() -> None:
    grader = {**IN_ORDER, "expected": [{"tool": "find"}, {"tool": "refund", "args": {"order": "o-1"}}]}
    steps = [step(0, "find"), step(1, "refund", {"order": "o-2"})]
    assert verdict(subject(steps=steps), grader).evidence == ["/steps/1"]


def test_min_score_sets_the_bar() -> None:
    half = subject(steps=calls("find"))
    found = verdict(half, {**IN_ORDER, "min_score": 0.5})
    assert found.outcome == "passed"
    assert found.reasons[-1] == "passed: score 0.5 >= min_score 0.5"
    assert verdict(half, {**IN_ORDER, "min_score": 0.51}).outcome == "failed"


def test_constraints_and_counts_reach_the_matcher() -> None:
    made = subject(steps=calls("find", "delete"))
    forbids = {**IN_ORDER, "expected": [{"tool": "find"}], "forbidden": [{"tool": "del*"}]}
    assert (verdict(made, forbids).outcome, verdict(made, forbids).evidence) == ("failed", ["/steps/1"])
    counts = {"kind": "tool_trajectory", "mode": "any_order", "minimums": {"find": 2}}
    assert verdict(made, counts).outcome == "failed"


def test_a_search_past_its_budget_is_errored_and_so_is_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    from seatrial.trajectory import partial_order as order

    def exhausted(*given: object) -> None:
        raise SeatrialError("search_budget", "the search passed its budget")

    monkeypatch.setattr(order, "in_partial_order", exhausted)
    grader = {"kind": "tool_trajectory", "mode": "partial_order", "expected": [{"tool": "a"}]}
    (found,), grade_ = grade(subject(steps=calls("b")), grader)
    assert (found.outcome, found.score, grade_.outcome) == ("errored", None, "errored")


@pytest.mark.parametrize(
    "key", [{}, {"expected": []}, {"expected": [{}]}, {"expected": [{"tool": "a"}], "minimums": {}}]
)
def test_an_expectation_that_checks_nothing_is_refused(key: dict[str, object]) -> None:
    (grader,) = build_graders([{"kind": "tool_trajectory", "mode": "in_order", **key}])
    with pytest.raises(SeatrialError) as caught:
        grader.prepare()
    assert caught.value.code == "invalid_config"


FINDS = {"kind": "calls", "tool": "find_order", "args": {"order": "A-1009"}}
NEVER = {"kind": "never_calls", "tools": ["refund", "delete_*"]}


def test_a_call_with_at_least_these_arguments_passes() -> None:
    made = subject(steps=[step(0, "look"), step(1, "find_order", {"order": "A-1009", "fields": ["status"]})])
    found = verdict(made, FINDS)
    assert (found.outcome, found.evidence, found.basis) == ("passed", ["/steps/1"], "reported")


def test_a_call_with_other_arguments_fails() -> None:
    assert verdict(subject(steps=[step(0, "find_order", {"order": "A-1"})]), FINDS).outcome == "failed"


def test_a_tool_that_must_never_be_called_fails_also_by_a_glob() -> None:
    assert verdict(subject(steps=calls("look", "refund")), NEVER).outcome == "failed"
    assert verdict(subject(steps=calls("delete_account")), NEVER).outcome == "failed"
    assert verdict(subject(steps=calls("look")), NEVER).outcome == "passed"


def test_without_a_list_of_calls_neither_says_anything() -> None:
    answered = subject("Done.", completeness="none")
    assert {verdict(answered, grader).code for grader in (FINDS, NEVER)} == {"calls_unknown"}


def test_an_empty_list_of_tools_is_refused() -> None:
    with pytest.raises(SeatrialError, match="never_calls"):
        build_graders([{"kind": "never_calls", "tools": []}])
