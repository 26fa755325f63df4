"""What a run comes to once its answer is read, and what our tool proxy saw of it."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.formats.reading import Reading
from seatrial.runs import Attempt, Run, RunKey
from seatrial.runs.conclusion import conclude
from seatrial.trajectory import Step
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls
from seatrial.transcript import AssistantMessage, Note, StopReason, ToolCall, Transcript

PAY = Step(0, "pay", {}, source="observed")


def concluded(
    observed: ObservedCalls | None, reading: Reading | None, access: ToolAccess = "own", **fields: Any
) -> Run:
    run = Run(run_id="run-1", experiment_id="e", key=RunKey("crew", "case", 0), status="completed", **fields)
    conclude(run, reading, observed=observed, tool_access=access)
    return run


def reporting(*names: str) -> Reading:
    messages = [AssistantMessage([ToolCall(name, name, {})], StopReason.TOOL_USE) for name in names]
    return Reading("openai", Transcript([*messages]), [])


def known(run: Run) -> tuple[str, list[str]] | None:
    found = run.completeness
    return None if found is None else (found.level, [note.code for note in found.reasons])


@pytest.mark.parametrize("access", ["own", "world", "none"])
def test_calls_beyond_the_limits_make_them_partial_whatever_tools_the_agent_has(access: ToolAccess) -> None:
    run = concluded(ObservedCalls([PAY], incomplete=2), reporting("pay"), access)
    assert known(run) == ("partial", ["observed_calls_cut"])


def test_what_could_not_be_read_of_the_report_does_not_matter_when_only_observed_calls_count() -> None:
    dropped = Note("made_up", "/messages/1", "a message was dropped", weight="serious")
    reading = reporting("pay")
    reading.notes.append(dropped)
    assert known(concluded(ObservedCalls([PAY]), reading, "world")) == ("complete", [])
    assert known(concluded(ObservedCalls([PAY]), reading, "own")) == ("partial", ["made_up"])


def test_a_call_of_an_agent_that_has_no_tools_is_a_finding_also_when_only_we_saw_it() -> None:
    run = concluded(ObservedCalls([PAY]), Reading("text", Transcript([]), [], answer_only=True), "none")
    assert run.reading is not None
    assert [note.code for note in run.reading.notes] == ["observed_call_not_reported", "call_without_tools"]


@pytest.mark.parametrize(
    ("observed", "access", "steps", "level"),
    [
        (None, "own", [], None),
        (None, "world", [], None),
        (ObservedCalls([]), "own", [], None),
        (ObservedCalls([]), "world", [], ("complete", [])),
        (ObservedCalls([PAY]), "own", ["pay"], ("partial", ["no_answer_to_read"])),
        (ObservedCalls([PAY]), "world", ["pay"], ("complete", [])),
        (ObservedCalls([PAY], incomplete=1), "world", ["pay"], ("partial", ["observed_calls_cut"])),
    ],
)
def test_of_a_run_without_an_answer_the_observed_calls_are_known(
    observed: ObservedCalls | None, access: ToolAccess, steps: list[str], level: Any
) -> None:
    run = concluded(observed, None, access)
    assert ([step.name for step in run.steps], known(run)) == (steps, level)


def test_calls_of_an_earlier_attempt_are_not_forgotten() -> None:
    attempts = [Attempt(number=number, started_at=0, duration_ms=1, observed_calls=2) for number in (1, 2)]
    run = concluded(ObservedCalls([PAY]), reporting("pay"), "world", attempts=attempts)
    assert known(run) == ("partial", ["calls_in_earlier_attempt"])
    assert known(concluded(ObservedCalls([PAY]), reporting("pay"), attempts=attempts[:1])) == ("complete", [])


def test_a_run_that_is_concluded_again_has_every_note_once() -> None:
    reading = reporting("find")
    first = concluded(ObservedCalls([PAY]), reading)
    assert first.reading is not None
    notes = [*first.reading.notes]
    assert len(notes) == 2
    again = concluded(ObservedCalls(first.observed), first.reading)
    assert again.reading is not None
    assert again.reading.notes == notes


def test_a_turn_that_was_cut_is_noted_once_when_a_run_is_concluded_again() -> None:
    cut = Reading("openai", Transcript([AssistantMessage([], StopReason.MAX_TOKENS)]), [])
    run = concluded(None, cut)
    assert known(run) == ("partial", ["turn_cut"])
    conclude(run, run.reading)
    assert known(run) == ("partial", ["turn_cut"])


def test_what_the_agent_reported_in_an_earlier_attempt_is_in_doubt() -> None:
    attempts = [Attempt(number=number, started_at=0, duration_ms=1) for number in (1, 2)]
    attempts[0].called = ["delete"]
    run = concluded(None, reporting("pay"), attempts=attempts)
    assert known(run) == ("partial", ["calls_in_earlier_attempt"])
    assert known(concluded(ObservedCalls([PAY]), reporting("pay"), "world", attempts=attempts)) == ("complete", [])


def test_an_earlier_attempt_names_what_is_known_and_says_that_there_may_be_more() -> None:
    attempts = [Attempt(number=number, started_at=0, duration_ms=1) for number in (1, 2)]
    attempts[0].called = ["delete", "?"]
    run = concluded(None, reporting("pay"), attempts=attempts)
    assert run.completeness is not None
    (reason,) = run.completeness.reasons
    expected = "attempt 1 called 'delete' before it failed, and sent what may hold a call and could not be read"
    assert reason.message == expected
