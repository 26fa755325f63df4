"""Runs as HTML, as far as there is room: those that did not pass, and those whose record needs a look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from seatrial._support.printable import one_line
from seatrial.reports import figures
from seatrial.reports.notes import calls_text, notes_text, shown_notes
from seatrial.reports.report import Report, reason
from seatrial.reports.rows import NoteLine, RunRow

MAX_DETAILS = 3_500_000
"""Bytes of details; runs after them are one line each."""
MAX_LINES = 3_000_000
"""Bytes of such lines; runs after them are only counted."""
MAX_NOTED = 500_000
"""Bytes of runs that passed with notes; those after them are only counted."""
MAX_REASON = 240


class _ShownRun(msgspec.Struct):
    """A run with the words that its template needs."""

    row: RunRow
    kind: str
    """Its CSS class."""
    name: str
    why: str
    marks: list[str]
    facts: list[str]
    calls: str
    notes: Sequence[NoteLine]
    more_notes: int


def unpassed_runs(report: Report, page: Any) -> Iterator[str]:
    """The section about them."""
    summary = report.summary
    total = summary.failed + summary.errored + summary.other
    yield '<section aria-labelledby="runs">\n<h2 id="runs">Runs that did not pass</h2>\n'
    if not total:
        yield "<p>All passed.</p>\n</section>\n"
        return
    if summary.failed and summary.errored:
        counts = (("all", total), ("failed", summary.failed), ("errored", summary.errored))
        yield page.filter([(key, f"{number:,}") for key, number in counts])
    details = lines = shown = 0
    for row in report.rows(detailed=True):
        if row.outcome == "passed":
            continue
        run = _shown(row, summary.trials)
        if details < MAX_DETAILS and row.detail is not None:
            piece = page.detailed(run, row.detail)
            details += len(piece.encode())
        elif lines < MAX_LINES:
            piece = page.one_line(run)
            lines += len(piece.encode())
        else:
            yield f"<p>… and {total - shown:,} more: the JSON report and the store have them all.</p>\n"
            break
        shown += 1
        yield piece
    yield "</section>\n"


def noted_runs(report: Report, page: Any) -> Iterator[str]:
    """The section about runs that passed, but whose record needs a look; nothing when there is none."""
    size = shown = omitted = 0
    for row in report.rows(detailed=True):
        if row.outcome != "passed" or not row.needs_look:
            continue
        if not shown:
            yield '<section aria-labelledby="noted">\n<h2 id="noted">Passed, but the record needs a look</h2>\n'
        if size > MAX_NOTED:
            omitted += 1
            continue
        piece = page.noted(_shown(row, report.summary.trials))
        size += len(piece.encode())
        shown += 1
        yield piece
    if omitted:
        yield f"<p>… and {omitted:,} more: the JSON and CSV reports have them all.</p>\n"
    if shown:
        yield "</section>\n"


def _shown(row: RunRow, trials: int) -> _ShownRun:
    marks = ["calls not all known" if row.calls == "partial" else "calls unknown"] if row.calls_incomplete else []
    marks += [said] if (said := notes_text(row)) else []
    calls = calls_text(row)
    notes, more_notes = shown_notes(row)
    return _ShownRun(
        row=row,
        kind=row.outcome if row.outcome in ("passed", "failed", "errored") else "other",
        name=figures.run_name(row, trials),
        why=one_line(reason(row), MAX_REASON) if row.outcome != "passed" else "",
        marks=marks,
        facts=_facts(row),
        calls=calls[:1].upper() + calls[1:],
        notes=notes,
        more_notes=more_notes,
    )


def _facts(row: RunRow) -> list[str]:
    tokens = row.input_tokens, row.output_tokens
    known = [
        figures.steps(row),
        figures.duration(row.duration_ms) if row.duration_ms is not None else "",
        f"{row.attempts} attempts" if row.attempts > 1 else "",
        f"{tokens[0]:,} tokens in, {tokens[1]:,} out" if tokens[0] is not None and tokens[1] is not None else "",
        figures.money(row.cost_usd) if row.cost_usd is not None else "",
    ]
    unknown = [
        name
        for name, value in (("duration", row.duration_ms), ("tokens", tokens[0]), ("cost", row.cost_usd))
        if value is None
    ]
    if unknown:
        known.append(f"{' and '.join(unknown)} unknown")
    return [fact for fact in known if fact]
