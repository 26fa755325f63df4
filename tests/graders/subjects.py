"""Runs to grade, and ways to grade them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from strategies.unhurried import run_unhurried

from seatrial.formats.reading import Reading, TraceEvent
from seatrial.graders import ChatModel, GradingPlan, Subject, Surroundings
from seatrial.runs import Attempt, Case, Exchange, Fault, Grade, Run, RunKey, RunStatus, Verdict
from seatrial.trajectory.completeness import Completeness, Level
from seatrial.trajectory.step import Source, Step
from seatrial.transcript import Note, Transcript
from seatrial.transcript.messages import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCall,
    Usage,
    UserMessage,
)


def said(text: str, *calls: str, usage: Usage | None = None) -> AssistantMessage:
    made = [ToolCall(f"call-{name}", name, {}) for name in calls]
    return AssistantMessage([TextBlock(text), *made], StopReason.END_TURN, usage=usage)


def step(index: int, name: str, arguments: Any = None, **more: Any) -> Step:
    return Step(index, name, {} if arguments is None else arguments, **more)


def calls(*names: str) -> list[Step]:
    return [step(index, name) for index, name in enumerate(names)]


def subject(
    answer: str | None = "done",
    *,
    steps: list[Step] | None = None,
    steps_source: Source = "messages",
    completeness: Completeness | Level | None = "complete",
    messages: list[Message] | None = None,
    notes: list[Note] | None = None,
    trace: list[TraceEvent] | None = None,
    status: RunStatus = "completed",
    fault: Fault | None = None,
    usage: Usage | None = None,
    cost_usd: float | None = None,
    reported_ms: float | None = None,
    attempt_ms: list[float] | None = None,
    **case: Any,
) -> Subject:
    """A finished run with this answer, and its case."""
    if messages is None:
        messages = [UserMessage("hello"), said(answer or "")]
    if isinstance(completeness, str):
        completeness = Completeness(completeness, steps_source, [steps_source])
    transcript = Transcript(messages, answer=answer, usage=usage, cost_usd=cost_usd, duration_ms=reported_ms)
    run = Run(
        run_id="run-1",
        experiment_id="experiment-1",
        key=RunKey("mine", "case-1", 1),
        status=status,
        reading=Reading("agent-response", transcript, notes or [], trace=trace) if fault is None else None,
        steps=steps or [],
        steps_source=steps_source,
        completeness=completeness,
        exchanges=[Exchange(number=1, attempts=attempts(attempt_ms))] if attempt_ms else [],
        fault=fault,
        duration_ms=sum(attempt_ms) if attempt_ms is not None else None,
    )
    return Subject(run, Case(**{"id": "case-1", "instruction": "Refund order o-1.", **case}))


def attempts(durations_ms: list[float]) -> list[Attempt]:
    """Attempts that took so long."""
    return [Attempt(number=number, started_at=0, duration_ms=took) for number, took in enumerate(durations_ms, 1)]


def grade(
    subject: Subject,
    *graders: dict[str, Any],
    threshold: float | None = None,
    directory: Path | None = None,
    model: ChatModel | None = None,
    earlier: dict[str, Verdict] | None = None,
    begun: Callable[[], bool] | None = None,
) -> tuple[list[Verdict], Grade]:
    """All verdicts and the grade; no time limit of a grader passes before `begun` is true."""
    plan = GradingPlan(graders, threshold=threshold)
    surroundings = Surroundings(directory=directory or Path(), model=model)

    async def settled(waiting: Awaitable[tuple[list[Verdict], Grade]]) -> tuple[list[Verdict], Grade]:
        return await waiting

    # Within a loop from the start: a grader that waits may look for it.
    async def graded() -> tuple[list[Verdict], Grade]:
        found = plan.grade(subject, surroundings, earlier)
        return found if isinstance(found, tuple) else await settled(found)

    return run_unhurried(graded(), begun)


def verdict(subject: Subject, grader: dict[str, Any], **options: Any) -> Verdict:
    """What one grader says."""
    (only,), _ = grade(subject, grader, **options)
    return only
