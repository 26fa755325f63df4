"""What a failing test shows of a run."""

from __future__ import annotations

import pytest

from seatrial._support.wire import encode
from seatrial.driver.redaction import Redaction
from seatrial.formats import read
from seatrial.runs import Case, Fault, Grade, Outcome, Run, RunKey, Verdict
from seatrial.suites import Secrets
from seatrial.testing import NoVerdictError, RunResult, exact
from seatrial.testing.run_result import MAX_ANSWER, MAX_CALLS
from seatrial.trajectory import Completeness, Step


def a_result(answer: str = "hello", outcome: Outcome = "failed", **fields: object) -> RunResult:
    run = Run(run_id="r", experiment_id="e", key=RunKey("mine", "greet", 1), status="completed")
    run.reading = read(encode({"final_response": answer}), "agent-response")
    run.completeness = Completeness("complete", "messages", ["messages"])
    run.grade = Grade(outcome=outcome, reasons=["1 of 2 required graders failed: polite"])
    for name, value in fields.items():
        setattr(run, name, value)
    return RunResult(run, Case(id="greet", instruction="hi"))


def test_a_check_passes_only_what_the_graders_passed() -> None:
    a_result(outcome="passed").check()
    for outcome in ("failed", "errored"):
        with pytest.raises(AssertionError, match="1 of 2 required graders failed: polite"):
            a_result(outcome=outcome).check()


def test_a_check_without_graders_says_so() -> None:
    with pytest.raises(AssertionError, match="no graders were given"):
        a_result(outcome="skipped").check()


def test_the_story_has_the_graders_that_failed_the_calls_and_the_answer() -> None:
    verdicts = [
        Verdict(grader="polite", kind="contains", outcome="failed", score=0.5, reasons=["half\nof it"]),
        Verdict(grader="quick", kind="latency", outcome="passed", score=1.0, reasons=["fast"]),
    ]
    assert str(a_result(verdicts=verdicts, steps=[Step(0, "find", {"n": 1})])).splitlines() == [
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
    outcome = a_result(status="failed", reading=None, fault=Fault("agent_exception", "no", detail="ValueError: no"))
    assert not outcome.has_answer
    with pytest.raises(NoVerdictError, match="agent_exception: no"):
        assert "password" not in outcome.answer
    assert str(outcome).splitlines()[1:] == ["  ValueError: no"]


@pytest.mark.parametrize("said", ["", " \n"])
def test_a_run_without_an_answer_does_not_show_what_an_answer_does_not_say(said: str) -> None:
    outcome = a_result(said, steps=[Step(0, "find", {})])
    assert not outcome.has_answer
    with pytest.raises(NoVerdictError, match="there is no answer to look at, the agent ended without one"):
        assert "password" not in outcome.answer
    assert a_result("hello").has_answer


def test_what_an_agent_said_is_cut_and_cannot_steer_the_terminal() -> None:
    steps = [Step(index, "find\x1b[2J", {}) for index in range(MAX_CALLS + 5)]
    story = str(a_result("\x1b[2J" + "x" * (MAX_ANSWER + 100), steps=steps))
    assert "\x1b" not in story
    assert "and 5 more" in story
    assert "x" * MAX_ANSWER not in story


def test_a_result_shows_itself_on_one_line() -> None:
    assert repr(a_result()) == "<RunResult: mine on greet: failed>"


def test_the_story_says_that_not_all_calls_are_known() -> None:
    lines = str(a_result(completeness=Completeness("partial"), steps=[Step(0, "find", {})])).splitlines()
    assert "not all of the agent's calls are known" in lines
    assert "calls that are known:" in lines


def test_a_test_sees_what_the_agent_really_said_and_what_is_printed_has_no_secret_in_it() -> None:
    redaction = Redaction(Secrets({"KEY": "hunter2"}))
    steps = [Step(0, "send", {"to": "hunter2"})]
    result = a_result("it is hunter2", steps=steps)
    result = RunResult(result.run, result.case, redaction.run(result.run), redaction.quoting)
    assert "hunter2" in result.answer
    assert result.calls == exact({"tool": "send", "args": {"to": "hunter2"}})
    assert result.calls != exact({"tool": "send", "args": {"to": "${KEY}"}})
    assert len(result.calls) == 1
    shown = [str(result), repr(result.calls), repr(result.tools), repr(result)]
    shown += exact({"tool": "find"}).explain(result.calls)
    assert "hunter2" not in "\n".join(shown)
    assert "it is ${KEY}" in shown[0]
