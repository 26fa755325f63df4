"""Results and comparisons as a notebook shows them: small tables that look right on a light and on a dark page.

All styles are inline, because notebooks drop the others, and nothing is a script. What agents say is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from seatrial._support.printable import one_line
from seatrial.reports import Comparison, Report, figures
from seatrial.reports.compare import CaseChange
from seatrial.reports.compare_text import (
    CHANGES,
    call_cautions,
    cautions,
    change_cells,
    comparison_remarks,
    diff_lines,
    sides_table,
    tag_remarks,
    tag_sentences,
    tag_table,
    why_moved,
)
from seatrial.reports.figures import left_out_sentences
from seatrial.reports.notes import closing_line, remarks
from seatrial.reports.report import ERRORED_NOTE, reason, runs_alike
from seatrial.reports.sentences import comparison_sentence, experiment_sentence, tone_of
from seatrial.reports.statistics.intervals import Interval
from seatrial.reports.tags import tag_remarks as result_tag_remarks
from seatrial.reports.tags import tags_table
from seatrial.reports.terminal import agents_table, graders_table

MAX_ROWS = 20
"""Rows of a table; those left out are counted."""
MAX_COLUMNS = 16
MAX_TEXT = 800
MAX_CELL = 80

_TEXT = "font: 13px/1.45 system-ui, sans-serif; max-width: 72em"
_TABLE = "border-collapse: collapse; margin: 6px 0; font: inherit; color: inherit"
_CELL = "padding: 2px 12px 2px 0; border: 0; border-bottom: 1px solid rgba(128,128,128,.3); white-space: nowrap"
_COLOURS = {"failed": "#d1402f", "errored": "#b07900", "worse": "#d1402f", "better": "#1a8a4a"}


def result_html(report: Report) -> str:
    """The sentence, the agents, and why runs did not pass, those that fail alike once; then by tag and grader."""
    summary, experiment = report.summary, report.experiment
    sentence = experiment_sentence(summary.agents)
    took = "" if report.duration_ms is None else f" in {figures.duration(report.duration_ms)}"
    facts = f"{figures.plural(summary.cases, 'case')}, {report.counted_runs}, {experiment.status}{took}"
    head, rows = agents_table(report)
    tags, of_tags = tags_table(report.by_tag)
    parts = [
        _line(sentence.text, "errored" if sentence.tone == "errored" else None, bold=True),
        _line(f"{experiment.name} · {experiment.experiment_id} · {facts}", faint=True),
        *([_line(report.unfinished, "errored")] if report.unfinished is not None else []),
        _table(head, rows, [agent.interval for agent in summary.agents], at=head.index("pass rate")),
        *(_line(f"{name}: {told}", "errored") for name, told in left_out_sentences(summary.agents)),
        *(_line(f"{agent.agent}: {told}") for agent in summary.agents[:MAX_ROWS] if (told := remarks(agent))),
        *([_line(ERRORED_NOTE, faint=True)] if summary.errored else []),
        _line(closing_line(report)),
        *_not_passed(report),
    ]
    if of_tags:
        parts += [_heading("By tag: the lowest pass rate first"), _table(tags, of_tags)]
        parts += [_line(text) for text in result_tag_remarks(report.by_tag)]
    if report.graders:
        parts += [_heading("Graders: runs passed of those judged"), _table(*graders_table(report))]
    return _page(parts)


def comparison_html(comparison: Comparison) -> str:
    """What the tests say, the two sides, by tag, and every case that moved with its reason."""
    sentence = comparison_sentence(comparison)
    head, rows = sides_table(comparison)
    intervals = [side.summary.interval for side in (comparison.a, comparison.b)]
    tags, of_tags = tag_table(comparison)
    parts = [
        *(_line(told, tone_of(found), bold=True) for found, told in tag_sentences(comparison)),
        _line(sentence.text, sentence.tone, bold=True),
        *(_line(text, "errored") for text in cautions(comparison)),
        _table(head, rows, intervals, at=head.index("pass rate")),
        *(_line(text) for text in comparison_remarks(comparison)),
    ]
    if of_tags:
        parts += [_heading("By tag: the largest drop first"), _table(tags, of_tags)]
        parts += [_line(text) for text in tag_remarks(comparison)]
    for title, count, changes in (
        ("Regressions", comparison.worse, comparison.regressions),
        ("Improvements", comparison.better, comparison.improvements),
    ):
        if changes:
            parts += [_heading(f"{title} ({count:,})"), _table([*CHANGES, "why"], [_change(each) for each in changes])]
    if (worst := comparison.worst) is not None:
        parts.append(_heading(f"Calls of the worst regression, {worst.case_id}, from a to b"))
        parts += [_line(text, "errored") for text in call_cautions(worst)]
        parts.append(f"<pre style='overflow-x: auto'>{escape(chr(10).join(diff_lines(worst)))}</pre>")
    return _page(parts)


def _not_passed(report: Report) -> Iterator[str]:
    groups = runs_alike(report.rows)
    if not groups:
        return
    total = report.summary.failed + report.summary.errored
    yield _heading(f"Failed and errored ({total:,})")
    shown = groups[:MAX_ROWS]
    wanted = frozenset(group.first for group in shown)
    first = {row.run_id: row for row in report.rows(detailed=True, run_ids=wanted)}
    rows = []
    for group in shown:
        if (row := first.get(group.first)) is not None:
            alike = f" and {group.count - 1:,} alike" if group.count > 1 else ""
            rows.append([row.outcome, row.agent, f"{figures.run_name(row, report.summary.trials)}{alike}", reason(row)])
    yield _table(["outcome", "agent", "case", "why"], rows)
    if more := sum(group.count for group in groups[MAX_ROWS:]):
        yield _line(f"… and {more:,} more: `result.failed` and `result.errored` have them all.")


def _change(change: CaseChange) -> list[str]:
    return [*change_cells(change), why_moved(change) or ""]


def _page(parts: Iterable[str]) -> str:
    return f"<div style='{_TEXT}'>{''.join(parts)}</div>"


def _heading(text: str) -> str:
    return f"<div style='font-weight: 600; margin: 12px 0 2px'>{_text(text, MAX_TEXT)}</div>"


def _line(text: str | None, tone: str | None = None, *, bold: bool = False, faint: bool = False) -> str:
    if not text:
        return ""
    colour = _COLOURS.get(tone or "")
    styles = [
        f"color: {colour}" if colour else "",
        "font-weight: 600" if bold else "",
        "opacity: .75" if faint else "",
    ]
    return f"<div style='{'; '.join(filter(None, styles))}'>{_text(text, MAX_TEXT)}</div>"


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], intervals: Sequence[Interval | None] = (), at: int = -1
) -> str:
    """A table of texts, with the interval drawn before the cells of the column `at`."""
    lines = [f"<tr>{''.join(_cell(text, 'th') for text in head[:MAX_COLUMNS])}</tr>"]
    for number, row in enumerate(rows[:MAX_ROWS]):
        drawn = _drawn(intervals[number]) if number < len(intervals) else ""
        cells = [_cell(text, "td", drawn if column == at else "") for column, text in enumerate(row[:MAX_COLUMNS])]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    left_out = [
        f"{len(rows) - MAX_ROWS:,} more rows" if len(rows) > MAX_ROWS else "",
        f"{len(head) - MAX_COLUMNS:,} more columns" if len(head) > MAX_COLUMNS else "",
    ]
    more = _line(f"… and {' and '.join(filter(None, left_out))}", faint=True) if any(left_out) else ""
    table = f"<table style='{_TABLE}'>{''.join(lines)}</table>"
    return f"<div style='overflow-x: auto'>{table}{more}</div>"


def _cell(text: str, tag: str, drawn: str = "") -> str:
    style = f"{_CELL}; text-align: left"
    if tag == "td" and len(text) > MAX_CELL:
        style = style.replace("nowrap", "normal; min-width: 24em")
    if tag == "td" and text in _COLOURS:
        style += f"; color: {_COLOURS[text]}; font-weight: 600"
    return f"<{tag} style='{style}'>{drawn}{_text(text, MAX_TEXT)}</{tag}>"


def _drawn(interval: Interval | None) -> str:
    """An interval from 0 to 100%."""
    if interval is None:
        return ""
    low, high = interval.low * 60, interval.high * 60
    return (
        "<svg width='60' height='10' style='margin-right: 6px' aria-hidden='true'>"
        "<line x1='0' x2='60' y1='5' y2='5' stroke='currentColor' stroke-opacity='.25'/>"
        f"<line x1='{low:.1f}' x2='{high:.1f}' y1='5' y2='5' stroke='currentColor' stroke-width='4'/></svg>"
    )


def _text(text: str, width: int) -> str:
    return escape(one_line(text, width))
