"""Markdown for the step summary of a CI job: what agents wrote cannot become markup, links or mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from seatrial.printable import one_line, printable
from seatrial.reports import figures
from seatrial.reports.report import ERRORED_NOTE, Report, not_judged, reason
from seatrial.reports.rows import Cell, matrix
from seatrial.reports.terminal import agents_table, graders_table

MAX_LISTED = 50
MAX_REASON = 300

# A character reference is always text, never structure; and inside <code> nothing is a link or a mention.
_PUNCTUATION = re.compile(r"[^\w\s,/-]|_", re.ASCII)


def markdown_report(report: Report) -> Iterator[str]:
    """The report in pieces."""
    summary = report.summary
    yield f"## {code(report.experiment.name)}\n\n"
    took = "" if report.duration_ms is None else f" in {figures.duration(report.duration_ms)}"
    yield (
        f"{figures.plural(summary.cases, 'case')}, {figures.plural(summary.runs, 'run')}, "
        f"{report.experiment.status}{took}. Experiment {code(report.experiment.experiment_id)}.\n\n"
    )
    if report.experiment.stop_reason:
        yield f"**Stopped before all was run:** {code(one_line(report.experiment.stop_reason, MAX_REASON))}\n\n"
    if not summary.agents:
        yield "There are no runs.\n"
        return
    yield from markdown_table(*agents_table(report))
    yield f"\n{ERRORED_NOTE}\n"
    yield from _not_passed(report)
    if (found := not_judged(report)) is not None:
        told, first = found
        name = code(figures.run_name(first, summary.trials))
        yield f"\n{told}. The first, {name}: {code(one_line(f'{first.outcome}: {reason(first)}', MAX_REASON))}\n"
    yield from _matrix(report)
    if report.graders:
        yield "\n### Graders\n\n"
        yield from markdown_table(*graders_table(report), left=2)
    if summary.flaky:
        yield f"\n### Flaky cases ({summary.flaky_cases:,})\n\n"
        flaky = [[case.agent, case.case_id, f"{case.passed} of {case.graded}"] for case in summary.flaky[:MAX_LISTED]]
        yield from markdown_table(["agent", "case", "passed"], flaky, left=2)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """A table whose first columns are names, shown as code, and whose others are ours."""
    yield f"| {' | '.join(head)} |\n"
    yield f"| {' | '.join('---' if index < left else '---:' for index in range(len(head)))} |\n"
    for row in rows:
        cells = [code(one_line(cell, MAX_REASON)) if index < left else cell for index, cell in enumerate(row)]
        yield f"| {' | '.join(cells)} |\n"


def code(text: str) -> str:
    """Text of anybody, shown as it is."""
    text = printable(" ".join(text.split()))
    return f"<code>{_PUNCTUATION.sub(lambda match: f'&#{ord(match.group())};', text)}</code>"


def fenced(text: str, language: str = "") -> str:
    """Lines of anybody, shown as they are; the fence is longer than any that they contain."""
    text = printable(text)
    longest = max((len(found) for found in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _not_passed(report: Report) -> Iterator[str]:
    summary = report.summary
    total = summary.failed + summary.errored
    if not total:
        return
    yield f"\n### Failed and errored ({total:,})\n\n| | agent | case | reason |\n| --- | --- | --- | --- |\n"
    marks = {"failed": "❌ failed", "errored": "⚠️ errored"}
    for row in islice((row for row in report.rows(detailed=True) if row.outcome in marks), MAX_LISTED):
        cells = (code(row.agent), code(figures.run_name(row, summary.trials)), code(one_line(reason(row), MAX_REASON)))
        yield f"| {marks[row.outcome]} | {' | '.join(cells)} |\n"
    if total > MAX_LISTED:
        yield f"\n… and {total - MAX_LISTED:,} more.\n"


def _matrix(report: Report) -> Iterator[str]:
    """Agents x cases; only cases that not every agent passed, and only where agents can be compared."""
    agents = [agent.agent for agent in report.summary.agents]
    if len(agents) < 2:
        return
    telling = (
        (case_id, cells)
        for case_id, cells in matrix(report.rows())
        if any(cell.failed or cell.errored or cell.other for cell in cells.values())
    )
    first = list(islice(telling, MAX_LISTED))
    if not first:
        return
    yield "\n### Agents by case\n\nCases that not every agent passed every time"
    yield f", the first {MAX_LISTED}.\n\n" if next(telling, None) is not None else ".\n\n"
    yield f"| case | {' | '.join(map(code, agents))} |\n| --- |{' :---: |' * len(agents)}\n"
    for case_id, cells in first:
        yield f"| {code(case_id)} | {' | '.join(_cell(cells.get(agent)) for agent in agents)} |\n"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    graded = cell.graded
    if graded == 1 and not cell.errored:
        return "✅" if cell.passed else "❌"
    mark = "⚠️" if not graded and cell.errored else "✅" if not cell.failed else "❌" if not cell.passed else "〰️"
    parts = [f"{cell.passed}/{graded}" if graded else "", f"{cell.errored} errored" if cell.errored else ""]
    return " ".join(filter(None, [mark if graded or cell.errored else "–", *parts]))
