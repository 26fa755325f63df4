from __future__ import annotations

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.reported import HOSTILE, detail, hostile_report, joined, report, row, rows_of

from seatrial.reports.data_files import COLUMNS, csv_lines
from seatrial.reports.report import Report


def lines(found: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(joined(csv_lines(found)), newline="")))


def test_every_run_is_a_line_under_the_columns() -> None:
    found = lines(report(rows_of(crew="p f", shop="e")))
    assert tuple(found[0]) == COLUMNS
    assert [(line["agent"], line["case_id"], line["outcome"]) for line in found] == [
        ("crew", "case-0", "passed"),
        ("shop", "case-0", "errored"),
        ("crew", "case-1", "failed"),
    ]
    assert found[0]["score"] == "1.0"
    assert found[1]["score"] == ""


def test_only_runs_that_did_not_pass_have_a_reason() -> None:
    passed, failed = lines(report([row("a"), row("b", "failed", detail=detail("two\nlines"))]))
    assert passed["reason"] == ""
    assert failed["reason"] == "two\nlines"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", " =", "＝", "\n+"])
def test_no_cell_begins_a_formula(start: str) -> None:
    (line,) = lines(report([row(f"{start}1+1", "failed", agent=f"{start}cmd", detail=detail(f"{start}x"))]))
    for column in ("agent", "case_id", "reason"):
        assert line[column].startswith("'")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_line_and_no_column(text: str) -> None:
    found = lines(hostile_report(text))
    assert len(found) == 5
    assert all(None not in line for line in found)


@given(st.text(st.characters(), max_size=30))
def test_any_text_can_be_read_again(text: str) -> None:
    found = lines(hostile_report(text))
    assert [line["trial"] for line in found] == ["1", "2", "3", "4", ""]


def test_no_runs_leave_the_head() -> None:
    assert joined(csv_lines(report([]))) == ",".join(COLUMNS) + "\r\n"


def test_an_experiment_that_was_stopped_has_a_line_that_says_so() -> None:
    lines = joined(csv_lines(report(rows_of(crew="p"), status="stopped", stop_reason="Ctrl-C"))).splitlines()
    assert len(lines) == 3
    assert "stopped before all was run: Ctrl-C" in lines[-1]
