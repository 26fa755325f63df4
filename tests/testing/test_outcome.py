"""What a failing test shows of a run."""

from __future__ import annotations

import pytest

from seatrial.formats import read
from seatrial.runs import Case, Fault, Grade, Judgement, Run, RunKey, Verdict
from seatrial.testing import Outcome
from seatrial.testing.outcome import MAX_ANSWER, MAX_CALLS
from seatrial.trajectory import Completeness, Step
from seatrial.wire import encode


def an_outcome(answer: str = "hello", judgement: Judgement = "failed", **fields: object) -> Outcome:
    run = Run(run_id="r", experiment_id="e", key=RunKey("mine", "greet", 0), status="completed")
    run.reading = read(encode({"final_response": answer}), "agent-response")
    run.completeness = Completeness("complete", "messages", ["messages"])
    run.grade = Grade(judgement=judgement, reasons=["1 of 2 required graders failed: polite"])
    for name, value in fields.items():
        setattr(run, name, value)
    return Outcome(run, Case(id="greet", instruction="hi"))


def test_a_check_passes_only_what_the_graders_passed() -> None:
    an_outcome(judgement="passed").check()
    for judgement in ("failed", "errored"):
        with pytest.raises(AssertionError, match="1 of 2 required graders failed: polite"):
            an_outcome(judgement=judgement).check()


def test_a_check_without_graders_says_so() -> None:
    with pytest.raises(AssertionError, match="no graders were given"):
        an_outcome(judgement="skipped").check()


def test_the_story_has_the_graders_that_failed_the_calls_and_the_answer() -> None:
    verdicts = [
        Verdict(grader="polite", kind="contains", judgement="failed", score=0.5, reasons=["half\nof it"]),
        Verdict(grader="quick", kind="latency", judgement="passed", score=1.0, reasons=["fast"]),
    ]
    assert str(an_outcome(verdicts=verdicts, steps=[Step(0, "find", {"n": 1})])).splitlines() == [
        "1 of 2 required graders failed: polite",
        "polite: failed, score 0.5",
        "  half",
        "  of it",
        "calls:",
        '  find {"n":1}',
        "answer:",
        "  hello",
    ]


def test_the_story_of_a_fault_has_its_detail() -> None:
    outcome = an_outcome(status="failed", reading=None, fault=Fault("agent_exception", "no", detail="ValueError: no"))
    assert outcome.answer == ""
    assert str(outcome).splitlines()[1:] == ["  ValueError: no"]


def test_what_an_agent_said_is_cut_and_cannot_steer_the_terminal() -> None:
    steps = [Step(index, "find\x1b[2J", {}) for index in range(MAX_CALLS + 5)]
    story = str(an_outcome("\x1b[2J" + "x" * (MAX_ANSWER + 100), steps=steps))
    assert "\x1b" not in story
    assert "and 5 more" in story
    assert "x" * MAX_ANSWER not in story


def test_an_outcome_shows_itself_on_one_line() -> None:
    assert repr(an_outcome()) == "<Outcome: mine on greet: failed>"


def test_the_story_says_that_not_all_calls_are_known() -> None:
    lines = str(an_outcome(completeness=Completeness("partial"), steps=[Step(0, "find", {})])).splitlines()
    assert "not all of the agent's calls are known" in lines
    assert "calls that are known:" in lines
