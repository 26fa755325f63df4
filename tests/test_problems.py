"""The nearest valid word is named, and nothing far away."""

from __future__ import annotations

import pytest

from seatrial.problems import Place, SuiteProblem, meant, nearest, quoted

KEYS = ["endpoint_url", "proxy_url", "headers", "timeout_s", "run_timeout_s"]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("timout_s", "timeout_s"),
        ("Headers", "headers"),
        ("endpoint", "endpoint_url"),
        ("url", "proxy_url"),
        ("colour", None),
        ("s", None),
        ("", None),
        ("x" * 1_000_000, None),
    ],
)
def test_the_nearest_word(word: str, near: str | None) -> None:
    assert nearest(word, KEYS) == near


def test_where_nothing_is_near_a_few_are_listed_and_many_are_not() -> None:
    assert meant("colour", ["a", "b"]) == "one of `a`, `b`"
    assert meant("colour", [f"key{number}" for number in range(50)]) is None
    assert meant("colour", []) is None


def test_a_problem_reads_like_that_of_a_compiler() -> None:
    problem = SuiteProblem(message="unknown key `x`", file="s.yaml", line=3, column=5, hint="did you mean `y`?")
    assert str(problem) == "s.yaml:3:5: unknown key `x` (did you mean `y`?)"
    assert str(SuiteProblem(message="wrong")) == "suite: wrong"
    assert str(Place("s.csv", 7)) == "s.csv:7"


def test_long_foreign_text_is_cut() -> None:
    assert len(quoted("x" * 10_000)) < 80
