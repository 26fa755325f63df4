"""JSON: everything that a program may want of an experiment, in one document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial.reports.report import Report
from seatrial.reports.rows import RunRow, matrix
from seatrial.store import Cell


def json_report(report: Report) -> Iterator[str]:
    """`{experiment, summary, graders, notes, by_tag, matrix, runs}` in pieces; transcripts stay in the store."""
    head = {
        "experiment": _experiment(report),
        "summary": report.summary,
        "graders": report.graders,
        "notes": report.notes,
        "by_tag": report.by_tag,
    }
    yield _text(head)[:-1]
    yield ',"matrix":['
    for index, (case_id, cells) in enumerate(matrix(report.rows())):
        agents = {agent: _cell(cell) for agent, cell in cells.items()}
        yield ("," if index else "") + _text({"case_id": case_id, "agents": agents})
    yield '],"runs":['
    for index, row in enumerate(report.rows(detailed=True)):
        yield (",\n" if index else "\n") + _text(_run(row))
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


def _cell(cell: Cell) -> dict[str, Any]:
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


def _text(value: Any) -> str:
    return wire.encode(value).decode()
