"""One function concludes every run, whoever asked for it."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.agents.agent import Reply
from seatrial.driver import Recording, Redaction, RunSpec, SystemClock, conclude_run
from seatrial.driver.conclusion import Conclusion
from seatrial.events.types import CancelledOutcome, RunError, RunFinished, RunStarted
from seatrial.formats.chat.notes import RUN_FAILURE_REPORTED
from seatrial.formats.chat.turn import STREAM_TRUNCATED
from seatrial.formats.reading import Reading
from seatrial.runs import Attempt, Exchange, Fault, FaultRules, RunKey
from seatrial.suites.secrets import Secrets
from seatrial.transcript import AssistantMessage, Note, StopReason, TextBlock, Transcript

SPEC = RunSpec(run_id="run", experiment_id="e", key=RunKey("crew", "case", 1))
CANCELLED = RunFinished(thread_id="thread", run_id="run", outcome=CancelledOutcome())


def concluded(reply: Reply, *events: Any, secrets: Secrets | None = None, **options: Any) -> Conclusion:
    recording = Recording("run", "thread", SystemClock(), Redaction(secrets))
    for event in events:
        recording.receive(event)
    attempt = Attempt(number=1, started_at=1, duration_ms=2.0, fault=reply.fault)
    ended = conclude_run(SPEC, reply, [Exchange(number=1, attempts=[attempt])], recording, started_at=1, **options)
    for run in (ended.run, ended.kept):
        assert run.attempts[-1].fault == run.fault
    return ended


def answered(text: str = "ok", stop_reason: StopReason = StopReason.END_TURN, **fields: Any) -> Reply:
    message = AssistantMessage([TextBlock(text)], stop_reason, **fields)
    return Reply(reading=Reading("transcript", Transcript([message]), []))


def found(ended: Conclusion) -> tuple[str, str | None]:
    return ended.kept.status, None if ended.kept.fault is None else ended.kept.fault.error_class


def test_a_run_that_its_caller_ends_is_not_blamed_on_an_agent_that_said_nothing() -> None:
    assert found(concluded(Reply(), terminal=CANCELLED, may_cancel=True)) == ("cancelled", None)
    assert found(concluded(Reply())) == ("failed", "agent_output_missing")


@pytest.mark.parametrize("reply", [answered(), Reply(fault=Fault("agent_reported_error", "cancelled"))])
def test_an_agent_may_cancel_its_run_only_where_runs_can_be_cancelled(reply: Reply) -> None:
    started = RunStarted(thread_id="thread", run_id="run")
    assert found(concluded(reply, started, CANCELLED)) == ("failed", "agent_reported_error")
    ended = concluded(reply, started, CANCELLED, may_cancel=True)
    assert (*found(ended), ended.terminal) == ("cancelled", None, CANCELLED)


def test_the_last_turn_of_a_transcript_says_how_the_run_ended() -> None:
    for may_cancel in (False, True):
        ended = concluded(answered(stop_reason=StopReason.ABORTED), may_cancel=may_cancel)
        assert found(ended) == ("failed", "agent_reported_error")
    ended = concluded(answered(stop_reason=StopReason.ERROR, error_message="no model"))
    assert found(ended) == ("failed", "agent_reported_error")
    assert isinstance(ended.terminal, RunError)
    assert ended.kept.fault is not None
    assert ended.kept.fault.message == ended.terminal.message == "no model"


@pytest.mark.parametrize("may_cancel", [False, True])
@pytest.mark.parametrize(("stop_reason", "message"), [(StopReason.ERROR, "cut"), (StopReason.ABORTED, None)])
def test_a_record_that_was_cut_off_does_not_say_that_the_run_failed(
    stop_reason: StopReason, message: str | None, may_cancel: bool
) -> None:
    reply = answered(stop_reason=stop_reason, error_message=message)
    assert reply.reading is not None
    reply.reading.notes.append(Note(STREAM_TRUNCATED, "", "cut"))
    ended = concluded(reply, may_cancel=may_cancel)
    assert found(ended) == ("completed", None)
    assert isinstance(ended.terminal, RunFinished)
    assert ended.kept.completeness is not None
    assert ended.kept.completeness.level == "partial"


def test_a_suite_moves_faults_that_are_found_in_the_end() -> None:
    rules = FaultRules({"agent_output_missing": "infrastructure", "agent_reported_error": "infrastructure"})
    failed = answered(stop_reason=StopReason.ERROR, error_message="no model")
    for reply in (Reply(), answered(" "), failed):
        assert concluded(reply, faults=rules).kept.errored


def test_a_failure_that_a_record_reports_is_shown_without_secrets() -> None:
    reply = answered()
    assert reply.reading is not None
    reply.reading.notes.append(Note(RUN_FAILURE_REPORTED, "", "no quota for hunter2"))
    ended = concluded(reply, secrets=Secrets({"KEY": "hunter2"}))
    assert isinstance(ended.terminal, RunError)
    assert ended.terminal.message == "no quota for ${KEY}"
    assert ended.kept.fault is not None
    assert ended.kept.fault.message == ended.terminal.message
