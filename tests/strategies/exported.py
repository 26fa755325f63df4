"""Reports as the pages that people open, and experiments that have everything these show: each outcome, notes, calls
that are not all known, judges, long runs, long texts, images."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seatrial.explorer.export.one_file import one_file
from seatrial.formats.reading import Reading
from seatrial.reports import Report
from seatrial.runs import Fault, Verdict
from seatrial.store import Store, open_store
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    ImageBlock,
    Note,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from strategies import records
from strategies.reported import joined


def exported(found: Report, store: Store | None = None) -> str:
    """An experiment as one file. Without a store, the runs of the report are in none: each says that it cannot be
    read."""
    if store is not None:
        return joined(one_file(store, found))
    with open_store("memory:") as empty:
        return joined(one_file(empty, found))


DROPPED = Note("invalid_line", "/messages/3", "line 3 is not JSON", "serious")
GUESSED = Note("invalid_utf8_replaced", "/messages/1/content", "two bytes were replaced", "look")
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
LONG = "line of a very long result\n" * 20_000


def said(text: str, calls: int = 1, result: str = "found") -> dict[str, Any]:
    """What a run is recorded with whose agent called a tool so often, and then says this."""
    messages: list[Any] = [UserMessage("Where is my order?")]
    for number in range(calls):
        call = ToolCall(f"c{number}", "look_up", {"order": f"A-{number}"})
        messages.append(AssistantMessage([call], StopReason.TOOL_USE))
        messages.append(ToolResultMessage(call.id, call.name, [TextBlock(result)]))
    messages.append(AssistantMessage([TextBlock(text)], StopReason.END_TURN))
    steps = [
        Step(number, "look_up", {"order": f"A-{number}"}, f"c{number}", "messages", "ok") for number in range(calls)
    ]
    return {"reading": Reading("agent_response", Transcript(messages, text), []), "steps": steps}


def judge(*words: str) -> Verdict:
    """A verdict of a judge that failed the run, with a vote for each word."""
    votes = [
        {
            "outcome_met": False,
            "failure_mode": "wrong_order",
            "reasoning": word,
            "criteria": [],
            "passed": False,
            "score": 0,
        }
        for word in words
    ]
    details = {"judge": {"model": "judge-1", "votes": len(votes), "prompt_hash": "x"}, "votes": votes}
    return Verdict(
        grader="tone", kind="judge", outcome="failed", score=0, reasons=["0 of 2 votes"], details=details, key="tone"
    )


@contextmanager
def varied_store(path: Path) -> Iterator[Store]:
    """A store with `exp-1`, an experiment that has all that exports show."""
    partial = Completeness("partial", "messages", ["messages"], [DROPPED])
    noted = records.reading("Where is it?", "Behind the bollard.", "Thanks.", notes=[GUESSED, DROPPED])
    with_image = records.reading("Look.", "A cat.")
    with_image.transcript.messages[0] = UserMessage([TextBlock("Look."), ImageBlock(PIXEL, alt="a cat")])
    fault = Fault("agent_unreachable", "no answer")
    wrong = Verdict(grader="finds it", kind="contains", outcome="failed", score=0, reasons=["no “pier”"], key="f")
    with open_store(path) as opened:
        opened.create_experiment(records.experiment(), records.cases(6))
        for run in (
            records.run(0, **said("At the quay.", calls=2)),
            records.run(1, reading=noted, completeness=partial),
            records.run(
                2, outcome="failed", verdicts=[wrong, judge("too late", "too rude")], **said("At the *quay*.", 130)
            ),
            records.run(3, outcome="failed", verdicts=[wrong], **said("Long.", 1, LONG)),
            records.run(4, reading=with_image),
            records.run(5, status="failed", outcome=None, said=(), fault=fault, steps=[], duration_ms=None),
        ):
            opened.record_run(run)
        opened.add_notes("exp-1", "crew", [Note("batch_line_unusable", "/7", "line 7 has no id", "serious")]).wait()
        opened.finish_experiment("exp-1", finished_at=records.CREATED_AT + 1000).wait()
        yield opened


@contextmanager
def hostile_store(path: Path) -> Iterator[Store]:
    """One in which everything that is an agent's, or a suite's, tries to be markup."""
    text = "</script></style>\"'><img src=x onerror=alert(1)><script>alert(2)</script> [x](javascript:alert(3))"
    text += " \u202e\u200b"
    verdict = Verdict(
        grader=text,
        kind=text,
        outcome="failed",
        score=0,
        reasons=[text],
        evidence=["/steps/0"],
        details={text: text},
        key="k",
    )
    arguments = {text: [text, {text: json.dumps({text: text})}]}
    messages: list[Any] = [
        UserMessage(text),
        AssistantMessage([TextBlock(text), ToolCall(text, text, arguments)], StopReason.TOOL_USE),
        ToolResultMessage(text, text, [TextBlock(f"{text}\n" * 20), ImageBlock("https://spy.example/x.png", alt=text)]),
        AssistantMessage([TextBlock(f"# {text}")], StopReason.END_TURN),
    ]
    steps = [Step(0, text, arguments, text, "messages", "ok", actor=text)]
    reading = Reading(
        "agent_response", Transcript(messages, text), [Note("invalid_line", "/messages/1", text, "serious")]
    )
    cases = records.cases(1)
    cases[0].id, cases[0].tags = text[:60], [text[:60]]
    experiment = records.experiment(name=text)
    with open_store(path) as opened:
        opened.create_experiment(experiment, cases)
        for agent, outcome in ((text[:60], "failed"), ("crew", "passed")):
            given: dict[str, Any] = {"outcome": outcome, "reading": reading, "steps": steps, "verdicts": [verdict]}
            opened.record_run(records.run(cases[0].id, run_id=agent, agent=agent, metadata={text: text}, **given))
        opened.finish_experiment("exp-1", finished_at=records.CREATED_AT + 1000).wait()
        yield opened
