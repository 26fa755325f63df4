"""Markdown for the step summary of a CI job: what agents wrote cannot become markup, links or mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from seatrial._support.printable import one_line, printable
from seatrial.reports import figures
from seatrial.reports.figures import left_out_sentences
from seatrial.reports.notes import calls_text, note_text, notes_table, notes_text, remarks, shown_notes, without_run
from seatrial.reports.report import ERRORED_NOTE, Report, not_judged, reason
from seatrial.reports.rows import RunRow, matrix
from seatrial.reports.tags import tag_remarks, tags_table
from seatrial.reports.terminal import agents_table, graders_table
from seatrial.store import Cell

MAX_LISTED = 50
MAX_REASON = 800
MAX_NOTES = 5

# A character reference is always text, never structure; and inside <code> nothing is a link or a mention.
_PUNCTUATION = re.compile(r"[^\w\s,/-]|_", re.ASCII)


def markdown_report(report: Report) -> Iterator[str]:
    """The report in pieces."""
    summary = report.summary
    yield f"## {code(report.experiment.name)}\n\n"
    took = "" if report.duration_ms is None else f" in {figures.duration(report.duration_ms)}"
    yield (
        f"{figures.plural(summary.cases, 'case')}, {report.counted_runs}, "
        f"{report.experiment.status}{took}. Experiment {code(report.experiment.experiment_id)}.\n\n"
    )
    if report.experiment.stop_reason:
        yield f"**{report.stopped.capitalize()}:** {code(one_line(report.experiment.stop_reason, MAX_REASON))}\n\n"
    elif report.lost is not None:
        yield f"**{report.lost.capitalize()}.**\n\n"
    if not summary.agents:
        yield "There are no runs.\n"
        return
    yield from markdown_table(*agents_table(report))
    for name, sentence in left_out_sentences(summary.agents):
        yield f"\n⚠️ {code(name)}: {sentence}\n"
    yield f"\n{ERRORED_NOTE}\n"
    for agent in summary.agents:
        if remark := remarks(agent):
            yield f"\n{code(agent.agent)}: {remark}\n"
    yield from _by_tag(report)
    yield from _not_passed(report)
    if (found := not_judged(report)) is not None:
        told, first = found
        name = code(figures.run_name(first, summary.trials))
        yield f"\n{told}. The first, {name}: {code(one_line(f'{first.outcome}: {reason(first)}', MAX_REASON))}\n"
    yield from _matrix(report)
    if report.graders:
        yield "\n### Graders\n\n"
        (corner, *agents), rows = graders_table(report)
        yield from markdown_table([corner, *map(code, agents)], rows)
    if summary.flaky:
        yield f"\n### Flaky cases ({summary.flaky_cases:,})\n\n"
        flaky = [[case.agent, case.case_id, f"{case.passed} of {case.graded}"] for case in summary.flaky[:MAX_LISTED]]
        yield from markdown_table(["agent", "case", "passed"], flaky, left=2)
    yield from _notes(report)


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
        why = [reason(row), calls_text(row) if row.calls_incomplete else "", notes_text(row)]
        reasons = "; ".join(code(one_line(told, MAX_REASON)) for told in why if told)
        cells = (code(row.agent), code(figures.run_name(row, summary.trials)), reasons)
        yield f"| {marks[row.outcome]} | {' | '.join(cells)} |\n"
    if total > MAX_LISTED:
        yield f"\n… and {total - MAX_LISTED:,} more.\n"


def _by_tag(report: Report) -> Iterator[str]:
    head, rows = tags_table(report.by_tag)
    if remarks_on_tags := tag_remarks(report.by_tag):
        yield "\n### By tag\n\n"
    if rows:
        yield from markdown_table(head, rows, left=2 if "agent" in head else 1)
    yield from (f"\n{code(one_line(remark, MAX_REASON))}\n" for remark in remarks_on_tags)


def _notes(report: Report) -> Iterator[str]:
    head, rows = notes_table(report)
    if rows:
        yield "\n### Notes\n\nWhat was dropped, guessed or repaired in what the agents sent.\n\n"
        yield from markdown_table(head, rows, left=3)
    if harmless := sum(counted.notes for counted in report.notes.counts if counted.weight == "harmless"):
        verb = "is" if harmless == 1 else "are"
        yield f"\n{figures.plural(harmless, 'harmless note')} {verb} not listed here.\n"
    for agent, notes, more in without_run(report):
        yield f"\n{code(agent)}: notes that belong to no run:\n\n"
        yield from (f"- {code(one_line(note_text(note), MAX_REASON))}\n" for note in notes)
        yield f"- … and {more:,} more\n" if more else ""
    wanted = (row for row in report.rows(detailed=True) if row.needs_look)
    first = list(islice(wanted, MAX_LISTED))
    if not first:
        return
    yield "\n### Runs whose record needs a look\n\n"
    for row in first:
        yield from _noted(row, report.summary.trials)
    if next(wanted, None) is not None:
        yield f"\nThese are the first {MAX_LISTED}; the JSON and CSV reports have them all.\n"


def _noted(row: RunRow, trials: int) -> Iterator[str]:
    told = [f"{code(row.agent)} {code(figures.run_name(row, trials))} {row.outcome}"]
    if row.calls_known != "no answer":
        told.append(code(one_line(calls_text(row), MAX_REASON)))
    yield f"- {': '.join(told)}\n"
    notes, more = shown_notes(row, MAX_NOTES)
    yield from (f"  - {code(one_line(note_text(note), MAX_REASON))}\n" for note in notes)
    yield f"  - … and {more:,} more\n" if more else ""


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
    unknown = f"calls of {cell.incomplete} not all known" if cell.incomplete else ""
    if cell.runs == 1 and cell.graded:
        return f"{'✅' if cell.passed else '❌'}{' calls not all known' if unknown else ''}"
    # Passed is only what passed every time: a run without a verdict did not.
    failed = "〰️" if cell.passed else "❌"
    mark = failed if cell.failed else "⚠️" if cell.errored else "–" if cell.other else "✅"
    parts = [
        f"{cell.passed}/{cell.graded}" if cell.graded else "",
        f"{cell.errored} errored" if cell.errored else "",
        f"{cell.other} not graded" if cell.other else "",
        unknown,
    ]
    return " ".join(filter(None, [mark, *parts]))
