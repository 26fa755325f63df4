from __future__ import annotations

import time
from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from seatrial.trajectory import Parting, Step, compare, comparison


def steps(*calls: str, **more: Any) -> list[Step]:
    """`a1` is a call of `a` with the argument q = "1"."""
    return [Step(index, call[0], {"q": call[1:]} if call[1:] else {}, **more) for index, call in enumerate(calls)]


def aligned(a: list[Step], b: list[Step]) -> list[tuple[int, int]]:
    return [(pair.a, pair.b) for pair in compare(a, b).aligned]


def test_equal_runs_are_equal_and_fully_aligned() -> None:
    diff = compare(steps("a1", "b"), steps("a1", "b"))
    assert diff.equal
    assert [(pair.a, pair.b, pair.differences) for pair in diff.aligned] == [(0, 0, []), (1, 1, [])]
    assert diff.first_divergence is None
    assert (diff.only_a, diff.only_b) == ([], [])


def test_equal_calls_are_aligned_before_calls_of_the_same_name() -> None:
    assert aligned(steps("a1", "a2", "b"), steps("a2", "b")) == [(1, 0), (2, 1)]


def test_between_equal_calls_those_of_the_same_name_are_aligned_with_their_argument_differences() -> None:
    diff = compare(steps("x", "a1", "c", "y"), steps("x", "z", "a2", "y"))
    assert [(pair.a, pair.b) for pair in diff.aligned] == [(0, 0), (1, 2), (3, 3)]
    assert msgspec.to_builtins(diff.aligned[1].differences) == [
        {"pointer": "/arguments/q", "expected": "1", "actual": "2"}
    ]
    assert (diff.only_a, diff.only_b) == ([2], [1])


def test_the_first_divergence_is_the_first_step_that_is_not_equal() -> None:
    assert compare(steps("a", "b1"), steps("a", "b2")).first_divergence == Parting(1, 1)
    assert compare(steps("a"), steps("a", "b")).first_divergence == Parting(None, 1)
    assert compare(steps("a", "b"), []).first_divergence == Parting(0, None)


def test_times_and_tokens_of_aligned_steps_are_compared_where_both_are_known() -> None:
    a = [Step(0, "a", {}, duration_ms=100, tokens=10), Step(1, "b", {}, started_at=0, ended_at=50), Step(2, "c", {})]
    b = [Step(0, "a", {}, duration_ms=150, tokens=4), Step(1, "b", {}, duration_ms=20), Step(2, "c", {}, tokens=1)]
    diff = compare(a, b)
    assert [(pair.duration_delta_ms, pair.tokens_delta) for pair in diff.aligned] == [
        (50, -6),
        (-30, None),
        (None, None),
    ]
    assert (diff.duration_delta_ms, diff.tokens_delta) == (20, -6)
    assert compare(a, []).duration_delta_ms is None


def test_arguments_that_are_not_json_are_compared_as_text() -> None:
    bad = [Step(0, "a", None, arguments_text="{")]
    assert compare(bad, bad).equal
    (pair,) = compare(bad, steps("a1")).aligned
    assert [(found.expected, found.actual) for found in pair.differences] == [("{", {"q": "1"})]


def test_arguments_nested_too_deeply_do_not_raise() -> None:
    deep: Any = {}
    for _ in range(3000):
        deep = {"a": deep}
    run = [Step(0, "a", deep)]
    diff = compare(run, run)
    assert not diff.equal
    assert diff.aligned[0].differences[0].actual == "nested too deeply to be compared"


CALLS = st.lists(st.sampled_from(["a1", "a2", "b1", "b2"]), max_size=8)


@given(CALLS, CALLS)
def test_an_alignment_is_in_order_by_name_and_leaves_nothing_out(one: list[str], other: list[str]) -> None:
    diff = compare(steps(*one), steps(*other))
    pairs = [(pair.a, pair.b) for pair in diff.aligned]
    assert pairs == sorted(pairs)
    assert sorted([*(a for a, _ in pairs), *diff.only_a]) == list(range(len(one)))
    assert sorted([*(b for _, b in pairs), *diff.only_b]) == list(range(len(other)))
    for pair in diff.aligned:
        assert one[pair.a][0] == other[pair.b][0]
        assert (pair.differences == []) == (one[pair.a] == other[pair.b])
    assert diff.equal == (one == other)


def test_long_runs_are_compared_quickly() -> None:
    one, other = steps(*["a1", "b2", "c3"] * 3000), steps(*["b2", "a1", "c4"] * 3000)
    start = time.process_time()
    assert len(compare(one, other).aligned) == 6000
    assert time.process_time() - start < 5


@given(CALLS, CALLS)
def test_runs_that_are_aligned_in_parts_are_aligned_in_order_too(one: list[str], other: list[str]) -> None:
    with patch.multiple(comparison, MAX_TABLE=1, PART=4):
        diff = compare(steps(*one), steps(*other))
    pairs = [(pair.a, pair.b) for pair in diff.aligned]
    assert pairs == sorted(pairs)
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
    assert all(one[a][0] == other[b][0] for a, b in pairs)
    assert diff.equal == (one == other)


def test_very_long_runs_are_aligned_in_parts_and_say_so() -> None:
    one = [f"call {index}" for index in range(40_000)]
    other = [*one[:100], "other", *one[110:20_000], *["more"] * 9000, *one[20_000:]]
    found = comparison.align(one, other, one, other)
    assert not found.whole
    assert len(found.a) > 39_000
    assert all(one[a] == other[b] for a, b in zip(found.a, found.b, strict=True))
    assert found.first_divergence == Parting(100, 100)
    assert comparison.align(one, one, one, one).whole
