"""What CI systems and test dashboards read: JUnit XML, and CTRF, the Common Test Report Format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from seatrial._support import wire
from seatrial._support.printable import printable
from seatrial._version import __version__
from seatrial.reports import figures
from seatrial.reports.figures import left_out_count
from seatrial.reports.findings import finding_text
from seatrial.reports.notes import calls_text, note_text, shown_notes, without_run
from seatrial.reports.report import Report, headline, reason
from seatrial.reports.rows import NoteLine, RunRow, VerdictLine
from seatrial.reports.summary import AgentSummary
from seatrial.reports.votes import vote_text
from seatrial.store import StoredOutcome
from seatrial.transcript import Note

# After `printable`, the only characters left that XML 1.0 forbids even as references.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


def junit_xml(report: Report) -> Iterator[str]:
    """The document in pieces."""
    summary = report.summary
    missing = report.unfinished
    tests, errors = summary.runs + (missing is not None), summary.errored + (missing is not None)
    yield "<?xml version='1.0' encoding='UTF-8'?>\n"
    yield (
        f'<testsuites name="{_attribute(report.experiment.name)}" tests="{tests}" failures="{summary.failed}" '
        f'errors="{errors}"{_time(report.duration_ms)}>\n'
    )
    apart = {agent: _lines(notes, more) for agent, notes, more in without_run(report)}
    for agent in summary.agents:
        yield from _suite(report, agent, apart.pop(agent.agent, ""))
    for name, lines in apart.items():
        yield f'  <testsuite name="{_attribute(name)}" tests="0" failures="0" errors="0">\n'
        yield f"{_apart(lines)}  </testsuite>\n"
    if missing is not None:
        # What only has green test cases would be shown as a green suite.
        yield (
            '  <testsuite name="experiment" tests="1" failures="0" errors="1">\n'
            '    <testcase classname="experiment" name="all runs">\n'
            f'      <error message="{_attribute(missing)}" type="stopped"/>\n'
            "    </testcase>\n  </testsuite>\n"
        )
    yield "</testsuites>\n"


def _suite(report: Report, agent: AgentSummary, apart: str) -> Iterator[str]:
    started = datetime.fromtimestamp(report.experiment.created_at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    # The time of a suite is that of its cases together, as elsewhere; runs at once make it longer than the clock's.
    yield (
        f'  <testsuite name="{_attribute(agent.agent)}" tests="{agent.runs}" failures="{agent.failed}" '
        f'errors="{agent.errored}" skipped="{agent.other}"{_time(agent.duration_ms)} timestamp="{started}">\n'
    )
    yield "    <properties>\n"
    for name, value in _properties(report, agent):
        yield f'      <property name="{_attribute(name)}" value="{_attribute(value)}"/>\n'
    yield "    </properties>\n"
    for row in report.rows(agent=agent.agent, detailed=True):
        yield _case(row, report)
    yield f"{_apart(apart)}  </testsuite>\n"


def _properties(report: Report, agent: AgentSummary) -> Iterator[tuple[str, str]]:
    yield "experiment_id", report.experiment.experiment_id
    if agent.pass_rate is not None:
        yield "pass_rate", figures.percent(agent.pass_rate)
    yield "pass_rate_of_all_runs", figures.percent(agent.rate_of_all)
    yield "runs_left_out_of_rates", str(left_out_count(agent))
    for reason_left_out, number in agent.left_out.items():
        yield f"runs_left_out_{reason_left_out}", str(number)
    if agent.judges is not None:
        part = "" if agent.judges.usd_is_all else "least_"
        yield f"judges_{part}cost_usd", f"{agent.judges.known_usd:g}"
    for known, number in agent.calls.items():
        yield f"runs_with_calls_{known.replace(' ', '_')}", str(number)
    for counted in report.notes.counts:
        if counted.agent == agent.agent:
            yield f"notes_{counted.weight}_{counted.code}", str(counted.notes)
    for found in report.by_tag.rows:
        if found.agent == agent.agent:
            yield f"tag_{found.tag}_pass_rate", figures.percent(found.pass_rate)
            yield f"tag_{found.tag}_interval", figures.percent_range(found.interval)
            yield f"tag_{found.tag}_runs", str(found.runs)
            yield f"tag_{found.tag}_runs_left_out_of_rates", str(left_out_count(found))


def _case(row: RunRow, report: Report) -> str:
    name = _attribute(figures.run_name(row, report.summary.trials))
    head = f'    <testcase classname="{_attribute(row.agent)}" name="{name}"{_time(row.duration_ms)}'
    # The schema of Jenkins knows no properties of a test case.
    record = f"<system-out>{_text(_record(row))}</system-out>"
    if row.outcome == "passed":
        return f"{head}>\n      {record}\n    </testcase>\n"
    message = _attribute(headline(row))
    if row.outcome in ("failed", "errored"):
        tag = "failure" if row.outcome == "failed" else "error"
        kind = _attribute(row.left_out or row.error_class or "verdict")
        inner = f'<{tag} message="{message}" type="{kind}">{_text(_explanation(row))}</{tag}>'
    else:
        inner = f'<skipped message="{row.outcome}: {message}"/>'
    return f"{head}>\n      {inner}\n      {record}\n    </testcase>\n"


def _record(row: RunRow) -> str:
    """How much of what the agent sent is known: its calls, and the notes; and the tags of the case."""
    tags = [f"tags: {', '.join(row.tags)}"] if row.tags else []
    return "\n".join([calls_text(row), *tags, *([lines] if (lines := _lines(*shown_notes(row))) else [])])


def _lines(notes: Sequence[NoteLine | Note], more: int) -> str:
    return "\n".join([*map(note_text, notes), *([f"and {more:,} more notes"] if more else [])])


def _apart(lines: str) -> str:
    text = _text(f"notes that belong to no run:\n{lines}")
    return f"    <system-out>{text}</system-out>\n" if lines else ""


def _time(milliseconds: float | None) -> str:
    """The attribute; an unknown time has none, because 0 would be a time."""
    return "" if milliseconds is None else f' time="{milliseconds / 1000:.3f}"'


def _explanation(row: RunRow) -> str:
    lines = [f"run {row.run_id}"]
    if row.detail is not None:
        lines += [finding_text(finding) for finding in row.detail.findings]
        for verdict in row.detail.verdicts:
            score = "" if verdict.score is None else f" ({figures.decimal(verdict.score)})"
            lines.append(f"{verdict.name}: {verdict.word}{score}")
            lines += [f"  {line}" for line in (*verdict.reasons, *_votes(verdict))]
        if row.detail.fault_detail:
            lines.append(row.detail.fault_detail)
    return "\n".join(lines)


def _votes(verdict: VerdictLine) -> Iterator[str]:
    """What the votes of its judges said, a line for each part of it."""
    told = "\n".join(verdict.reasons)
    for judge in verdict.judges:
        yield from (f"{'  ' * depth}{line}" for depth, line in vote_text(judge, besides=told))


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", escape(printable(text)))


def _attribute(text: str) -> str:
    # As written, a newline in an attribute would be read as a space.
    return _text(text).replace("\n", "&#10;").replace("\t", "&#9;")


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
    yield f'{_json(head)[:-1]},"results":{_json(results)[:-1]},"tests":['
    for index, row in enumerate(report.rows(detailed=True)):
        yield (",\n" if index else "\n") + _json(_test(row, report))
    if missing is not None:
        # What only has green tests would be shown as green.
        stopped = {"name": "all runs", "status": "other", "duration": 0, "rawStatus": "stopped", "message": missing}
        yield (",\n" if summary.runs else "\n") + _json(stopped)
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
                f"{verdict.name}: {verdict.word}: {told}"
                for verdict in row.detail.verdicts
                for told in (*verdict.reasons, *_votes(verdict))
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


def _json(value: Any) -> str:
    return wire.encode(value).decode()
