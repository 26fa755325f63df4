from __future__ import annotations

from typing import Any

import pytest

from seatrial.errors import SeatrialError
from seatrial.trajectory import (
    MODES,
    Step,
    compile_expectation,
    expectation_from_steps,
    match,
    match_trajectory,
    steps_given,
)

ITEM = {"tool": "search"}


def refused(configuration: Any) -> SeatrialError:
    with pytest.raises(SeatrialError) as caught:
        compile_expectation(configuration)
    assert caught.value.code == "invalid_config"
    return caught.value


@pytest.mark.parametrize("mode", ["in_order", "exact", "superset", "subset", "unordered", "partial_order"])
def test_no_expected_is_an_error(mode: str) -> None:
    assert "expected" in str(refused({"mode": mode}))


@pytest.mark.parametrize("configuration", [{}, {"minimums": {}}, {"minimums": {}, "maximums": {}}])
def test_no_counts_are_an_error_in_any_order(configuration: dict[str, Any]) -> None:
    assert "minimums" in str(refused({"mode": "any_order", **configuration}))


@pytest.mark.parametrize("mode", ["in_order", "exact", "superset", "subset", "unordered", "partial_order"])
def test_an_empty_expectation_is_an_error_that_says_how_to_expect_no_calls(mode: str) -> None:
    assert "maximums" in str(refused({"mode": mode, "expected": []}))


def test_no_calls_at_all_can_be_expected() -> None:
    no_calls = compile_expectation({"mode": "any_order", "maximums": {"*": 0}})
    assert match(no_calls, []).passed
    assert not match(no_calls, steps_given([{"name": "a"}])).passed


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("strict", "exact"),
        ("Exact", "exact"),
        ("in-order", "in_order"),
        ("supersets", "superset"),
        ("any", "any_order"),
    ],
)
def test_an_unknown_mode_is_an_error_that_names_the_nearest(given: str, meant: str) -> None:
    error = refused({"mode": given, "expected": [ITEM]})
    assert error.pointer == "/mode"
    assert f"did you mean '{meant}'?" in str(error)


@pytest.mark.parametrize("mode", [None, 1, [], "", "xyz"])
def test_a_mode_that_is_no_mode_at_all_is_an_error_that_lists_them(mode: Any) -> None:
    assert all(known in str(refused({"mode": mode, "expected": [ITEM]})) for known in MODES)


@pytest.mark.parametrize(
    ("configuration", "pointer", "said"),
    [
        ({"expcted": []}, None, "did you mean 'expected'?"),
        ({"expected": [{"tool": "a", "arg": {}}]}, "/expected/0", "did you mean 'args'?"),
        ({"expected": [{"tool": "a", "arguments": {}}]}, "/expected/0", "did you mean 'args'?"),
        ({"expected": [{"name": "a"}]}, "/expected/0", "did you mean 'tool'?"),
        ({"expected": [{}]}, "/expected/0", "without 'tool'"),
        ({"expected": [1]}, "/expected/0", '{"tool": "search"}'),
        ({"expected": [ITEM], "forbidden": [{"tool": "a", "args": None}]}, "/forbidden/0/args", "leave it out"),
        ({"expected": [], "forbidden": ["a"]}, "/expected", "never_calls"),
        ({"expected": {"tool": "a"}}, "/expected", "array of items"),
        ({"expected": [{"tool": ""}]}, "/expected/0/tool/0", "not empty"),
        ({"expected": [{"tool": []}]}, "/expected/0/tool", "array of names"),
        ({"expected": [{"tool": ["a", 1]}]}, "/expected/0/tool/1", "text"),
        ({"expected": [{"tool": "a", "args": {}, "args_match": "supersett"}]}, "/expected/0/args_match", "'superset'"),
        ({"expected": [{"tool": "a", "args": {}, "args_match": 1}]}, "/expected/0/args_match", "array of paths"),
        ({"expected": [{"tool": "a", "args": {}, "args_match": []}]}, "/expected/0/args_match", "array of names"),
        (
            {"expected": [{"tool": "a", "args": {"a": {"$any": True}}, "args_match": ["a.b"]}]},
            "/expected/0/args_match",
            "leads into a matcher",
        ),
        ({"expected": [{"tool": "a", "status": "fine"}]}, "/expected/0/status", "not one of ok"),
        ({"expected": [{"tool": "a", "actor": ""}]}, "/expected/0/actor", "not empty"),
        ({"expected": [{"tool": "a", "max_duration_ms": -1}]}, "/expected/0/max_duration_ms", "from 0 on"),
        ({"expected": [{"tool": "a", "max_duration_ms": True}]}, "/expected/0/max_duration_ms", "a number"),
        ({"expected": [{"tool": "a", "after": ["b"]}]}, "/expected/0/after", "partial_order"),
        ({"expected": [ITEM], "minimums": {"a": 1}}, "/minimums", "does not take"),
        ({"expected": [ITEM], "defaults": {"args": {}}}, "/defaults", "no key 'args'"),
        ({"expected": [ITEM], "defaults": []}, "/defaults", "an object"),
        (
            {"expected": [ITEM], "args_match": "ignore", "defaults": {"args_match": "exact"}},
            "/defaults/args_match",
            "twice",
        ),
        ({"expected": [ITEM], "forbidden": "a"}, "/forbidden", "array of items"),
        ({"expected": [ITEM], "forbidden": [{"tool": "a", "max_duration_ms": 1}]}, "/forbidden/0", "no key"),
        ({"expected": [ITEM], "allowed": "a"}, "/allowed", "array of names"),
        ({"expected": [ITEM], "max_calls": 1.5}, "/max_calls", "whole number"),
        ({"expected": [ITEM], "max_calls": True}, "/max_calls", "whole number"),
        ({"expected": [ITEM], "min_calls": -1}, "/min_calls", "whole number"),
        ({"expected": [ITEM], "no_errors": "yes"}, "/no_errors", "true or false"),
        ({"expected": [ITEM], "failed_calls": "ignored"}, "/failed_calls", "did you mean 'ignore'?"),
        ({"expected": [ITEM], "retries": "join"}, "/retries", "collapse"),
        ({"expected": [ITEM], "min_score": 0}, "/min_score", "above 0"),
        ({"expected": [ITEM], "min_score": 1.1}, "/min_score", "at most 1"),
        ({"expected": [ITEM], "min_score": float("nan")}, "/min_score", "a number"),
        ({"expected": [ITEM], "no_errors": True, "failed_calls": "ignore"}, "/no_errors", "never be violated"),
    ],
    ids=str,
)
def test_a_slip_is_an_error_before_anything_runs_and_says_where(
    configuration: dict[str, Any], pointer: str | None, said: str
) -> None:
    error = refused({"mode": "exact", **configuration})
    assert error.pointer == pointer
    assert said in str(error)


@pytest.mark.parametrize(
    ("configuration", "pointer"),
    [
        ({"minimums": {"a": -1}}, "/minimums/a"),
        ({"minimums": {"a": "1"}}, "/minimums/a"),
        ({"minimums": {"a": 0}}, "/minimums"),
        ({"minimums": {"a": 0, "b": 0}}, "/minimums"),
        ({"minimums": {"a": 2}, "maximums": {"a": 1}}, "/minimums/a"),
        ({"minimums": ["a"]}, "/minimums"),
        ({"minimums": {"": 1}}, "/minimums"),
        ({"minimums": {"a": 1}, "expected": [ITEM]}, "/expected"),
        ({"minimums": {"a": 1}, "args_match": "ignore"}, "/args_match"),
    ],
    ids=str,
)
def test_counts_that_cannot_be_used_are_errors(configuration: dict[str, Any], pointer: str) -> None:
    assert refused({"mode": "any_order", **configuration}).pointer == pointer


@pytest.mark.parametrize("configuration", [None, [], "exact", 1])
def test_a_configuration_that_is_no_object_is_an_error(configuration: Any) -> None:
    refused(configuration)


def test_a_configuration_without_a_mode_is_an_error() -> None:
    assert "mode" in str(refused({"expected": [ITEM]}))


@pytest.mark.parametrize(
    ("items", "pointer", "said"),
    [
        ([{"tool": "a", "id": "a", "after": ["b"]}], "/expected/0/after/0", "no item has the id 'b'"),
        ([{"tool": "a", "id": "x", "after": ["x"]}], "/expected/0/after", "circular"),
        (
            [{"tool": "a", "id": "x", "after": ["y"]}, {"tool": "b", "id": "y", "after": ["x"]}],
            "/expected/0/after",
            "circular",
        ),
        ([{"tool": "a", "id": "x"}, {"tool": "b", "id": "x"}], "/expected/1/id", "two items"),
        ([{"tool": "a", "after": "x"}], "/expected/0/after", "array"),
    ],
)
def test_an_order_that_cannot_be_kept_is_an_error(items: list[dict[str, Any]], pointer: str, said: str) -> None:
    error = refused({"mode": "partial_order", "expected": items})
    assert error.pointer == pointer
    assert said in str(error)


def test_a_configuration_nested_too_deeply_is_one_clear_error() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(SeatrialError) as caught:
        compile_expectation({"mode": "exact", "expected": [{"tool": "a", "args": deep}]})
    assert caught.value.code == "too_deep"


def test_defaults_hold_for_every_item_that_does_not_say_otherwise() -> None:
    expected = [{"tool": "a", "args": {"x": 1}}, {"tool": "b", "args": {"x": 1}, "args_match": "exact"}]
    actual = [{"name": "a", "arguments": {"x": 1, "y": 2}}, {"name": "b", "arguments": {"x": 1, "y": 2}}]
    for options in ({"defaults": {"args_match": "superset"}}, {"args_match": "superset"}):
        result = match_trajectory("in_order", expected, actual, **options)
        assert [pair.expected for pair in result.matched] == [0]
    statuses = match_trajectory("exact", [{"tool": "a"}], [{"name": "a"}], defaults={"status": "ok"})
    assert not statuses.passed


def test_a_reference_expects_its_calls_literally() -> None:
    reference = [Step(0, "a*", {"$gt": 1}), Step(1, "b", {"x": 1})]
    result = match(expectation_from_steps("exact", reference), reference)
    assert result.passed
    other = [Step(0, "ab", {"$gt": 1}), Step(1, "b", {"x": 1.0})]
    assert match(expectation_from_steps("superset", reference), other).missing == [0]


def test_a_reference_call_whose_arguments_are_not_json_fits_nothing() -> None:
    reference = [Step(0, "a", None, arguments_text="{")]
    result = match(expectation_from_steps("exact", reference), reference)
    assert result.missing == [0]
    assert result.mismatches[0].differences[0].actual == "{"


@pytest.mark.parametrize("mode", ["any_order", "partial_order", "strict"])
def test_a_reference_cannot_be_used_where_more_must_be_said(mode: Any) -> None:
    with pytest.raises(SeatrialError):
        expectation_from_steps(mode, [Step(0, "a", {})])


def test_a_reference_without_calls_is_an_error_where_it_could_never_fail() -> None:
    with pytest.raises(SeatrialError):
        expectation_from_steps("superset", [])
    assert match(expectation_from_steps("exact", []), []).passed
