"""The ribbon of two runs."""

from __future__ import annotations

from xml.etree import ElementTree

from seatrial.explorer.plots.ribbon import RibbonBox, ribbon

NAME = '</svg><script>alert("1")</script>\u202e'
BOXES = [
    RibbonBox("equal", "0 to 9", "0 to 9", "/runs#0", 0, 10),
    RibbonBox("differs", f"10 {NAME}", "10 refund", '/runs?at="', 10),
    RibbonBox("only_a", "11 mail", None, "/runs#11", 11),
]


def drawn(*, known: tuple[bool, bool] = (True, True)) -> tuple[str, ElementTree.Element]:
    text = ribbon(BOXES, outcomes=("passed", "failed"), diverge_at=10, left=True, known=known, same_answer=False)
    return text, ElementTree.fromstring(text)


def test_it_is_well_formed_whatever_tools_are_called() -> None:
    text, _ = drawn()
    assert "<script" not in text
    assert "\u202e" not in text


def test_its_words_say_how_many_calls_are_equal_and_where_they_diverge() -> None:
    _, svg = drawn()
    assert svg.get("aria-label") == (
        "Alignment of both runs: 10 equal calls, 1 with other arguments, 1 of one run alone; they diverge at step 10"
    )


def test_a_call_that_may_have_been_made_is_not_said_to_be_missing() -> None:
    words = ["".join(text.itertext()) for text in drawn()[1].iter("text")]
    assert "not called" in words
    words = ["".join(text.itertext()) for text in drawn(known=(True, False))[1].iter("text")]
    assert "not called" not in words
    assert "none known" in words


def test_it_says_that_there_is_more() -> None:
    assert "and more below" in drawn()[0]
