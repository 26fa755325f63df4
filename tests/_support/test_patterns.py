"""Patterns of a suite on text of an agent."""

from __future__ import annotations

import inspect
import re
import sys
import threading
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial._support.patterns import MAX_NESTING, MAX_SUBJECT, Pattern
from seatrial._support.time_limit import TimeLimit
from seatrial.errors import SeatrialError

ENDLESS = [
    (r"^(a+)+$", "a" * 99_000 + "!"),
    (r"(a|aa)+$", "a" * 80 + "!"),
    (r"^(?=a)(a|a)*$", "a" * 60 + "!"),
    (r"(?:.*a){20}b", "a" * 20_000),
    (r"(\w+\s?)*\d$", "word" * 20_000 + "!"),
    (r"(.+)\1+\1$", "ab" * 30_000 + "c"),
]
"""Pattern and text which `re` does not get done with in a lifetime, or in minutes."""


@pytest.mark.parametrize(("pattern", "text"), ENDLESS)
def test_a_pattern_that_backtracks_without_end_is_ended_by_the_time_limit(pattern: str, text: str) -> None:
    limit = TimeLimit(0.05)
    with pytest.raises(SeatrialError) as caught, limit:
        Pattern(pattern).search(text)
    assert caught.value.code == "time_limit"
    assert limit.expired


def test_other_threads_run_while_a_pattern_is_matched() -> None:
    turns = 0
    ended = threading.Event()

    def count() -> None:
        nonlocal turns
        while not ended.wait(0.001):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        with pytest.raises(SeatrialError), TimeLimit(1):
            Pattern(ENDLESS[0][0]).search(ENDLESS[0][1])
    finally:
        ended.set()
        thread.join()
    assert turns > 1


def test_a_match_has_a_time_limit_also_when_nobody_set_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial._support.patterns.MATCH_S", 0.05)
    with pytest.raises(SeatrialError, match=r"longer than 0\.05 s"):
        Pattern(ENDLESS[0][0]).search(ENDLESS[0][1])


def test_a_limit_that_has_passed_already_starts_no_match() -> None:
    with TimeLimit(0.001):
        time.sleep(0.01)
        with pytest.raises(SeatrialError):
            Pattern("a").search("a")


def test_text_that_is_too_long_is_refused_and_not_called_a_mismatch() -> None:
    assert Pattern("a$").search("a" * MAX_SUBJECT) == "a"
    with pytest.raises(SeatrialError) as caught:
        Pattern("a$").search("a" * (MAX_SUBJECT + 1))
    assert caught.value.code == "text_too_long"


@pytest.mark.parametrize("pattern", ["(", "a**", r"\p{L}", "(?<name>a)", r"(?<=a+)b", "a(?i)b", "(*FAIL)", "(?R)"])
def test_what_re_does_not_take_is_refused(pattern: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        Pattern(pattern)
    assert caught.value.code == "invalid_config"


@pytest.mark.parametrize("pattern", ["[[:alpha:]]", "[a[:^digit:]]"])
def test_a_class_that_re_reads_as_single_characters_is_refused(pattern: str) -> None:
    with pytest.raises(SeatrialError, match="single characters"):
        Pattern(pattern)


PIECES = [
    *("a", "b", "A", "ß", "é", "1", "٣", ".", r"\d", r"\w", r"\s", r"\b", "^", "$", r"\A", r"\Z", "[a-b]", "[^a]"),
    *("[[a]", "[a&&b]", "[a--b]", r"[\d{]", "(a)", "(?:ab)", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", "(?P<n>a|b)"),
    *("(?P=n)", r"\1", "{", "}", "{e}", "{i<=1}", "{,}", "{}", "{,2}", "{2}", "{1,2}", "*", "+", "?", "*?", "++"),
    *("|", "(?i)", "(?i:a)", "(?>a+)", "(?s:.)", "(?m)", "(?x) ", "#", r"\{", r"\\", "\n", " ", r"\N{DASH}", "(", ")"),
]
TEXTS = [
    "",
    "a",
    "ab",
    "aAbB",
    "ßss",
    "éE1",
    "٣",
    "a{e}",
    "a{}",
    "{",
    "a1 b2\n",
    "aaa\nbbb",
    "ab{i<=1}",
    "K\u212a",
    "ſs",
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join))
def test_a_pattern_means_what_it_means_to_re(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            reference = re.compile(pattern)
        except re.error:
            return
    ours = Pattern(pattern)
    for text in TEXTS:
        found, covered = reference.search(text), reference.fullmatch(text)
        assert ours.search(text) == (None if found is None else found.group())
        assert ours.covered(text) == (None if covered is None else covered.group())


def nested(depth: int, opening: str = "(", closing: str = ")") -> str:
    return opening * depth + "a" + closing * depth


@pytest.mark.parametrize(
    ("opening", "closing"), [("(", ")"), ("(?:", ")*"), ("(?=", ")"), ("[(](", ")"), ("\\((", ")")]
)
def test_how_deeply_groups_may_be_nested_does_not_depend_on_how_deep_the_caller_is(opening: str, closing: str) -> None:
    def at_depth(frames: int, text: str) -> str:
        if frames:
            return at_depth(frames - 1, text)
        try:
            return Pattern(text).text
        except SeatrialError as error:
            return error.code

    for frames in (0, 300, sys.getrecursionlimit() - len(inspect.stack()) - 150):
        fits, deeper = (nested(depth, opening, closing) for depth in (MAX_NESTING, MAX_NESTING + 1))
        assert at_depth(frames, fits) == fits
        assert at_depth(frames, deeper) == "invalid_config"


@pytest.mark.parametrize("text", ["[(]" * 60, "\\(" * 60, "[](]" * 60, "[^(]" * 60, "(a)" * 60, "[\\](]" * 60])
def test_a_parenthesis_that_opens_no_group_is_none_and_groups_beside_each_other_are_not_nested(text: str) -> None:
    assert Pattern(text).text == text


def test_a_pattern_of_very_many_groups_is_refused_with_the_reason() -> None:
    with pytest.raises(SeatrialError, match="groups in each other 100,000 deep; at most 50 are read"):
        Pattern(nested(100_000))


def test_a_bracket_in_a_comment_hides_no_groups() -> None:
    with pytest.raises(SeatrialError, match="groups in each other 200 deep"):
        Pattern(f"(?x)#[\n{nested(200)}")
