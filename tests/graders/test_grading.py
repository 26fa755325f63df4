"""What becomes of verdicts: the common keys, the grade of a case, and re-grading."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from graders.subjects import calls, grade, step, subject, verdict
from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders import (
    GRADERS,
    Check,
    Finding,
    Graded,
    Grader,
    GradingPlan,
    Subject,
    Surroundings,
    build_graders,
    conclude,
    grading,
)
from seatrial.models import ScriptedModel
from seatrial.runs import Case, Fault, Outcome, Run, RunStatus, Verdict
from seatrial.trajectory.completeness import reaches

YES = {"kind": "contains", "value": "done"}
NO = {"kind": "contains", "value": "never"}
UNABLE = {"kind": "cost", "max_usd": 1}
SILENT = {**UNABLE, "when_unknown": "skip"}
OPTIONAL = {**UNABLE, "required": False}


@pytest.mark.parametrize(
    ("graders", "threshold", "outcome"),
    [
        ([YES], None, "passed"),
        ([YES, NO], None, "failed"),
        ([YES, {**NO, "required": False}], None, "passed"),
        ([YES, {**NO, "required": False}], 0.5, "passed"),
        ([YES, {**NO, "required": False}], 0.6, "failed"),
        ([YES, {**NO, "required": False, "weight": 0}], 1.0, "passed"),
        ([{**YES, "weight": 3}, {**NO, "required": False}], 0.75, "passed"),
        ([{**YES, "required": False}, {**NO, "required": False}], 0.5, "passed"),
        ([YES, UNABLE], None, "errored"),
        ([NO, UNABLE], None, "errored"),
        ([YES, {**UNABLE, "negate": True}], None, "errored"),
        ([YES, {**SILENT, "negate": True}], None, "errored"),
        ([YES, SILENT], None, "errored"),
        ([NO, SILENT], None, "errored"),
        ([SILENT], None, "errored"),
        ([SILENT], 0.5, "errored"),
        # `required: false` allows a grader to be absent...
        ([YES, OPTIONAL], None, "passed"),
        ([YES, {**OPTIONAL, **SILENT}], None, "passed"),
        ([NO, OPTIONAL], None, "failed"),
        ([OPTIONAL], None, "skipped"),
        # ... but where there is a threshold, not to decide by its absence.
        ([YES, OPTIONAL], 0.5, "passed"),
        ([YES, OPTIONAL], 0.6, "errored"),
        ([YES, {**OPTIONAL, "weight": 0}], 0.6, "passed"),
        ([{**NO, "required": False}, OPTIONAL], 0.6, "failed"),
        ([{**YES, "required": False}, OPTIONAL, OPTIONAL, OPTIONAL], 0.5, "errored"),
        ([NO, OPTIONAL], 0.4, "failed"),
        ([OPTIONAL], 0.5, "errored"),
        ([OPTIONAL], 0.0, "errored"),
        ([], None, "skipped"),
        ([], 0.5, "skipped"),
        ([{**YES, "required": False}], None, "skipped"),
        ([{**YES, "required": False, "weight": 0}], 0.5, "errored"),
        ([{**YES, "weight": 0}], 0.5, "errored"),
    ],
)
def test_a_case_passes_when_required_graders_pass_and_the_score_reaches_the_threshold(
    graders: list[dict[str, Any]], threshold: float | None, outcome: Outcome
) -> None:
    _, found = grade(subject("done"), *graders, threshold=threshold)
    assert found.outcome == outcome


def test_the_grade_shows_its_arithmetic() -> None:
    optional = {**NO, "required": False, "name": "never"}
    _, found = grade(subject("done"), {**YES, "weight": 3}, optional, threshold=0.8)
    assert found.score == 0.75
    assert found.reasons == ["weighted score 3 / 4 = 0.75 < threshold 0.8"]
    _, found = grade(subject("done"), YES, {**NO, "name": "must not"})
    assert found.reasons == ["1 of 2 required graders failed: must not"]


def test_the_grade_says_which_graders_are_missing() -> None:
    silent = {**SILENT, "name": "price"}
    _, found = grade(subject("done"), YES, {**NO, "name": "must not"}, silent)
    assert found.reasons == ["1 of 3 required graders failed: must not", "could not be graded: price was skipped"]
    _, found = grade(subject("done"), YES, OPTIONAL, {**silent, "required": False}, threshold=0.3)
    assert found.reasons == [
        "weighted score 0.3333 to 1, for graders that weigh 2 did not judge: >= threshold 0.3",
        "left out, not required: cost errored, price was skipped",
    ]
    _, found = grade(subject("done"), YES, OPTIONAL, threshold=0.8)
    assert found.reasons[0] == (
        "weighted score 0.5 to 1, for graders that weigh 1 did not judge: cannot be compared with threshold 0.8"
    )


def test_a_plan_that_does_not_grade_passes_nothing_and_still_tells_a_failed_run() -> None:
    plan = GradingPlan([YES], grades=False)
    fault = Fault("agent_exception", "KeyError: 'order'")
    network = Fault("agent_unreachable", "connection refused")
    runs = (
        subject("done", graders=[YES]),
        subject(status="failed", fault=fault),
        subject(status="failed", fault=network),
    )
    for run, outcome in zip(runs, ("skipped", "failed", "errored"), strict=True):
        found = plan.grade(run, Surroundings())
        assert isinstance(found, tuple)
        assert (found[0], found[1].outcome) == ([], outcome)


def test_the_threshold_of_a_case_goes_before_that_of_the_suite() -> None:
    graders: list[dict[str, Any]] = [YES, {**NO, "required": False}]
    assert grade(subject("done", threshold=0.4), *graders, threshold=0.9)[1].outcome == "passed"
    assert grade(subject("done", threshold=0.9), *graders, threshold=0.4)[1].outcome == "failed"


def test_graders_of_a_case_judge_beside_those_of_the_suite() -> None:
    verdicts, found = grade(subject("done", graders=[NO, {"kind": "steps", "max": 0}]), YES)
    assert [(verdict.grader, verdict.outcome) for verdict in verdicts] == [
        ("contains", "passed"),
        ("contains-2", "failed"),
        ("steps", "passed"),
    ]
    assert found.outcome == "failed"


def test_graders_without_a_name_are_told_apart_by_number() -> None:
    verdicts, _ = grade(subject("done"), YES, {**YES, "name": "contains-2"}, YES, {**YES, "name": "mine"})
    assert [verdict.grader for verdict in verdicts] == ["contains", "contains-2", "contains-3", "mine"]


def test_negating_turns_passed_and_failed_round_and_scores_plainly() -> None:
    half = {"kind": "contains_all", "values": ["done", "never"], "negate": True}
    found = verdict(subject("done"), half)
    assert (found.outcome, found.score) == ("passed", 1.0)
    assert found.reasons[-1] == "negated: the check failed"
    assert verdict(subject("done"), {**YES, "negate": True}).outcome == "failed"
    bar = {"kind": "contains_all", "values": ["done", "never"], "min_score": 0.5, "negate": True}
    assert (verdict(subject("done"), bar).outcome, verdict(subject("done"), bar).score) == ("failed", 0.0)


@pytest.mark.parametrize("answer", [None, "", " \n"])
@pytest.mark.parametrize(
    "grader",
    [
        {"kind": "contains", "value": "password"},
        {"kind": "icontains", "value": "password"},
        {"kind": "contains_any", "values": ["password", "secret"]},
        {"kind": "regex", "pattern": "passw"},
        {"kind": "equals", "value": "no"},
        {"kind": "starts_with", "value": "no"},
        {"kind": "is_json"},
        {"kind": "json_schema", "schema": {"type": "object"}},
        {"kind": "field_accuracy", "expected": {"a": 1}},
        {"kind": "composite", "rule": "any", "graders": [NO, {"kind": "contains", "value": "password"}]},
    ],
)
def test_that_an_answer_lacks_something_is_not_shown_by_a_run_without_an_answer(
    answer: str | None, grader: dict[str, Any]
) -> None:
    assert verdict(subject(answer), grader).outcome == "failed"
    found = verdict(subject(answer), {**grader, "negate": True})
    assert (found.outcome, found.score) == ("errored", None)
    assert found.reasons[0].startswith("there is no answer")
    assert verdict(subject("Hello."), {**grader, "negate": True}).outcome == "passed"


def test_a_failed_run_fails_every_grader_also_a_negated_one() -> None:
    fault = Fault("agent_exception", "KeyError: 'order'")
    verdicts, found = grade(subject(status="failed", fault=fault), YES, {**NO, "negate": True}, SILENT)
    assert [verdict.outcome for verdict in verdicts] == ["failed"] * 3
    assert (found.outcome, found.score) == ("failed", 0.0)
    assert found.reasons == ["the run failed, agent_exception: KeyError: 'order'"]


@pytest.mark.parametrize("status", ["failed", "cancelled", "pending", "running"])
def test_a_run_without_an_answer_is_errored_and_its_graders_skipped(status: RunStatus) -> None:
    fault = Fault("agent_unreachable", "connection refused")
    verdicts, found = grade(subject(status=status, fault=fault), YES, {**NO, "negate": True})
    assert [verdict.outcome for verdict in verdicts] == ["skipped"] * 2
    assert (found.outcome, found.score) == ("errored", None)
    assert "agent_unreachable" in found.reasons[0]


def graded(plan: GradingPlan) -> Graded:
    """What a plan with classes of others says."""

    async def judged() -> Graded:
        found = plan.grade(subject("done"), Surroundings())
        assert isinstance(found, Awaitable)  # in a thread
        return await found

    return asyncio.run(judged())


class Broken(Grader):
    later: bool = False

    def prepare(self) -> Check:
        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            raise KeyError("oops")

        async def find_later(subject: Subject, surroundings: Surroundings) -> Finding:
            raise KeyError("oops")

        return Check(find_later if self.later else find)


class Odd(Grader):
    outcome: str = "passed"
    score: Any = None

    def prepare(self) -> Check:
        return Check(lambda subject, surroundings: Finding(outcome=self.outcome, score=self.score))  # type: ignore[arg-type]


@pytest.mark.parametrize("common", [{}, {"negate": True}, {"min_score": 0.5}, {"min_score": 0.5, "negate": True}])
@pytest.mark.parametrize(
    "odd", [{"outcome": "ok"}, {"score": float("nan")}, {"score": 2}, {"score": -0.1}, {"score": "1"}]
)
def test_a_grader_that_gives_what_is_no_verdict_is_errored(odd: dict[str, Any], common: dict[str, Any]) -> None:
    (found,), grade_ = graded(GradingPlan([Odd(**odd, **common)]))
    assert (found.outcome, found.score, grade_.outcome) == ("errored", None, "errored")


@pytest.mark.parametrize("later", [False, True])
def test_a_grader_that_raises_is_errored_and_the_others_still_judge(later: bool) -> None:
    (broken, passed), _ = graded(GradingPlan([Broken(later=later), YES]))
    assert (broken.outcome, broken.reasons) == ("errored", ["the grader raised KeyError: 'oops'"])
    assert passed.outcome == "passed"


def test_grading_is_plain_where_no_grader_waits() -> None:
    plan = GradingPlan([YES, {"kind": "tool_trajectory", "mode": "exact", "expected": [{"tool": "a"}]}])
    assert isinstance(plan.grade(subject("done", steps=calls("a")), Surroundings()), tuple)


def test_graders_of_cases_are_compiled_once_and_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []
    build = build_graders

    def counted(configs: Any, directory: Path | None) -> list[Grader]:
        built.append(configs)
        return build(configs, directory)

    monkeypatch.setattr(grading, "build_graders", counted)
    monkeypatch.setattr(grading, "MAX_CACHED", 2)
    plan = GradingPlan([])
    for value in ["a", "b", "a", "c", "a", "b"]:
        plan.grade(subject("abc", graders=[{"kind": "contains", "value": value}]), Surroundings())
    assert len(built) - 1 == 4  # a, b, c, and b again


@pytest.mark.parametrize(
    ("config", "pointer", "told"),
    [
        ({"kind": "contians"}, "/0", "did you mean `contains`?"),
        ({"value": "x"}, "/0", "one of: tool_trajectory"),
        ({"kind": "contains", "vlaue": "x"}, "/0/vlaue", "did you mean `value`?"),
        ({"kind": "contains", "value": 7}, "/0/value", "Expected `str | null`"),
        ({"kind": "contains", "min_score": 0}, "/0/min_score", "> 0"),
        ({"kind": "contains", "weight": -1}, "/0/weight", ">= 0"),
        (7, "/0", "needs a `kind`"),
    ],
)
def test_a_slip_in_a_configuration_is_refused_with_the_nearest_word(config: Any, pointer: str, told: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        GradingPlan([config])
    assert (caught.value.code, caught.value.pointer) == ("invalid_config", pointer)
    assert told in str(caught.value)


# Re-grading.


def test_an_equal_run_and_configuration_have_an_equal_key() -> None:
    first = verdict(subject("done", steps=calls("a")), YES)
    again = verdict(subject("done", steps=calls("a")), {**YES, "name": "other", "weight": 3, "required": False})
    assert first.key == again.key != ""


@pytest.mark.parametrize(
    ("other", "grader"),
    [
        (subject("done."), YES),
        (subject("done", steps=calls("a")), YES),
        (subject("done", expected="x"), YES),
        (subject("done", attempt_ms=[1.0]), YES),
        (subject("done"), {**YES, "value": "don"}),
        (subject("done"), {**YES, "negate": True}),
        (subject("done"), {**YES, "min_score": 0.5}),
        (subject("done"), {**YES, "kind": "icontains"}),
    ],
)
def test_whatever_may_change_a_verdict_changes_its_key(other: Subject, grader: dict[str, Any]) -> None:
    assert verdict(other, grader).key != verdict(subject("done"), YES).key


def test_the_address_of_a_body_stands_for_what_was_read_from_it() -> None:
    def key(sent: bytes) -> str:
        graded = subject("done", attempt_ms=[1.0])
        graded.run.attempts[-1].body_hash = sha256(sent).hexdigest()
        return verdict(graded, YES).key

    assert key(b"done") == key(b"done")
    assert key(b"done") != key(b"done.")
    assert key(b"done") != verdict(subject("done", attempt_ms=[1.0]), YES).key


def test_a_new_version_of_a_grader_changes_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = verdict(subject("done"), YES).key
    monkeypatch.setattr(GRADERS["contains"], "version", 9)
    assert verdict(subject("done"), YES).key != before


def test_a_new_version_of_a_grader_inside_a_composite_changes_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    composite = {"kind": "composite", "graders": [{"kind": "composite", "graders": [YES]}]}
    before = verdict(subject("done"), composite).key
    assert before == verdict(subject("done"), composite).key
    monkeypatch.setattr(GRADERS["contains"], "version", 9)
    assert verdict(subject("done"), composite).key != before


def test_a_run_that_was_stored_and_read_again_has_the_same_keys() -> None:
    steps = [step(0, "find", {"n": 1.0, "deep": [{"x": None}]}, result="ok", status="ok", duration_ms=0.1 + 0.2)]
    run = subject("done \ud800", steps=steps, attempt_ms=[1 / 3], cost_usd=0.1, expected={"a": [1, 2.5]})
    stored = wire.encode(run.run)
    again = Subject(msgspec.json.decode(stored, type=Run), msgspec.convert(msgspec.to_builtins(run.case), Case))
    assert verdict(again, YES).key == verdict(run, YES).key


def test_only_what_changed_is_found_again_and_paid_for() -> None:
    ballot = {"reasoning": "fine", "outcome_met": True, "failure_mode": None, "evidence": []}
    run = subject("done")
    judge = {"kind": "judge"}
    model = ScriptedModel([ballot, ballot])
    first, _ = grade(run, judge, YES, model=model)
    earlier = {verdict.key: verdict for verdict in first}
    again, found = grade(run, {**judge, "name": "renamed", "weight": 2}, YES, model=model, earlier=earlier)
    assert len(model.asked) == 1
    assert (again[0].grader, again[0].weight, again[0].outcome) == ("renamed", 2, "passed")
    assert again[0].cost_usd is None
    assert found.outcome == "passed"
    grade(run, {**judge, "instructions": "be strict"}, model=model, earlier=earlier)
    assert len(model.asked) == 2
    other = ScriptedModel([ballot], name="another model")
    grade(run, judge, model=other, earlier=earlier)
    assert len(other.asked) == 1


def test_what_could_not_run_is_tried_again() -> None:
    run = subject("done")
    first, _ = grade(run, {"kind": "judge"}, model=ScriptedModel([]))
    assert first[0].outcome == "errored"
    ballot = {"reasoning": "fine", "outcome_met": True}
    again, _ = grade(run, {"kind": "judge"}, model=ScriptedModel([ballot]), earlier={first[0].key: first[0]})
    assert again[0].outcome == "passed"


def test_content_that_is_no_json_has_no_key_but_a_verdict() -> None:
    odd = subject("done", metadata={"thing": object()})
    found = verdict(odd, YES)
    assert (found.outcome, found.key) == ("passed", "")


# Properties.

VERDICTS = st.lists(
    st.builds(
        lambda outcome, score, weight, required: Verdict(
            grader="g",
            kind="k",
            outcome=outcome,
            score=score if outcome in ("passed", "failed") else None,
            weight=weight,
            required=required,
        ),
        st.sampled_from(["passed", "failed", "errored", "skipped"]),
        st.floats(0, 1),
        st.floats(0, 10),
        st.booleans(),
    ),
    max_size=6,
)


@given(VERDICTS, st.none() | st.floats(0, 1))
def test_nothing_passes_that_should_not(verdicts: list[Verdict], threshold: float | None) -> None:
    found = conclude(verdicts, threshold)
    assert found.score is None or 0 <= found.score <= 1
    if found.outcome == "passed":
        assert all(verdict.outcome == "passed" for verdict in verdicts if verdict.required)
        assert any(verdict.outcome in ("passed", "failed") for verdict in verdicts)
        assert threshold is None or (found.score is not None and reaches(found.score, threshold))
        assert threshold is not None or any(verdict.required for verdict in verdicts)
        # The graders that are absent could not have changed it.
        for absent in (0.0, 1.0):
            known = [
                replace(verdict, outcome="failed", score=absent) if verdict.score is None else verdict
                for verdict in verdicts
            ]
            # Sums in another order may differ in the last digit.
            below = None if threshold is None else threshold - 1e-9
            assert conclude(known, below).outcome == "passed"
    elif found.outcome in ("failed", "errored", "skipped"):
        assert found.reasons


def test_importing_the_graders_is_light() -> None:
    import subprocess
    import sys

    code = "import sys, seatrial.graders; print([m for m in ('aiohttp', 'jsonschema_rs', 'yaml') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("answer", [None, "", " \n"])
@pytest.mark.parametrize(
    "grader",
    [
        {"kind": "regex", "pattern": r"\A(?!.*password)"},
        {"kind": "regex", "pattern": r"\A\s*\Z"},
        {"kind": "equals", "value": " "},
        {"kind": "contains", "value": "password", "negate": True},
    ],
)
def test_no_check_of_the_answer_passes_on_a_run_without_one(answer: str | None, grader: dict[str, Any]) -> None:
    found = verdict(subject(answer), grader)
    assert (found.outcome, found.code) == ("errored", "no_answer")


def test_a_check_that_fails_on_a_run_without_an_answer_fails() -> None:
    assert verdict(subject(None), {"kind": "contains", "value": "done"}).outcome == "failed"
    negated = {"kind": "regex", "pattern": r"\A(?!.*password)", "negate": True}
    assert verdict(subject(None), negated).outcome == "failed"


@pytest.mark.parametrize(
    "grader",
    [{"kind": "regex", "pattern": r"\A(?!.*password)"}, {"kind": "contains", "value": "password", "negate": True}],
)
def test_text_that_nobody_would_see_is_no_answer(grader: dict[str, Any]) -> None:
    found = verdict(subject("\u200b\ufeff"), grader)
    assert (found.outcome, found.code) == ("errored", "no_answer")
