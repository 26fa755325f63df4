from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial._support.printable import coloured, is_blank, one_line, printable


def test_what_steers_a_terminal_is_shown_as_an_escape() -> None:
    assert printable("\x1b[31mred\x07\u202e\ud800") == r"\x1b[31mred\x07\u202e\ud800"


def test_what_hides_itself_is_shown_as_an_escape() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    assert printable(f"ok{hidden}\xad\u180e\ufff9") == r"ok\U000e006f\U000e0062\U000e0065\U000e0079\xad\u180e\ufff9"


@pytest.mark.parametrize(
    "text", ["", " \n\t", "\u200b", "\ufeff \u2060", "\xad", "\u3000", "\x00\x1b", "\u200b" * 100_000]
)
def test_what_nobody_would_see_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(f"{text}.")
    assert not is_blank(f"日{text}")


def test_ordinary_text_of_any_language_stays() -> None:
    assert printable("naïve 日本 שלום\n\tok 🚢") == "naïve 日本 שלום\n\tok 🚢"


@given(st.text(st.characters(), max_size=200), st.integers(1, 50))
def test_one_line_is_one_line_of_at_most_its_width(text: str, width: int) -> None:
    shown = one_line(text, width)
    assert len(shown) <= width
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown


def test_a_colour_ends_where_the_text_ends() -> None:
    assert coloured("x", "red") == "\x1b[31mx\x1b[0m"
