"""JUnit XML: an agent is a test suite, a run a test case. What failed is a failure, what errored an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from seatrial._support.printable import printable
from seatrial.reports import figures
from seatrial.reports.left_out import left_out_count
from seatrial.reports.notes import calls_text, note_text, shown_notes, without_run
from seatrial.reports.report import Report, reason
from seatrial.reports.rows import NoteLine, RunRow
from seatrial.reports.summary import AgentSummary
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
    message = _attribute(reason(row))
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
        for verdict in row.detail.verdicts:
            score = "" if verdict.score is None else f" ({figures.decimal(verdict.score)})"
            lines.append(f"{verdict.name}: {verdict.word}{score}")
            lines += [f"  {line}" for line in verdict.reasons]
        if row.detail.fault_detail:
            lines.append(row.detail.fault_detail)
    return "\n".join(lines)


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", escape(printable(text)))


def _attribute(text: str) -> str:
    # As written, a newline in an attribute would be read as a space.
    return _text(text).replace("\n", "&#10;").replace("\t", "&#9;")
