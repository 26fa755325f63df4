"""A store with two experiments of the same suite, as the pages about reports show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.graders.tool_trajectory import finding_of
from seatrial.runs import Case, Experiment, Fault, Grade, Run, RunKey, Verdict
from seatrial.store import open_store
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.expectation import compile_expectation
from seatrial.trajectory.extraction import TRACE_REF_NOT_READ
from seatrial.trajectory.matching import match
from seatrial.trajectory.step import Step
from seatrial.transcript import Note
from strategies import records

CASES = ("damaged", "late", "twice", "unknown-order", "too-old", "gift", "partial", "refused")
OUTCOMES = {"monday": "p p p p p f p e", "tuesday": "p f p p f p p p"}
EXPECTED = {"mode": "in_order", "expected": [{"tool": "find_order"}, {"tool": "refund", "args": {"amount": 20}}]}
GOOD = [Step(0, "find_order", {"order": "o-1"}), Step(1, "refund", {"amount": 20})]
BAD = [Step(0, "find_order", {"order": "o-1"}), Step(1, "refund", {"amount": 200})]

UNREAD = Note(TRACE_REF_NOT_READ, "/trace_ref", "there is no file 'trace.jsonl'")


def fill(path: Path) -> None:
    """Make the store."""
    suite: dict[str, Any] = {"graders": [{"kind": "tool_trajectory", "name": "calls", **EXPECTED}]}
    with open_store(path) as store:
        for day, (name, outcomes) in enumerate(OUTCOMES.items()):
            created = records.CREATED_AT + day * 86_400_000
            experiment = Experiment(
                experiment_id=f"exp-{name}", name=name, suite=suite, suite_hash="5u17e", created_at=created
            )
            store.create_experiment(experiment, [Case(id=case, instruction=f"Refund: {case}.") for case in CASES])
            for case, letter in zip(CASES, outcomes.split(), strict=True):
                store.record_run(_run(experiment.experiment_id, case, letter))
            store.finish_experiment(experiment.experiment_id, finished_at=created + 4200).wait()


def _run(experiment_id: str, case: str, letter: str) -> Run:
    key = RunKey("shop", case, 1)
    run_id = f"{experiment_id}-{case}"
    if letter == "e":
        return Run(
            run_id=run_id,
            experiment_id=experiment_id,
            key=key,
            status="failed",
            fault=Fault("agent_unreachable", "no connection within 30 s"),
            grade=Grade(outcome="errored"),
            duration_ms=30_000.0,
        )
    notes = [UNREAD] if run_id == "exp-tuesday-gift" else []
    steps = GOOD if letter == "p" else BAD
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
    return Run(
        run_id=run_id,
        experiment_id=experiment_id,
        key=key,
        status="completed",
        reading=records.reading("Refund it.", "I refunded it.", notes=notes),
        steps=steps,
        completeness=Completeness("partial" if notes else "complete", "messages", ["messages"], notes),
        verdicts=[verdict],
        grade=Grade(outcome=finding.outcome, score=finding.score),
        duration_ms=500.0 + 10 * len(case),
    )
