from __future__ import annotations

import subprocess
import sys

import pytest

from seatrial.reports.layout import MAX_CELL, table


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


def test_a_table_that_is_too_wide_does_without_some_columns_and_says_so() -> None:
    head, rows = ["agent", "passed", "p95"], [["crew", "7", "12 ms"]]
    assert table(head, rows, width=18, droppable=["p95", "passed"]) == [
        "agent  passed",
        "crew        7",
        "(too narrow for:",
        "p95)",
    ]
    assert table(head, rows, width=20, droppable=["p95"])[0] == "agent  passed    p95"


def test_a_table_that_nothing_can_be_left_out_of_is_a_block_for_each_row() -> None:
    head, rows = ["agent", "passed", "pass rate"], [["crew", "7", "87.5%"], ["shop", "8", "100%"]]
    assert table(head, rows, width=20) == [
        "crew",
        "  passed 7",
        "  pass rate 87.5%",
        "shop",
        "  passed 8",
        "  pass rate 100%",
    ]


def test_a_long_cell_is_cut_and_control_characters_are_shown() -> None:
    _, long, steering = table(["a"], [["x" * 100], ["\x1b[31m\u202ered"]])
    assert long == "x" * (MAX_CELL - 1) + "…"
    assert steering == "\\x1b[31m\\u202ered"


def test_the_libraries_that_draw_are_not_imported_before_they_are_needed() -> None:
    imports = "import sys, seatrial.cli.commands.run, seatrial.reports.write"
    script = f"{imports}; assert not {{'rich', 'jinja2'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
