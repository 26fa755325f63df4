from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.trajectory.step import Step
from seatrial.trajectory.values import call_keys, differences, key, keys

# Few values that are often equal, so that equality is met as often as inequality.
NUMBERS = st.sampled_from([0, 1, -1, 0.0, -0.0, 1.0, 0.5, 1e16, 10**16, 1e300, int(1e300), 2**70, float(2**70), 5e-324])
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "1", "1.0", "e16}", ".0,", "null", "ü\n"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=4
)


def equal(one: Any, other: Any) -> bool:
    """JSON equality as its definition has it."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


@given(VALUES, VALUES)
def test_keys_are_equal_exactly_when_the_values_are(one: Any, other: Any) -> None:
    assert (key(one) == key(other)) == equal(one, other)
    assert (next(differences(one, other), None) is None) == equal(one, other)


@given(st.lists(VALUES, max_size=4))
def test_a_key_does_not_depend_on_the_values_beside_it(values: list[Any]) -> None:
    assert keys(values) == [key(value) for value in values]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, -0.0),
        (10**16, 1e16),
        (10**22, 1e22),
        (int(1.7e308), 1.7e308),
        ({"a": 1, "b": [1.0]}, {"b": [1], "a": 1.0}),
        (float("nan"), None),
        (float("-inf"), None),
    ],
)
def test_values_that_are_one_and_the_same_in_json(one: Any, other: Any) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (0, None),
        (1, "1"),
        (2**53 + 1, float(2**53)),
        (0.1 + 0.2, 0.3),
        ([], {}),
        ("", None),
        ({"a": None}, {}),
        ("a\ud800", "a\ud801"),
        ("b\ud800", "b\ufffd"),
    ],
)
def test_values_that_differ_in_json(one: Any, other: Any) -> None:
    assert key(one) != key(other)


def test_a_lone_surrogate_equals_itself() -> None:
    assert key({"a": "\ud800"}) == key({"a": "\ud800"})


@pytest.mark.parametrize(
    "value", [object(), 10**5000, {1: 2}, {"a": object()}], ids=["object", "huge", "key", "inside"]
)
def test_what_is_no_json_equals_nothing_not_even_on_the_other_side(value: Any) -> None:
    assert keys([value], b"expected") != keys([value])


def test_values_nested_too_deeply_equal_nothing_and_raise_nothing() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert keys([deep, 1], b"expected")[0] != keys([deep, 1])[0]
    assert keys([deep, 1])[1] == key(1)


def test_arguments_that_are_not_json_are_told_apart_from_the_same_text_as_json() -> None:
    as_text = Step(0, "a", None, arguments_text="x")
    assert len({*call_keys([as_text, Step(1, "a", "x"), Step(2, "a", None), Step(3, "b", None)])}) == 4
    assert call_keys([as_text]) == call_keys([Step(1, "a", None, arguments_text="x")])
