from __future__ import annotations

import subprocess
import sys

import pytest

from seatrial.reports.table import MAX_CELL, table


def test_names_are_aligned_to_the_left_and_numbers_to_the_right() -> None:
    assert table(["agent", "runs"], [["crew", "7"], ["a longer one", "1,000"]], indent="  ") == [
        "  agent          runs",
        "  crew              7",
        "  a longer one  1,000",
    ]


def test_wide_and_combining_characters_leave_the_columns_straight() -> None:
    assert table(["agent", "grader", "n"], [["日本", "e\u0301a", "1"], ["crew", "", "22"]], left=2) == [
        "agent  grader   n",
        "日本   e\u0301a       1",
        "crew           22",
    ]


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "[/]", ":smile:", "\\[x]", "https://example.org"])
def test_nothing_in_a_cell_is_markup(text: str) -> None:
    assert table(["a"], [[text]]) == ["a", text]


@pytest.mark.parametrize("columns", ["20", "500"])
def test_a_table_is_neither_wrapped_nor_cut_to_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    wide = "漢" * MAX_CELL
    assert table(["a"] * 9, [[wide] * 9])[1] == "  ".join([wide] * 9)


def test_a_long_cell_is_cut_and_control_characters_are_shown() -> None:
    _, long, steering = table(["a"], [["x" * 100], ["\x1b[31m\u202ered"]])
    assert long == "x" * (MAX_CELL - 1) + "…"
    assert steering == "\\x1b[31m\\u202ered"


def test_the_libraries_that_draw_are_not_imported_before_they_are_needed() -> None:
    script = "import sys, seatrial.cli.run, seatrial.reports.write; assert not {'rich', 'jinja2'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
