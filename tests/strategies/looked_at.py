"""A store with one experiment of two agents, whose runs have everything that a terminal can show of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.formats.reading import Reading
from seatrial.graders.tool_trajectory import finding_of
from seatrial.runs import Attempt, Case, Exchange, Experiment, Fault, Grade, Run, RunKey, Verdict
from seatrial.store import open_store
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.expectation import compile_expectation
from seatrial.trajectory.matching import match
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    Message,
    Note,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from strategies import records

EXPECTED = {
    "mode": "exact",
    "expected": [{"tool": "find_order", "args": {"order": "A-1009"}}, {"tool": "refund", "args": {"amount": 20}}],
}
DROPPED = Note("message_dropped", "/messages/3", "expected a message, got a number")


def fill(path: Path) -> None:
    """Make the store."""
    suite: dict[str, Any] = {"graders": [{"kind": "tool_trajectory", "name": "calls", **EXPECTED}]}
    experiment = Experiment(
        experiment_id="exp-1", name="refunds", suite=suite, suite_hash="5u17e", created_at=records.CREATED_AT
    )
    cases = [
        Case(id="broken", instruction="My order A-1009 arrived broken. Refund me 20.", tags=["money"]),
        Case(id="late", instruction="Where is order A-1009?", tags=["status"]),
    ]
    with open_store(path) as store:
        store.create_experiment(experiment, cases)
        for agent, amount in (("v1", 20), ("v2", 200)):
            store.record_run(refund(agent, amount))
        store.record_run(text_only())
        store.record_run(unreachable())
        store.finish_experiment("exp-1", finished_at=records.CREATED_AT + 4200).wait()


def refund(agent: str, amount: int) -> Run:
    """A run that refunds this much; when that is too much, its first call failed as well."""
    right = amount == 20
    first: list[Message] = [
        AssistantMessage(
            [ThinkingBlock("First I look at the order."), ToolCall("1", "find_order", {"order": "A-1009"})],
            StopReason.TOOL_USE,
        ),
        ToolResultMessage("1", "find_order", [TextBlock("database locked")], is_error=True),
    ]
    messages: list[Message] = [
        UserMessage("My order A-1009 arrived broken. Refund me 20."),
        *([] if right else first),
        AssistantMessage(
            [ToolCall("2", "find_order", {"order": "A-1009"}), ToolCall("3", "refund", {"amount": amount})],
            StopReason.TOOL_USE,
        ),
        ToolResultMessage("2", "find_order", [TextBlock('{"order": "A-1009", "status": "delivered"}')]),
        ToolResultMessage("3", "refund", [TextBlock("done")]),
        AssistantMessage([TextBlock(f"I refunded {amount}. Sorry for the trouble!")], StopReason.END_TURN),
    ]
    steps = [
        *([] if right else [Step(0, "find_order", {"order": "A-1009"}, "1", "messages", "error", "database locked")]),
        Step(0 if right else 1, "find_order", {"order": "A-1009"}, "2", "messages", "ok"),
        Step(1 if right else 2, "refund", {"amount": amount}, "3", "messages", "ok", "done"),
    ]
    finding = finding_of(match(compile_expectation(EXPECTED), steps))
    verdict = Verdict(
        grader="calls",
        kind="tool_trajectory",
        outcome=finding.outcome,
        score=finding.score,
        reasons=finding.reasons,
        details=finding.details,
        required=True,
    )
    attempts = [
        Attempt(
            number=1,
            started_at=records.CREATED_AT,
            duration_ms=30.0,
            fault=Fault("agent_unavailable", "the agent answered 503"),
        ),
        Attempt(number=2, started_at=records.CREATED_AT + 100, duration_ms=510.0),
    ]
    return Run(
        run_id=f"run-{agent}-broken",
        experiment_id="exp-1",
        key=RunKey(agent, "broken", 1),
        status="completed",
        reading=Reading("agent-response", Transcript(messages, given=[0]), []),
        steps=steps,
        completeness=Completeness("complete", "messages", ["messages"]),
        exchanges=[Exchange(number=1, attempts=attempts[1:] if right else attempts)],
        verdicts=[verdict],
        grade=Grade(outcome=finding.outcome, score=finding.score),
        started_at=records.CREATED_AT,
        duration_ms=540.0,
    )


def text_only() -> Run:
    """A run that passed, of which one message was lost."""
    return records.run(
        "late",
        run_id="run-v1-late",
        agent="v1",
        said=("Where is order A-1009?", "It is on its way."),
        steps=[],
        completeness=Completeness("partial", "messages", ["messages"], [DROPPED]),
        reading=records.reading("Where is order A-1009?", "It is on its way.", notes=[DROPPED]),
        verdicts=[Verdict(grader="answer", kind="contains", outcome="passed", score=1.0, reasons=["found"])],
    )


def unreachable() -> Run:
    """A run without an answer."""
    return Run(
        run_id="run-v2-late",
        experiment_id="exp-1",
        key=RunKey("v2", "late", 1),
        status="failed",
        fault=Fault("agent_unreachable", "no connection within 30 s", detail="connect to 10.0.0.1:80\nrefused"),
        grade=Grade(outcome="errored", reasons=["agent_unreachable: no connection within 30 s"]),
        duration_ms=30_000.0,
    )
