from __future__ import annotations

from typing import Any

import pytest

from seatrial.errors import SeatrialError
from seatrial.trajectory import compile_expectation, match_trajectory


def fits(matcher: Any, value: Any) -> bool:
    item = {"tool": "t", "args": {"v": matcher}}
    return match_trajectory("exact", [item], [{"name": "t", "arguments": {"v": value}}]).passed


@pytest.mark.parametrize(
    ("matcher", "fitting", "others"),
    [
        ({"$any": True}, [None, 0, "", {}, []], []),
        ({"$regex": "^a+$"}, ["a", "aaa"], ["", "ab", 1, None]),
        ({"$regex": "b"}, ["abc"], ["ac"]),
        ({"$glob": "*.py"}, ["a.py", ".py"], ["a.PY", "a.pyc", 1]),
        ({"$glob": "a[1]"}, ["a1", "a[1]"], ["a2"]),
        ({"$approx": 10, "abs": 0.5}, [10, 10.5, 9.5], [10.6, "10", True, None]),
        ({"$approx": 200, "rel": 0.01}, [202, 198.0], [203]),
        ({"$approx": 3.0}, [3, 3.000001], [3.1]),
        ({"$approx": 1.1, "abs": 0.01}, [1.11, 1.09], [1.1100001, 1.0899999]),
        ({"$approx": 10**20, "abs": 0}, [10**20, 1e20], [10**20 + 1]),
        ({"$approx": -100, "rel": 0.1}, [-90, -110], [-89, 100]),
        ({"$in": [1, "a", {"$gt": 1}, None]}, [1.0, "a", {"$gt": 1}, None], [True, "b", 2, {"$gt": 2}]),
        ({"$gt": 1}, [2, 1.5], [1, 0, "2", True, None]),
        ({"$gte": 1}, [1, 1.0], [0]),
        ({"$lt": 1}, [0, -1.5], [1]),
        ({"$lte": 1}, [1, 0], [1.1, 10**400]),
        ({"$gt": 1, "$lte": 3}, [2, 3], [1, 4]),
        ({"$gte": "2026-01-01"}, ["2026-01-01", "2027"], ["2025-12-31", 2026]),
        ({"$len": 2}, ["ab", [1, 2], {"a": 1, "b": 2}], ["a", [], {}, 2, None]),
        ({"$len": {"$gte": 1}}, ["a", [0]], ["", [], 1]),
        ({"$contains": "b"}, ["abc", ["b"], {"b": 1}], ["ac", ["bb"], {"a": "b"}, 1, None]),
        ({"$contains": {"id": 1}}, [[{"id": 1.0}, 2]], [[{"id": 2}], {"id": 1}, "id"]),
        ({"$contains": {"$gt": 5}}, [[1, 6]], [[1, 2], "6"]),
        ({"$schema": {"type": "integer", "minimum": 3}}, [3, 4.0], [2, "3", None]),
        ({"$schema": True}, [None, 1], []),
        ({"$not": 1}, [2, "1", True, None], [1, 1.0]),
        ({"$not": {"$regex": "x"}}, ["a", 1], ["x"]),
        ({"$not": {"a": {"$any": True}}}, [{}, 1], [{"a": 1}]),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_a_matcher_fits_what_it_says_and_nothing_else(matcher: Any, fitting: list[Any], others: list[Any]) -> None:
    assert [value for value in fitting if not fits(matcher, value)] == []
    assert [value for value in others if fits(matcher, value)] == []


def test_matchers_work_anywhere_in_the_arguments_and_in_the_result() -> None:
    item = {"tool": "t", "args": {"list": [{"n": {"$gt": 1}}]}, "result": {"ok": {"$any": True}}}
    step = {"name": "t", "arguments": {"list": [{"n": 2}]}, "result": {"ok": False}}
    assert match_trajectory("exact", [item], [step]).passed
    assert not match_trajectory("exact", [item], [{**step, "result": {}}]).passed
    assert not match_trajectory("exact", [item], [{"name": "t", "arguments": {"list": [{"n": 2}]}}]).passed
    assert match_trajectory("exact", [{"tool": "t", "args": {"$schema": {"required": ["list"]}}}], [step]).passed


def test_any_wants_the_key_to_be_there() -> None:
    item = {"tool": "t", "args": {"v": {"$any": True}}}
    assert not match_trajectory("exact", [item], [{"name": "t", "arguments": {}}]).passed


@pytest.mark.parametrize("matcher", [{"$regex": "b"}, {"$glob": "b*"}, {"$schema": {"pattern": "b"}}])
def test_text_that_is_too_long_for_a_pattern_neither_fits_nor_does_not_fit(matcher: dict[str, Any]) -> None:
    assert fits({"$not": matcher}, "a" * 100_000)
    step = {"name": "t", "arguments": {"v": "a" * 1_000_000}}
    for args in ({"v": matcher}, {"v": {"$not": matcher}}):
        result = match_trajectory("exact", [{"tool": "t", "args": args}], [step])
        assert not result.passed
        assert result.errored is not None
        assert "1,000,0" in result.errored
        forbidden = match_trajectory("superset", [{"tool": "t"}], [step], forbidden=[{"tool": "t", "args": args}])
        assert not forbidden.passed
        assert forbidden.errored is not None


def test_a_pattern_that_backtracks_without_end_is_errored_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.trajectory.matching.MATCH_S", 0.1)
    item = {"tool": "t", "args": {"v": {"$not": {"$regex": "^(a+)+$"}}}}
    steps = [{"name": "t", "arguments": {"v": "a" * 99_000 + "!"}}] * 50
    result = match_trajectory("superset", [item], steps)
    assert not result.passed
    assert result.errored == "it took longer than 0.1 s"


@pytest.mark.parametrize(
    ("matcher", "pointer", "said"),
    [
        ({"$regx": "a"}, "/expected/0/args/v", "did you mean '$regex'?"),
        ({"$gt": 1, "x": 2}, "/expected/0/args/v", "'x'"),
        ({"$gt": 1, "$regex": "a"}, "/expected/0/args/v", "only bounds"),
        ({"$any": False}, "/expected/0/args/v/$any", "takes true"),
        ({"$regex": "("}, "/expected/0/args/v/$regex", "cannot be used"),
        ({"$regex": 1}, "/expected/0/args/v/$regex", "takes a pattern"),
        ({"$glob": 1}, "/expected/0/args/v/$glob", "takes a glob"),
        ({"$approx": "1"}, "/expected/0/args/v/$approx", "takes a number"),
        ({"$approx": 1, "abs": 1, "rel": 1}, "/expected/0/args/v", "not both"),
        ({"$approx": 1, "abs": -1}, "/expected/0/args/v/abs", "from 0 on"),
        ({"$gt": 1, "abs": 1}, "/expected/0/args/v", "'abs'"),
        ({"$in": 1}, "/expected/0/args/v/$in", "takes an array"),
        ({"$in": []}, "/expected/0/args/v/$in", "takes an array"),
        ({"$gt": None}, "/expected/0/args/v/$gt", "number or text"),
        ({"$gt": True}, "/expected/0/args/v/$gt", "number or text"),
        ({"$len": -1}, "/expected/0/args/v/$len", "whole number"),
        ({"$schema": {"type": "intger"}}, "/expected/0/args/v/$schema", "cannot be used"),
        ({"$schema": {"$ref": "http://127.0.0.1:1/x.json"}}, "/expected/0/args/v/$schema", "cannot be used"),
        ({"$not": {"$foo": 1}}, "/expected/0/args/v/$not", "no matcher '$foo'"),
        ({"$contains": [{"$foo": 1}]}, "/expected/0/args/v/$contains/0", "no matcher '$foo'"),
        ({1: 2}, "/expected/0/args/v", "keys of an object are text"),
    ],
    ids=str,
)
def test_a_matcher_that_cannot_be_used_is_an_error_that_says_where(matcher: Any, pointer: str, said: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        compile_expectation({"mode": "exact", "expected": [{"tool": "t", "args": {"v": matcher}}]})
    assert caught.value.code == "invalid_config"
    assert caught.value.pointer == pointer
    assert said in str(caught.value)


def test_approximately_a_huge_integer_does_not_overflow() -> None:
    assert not fits({"$approx": 1.5}, 10**400)
    with pytest.raises(SeatrialError):
        compile_expectation({"mode": "exact", "expected": [{"tool": "t", "args": {"$approx": 10**400}}]})
