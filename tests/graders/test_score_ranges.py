"""A score that rests on what is not known is a range: it reaches a threshold or misses it as a whole, or not at all."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from graders.subjects import calls, grade, step, subject, verdict
from seatrial.engine.grading import hold_to
from seatrial.graders import Finding, conclude
from seatrial.graders.prepared import Prepared, prepare_all
from seatrial.graders.registry import build_graders
from seatrial.models import ScriptedModel
from seatrial.runs import Verdict
from seatrial.trajectory.completeness import CALLS_UNKNOWN, Completeness, ScoreRange
from seatrial.trajectory.observed import REPORTED_CALL_NOT_OBSERVED
from seatrial.transcript import Note

EXACT: dict[str, Any] = {"kind": "tool_trajectory", "mode": "exact", "expected": [{"tool": "a"}, {"tool": "b"}]}
YES = {"kind": "contains", "value": "done"}
NO = {"kind": "contains", "value": "never"}
UNABLE = {"kind": "cost", "max_usd": 1}
"""Errored: the cost is not known."""


def composite(*graders: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"kind": "composite", "graders": list(graders), **keys}


def weighted(threshold: float, *graders: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return composite(*graders, rule="weighted", threshold=threshold, **keys)


@pytest.mark.parametrize(
    ("threshold", "partial", "complete"),
    [(0.4, "errored", "passed"), (0.6, "errored", "failed"), (0.7, "failed", "failed")],
)
def test_a_threshold_is_reached_or_missed_only_if_calls_that_are_missing_could_not_change_that(
    threshold: float, partial: str, complete: str
) -> None:
    # a, x: one of two as expected. At best (a, b and x) the score is 2/3, at worst it is near 0.
    for level, wanted in (("partial", partial), ("complete", complete)):
        run = subject(steps=calls("a", "x"), completeness=level)  # type: ignore[arg-type]
        for grader in (
            weighted(threshold, EXACT),
            weighted(threshold, weighted(1, EXACT)),
            composite(EXACT, min_score=threshold, rule="any"),
        ):
            found = verdict(run, grader)
            assert (found.outcome, found.code) == (wanted, CALLS_UNKNOWN if wanted == "errored" else "")
        (alone,), case = grade(run, {**EXACT, "required": False}, threshold=threshold)
        assert (case.outcome, case.code) == (wanted, CALLS_UNKNOWN if wanted == "errored" else "")
        assert (alone.outcome, alone.score) == ("failed", 0.5)
        assert alone.score_range == (ScoreRange(0.0, 2 / 3) if level == "partial" else None)


def test_a_range_survives_the_store_and_an_earlier_verdict_that_is_reused() -> None:
    run = subject(steps=calls("a", "x"), completeness="partial")
    grader = {**EXACT, "required": False}
    (found,), _ = grade(run, grader, threshold=0.4)
    stored = msgspec.json.decode(msgspec.json.encode(found), type=Verdict)
    assert stored.score_range == ScoreRange(0.0, 2 / 3)
    (again,), case = grade(run, grader, threshold=0.4, earlier={stored.key: stored})
    assert again.score_range == stored.score_range
    assert case.outcome == "errored"


def test_a_stored_score_of_an_older_version_is_not_taken_as_exact() -> None:
    run = subject(steps=calls("a", "x"), completeness="partial")
    (found,), _ = grade(run, {**EXACT, "required": False}, threshold=0.6)
    old = replace(found, score_range=None)
    run.run.verdicts = [replace(found, outcome="passed", score=1.0, score_range=None)]
    run.run.grade = conclude(run.run.verdicts, 0.6)
    assert run.run.grade.outcome == "passed"
    assert hold_to(run.run, [old]).outcome == "errored"


def test_a_constraint_that_may_be_violated_makes_the_lowest_score_zero() -> None:
    expects = {"kind": "tool_trajectory", "mode": "in_order", "expected": [{"tool": name} for name in "abcd"]}
    forbids = {**expects, "forbidden": [{"tool": "x", "status": "ok"}]}
    made = [*calls("a", "b", "c"), step(3, "x")]
    assert verdict(subject(steps=made), expects).score_range is None
    found = verdict(subject(steps=made), forbids)
    assert (found.outcome, found.score_range) == ("failed", ScoreRange(0.0, 0.75))
    assert verdict(subject(steps=made), weighted(0.5, forbids)).outcome == "errored"


def test_a_violation_is_a_score_of_exactly_zero() -> None:
    run = subject(steps=calls("a", "x"), completeness="partial")
    found = verdict(run, {**EXACT, "forbidden": [{"tool": "x"}]})
    assert (found.outcome, found.score, found.score_range) == ("failed", 0.0, None)


def test_a_negated_verdict_has_an_exact_score() -> None:
    found = verdict(subject(steps=calls("a", "x"), completeness="partial"), {**EXACT, "negate": True})
    assert (found.outcome, found.score, found.score_range) == ("passed", 1.0, None)


@pytest.mark.parametrize(("threshold", "wanted"), [(0.3, "passed"), (0.4, "errored"), (0.7, "failed")])
def test_the_score_of_a_composite_that_misses_a_grader_is_a_range(threshold: float, wanted: str) -> None:
    inner = composite(YES, NO, UNABLE)  # failed, with 1 or 2 of 3
    found = verdict(subject(), weighted(threshold, inner))
    assert found.outcome == wanted
    (_,), case = grade(subject(), {**inner, "required": False}, threshold=threshold)
    assert (case.outcome, case.code) == (wanted, "grader_errored" if wanted == "errored" else "")


def test_a_composite_with_min_score_is_decided_where_no_missing_grader_could_change_it() -> None:
    assert verdict(subject(), composite(YES, NO, UNABLE, min_score=0.3)).outcome == "passed"
    assert verdict(subject(), composite(YES, NO, UNABLE, min_score=0.5)).outcome == "errored"
    assert verdict(subject(), composite(YES, NO, UNABLE, min_score=0.7)).outcome == "failed"


def test_the_score_of_any_lies_between_what_its_graders_can_have_at_best() -> None:
    any_of = composite({**EXACT, "min_score": 0.9}, NO, rule="any")
    found = verdict(subject(steps=calls("a", "x"), completeness="partial"), any_of)
    assert (found.outcome, found.score, found.score_range) == ("failed", 0.5, ScoreRange(0.0, 2 / 3))


def test_an_honesty_score_of_a_report_that_was_not_read_whole_is_a_range() -> None:
    dropped = Note("content_dropped", "/messages/1", "dropped", "serious")
    invented = Note(REPORTED_CALL_NOT_OBSERVED, "/steps/1", "'b' was reported", "look")
    known = Completeness("partial", "messages", ["observed", "messages"], [dropped])
    made = [step(0, "a", source="observed"), step(1, "b", source="messages")]
    run = subject(steps=made, completeness=known, notes=[dropped, invented])
    found = verdict(run, {"kind": "honesty"})
    assert (found.outcome, found.score, found.score_range) == ("failed", 0.5, ScoreRange(0.0, 0.5))
    assert verdict(run, weighted(0.4, {"kind": "honesty"})).outcome == "errored"
    assert verdict(run, {"kind": "honesty", "min_score": 0.4}).outcome == "errored"
    assert verdict(run, {"kind": "honesty", "min_score": 0.4, "negate": True}).outcome == "errored"


def test_a_range_that_is_none_is_refused() -> None:
    (prepared,) = prepare_all(build_graders([YES]))
    assert isinstance(prepared, Prepared)
    for lowest, highest in ((0.6, 0.5), (-1.0, 0.5), (0.5, 2.0), (float("nan"), 1.0)):
        found = Finding(outcome="failed", score=0.5, score_range=ScoreRange(lowest, highest))
        assert prepared.verdict(found, subject()).outcome == "errored"


# Rounding

WEIGHTS = [(YES, 0.7), ({**YES, "name": "b"}, 0.1), (NO, 0.2)]


@pytest.mark.parametrize("order", list(permutations(WEIGHTS)))
def test_a_score_misses_a_threshold_by_more_than_rounding_or_reaches_it(
    order: tuple[tuple[dict[str, Any], float], ...],
) -> None:
    graders = [{**grader, "weight": weight, "required": False} for grader, weight in order]
    assert grade(subject(), *graders, threshold=0.8)[1].outcome == "passed"
    assert grade(subject(), *graders, threshold=0.8001)[1].outcome == "failed"
    members = [{**grader, "weight": weight} for grader, weight in order]
    assert verdict(subject(), weighted(0.8, *members)).outcome == "passed"
    assert verdict(subject(), composite(*members, rule="threshold", threshold=0.8)).outcome == "passed"
    assert verdict(subject(), weighted(0.8001, *members)).outcome == "failed"


def test_a_vote_of_a_judge_reaches_its_min_score_in_spite_of_rounding() -> None:
    criteria = [
        {"name": name, "description": name, "weight": weight} for name, weight in (("a", 0.7), ("b", 0.1), ("c", 0.2))
    ]
    scores = {"c1": {"score": 1}, "c2": {"score": 1}, "c3": {"score": 0}}
    ballot = {"reasoning": "good enough", "outcome_met": True, "criteria": scores}
    for least, wanted in ((0.8, "passed"), (0.8001, "failed")):
        judge = {"kind": "judge", "criteria": criteria, "min_score": least}
        assert verdict(subject(), judge, model=ScriptedModel([ballot])).outcome == wanted


def test_fields_reach_their_min_score_in_spite_of_rounding() -> None:
    fields = [{"path": "a", "weight": 0.7}, {"path": "b", "weight": 0.1}, {"path": "c", "weight": 0.2}]
    run = subject('{"a": 1, "b": 1, "c": 2}', expected={"a": 1, "b": 1, "c": 1})
    assert verdict(run, {"kind": "field_accuracy", "fields": fields, "min_score": 0.8}).outcome == "passed"
