"""`verdicts.md` 1, "Claims": every grader on calls goes by how much is known of them, and says what it rests on."""

from __future__ import annotations

from typing import Any

import pytest

from graders.subjects import calls, grade, step, subject, verdict
from seatrial.graders.key import content_digest
from seatrial.trajectory.completeness import CALLS_NOT_LISTED, Completeness, Level
from seatrial.transcript import Note

LEVELS: list[Level] = ["complete", "partial", "none"]
TRAJECTORY: dict[str, Any] = {"kind": "tool_trajectory"}
ONLY_READS = {**TRAJECTORY, "mode": "any_order", "maximums": {"zzz": 0}, "forbidden": [{"tool": "delete*"}]}

CLAIMS: list[tuple[dict[str, Any], list[str], str, str]] = [
    (ONLY_READS, ["find"], "passed", "errored"),
    (ONLY_READS, ["find", "delete_account"], "failed", "failed"),
    ({**TRAJECTORY, "mode": "superset", "expected": [{"tool": "find"}]}, ["find"], "passed", "passed"),
    ({**TRAJECTORY, "mode": "superset", "expected": [{"tool": "find"}]}, [], "failed", "errored"),
    ({"kind": "steps", "max": 1}, ["find"], "passed", "errored"),
    ({"kind": "steps", "max": 1}, [], "passed", "errored"),
    ({"kind": "steps", "max": 1}, ["find", "find"], "failed", "failed"),
    ({"kind": "steps", "min": 1}, ["find"], "passed", "passed"),
    ({"kind": "steps", "min": 1}, [], "failed", "errored"),
    ({"kind": "steps", "min": 1, "max": 2}, ["find"], "passed", "errored"),
    ({"kind": "steps", "min": 3, "max": 9}, ["find"], "failed", "errored"),
    ({"kind": "model_calls", "max": 1}, [], "passed", "errored"),
    ({"kind": "model_calls", "min": 1}, [], "passed", "passed"),
    ({"kind": "model_calls", "min": 2}, [], "failed", "errored"),
    ({"kind": "model_calls", "max": 0}, [], "failed", "failed"),
]


@pytest.mark.parametrize(("grader", "made", "complete", "otherwise"), CLAIMS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_grader_on_calls_passes_and_fails_only_on_what_is_known(
    level: Level, grader: dict[str, Any], made: list[str], complete: str, otherwise: str
) -> None:
    (found,), case = grade(subject(steps=calls(*made), completeness=level), grader)
    wanted = complete if level == "complete" else otherwise
    assert (found.outcome, case.outcome) == (wanted, wanted)
    assert (found.score is None) is (wanted == "errored")
    if wanted == "errored":
        assert "calls are" in found.reasons[0]
        assert found.reasons[-1].startswith("To do: ")
    assert found.basis == "reported"
    assert found.reasons[0].removesuffix(".").endswith("(basis: reported)")


NEGATED = {"passed": "failed", "failed": "passed", "errored": "errored"}


@pytest.mark.parametrize(("grader", "made", "complete", "otherwise"), CLAIMS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_negated_grader_turns_what_is_known_round_and_nothing_else(
    level: Level, grader: dict[str, Any], made: list[str], complete: str, otherwise: str
) -> None:
    found = verdict(subject(steps=calls(*made), completeness=level), {**grader, "negate": True})
    assert found.outcome == NEGATED[complete if level == "complete" else otherwise]


def test_min_score_and_negate_together_are_honest_on_a_part_of_the_calls() -> None:
    grader = {**TRAJECTORY, "mode": "exact", "expected": [{"tool": "a"}, {"tool": "b"}], "min_score": 0.5}
    half = subject(steps=calls("a"), completeness="partial")
    assert verdict(half, grader).outcome == "errored"
    assert verdict(half, {**grader, "negate": True}).outcome == "errored"
    wrong = subject(steps=calls("x", "y", "z"), completeness="partial")
    assert verdict(wrong, grader).outcome == "failed"
    assert verdict(wrong, {**grader, "negate": True}).outcome == "passed"


@pytest.mark.parametrize("grader", [ONLY_READS, {"kind": "steps", "max": 9}, {"kind": "model_calls", "max": 9}])
def test_a_run_recorded_before_completeness_was_known_is_errored_and_to_be_run_again(grader: dict[str, Any]) -> None:
    found = verdict(subject(steps=calls("find"), completeness=None), grader)
    assert found.outcome == "errored"
    assert "completeness_not_recorded" in found.reasons[0]
    assert found.reasons[-1] == "To do: run it again."


def test_an_answer_and_nothing_else_never_passes_only_reads() -> None:
    reason = Note(CALLS_NOT_LISTED, "", "the agent returned an answer and nothing that lists its calls")
    found = verdict(subject(completeness=Completeness("none", reasons=[reason])), ONLY_READS)
    assert found.outcome == "errored"
    assert "calls_not_listed" in found.reasons[0]
    assert "made no calls" not in found.reasons[0]
    assert "declare `tool_access: none`" in found.reasons[1]


def test_an_agent_without_tools_is_known_to_have_made_no_calls() -> None:
    found = verdict(subject(completeness=Completeness("complete")), ONLY_READS)
    assert found.outcome == "passed"
    assert "The agent made no calls." in found.reasons[0]


@pytest.mark.parametrize(
    "grader", [{**ONLY_READS, "basis": "observed"}, {"kind": "steps", "max": 9, "basis": "observed"}]
)
def test_a_grader_with_basis_observed_is_errored_on_calls_that_only_the_agent_reports(grader: dict[str, Any]) -> None:
    found = verdict(subject(steps=calls("find")), grader)
    assert (found.outcome, found.basis) == ("errored", "reported")
    assert found.reasons[1] == (
        "To do: leave out `basis: observed`, or let the agent send its calls to the tool proxy too, which records them."
    )
    deleted = verdict(subject(steps=calls("delete_account")), grader)
    assert deleted.outcome == "errored"
    seen = verdict(subject(steps=calls("find"), steps_source="observed"), grader)
    assert (seen.outcome, seen.basis) == ("passed", "observed")
    assert seen.reasons[0].removesuffix(".").endswith("(basis: observed)")


def test_basis_observed_is_errored_also_where_an_unknown_figure_is_skipped() -> None:
    grader = {"kind": "steps", "max": 9, "basis": "observed", "when_unknown": "skip"}
    assert verdict(subject(steps=calls("find")), grader).outcome == "errored"
    assert verdict(subject(completeness="none", steps_source="observed"), grader).outcome == "skipped"


def test_calls_of_the_user_are_no_steps_of_the_agent() -> None:
    run = subject(steps=[step(0, "find"), step(1, "toggle_roaming", executed_by="user")])
    assert verdict(run, {"kind": "steps", "max": 1}).outcome == "passed"
    assert verdict(run, {"kind": "steps", "min": 2}).outcome == "failed"
    forbids = {**ONLY_READS, "forbidden": [{"tool": "toggle_*"}]}
    assert verdict(run, forbids).outcome == "passed"


def test_the_key_of_a_verdict_covers_what_is_known_of_the_calls() -> None:
    keys = [content_digest(subject(steps=calls("find"), completeness=level)) for level in (*LEVELS, None)]
    keys.append(content_digest(subject(steps=calls("find"), steps_source="observed")))
    assert len({*keys}) == 5


def test_an_earlier_pass_is_not_kept_when_less_is_known() -> None:
    whole = verdict(subject(steps=calls("find")), ONLY_READS)
    (again,), _ = grade(subject(steps=calls("find"), completeness="partial"), ONLY_READS, earlier={whole.key: whole})
    assert (whole.outcome, again.outcome) == ("passed", "errored")
