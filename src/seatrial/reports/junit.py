"""JUnit XML: an agent is a test suite, a run a test case. What failed is a failure, what errored an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape

from seatrial.printable import printable
from seatrial.reports import figures
from seatrial.reports.report import Report, reason
from seatrial.reports.rows import RunRow
from seatrial.reports.summary import AgentSummary

# After `printable`, the only characters left that XML 1.0 forbids even as references.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


def junit_xml(report: Report) -> Iterator[str]:
    """The document in pieces."""
    summary = report.summary
    yield "<?xml version='1.0' encoding='UTF-8'?>\n"
    seconds = (report.duration_ms or 0) / 1000
    yield (
        f'<testsuites name="{_attribute(report.experiment.name)}" tests="{summary.runs}" failures="{summary.failed}" '
        f'errors="{summary.errored}" time="{seconds:.3f}">\n'
    )
    for agent in summary.agents:
        yield from _suite(report, agent)
    yield "</testsuites>\n"


def _suite(report: Report, agent: AgentSummary) -> Iterator[str]:
    started = datetime.fromtimestamp(report.experiment.created_at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    # The time of a suite is that of its cases together, as elsewhere; runs at once make it longer than the clock's.
    seconds = agent.duration_ms / 1000
    yield (
        f'  <testsuite name="{_attribute(agent.agent)}" tests="{agent.runs}" failures="{agent.failed}" '
        f'errors="{agent.errored}" skipped="{agent.other}" time="{seconds:.3f}" timestamp="{started}">\n'
    )
    yield (
        f'    <properties>\n      <property name="experiment_id" '
        f'value="{_attribute(report.experiment.experiment_id)}"/>\n    </properties>\n'
    )
    for row in report.rows(agent=agent.agent, detailed=True):
        yield _case(row, report)
    yield "  </testsuite>\n"


def _case(row: RunRow, report: Report) -> str:
    name = _attribute(figures.run_name(row, report.summary.trials))
    seconds = (row.duration_ms or 0) / 1000
    head = f'    <testcase classname="{_attribute(row.agent)}" name="{name}" time="{seconds:.3f}"'
    if row.outcome == "passed":
        return f"{head}/>\n"
    message = _attribute(reason(row))
    if row.outcome in ("failed", "errored"):
        tag = "failure" if row.outcome == "failed" else "error"
        kind = _attribute(row.error_class or ("verdict" if row.outcome == "failed" else "grader_errored"))
        inner = f'<{tag} message="{message}" type="{kind}">{_text(_explanation(row))}</{tag}>'
    else:
        inner = f'<skipped message="{row.outcome}: {message}"/>'
    return f"{head}>\n      {inner}\n    </testcase>\n"


def _explanation(row: RunRow) -> str:
    lines = [f"run {row.run_id}"]
    if row.detail is not None:
        for verdict in row.detail.verdicts:
            score = "" if verdict.score is None else f" ({figures.decimal(verdict.score)})"
            lines.append(f"{verdict.grader}: {verdict.judgement}{score}")
            lines += [f"  {line}" for line in verdict.reasons]
        if row.detail.fault_detail:
            lines.append(row.detail.fault_detail)
    return "\n".join(lines)


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", escape(printable(text)))


def _attribute(text: str) -> str:
    # As written, a newline in an attribute would be read as a space.
    return _text(text).replace("\n", "&#10;").replace("\t", "&#9;")
