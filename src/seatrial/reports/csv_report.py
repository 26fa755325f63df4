"""CSV: one line for each run, for spreadsheets."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO

from seatrial.printable import printable
from seatrial.reports.report import Report, reason

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
    "started_at",
    "duration_ms",
    "attempts",
    "steps",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "reason",
)

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
                row.started_at,
                row.duration_ms,
                row.attempts,
                row.steps,
                row.input_tokens,
                row.output_tokens,
                row.cost_usd,
                "" if row.outcome == "passed" else _cell(reason(row)),
            )
        )
        yield line.getvalue()
        line.seek(0)
        line.truncate()
    yield line.getvalue()


def _cell(text: str) -> str:
    text = printable(text)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
