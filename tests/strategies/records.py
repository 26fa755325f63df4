"""Experiments and runs that are good enough to be stored, in as few words as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.formats.reading import Reading
from seatrial.runs import Attempt, Case, Exchange, Experiment, Grade, Outcome, Run, RunKey, RunStatus, Verdict
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step
from seatrial.transcript import AssistantMessage, Note, StopReason, TextBlock, Transcript, Usage, UserMessage

CREATED_AT = 1_790_000_000_000


def experiment(experiment_id: str = "exp-1", *, name: str = "refunds", created_at: int = CREATED_AT) -> Experiment:
    """An experiment."""
    return Experiment(
        experiment_id=experiment_id, name=name, suite={"name": name}, suite_hash="5u17e", created_at=created_at
    )


def cases(count: int) -> list[Case]:
    """Cases `case-0`, `case-1`, ..."""
    return [Case(id=f"case-{index}", instruction=f"Do the task number {index}.") for index in range(count)]


def reading(*said: str, notes: Sequence[Note] = (), usage: Usage | None = None, cost: float | None = None) -> Reading:
    """A conversation that the user begins."""
    messages: list[Any] = [
        UserMessage(text) if index % 2 == 0 else AssistantMessage([TextBlock(text)], StopReason.END_TURN)
        for index, text in enumerate(said)
    ]
    return Reading("agent_response", Transcript(messages, usage=usage, cost_usd=cost), list(notes))


def verdict(outcome: Outcome = "passed", *, grader: str = "trajectory", key: str = "key-1") -> Verdict:
    """A verdict that shows some arithmetic."""
    score = {"passed": 1.0, "failed": 0.0}.get(outcome)
    return Verdict(
        grader=grader, kind="tool_trajectory", outcome=outcome, score=score, reasons=["1 of 1 calls"], key=key
    )


def grade(outcome: Outcome = "passed") -> Grade:
    """What a verdict of the same outcome comes to."""
    return Grade(outcome=outcome, score={"passed": 1.0, "failed": 0.0}.get(outcome))


def exchanges(attempts: Sequence[Attempt]) -> list[Exchange]:
    """One exchange with these attempts, if there are any."""
    return [Exchange(number=1, attempts=list(attempts))] if attempts else []


def run(
    case: int | str = 0,
    *,
    run_id: str | None = None,
    experiment_id: str = "exp-1",
    agent: str = "crew",
    trial: int = 1,
    status: RunStatus = "completed",
    outcome: Outcome | None = "passed",
    said: Sequence[str] = ("Where is my order?", "It was shipped yesterday."),
    **fields: Any,
) -> Run:
    """A run of a case that called one tool and was graded."""
    case_id = f"case-{case}" if isinstance(case, int) else case
    given: dict[str, Any] = {
        "reading": reading(*said) if said else None,
        "body": b'{"final_response": "It was shipped yesterday."}',
        "steps": [Step(0, "lookup_order", {"order": case_id}, "call-1", "messages", "ok", "shipped")],
        "steps_source": "messages",
        "completeness": Completeness("complete", "messages", ["messages"]) if said else None,
        "exchanges": exchanges(fields.pop("attempts", [Attempt(number=1, started_at=CREATED_AT, duration_ms=12.5)])),
        "verdicts": [verdict(outcome)] if outcome is not None else [],
        "grade": grade(outcome) if outcome is not None else None,
        "started_at": CREATED_AT,
        "duration_ms": 12.5,
    }
    return Run(
        run_id=run_id or f"run-{agent}-{case_id}-{trial}",
        experiment_id=experiment_id,
        key=RunKey(agent, case_id, trial),
        status=status,
        **{**given, **fields},
    )
