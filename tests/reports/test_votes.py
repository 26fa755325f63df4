"""What the votes of judges said, in every report that shows a judge's verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest
from graders.subjects import subject, verdict
from strategies.reported import detail, joined, report, row

from seatrial.models import ScriptedModel
from seatrial.reports.ci_files import ctrf_json, junit_xml
from seatrial.reports.data_files import json_report
from seatrial.reports.votes import judge_lines, vote_text
from seatrial.runs import Verdict

JUDGE = {"kind": "judge", "name": "quality", "votes": 3, "criteria": [{"name": "polite"}, {"name": "correct"}]}


def ballot(outcome_met: bool, polite: str, correct: str, reasoning: str) -> dict[str, Any]:
    score = 1 if outcome_met else 0.25
    return {
        "reasoning": reasoning,
        "outcome_met": outcome_met,
        "criteria": {"c1": {"score": 1, "reason": polite}, "c2": {"score": score, "reason": correct}},
        "failure_mode": None if outcome_met else "wrong_order",
        "evidence": [],
    }


VOTES = [
    ballot(False, "kind", "refunded o-2", "It refunded the order of somebody else."),
    ballot(True, "friendly", "refunded it", "It did what was asked."),
    ballot(False, "kind words", "another order", "The order is not the one that was named."),
]


def judged(**keys: Any) -> Verdict:
    return verdict(subject(), {**JUDGE, **keys}, model=ScriptedModel(VOTES, name="judge-1"))


def text(found: Verdict) -> list[str]:
    (line,) = judge_lines(found)
    return [f"{'  ' * depth}{said}" for depth, said in vote_text(line, besides="\n".join(found.reasons))]


def test_each_vote_is_shown_with_the_reason_of_each_criterion() -> None:
    assert text(judged()) == [
        "3 votes of judge-1, 2 of them agree",
        "  vote 1: against it, score 0 (outcome wrong, wrong_order)",
        "    polite 1: kind",
        "    correct 0.25: refunded o-2",
        "  vote 2: for the run, score 1",
        "    polite 1: friendly",
        "    correct 1: refunded it",
        "    It did what was asked.",
        "  vote 3: against it, score 0 (outcome wrong, wrong_order)",
        "    polite 1: kind words",
        "    correct 0.25: another order",
        "    The order is not the one that was named.",
    ], "what speaks for the majority is a reason of the verdict already"


def test_a_single_vote_is_not_numbered() -> None:
    assert text(judged(votes=1)) == ["1 vote of judge-1", "  polite 1: kind", "  correct 0.25: refunded o-2"]


def test_a_vote_that_does_not_count_says_why() -> None:
    found = verdict(subject(), {"kind": "judge"}, model=ScriptedModel([]))
    assert text(found) == ["1 vote of scripted", "  vote 1: none: the script of the model is at its end"]


def test_judges_within_other_graders_are_found_and_named() -> None:
    inner = {"kind": "composite", "name": "inner", "graders": [{**JUDGE, "votes": 1}]}
    found = verdict(
        subject(),
        {"kind": "composite", "name": "outer", "rule": "any", "graders": [{"kind": "contains", "value": "x"}, inner]},
        model=ScriptedModel(VOTES),
    )
    assert [line.grader for line in judge_lines(found)] == ["outer / inner / quality"]


@pytest.mark.parametrize(
    "details",
    [
        None,
        {"judge": {"model": "m", "votes": 3, "prompt_hash": "x"}},
        {"passed": True, "judge": {"model": "m", "votes": 1, "prompt_hash": "x"}},
    ],
)
def test_a_verdict_of_an_earlier_version_has_no_votes_to_show(details: Any) -> None:
    found = Verdict(grader="judge", kind="judge", outcome="passed", details=details)
    assert [line.votes for line in judge_lines(found)] == ([] if details is None else [[]])


@pytest.mark.parametrize("details", [7, "x", [1], {"judge": 5}, {"votes": 7}])
def test_details_of_another_shape_are_no_votes(details: Any) -> None:
    for kind in ("judge", "composite"):
        assert judge_lines(Verdict(grader="g", kind=kind, outcome="passed", details=details)) == []


@pytest.mark.parametrize("write", [json_report, junit_xml, ctrf_json])
def test_votes_are_in_every_report_that_shows_verdicts(write: Any) -> None:
    found = judged()
    told = detail("said")
    told.verdicts[0].judges[:] = judge_lines(found)
    page = joined(write(report([row(outcome="failed", detail=told)])))
    for said in ("judge-1", "refunded o-2", "It did what was asked.", "another order", "wrong_order"):
        assert said in page


def test_votes_are_data_in_the_json_report() -> None:
    told = detail("said")
    told.verdicts[0].judges[:] = judge_lines(judged())
    data = json.loads(joined(json_report(report([row(outcome="failed", detail=told)]))))
    (judge,) = data["runs"][0]["detail"]["verdicts"][0]["judges"]
    assert judge["asked"] == 3
    assert judge["votes"][1] == {
        "passed": True,
        "score": 1.0,
        "outcome_met": True,
        "criteria": [
            {"name": "polite", "score": 1.0, "reason": "friendly"},
            {"name": "correct", "score": 1.0, "reason": "refunded it"},
        ],
        "reasoning": "It did what was asked.",
    }
