"""Several graders that count as one."""

from __future__ import annotations

from typing import Any

import pytest

from graders.subjects import calls, subject, verdict
from seatrial.errors import SeatrialError
from seatrial.graders import Completion, GradingPlan
from seatrial.models import ScriptedModel

YES = {"kind": "contains", "value": "done"}
NO = {"kind": "contains", "value": "never"}
HALF = {"kind": "contains_all", "values": ["done", "never"]}
UNABLE = {"kind": "cost", "max_usd": 1}
SILENT = {**UNABLE, "when_unknown": "skip"}


def composite(*graders: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"kind": "composite", "graders": list(graders), **keys}


@pytest.mark.parametrize(
    ("grader", "outcome", "score"),
    [
        (composite(YES, YES), "passed", 1.0),
        (composite(YES, NO), "failed", 0.5),
        (composite(NO, YES, rule="any"), "passed", 1.0),
        (composite(NO, HALF, rule="any"), "failed", 0.5),
        (composite({**YES, "weight": 3}, NO, rule="weighted", threshold=0.75), "passed", 0.75),
        (composite({**YES, "weight": 3}, NO, rule="weighted", threshold=0.76), "failed", 0.75),
        (composite(HALF, YES, rule="weighted", threshold=0.75), "passed", 0.75),
        (composite(HALF, YES, rule="threshold", threshold=0.75), "failed", 0.5),
        # What an absent grader could not change is decided; what it could is errored.
        (composite(YES, UNABLE), "errored", None),
        (composite(YES, SILENT), "errored", None),
        (composite(NO, UNABLE), "failed", 0.0),
        (composite(YES, NO, SILENT), "failed", 1 / 3),
        (composite(YES, UNABLE, rule="any"), "passed", 1.0),
        (composite(YES, SILENT, rule="any"), "passed", 1.0),
        (composite(NO, UNABLE, rule="any"), "errored", None),
        (composite(NO, SILENT, rule="any"), "errored", None),
        (composite(YES, YES, UNABLE, rule="weighted", threshold=0.6), "passed", 2 / 3),
        (composite(YES, YES, SILENT, rule="threshold", threshold=0.7), "errored", None),
        (composite(NO, NO, SILENT, rule="threshold", threshold=0.5), "failed", 0.0),
        (composite(UNABLE, {**YES, "weight": 0}, rule="weighted", threshold=0.5), "errored", None),
        (composite(SILENT, SILENT), "skipped", None),
        (composite(SILENT, UNABLE), "errored", None),
        (composite(SILENT, SILENT, rule="any", negate=True), "skipped", None),
        (composite(NO, UNABLE, rule="any", negate=True), "errored", None),
        (composite(YES, SILENT, negate=True), "errored", None),
        (composite(YES, NO, UNABLE, min_score=0.6), "errored", None),
        (composite(YES, NO, UNABLE, min_score=0.6, negate=True), "errored", None),
        (composite(composite(SILENT), YES), "errored", None),
        (composite({**UNABLE, "negate": True}, YES), "errored", None),
        (composite({**SILENT, "negate": True}, NO, rule="any"), "errored", None),
        (composite(composite(YES, NO, rule="any"), YES), "passed", 1.0),
        (composite(YES, negate=True), "failed", 0.0),
        (composite({**NO, "negate": True}, YES), "passed", 1.0),
    ],
)
def test_the_rule_decides(grader: dict[str, Any], outcome: str, score: float | None) -> None:
    found = verdict(subject("done"), grader)
    assert (found.outcome, found.score) == (outcome, score)


def test_reasons_show_the_arithmetic_and_what_failed() -> None:
    grader = composite({**YES, "weight": 3, "name": "says so"}, NO, rule="weighted", threshold=0.8)
    found = verdict(subject("done"), grader)
    assert found.reasons == [
        "1 of 2 graders passed; weighted score 3 / 4 = 0.75 < threshold 0.8 (rule weighted)",
        'contains failed: the answer "done" does not contain "never"',
    ]
    assert [child.grader for child in found.details] == ["says so", "contains"]
    assert found.evidence == ["/answer"]


@pytest.mark.parametrize(
    ("grader", "pointer"),
    [
        (composite(), "/0/graders"),
        (composite(YES, rule="weighted"), "/0"),
        (composite(YES, threshold=0.5), "/0/threshold"),
        (composite({**YES, "required": False}), "/0/graders/0/required"),
        (composite(YES, {**YES, "weight": 2}), "/0/graders/1/weight"),
        (composite(YES, {"kind": "contians"}), "/0/graders/1"),
        (composite(YES, {"kind": "regex", "pattern": "("}), "/0/graders/1/pattern"),
        (composite({**YES, "weight": 0}, rule="weighted", threshold=1), "/0/graders"),
        (composite(composite({**YES, "vlue": 1})), "/0/graders/0/graders/0/vlue"),
    ],
)
def test_a_key_that_the_rule_has_no_use_for_is_refused_at_its_place(grader: dict[str, Any], pointer: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        GradingPlan([grader])
    assert (caught.value.code, caught.value.pointer) == ("invalid_config", pointer)


def test_graders_nested_without_end_are_refused() -> None:
    grader = YES
    for _ in range(2000):
        grader = composite(grader)
    with pytest.raises(SeatrialError):
        GradingPlan([grader])


REFUND = {"kind": "tool_trajectory", "mode": "superset", "expected": [{"tool": "refund"}]}


def test_what_is_decided_by_a_grader_that_needs_no_answer_is_not_errored_for_want_of_one() -> None:
    says_or_shows = composite({"kind": "contains", "value": "refunded"}, REFUND, rule="any")
    shows = subject("", steps=calls("refund"))
    assert verdict(shows, says_or_shows).outcome == "passed"
    assert verdict(shows, composite(says_or_shows, REFUND)).outcome == "passed"
    assert verdict(shows, {**says_or_shows, "negate": True}).outcome == "failed"
    assert verdict(subject("", steps=calls("find")), says_or_shows).outcome == "failed"


def test_a_run_without_an_answer_does_not_show_what_is_not_in_it_through_a_composite() -> None:
    secret = {"kind": "contains", "value": "password"}
    silent = subject("")
    for grader in (
        composite({**secret, "negate": True}),
        composite(secret, negate=True),
        composite(composite(secret), negate=True),
        composite(composite(secret, negate=True), rule="any"),
        composite({**secret, "negate": True}, NO, rule="any"),
    ):
        found = verdict(silent, grader)
        assert (found.outcome, found.code) == ("errored", "no_answer")


VOTE = '{"reasoning": "so", "outcome_met": true, "evidence": []}'
NO_VOTE = VOTE.replace("true", "false")
JUDGE = {"kind": "judge"}
TIED = {"kind": "judge", "votes": 2}


@pytest.mark.parametrize(("second", "cost", "least"), [(0.25, 0.75, None), (None, None, 0.5)])
def test_the_cost_of_several_judges_is_unknown_when_that_of_one_of_them_is(
    second: float | None, cost: float | None, least: float | None
) -> None:
    answers = [Completion(text=VOTE, model="m", cost_usd=usd) for usd in (0.5, second)]
    found = verdict(subject("done"), composite(JUDGE, YES, JUDGE), model=ScriptedModel(answers))
    assert (found.outcome, found.cost_usd, found.least_cost_usd) == ("passed", cost, least)


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("grader", "decided"),
    [
        (composite(TIED), None),
        (composite(TIED, YES), None),
        (composite(TIED, NO), "failed"),
        (composite(TIED, NO, rule="any"), None),
        (composite(TIED, YES, rule="any"), "passed"),
        (composite(TIED, YES, rule="weighted", threshold=0.6), None),
        (composite(TIED, YES, rule="threshold", threshold=0.5), "passed"),
        (composite({**TIED, "negate": True}, YES), None),
        (composite(composite(TIED, rule="any", negate=True), YES), None),
    ],
)
def test_a_judge_whose_votes_tie_decides_nothing_whatever_it_is_a_part_of(
    grader: dict[str, Any], decided: str | None, negate: bool
) -> None:
    found = verdict(subject("done"), {**grader, "negate": negate}, model=ScriptedModel([VOTE, NO_VOTE]))
    other = {"passed": "failed", "failed": "passed"}
    assert found.outcome == ("errored" if decided is None else other[decided] if negate else decided)


def test_several_graders_rest_on_what_the_agent_reports_when_one_of_them_does() -> None:
    called, silent = {"kind": "calls", "tool": "find"}, {"kind": "never_calls", "tools": ["delete"]}
    run = subject("done", steps=calls("find"))
    assert verdict(run, composite(YES)).basis is None
    assert verdict(run, composite(YES, called, silent)).basis == "reported"
    assert verdict(run, composite(composite(called), YES)).basis == "reported"
