"""What programs and spreadsheets read: CSV, and JSON."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial._support.printable import printable
from seatrial.reports.notes import calls_reason, note_text, shown_notes
from seatrial.reports.report import Report, reason
from seatrial.reports.rows import NoteLine, RunRow, matrix
from seatrial.store import Cell
from seatrial.transcript import Note

COLUMNS = (
    "experiment_id",
    "run_id",
    "agent",
    "case_id",
    "trial",
    "outcome",
    "status",
    "score",
    "error_class",
    "left_out",
    "started_at",
    "duration_ms",
    "attempts",
    "steps",
    "calls",
    "calls_basis",
    "calls_reason",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "judges_cost_usd",
    "judges_least_cost_usd",
    "reason",
    "notes_serious",
    "notes_look",
    "note_codes",
    "notes",
    "tags",
)
MAX_NOTES = 10

# What a spreadsheet takes for the beginning of a formula, in the wide forms of some keyboards, too.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")


def csv_lines(report: Report) -> Iterator[str]:
    """The head, then the runs in the order of the suite."""
    line = StringIO()
    writer = csv.writer(line)
    experiment_id = _cell(report.experiment.experiment_id)
    writer.writerow(COLUMNS)
    for row in report.rows(detailed=True):
        writer.writerow(
            (
                experiment_id,
                _cell(row.run_id),
                _cell(row.agent),
                _cell(row.case_id),
                row.trial,
                row.outcome,
                row.status,
                row.score,
                row.error_class,
                row.left_out,
                row.started_at,
                row.duration_ms,
                row.attempts,
                row.steps,
                row.calls,
                row.completeness.basis if row.completeness is not None else None,
                _cell(calls_reason(row)),
                row.input_tokens,
                row.output_tokens,
                row.cost_usd,
                None if row.judges is None else row.judges.cost_usd,
                None if row.judges is None else row.judges.least_cost_usd,
                "" if row.outcome == "passed" else _cell(reason(row)),
                row.noted("serious"),
                row.noted("look"),
                _cell(_codes(_by_code(row))),
                _cell(_lines(*shown_notes(row, MAX_NOTES))),
                _cell(", ".join(row.tags)),
            )
        )
        yield line.getvalue()
        line.seek(0)
        line.truncate()
    for agent, notes in report.experiment.notes.items():
        cells: dict[str, object] = dict.fromkeys(COLUMNS, "")
        cells |= {
            "experiment_id": experiment_id,
            "agent": _cell(agent),
            "reason": "notes that belong to no run",
            "notes_serious": sum(note.serious for note in notes),
            "notes_look": sum(note.weight == "look" for note in notes),
            "note_codes": _cell(_codes(Counter(note.code for note in notes))),
            "notes": _cell(_lines(notes[:MAX_NOTES], max(0, len(notes) - MAX_NOTES))),
        }
        writer.writerow(cells.values())
    if (missing := report.unfinished) is not None:
        stopped: dict[str, object] = dict.fromkeys(COLUMNS, "")
        writer.writerow((stopped | {"experiment_id": experiment_id, "reason": _cell(missing)}).values())
    yield line.getvalue()


def _by_code(row: RunRow) -> Counter[str]:
    counts: Counter[str] = Counter()
    for counted in row.note_counts:  # a code can have several weights
        counts[counted.code] += counted.count
    return counts


def _codes(counts: Counter[str]) -> str:
    """`arguments_not_json, message_dropped x 3`."""
    return ", ".join(f"{code} x {count}" if count > 1 else code for code, count in counts.items())


def _lines(notes: Sequence[NoteLine | Note], more: int) -> str:
    return "; ".join([*map(note_text, notes), *([f"and {more:,} more"] if more else [])])


def _cell(text: str) -> str:
    text = printable(text)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text


def json_report(report: Report) -> Iterator[str]:
    """`{experiment, summary, graders, notes, by_tag, matrix, runs}` in pieces; transcripts stay in the store."""
    head = {
        "experiment": _experiment(report),
        "summary": report.summary,
        "graders": report.graders,
        "notes": report.notes,
        "by_tag": report.by_tag,
    }
    yield _json(head)[:-1]
    yield ',"matrix":['
    for index, (case_id, cells) in enumerate(matrix(report.rows())):
        agents = {agent: _matrix_cell(cell) for agent, cell in cells.items()}
        yield ("," if index else "") + _json({"case_id": case_id, "agents": agents})
    yield '],"runs":['
    for index, row in enumerate(report.rows(detailed=True)):
        yield (",\n" if index else "\n") + _json(_run(row))
    yield "]}\n"


def _experiment(report: Report) -> dict[str, Any]:
    experiment = report.experiment
    return {
        "experiment_id": experiment.experiment_id,
        "name": experiment.name,
        "suite_hash": experiment.suite_hash,
        "status": experiment.status,
        "stop_reason": experiment.stop_reason,
        "planned_runs": report.planned,
        "created_at": experiment.created_at,
        "finished_at": experiment.finished_at,
        "version": experiment.version,
        "notes": experiment.notes,
    }


def _matrix_cell(cell: Cell) -> dict[str, Any]:
    return {
        "passed": cell.passed,
        "failed": cell.failed,
        "errored": cell.errored,
        "other": cell.other,
        "score": cell.score,
        "calls_incomplete": cell.incomplete,
    }


def _run(row: RunRow) -> RunRow:
    if row.detail is None or not row.detail.speech:
        return row
    return msgspec.structs.replace(row, detail=msgspec.structs.replace(row.detail, speech=[], speech_left_out=0))


def _json(value: Any) -> str:
    return wire.encode(value).decode()
