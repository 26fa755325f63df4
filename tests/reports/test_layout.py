from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.reports.layout import MIN_WIDTH, NO_TERMINAL, cells, folded, prose, terminal_width


def test_prose_is_folded_between_words_and_indented() -> None:
    assert prose("one two  three\nfour", 12, "  ") == ["  one two", "  three four"]
    assert prose("one two three", 12, "    ", "- ") == ["- one two", "    three"]
    assert prose("", 20) == []


def test_a_text_keeps_its_own_lines_and_their_indentation() -> None:
    assert folded("def f():\n\treturn 1\n\nend", 40, "| ") == ["| def f():", "|     return 1", "|", "| end"]


def test_a_word_that_is_too_long_is_broken() -> None:
    assert folded("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]


def test_a_wide_character_takes_two_columns() -> None:
    assert folded("漢" * 8, 10) == ["漢" * 5, "漢" * 3]


def test_nothing_in_a_text_steers_the_terminal() -> None:
    assert folded("\x1b[31mred\u202e", 40) == ["\\x1b[31mred\\u202e"]


@given(st.text(), st.integers(10, 60))
def test_no_line_is_wider_than_asked_for_and_no_word_is_lost(text: str, width: int) -> None:
    lines = folded(text, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join("".join(folded(text, 10_000)).split())


def test_output_that_is_no_terminal_has_one_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "7")
    assert terminal_width() == NO_TERMINAL
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert terminal_width() == MIN_WIDTH
    monkeypatch.setenv("COLUMNS", "93")
    assert terminal_width() == 93
