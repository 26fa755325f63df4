from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from seatrial.trajectory import Step, expectation_from_steps, match, match_trajectory


def fits(args: Any, actual: Any, args_match: Any = "exact") -> bool:
    item = {"tool": "t", "args": args, "args_match": args_match}
    return match_trajectory("exact", [item], [{"name": "t", "arguments": actual}]).passed


def differences(args: Any, actual: Any, args_match: Any = "exact") -> list[tuple[str, Any, Any]]:
    item = {"tool": "t", "args": args, "args_match": args_match}
    result = match_trajectory("exact", [item], [{"name": "t", "arguments": actual}])
    return [(found.pointer, found.expected, found.actual) for found in result.mismatches[0].differences]


@pytest.mark.parametrize(
    ("args", "actual", "expected"),
    [
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": None}, {}, False),
        (None, None, True),
        (None, {}, False),
        ([1], [1], True),
    ],
)
def test_exact_compares_arguments_as_json_values(args: Any, actual: Any, expected: bool) -> None:
    assert fits(args, actual) is expected


@pytest.mark.parametrize(
    ("args", "actual", "expected"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, True),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": {"b": 1}}, {"a": 1}, False),
        ({}, {"a": 1}, True),
        ({}, 5, False),
    ],
)
def test_superset_wants_at_least_the_expected_keys_recursively(args: Any, actual: Any, expected: bool) -> None:
    assert fits(args, actual, "superset") is expected


@pytest.mark.parametrize(
    ("args", "actual", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {}, True),
    ],
)
def test_subset_wants_no_key_that_is_not_expected_recursively(args: Any, actual: Any, expected: bool) -> None:
    assert fits(args, actual, "subset") is expected


def test_ignore_takes_any_arguments_even_those_that_are_not_json() -> None:
    assert fits({"a": 1}, {"b": 2}, "ignore")
    assert fits({"a": 1}, "{not json", "ignore")


def test_arguments_that_are_not_json_fit_where_args_are_absent_and_nowhere_else() -> None:
    actual = [{"name": "t", "arguments": "{not json"}]
    assert match_trajectory("exact", [{"tool": "t"}], actual).passed
    for args_match in ("exact", "superset", "subset", ["a"]):
        item = {"tool": "t", "args": {"$any": True} if args_match != ["a"] else {}, "args_match": args_match}
        result = match_trajectory("exact", [item], actual)
        assert not result.passed
        assert result.mismatches[0].differences[0].actual == "{not json"


@pytest.mark.parametrize(
    ("paths", "args", "actual", "expected"),
    [
        (["a.b"], {"a": {"b": 1, "x": 1}}, {"a": {"b": 1.0, "x": 2}, "y": 3}, True),
        (["a.b"], {"a": {"b": 1}}, {"a": {"b": 2}}, False),
        (["a.b"], {"a": {"b": 1}}, {"a": {}}, False),
        (["a.b"], {"a": {}}, {"a": {"b": 1}}, False),
        (["a.b"], {}, {"z": 1}, True),
        (["a.0"], {"a": [{"n": 1}]}, {"a": [{"n": 1}, 2]}, True),
        (["a.0"], {"a": [1]}, {"a": []}, False),
        (["a", "b"], {"a": 1, "b": {"$gt": 1}}, {"a": 1, "b": 2, "c": 3}, True),
        (["a"], {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
        (["a"], {"a": None}, {}, False),
    ],
)
def test_paths_compare_only_what_they_name_and_missing_on_one_side_is_a_mismatch(
    paths: list[str], args: Any, actual: Any, expected: bool
) -> None:
    assert fits(args, actual, paths) is expected


def test_paths_without_args_compare_nothing() -> None:
    item = {"tool": "t", "args_match": ["a"]}
    assert match_trajectory("exact", [item], [{"name": "t", "arguments": {"a": 1}}]).passed


def test_an_index_of_thousands_of_digits_leads_nowhere() -> None:
    path = f"a.{'9' * 5000}"
    assert fits({"a": [1]}, {"a": [2]}, [path])
    assert not fits({"a": {path[2:]: 1}}, {"a": [1]}, [path])


def test_differences_say_where_and_what_on_both_sides() -> None:
    assert differences(
        {"q": "a", "deep": {"x/y": 1, "list": [1, 2]}, "gone": 1},
        {"q": "b", "deep": {"x/y": 2, "list": [1]}, "new": {"k": 1}},
    ) == [
        ("/arguments/q", "a", "b"),
        ("/arguments/deep/x~1y", 1, 2),
        ("/arguments/deep/list/1", 2, UNSET),
        ("/arguments/gone", 1, UNSET),
        ("/arguments/new", UNSET, {"k": 1}),
    ]


def test_a_difference_shows_a_matcher_as_it_was_written() -> None:
    assert differences({"n": {"$gt": 3, "$lt": 9}}, {"n": 2}) == [("/arguments/n", {"$gt": 3, "$lt": 9}, 2)]
    assert differences({"o": {"n": {"$any": True}}}, {}) == [("/arguments/o", {"n": {"$any": True}}, UNSET)]


def test_arguments_nested_too_deeply_fit_nothing_and_raise_nothing() -> None:
    deep: Any = {}
    for _ in range(3000):
        deep = {"a": deep}
    step = Step(0, "t", deep)
    for args in ({"a": {"$schema": False}}, {"b": 1}):
        assert not match_trajectory("exact", [{"tool": "t", "args": args}], [step]).passed
    result = match(expectation_from_steps("exact", [step]), [step])
    assert not result.passed
    assert result.mismatches[0].differences[0].actual == "nested too deeply to be compared"
    assert match_trajectory("exact", [{"tool": "t"}], [step]).passed
