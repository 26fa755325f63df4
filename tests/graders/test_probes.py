"""A pattern that fits every text is no check; one that fails on a single text is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial._support.patterns import Pattern
from seatrial.errors import SeatrialError
from seatrial.graders.answer import Regex
from seatrial.graders.probes import cannot_fail

EMPTY_IS_FINE = [r"\d*", r"\s*", "[^x]*", "^", "$", ".*$", r"(?:zzz)?\Z", ".*", "", "(?m)^", "a|", "(?!.*password)"]


@pytest.mark.parametrize("pattern", EMPTY_IS_FINE)
def test_a_pattern_that_is_found_in_every_text_is_refused(pattern: str) -> None:
    assert cannot_fail(Pattern(pattern), whole=False)
    if pattern:
        with pytest.raises(SeatrialError, match="it cannot fail") as refused:
            Regex(pattern=pattern).prepare()
        assert refused.value.pointer == "/pattern"


@pytest.mark.parametrize("pattern", [r"[\s\S]*", "(?s).*", r"(.|\n)*", r"(?:\s|\S)*"])
def test_a_pattern_that_covers_every_text_is_refused_where_it_must_cover_the_answer(pattern: str) -> None:
    with pytest.raises(SeatrialError, match="covers every answer"):
        Regex(pattern=pattern, whole=True).prepare()


@pytest.mark.parametrize(
    "pattern",
    [
        r"\A(?!.*password)",
        r"(?s)\A(?!.*pass\s*word)",
        r"(?is)^(?!.*\b(?:sorry|unable|can't)\b)",
        r"\A(?![\s\S]*\d{3}-\d{2}-\d{4})",
        r"\A(?!.*\b\d{16}\b)",
        r"\A(?!(?:.*\n)*ERROR: \w+ at line \d+)",
        r"(?s)\A(?!.*(sk-[a-z0-9]{20}))",
        r"\A[^<>]*\Z",
        r"^\s*$",
        r"^$",
        ".+",
        r"\S",
        r"\bok\b",
        "(?i)refund",
        r"\A\d*\Z",
        r"(?<!un)available",
        r"\A(?:(?!drop table).)*\Z",
    ],
)
def test_a_pattern_that_fails_on_some_text_is_accepted(pattern: str) -> None:
    assert not cannot_fail(Pattern(pattern), whole=False)
    Regex(pattern=pattern).prepare()


@pytest.mark.parametrize("pattern", [".*", r"\d*", "[^x]*", r"(?s)(?!.*password).*"])
def test_what_is_found_everywhere_need_not_cover_everything(pattern: str) -> None:
    Regex(pattern=pattern, whole=True).prepare()


def test_a_pattern_that_takes_too_long_to_try_is_accepted() -> None:
    assert not cannot_fail(Pattern(r"(x*)*y?(?!x)"), whole=True)


@given(st.text(min_size=1, max_size=20))
def test_a_text_that_must_not_occur_is_always_a_check(text: str) -> None:
    assert not cannot_fail(Pattern(rf"(?s)\A(?!.*{re.escape(text)})"), whole=False)
    assert not cannot_fail(Pattern(re.escape(text)), whole=False)
