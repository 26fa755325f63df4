"""Two texts side by side, by word and by line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.reports.text_diff import MAX_BY_WORD, MAX_LINES, MAX_SHOWN, TextDiff, TextSpan, text_diff

_WORDS = st.lists(st.sampled_from(["refund", " ", "23.80", "EUR", ".", "\n", "é", "\u202e"]), max_size=30).map("".join)


def changed(spans: list[TextSpan]) -> list[str]:
    return [span.text for span in spans if span.kind == "changed"]


def test_only_the_words_that_differ_are_marked() -> None:
    found = text_diff("29.16 EUR of A-1092 has been refunded.", "291.60 EUR of A-1092 has been refunded.")
    assert (changed(found.a), changed(found.b), found.by) == (["29.16"], ["291.60"], "word")


def test_words_that_changed_together_are_one_piece() -> None:
    assert changed(text_diff("it is booked now", "it was cancelled today now").b) == ["was cancelled today "]


@given(_WORDS, _WORDS)
def test_the_pieces_are_the_whole_text_and_what_is_not_marked_is_in_both(a: str, b: str) -> None:
    found = text_diff(a, b)
    assert "".join(span.text for span in found.a) == a
    assert "".join(span.text for span in found.b) == b
    assert found.equal == (a == b)
    same = ["".join(span.text for span in side if span.kind == "same").split() for side in (found.a, found.b)]
    assert "".join(same[0]) == "".join(same[1])


def lines(count: int, **changes: str) -> str:
    return "".join(f"{changes.get(f'l{index}', f'line {index} of a long text')}\n" for index in range(count))


def test_long_texts_are_compared_by_line_and_equal_lines_are_left_out_with_their_number() -> None:
    found = text_diff(lines(2000), lines(2000, l1000="another line"))
    assert (found.by, found.remark) == ("line", "")
    assert changed(found.b) == ["another line\n"]
    assert [span.text for span in found.b if span.kind == "omitted"] == ["998 equal lines", "997 equal lines"]
    assert len(found.b) == 7


def test_what_is_not_compared_and_not_shown_is_said() -> None:
    a, b = lines(MAX_LINES + 5), lines(MAX_LINES + 5).replace("long", "short")
    found = text_diff(a, b)
    assert found.remark.startswith("only the first 10,000 lines are compared; 9,800 more lines are not shown")
    assert len(changed(found.a)) == MAX_SHOWN
    assert not text_diff(a, a).equal, "what is behind the last line that is compared may differ"


def test_a_line_that_is_too_long_is_cut() -> None:
    found = text_diff("x" * MAX_BY_WORD, "y" * (MAX_BY_WORD + 1))
    assert found.by == "line"
    assert len(found.b[0].text) < 2100


def test_many_short_words_are_compared_by_line() -> None:
    found: TextDiff = text_diff("a," * 9000, "a;" * 9000)
    assert found.by == "line"
