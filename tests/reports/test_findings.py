"""Where a run went wrong, and the run in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import records

from seatrial.graders import Finding, Subject, Surroundings, build_graders
from seatrial.reports.findings import (
    MAX_FINDINGS,
    RunFindings,
    expected_text,
    expected_tools,
    findings_of,
    not_repaired,
    place_text,
    run_evidence,
    value_words,
)
from seatrial.runs import Case, Fault, Grade, Run, Verdict
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step
from seatrial.transcript import Note

STEPS = [
    Step(0, "find_order", {"order": "A-1"}, status="ok"),
    Step(1, "quote", {"order": "A-1"}, status="ok"),
    Step(2, "refund", {"order": "A-1", "amount": 238.0}, status="ok"),
]


def judged(steps: Sequence[Step], *configs: dict[str, Any], stored: bool = False, **fields: Any) -> Run:
    """A run with these steps, graded by the real graders; with `stored`, as a store gives it."""
    known = fields.pop("completeness", Completeness("complete", "messages", ["messages"]))
    run = records.run(outcome=None, steps=list(steps), completeness=known, **fields)
    for config in configs:
        (grader,) = build_graders([config])
        found = grader.prepare().find(Subject(run, Case("case-0", "Refund it.")), Surroundings())
        assert isinstance(found, Finding)
        run.verdicts.append(
            Verdict(
                grader=config.get("name", config["kind"]),
                kind=config["kind"],
                outcome=found.outcome,
                score=found.score,
                reasons=found.reasons,
                evidence=found.evidence,
                details=msgspec.to_builtins(found.details) if stored else found.details,
                code=found.code,
                required=True,
            )
        )
    words = [verdict.outcome for verdict in run.verdicts]
    run.grade = Grade(outcome="failed" if "failed" in words else "errored" if "errored" in words else "passed")
    return run


def trajectory(mode: str, *expected: Any, **keys: Any) -> dict[str, Any]:
    """A grader of calls."""
    return {"kind": "tool_trajectory", "name": "by the book", "mode": mode, "expected": list(expected), **keys}


def told(run: Run, *configs: dict[str, Any]) -> RunFindings:
    """The findings of a run that these graders judged."""
    return findings_of(run_evidence(run, expected_tools(configs)))


@pytest.mark.parametrize("stored", [False, True])
def test_a_wrong_argument_is_said_with_both_values_and_its_step(stored: bool) -> None:
    refund = {"tool": "refund", "args": {"amount": {"$approx": 23.8, "abs": 0.01}}, "args_match": "superset"}
    config = trajectory("in_order", "find_order", refund)
    found = told(judged(STEPS, config, stored=stored), config)
    assert found.sentence.text == "First wrong at step 2: refund has /amount 238, expected 23.8 ± 0.01."
    assert found.sentence.place == "/steps/2"
    assert [(finding.title, finding.place, finding.grader) for finding in found.findings] == [
        ("Wrong argument", "/steps/2", "by the book")
    ]


def test_a_missing_call_is_said_where_it_was_due() -> None:
    config = trajectory("in_order", "find_order", "approve", "refund")
    found = told(judged(STEPS, config), config)
    assert found.sentence.text == "First wrong at step 1: approve was expected here, and not called."


def test_a_call_that_is_missing_at_the_end_is_said_at_the_answer() -> None:
    config = trajectory("in_order", "refund", "send_email")
    found = told(judged(STEPS, config), config)
    assert found.sentence.text == "First wrong at the answer: send_email was expected, and not called."


def test_an_extra_call_and_one_out_of_order_are_named() -> None:
    config = trajectory("exact", "find_order", "refund")
    found = told(judged(STEPS, config), config)
    assert [(finding.title, finding.step) for finding in found.findings] == [("Call too many", 1)]
    config = trajectory("in_order", "refund", "quote")
    found = told(judged(STEPS, config), config)
    assert "Call out of order" in {finding.title for finding in found.findings}


def test_a_forbidden_call_and_too_many_calls_are_named() -> None:
    config = trajectory("superset", "find_order", forbidden=["quote"])
    assert told(judged(STEPS, config), config).sentence.text == "First wrong at step 1: quote is a forbidden call."
    config = {"kind": "tool_trajectory", "mode": "any_order", "maximums": {"refund": 1}}
    found = told(judged([*STEPS, Step(3, "refund", {"order": "A-2"}, status="ok")], config), config)
    assert found.sentence.text == "First wrong at step 3: refund must be called at most once; it was called twice."
    config = {"kind": "tool_trajectory", "mode": "any_order", "minimums": {"approve": 1}}
    found = told(judged(STEPS, config), config)
    assert found.sentence.text == "Wrong number of calls: approve must be called at least once; it was not called."


def test_what_is_wrong_inside_of_several_graders_is_found() -> None:
    config = {"kind": "composite", "name": "both", "graders": [trajectory("in_order", "approve")]}
    found = told(judged(STEPS, config), config)
    assert [(finding.kind, finding.grader) for finding in found.findings] == [("trajectory", "both / by the book")]


def test_a_failed_call_counts_unless_an_equal_one_went_well_later() -> None:
    broken = Step(0, "refund", {"amount": 1}, status="error", error="no answer")
    again = Step(1, "refund", {"amount": 1}, status="ok")
    other = Step(1, "refund", {"amount": 2}, status="ok")
    assert not_repaired([broken, again]) == []
    assert not_repaired([broken, other]) == [broken]
    assert not_repaired([msgspec.structs.replace(again, index=0), broken]) == [broken]
    found = told(judged([broken, other]))
    assert [(finding.title, finding.sentence, finding.wrong) for finding in found.findings] == [
        ("Failed call", "refund failed: no answer.", False)
    ]


def test_a_failed_call_that_a_grader_names_is_said_once() -> None:
    broken = Step(0, "refund", {"amount": 1}, status="timeout")
    config = trajectory("superset", "refund", no_errors=True)
    found = told(judged([broken], config), config)
    assert [finding.sentence for finding in found.findings] == ["refund timed out."]


def test_arguments_that_are_not_json_are_wrong() -> None:
    run = judged([Step(0, "refund", None, arguments_text='{"amount": ')], trajectory("in_order", "approve"))
    found = told(run)
    assert found.first_wrong is not None
    assert "arguments" in {finding.kind for finding in found.findings}


def test_claims_and_calls_that_differ_are_named() -> None:
    notes = [Note("observed_call_not_reported", "/steps/1", "quote was called and is not reported")]
    verdict = Verdict(grader="honest", kind="honesty", outcome="failed", details=msgspec.to_builtins(notes))
    found = told(records.run(outcome="failed", steps=STEPS, verdicts=[verdict]))
    assert [(finding.title, finding.place) for finding in found.findings] == [("Call without a claim", "/steps/1")]


def test_what_a_judge_points_at_is_said_only_where_nothing_else_names_a_place() -> None:
    details = {"passed": False, "failure_mode": "wrong tone", "reasoning": "It is rude.", "judge": {}}
    details["judge"] = {"model": "m", "votes": 1, "prompt_hash": "x"}
    judge = Verdict(grader="kind", kind="judge", outcome="failed", evidence=["/answer"], details=details)
    found = told(records.run(outcome="failed", verdicts=[judge]))
    assert [(each.kind, each.title, each.sentence, each.place) for each in found.findings] == [
        ("judge", "Wrong tone", "It is rude.", "/answer")
    ]
    run = judged(STEPS, trajectory("in_order", "approve"))
    run.verdicts.append(judge)
    assert {finding.kind for finding in told(run).findings} == {"trajectory"}


def test_a_fault_of_the_agent_and_one_that_is_not_are_told_apart() -> None:
    agents = told(records.run(status="failed", outcome="failed", verdicts=[], fault=Fault("agent_exception", "boom")))
    assert agents.sentence.text == "The agent failed: agent_exception: boom."
    others = told(records.run(status="failed", outcome="errored", verdicts=[], fault=Fault("rate_limited", "429")))
    assert others.sentence.text == "Not counted, the fault was not the agent's: rate_limited: 429."
    assert [finding.kind for finding in others.findings] == ["fault"]


def test_a_run_of_which_the_calls_are_unknown_is_not_said_to_have_gone_wrong() -> None:
    known = Completeness("none", None, [])
    run = judged([], trajectory("in_order", "approve"), completeness=known)
    found = told(run)
    assert found.first_wrong is None
    assert found.sentence.text.startswith("Not judged: by the book: ")
    assert [finding.kind for finding in found.findings] == ["calls_unknown"]
    assert not found.findings[0].wrong


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "Its grader passed."),
        ({"verdicts": [records.verdict(), records.verdict()]}, "All 2 graders passed."),
        ({"outcome": None}, "The run was not graded."),
        ({"outcome": None, "status": "cancelled"}, "The run was cancelled before it ended."),
        ({"outcome": None, "status": "running"}, "The run is running."),
        ({"outcome": None, "status": "pending"}, "The run waits to start."),
    ],
)
def test_every_outcome_has_its_sentence(fields: dict[str, Any], sentence: str) -> None:
    assert told(records.run(**fields)).sentence.text == sentence


def test_a_run_that_passed_although_a_grader_failed_says_so() -> None:
    run = records.run(verdicts=[records.verdict(), records.verdict("failed"), records.verdict("skipped")])
    assert told(run).sentence.text == "The run passed: 1 of 3 graders passed, 1 failed and 1 said nothing."


def test_values_and_places_are_put_into_words() -> None:
    assert value_words(238.0) == "238"
    assert value_words({"a": [1]}) == '{"a":[1]}'
    assert expected_text({"$gte": 1, "$lt": 5}) == "at least 1 and less than 5"
    assert expected_text({"$not": {"$in": [1]}}) == "anything but one of [1]"
    assert expected_text({"price": 1}) == '{"price":1}'
    assert place_text("/steps/4") == "step 4"
    assert place_text("/messages/3/content/0") == "message 3"
    assert place_text("/answer") == "the answer"


NAMES = st.sampled_from(["find", "refund", "mail"])


@given(
    st.lists(st.tuples(NAMES, st.integers(0, 2), st.sampled_from(["ok", "error", "unknown"])), max_size=6),
    st.lists(NAMES, min_size=1, max_size=4),
    st.sampled_from(["exact", "in_order", "superset", "subset", "unordered"]),
)
def test_every_finding_leads_to_a_place_of_the_run_and_the_sentence_agrees_with_the_outcome(
    made: list[tuple[str, int, Any]], expected: list[str], mode: str
) -> None:
    steps = [Step(index, name, {"x": x}, status=status) for index, (name, x, status) in enumerate(made)]
    config = trajectory(mode, *expected)
    run = judged(steps, config)
    found = told(run, config)
    assert len(found.findings) <= MAX_FINDINGS
    assert all(finding.step is None or finding.step < len(steps) for finding in found.findings)
    assert all(finding.sentence.endswith((".", "…")) for finding in found.findings)
    assert run.grade is not None
    assert found.sentence.text.startswith("First wrong at ") == (run.grade.outcome == "failed")
    if run.grade.outcome == "passed":
        assert not any(finding.wrong for finding in found.findings)
    if found.first_wrong is not None:
        assert found.first_wrong in found.findings
