"""CTRF, the Common Test Report Format: JSON that test dashboards read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from seatrial._support import wire
from seatrial._version import __version__
from seatrial.reports import figures
from seatrial.reports.notes import shown_notes
from seatrial.reports.report import Report, reason
from seatrial.reports.rows import RunRow
from seatrial.reports.summary import AgentSummary
from seatrial.store import StoredOutcome

SPEC_VERSION = "1.0.0"

_STATUS: dict[StoredOutcome, str] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "cancelled": "skipped",
    "unfinished": "pending",
}
"""CTRF has no word for what errored or was not graded: `other`, and `rawStatus` tells which."""


def ctrf_json(report: Report) -> Iterator[str]:
    """The document in pieces."""
    experiment = report.experiment
    summary = report.summary
    stop = experiment.finished_at or experiment.created_at
    counts = dict.fromkeys(("passed", "failed", "skipped", "pending", "other"), 0)
    for row in report.rows():
        counts[_status(row)] += 1
    missing = report.unfinished
    counts["other"] += missing is not None
    head = {
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "timestamp": datetime.fromtimestamp(stop / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "generatedBy": "seatrial",
    }
    results = {
        "tool": {"name": "seatrial", "version": __version__},
        "summary": {
            "tests": summary.runs + (missing is not None),
            **counts,
            "suites": len(summary.agents),
            "start": experiment.created_at,
            "stop": stop,
            "duration": max(0, stop - experiment.created_at),
            "extra": {
                "errored": summary.errored,
                "flaky_cases": summary.flaky_cases,
                "notes": report.notes,
                "by_tag": report.by_tag,
                "agents": {
                    agent.agent: {"calls": agent.calls, "judges": agent.judges, **_rates(agent)}
                    for agent in summary.agents
                },
            },
        },
        "extra": {
            "experiment_id": experiment.experiment_id,
            "stop_reason": experiment.stop_reason,
            "notes": experiment.notes,
        },
    }
    yield f'{_text(head)[:-1]},"results":{_text(results)[:-1]},"tests":['
    for index, row in enumerate(report.rows(detailed=True)):
        yield (",\n" if index else "\n") + _text(_test(row, report))
    if missing is not None:
        # What only has green tests would be shown as green.
        stopped = {"name": "all runs", "status": "other", "duration": 0, "rawStatus": "stopped", "message": missing}
        yield (",\n" if summary.runs else "\n") + _text(stopped)
    yield "]}}\n"


def _rates(agent: AgentSummary) -> dict[str, Any]:
    return {"pass_rate": agent.pass_rate, "rate_of_all": agent.rate_of_all, "left_out": agent.left_out}


def _test(row: RunRow, report: Report) -> dict[str, Any]:
    took = round(row.duration_ms or 0)
    test: dict[str, Any] = {
        "name": figures.run_name(row, report.summary.trials),
        "status": _status(row),
        "duration": took,
        "suite": [report.experiment.name, row.agent],
        "rawStatus": row.outcome,
        "retries": max(0, row.attempts - 1),
    }
    if row.tags:
        test["tags"] = row.tags
    if row.started_at is not None:
        test |= {"start": row.started_at, "stop": row.started_at + took}
    if row.outcome != "passed":
        test["message"] = reason(row)
        if row.detail is not None:
            lines = [
                f"{verdict.name}: {verdict.word}: {told}" for verdict in row.detail.verdicts for told in verdict.reasons
            ]
            test["trace"] = "\n".join([*lines, row.detail.fault_detail] if row.detail.fault_detail else lines)
    test["extra"] = {
        "run_id": row.run_id,
        "agent": row.agent,
        "case_id": row.case_id,
        "trial": row.trial,
        "score": row.score,
        "error_class": row.error_class,
        "left_out": row.left_out,
        # CTRF requires a duration; here null says that it is unknown.
        "duration_ms": row.duration_ms,
        "judges": row.judges,
        "calls": {"level": row.calls, "steps": row.steps, "completeness": row.completeness},
    }
    notes, more = shown_notes(row)
    test["extra"]["notes"] = {"first": notes, "more": more, "counts": row.note_counts}
    return test


def _status(row: RunRow) -> str:
    return _STATUS.get(row.outcome, "other")


def _text(value: Any) -> str:
    return wire.encode(value).decode()
