"""Calls that a test expects."""

from __future__ import annotations

import operator

import pytest

from seatrial.errors import SeatrialError
from seatrial.testing import Expected, exact, in_order, subset, superset, unordered
from seatrial.trajectory import Step
from seatrial.trajectory.calls import Calls
from seatrial.trajectory.completeness import COMPLETE


def steps(*names: str) -> list[Step]:
    return [Step(index, name, {"n": index}) for index, name in enumerate(names)]


@pytest.mark.parametrize(
    ("expected", "fits", "does_not"),
    [
        (exact("a", "b"), ["a", "b"], ["a", "x", "b"]),
        (in_order("a", "b"), ["a", "x", "b"], ["b", "a"]),
        (unordered("a", "b"), ["b", "a"], ["b", "a", "a"]),
        (superset("a", "b"), ["b", "x", "a"], ["a"]),
        (subset("a", "b"), ["a"], ["a", "x"]),
    ],
    ids=repr,
)
def test_expected_calls_equal_the_calls_that_fit_them(expected: Expected, fits: list[str], does_not: list[str]) -> None:
    assert steps(*fits) == expected
    assert expected == steps(*fits)
    assert steps(*does_not) != expected


@pytest.mark.parametrize("other", [["a"], "a", None, [{"name": "a"}], Calls(["a"], COMPLETE)], ids=repr)
def test_what_is_not_calls_is_neither_equal_to_expected_calls_nor_different_from_them(other: object) -> None:
    for compare in (operator.eq, operator.ne):
        with pytest.raises(TypeError, match=r"compared with calls \(`result.calls`"):
            compare(other, in_order("a"))
        with pytest.raises(TypeError, match=r"compared with calls \(`result.calls`"):
            compare(in_order("a"), other)


def test_a_tuple_of_calls_is_compared_like_a_list() -> None:
    assert tuple(steps("a")) == in_order("a")
    assert tuple(steps("a")) != in_order("b")


def test_options_are_those_of_the_trajectory_grader() -> None:
    assert steps("a", "b") != superset("a", forbidden=[{"tool": "b"}])
    with pytest.raises(SeatrialError):
        superset("a", forbiden=[{"tool": "b"}])


def test_an_explanation_shows_made_and_missing_calls_in_their_places() -> None:
    expected = exact("find", {"tool": "check", "args": {"order": "o-1"}}, "pay")
    prose, *lines = expected.explain(steps("find", "delete", "pay"))
    assert prose.startswith("Expected exactly 3 calls in this order: find, check, pay.")
    assert lines == ['  find {"n":0}', '+ delete {"n":1}', '- check {"order":"o-1"}', '  pay {"n":2}']


def test_an_explanation_of_missing_last_calls_ends_with_them() -> None:
    assert in_order("find", "pay", "thank").explain(steps("find"))[1:] == ['  find {"n":0}', "- pay", "- thank"]


def test_names_that_agents_give_their_tools_cannot_steer_the_terminal() -> None:
    lines = exact("find").explain([Step(0, "\x1b[2J", {}, status="error")])
    assert "\x1b" not in "".join(lines)
    assert lines[-2].endswith("[error]")


def test_arguments_that_are_not_json_are_shown_as_sent() -> None:
    assert exact("find").explain([Step(0, "find", None, arguments_text="{oops")])[1:] == ["  find {oops"]
