from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from seatrial.errors import SeatrialError
from seatrial.trajectory import Step, steps_given


def test_a_step_needs_no_more_than_a_name_and_is_numbered_by_its_place() -> None:
    assert steps_given([{"name": "a"}, {"name": "b", "arguments": None, "index": 9}]) == [
        Step(0, "a", {}),
        Step(1, "b", None),
    ]
    assert steps_given([Step(5, "a", {})]) == [Step(0, "a", {})]


def test_nulls_say_nothing_but_in_arguments_and_result() -> None:
    (step,) = steps_given([{"name": "a", "status": None, "id": None, "source": None, "result": None}])
    assert (step.status, step.source, step.result) == ("unknown", "trace", None)
    assert steps_given([{"name": "a"}])[0].result is UNSET


def test_text_arguments_are_parsed_and_kept_as_text_when_they_are_not_json() -> None:
    first, second, third = steps_given(
        [{"name": "a", "arguments": '{"q": 1}'}, {"name": "a", "arguments": "{"}, {"name": "a", "arguments": ""}]
    )
    assert first.arguments == {"q": 1}
    assert (second.arguments, second.arguments_text) == (None, "{")
    assert third.arguments == {}


def test_a_step_that_was_written_is_read_back() -> None:
    step = Step(0, "a", None, arguments_text="{", started_at=5, ended_at=9, duration_ms=4, status="error", error="x")
    assert steps_given([msgspec.to_builtins(step)]) == [step]


def test_end_minus_start_is_the_duration() -> None:
    assert steps_given([{"name": "a", "started_at": 5, "ended_at": 9}])[0].duration_ms == 4


@pytest.mark.parametrize(
    ("steps", "pointer"),
    [
        ({}, "/at"),
        ("abc", "/at"),
        ([5], "/at/0"),
        ([{"name": "a"}, {}], "/at/1"),
        ([{"name": ""}], "/at/0"),
        ([{"name": 5}], "/at/0/name"),
        ([{"name": "a", "status": "odd"}], "/at/0/status"),
        ([{"name": "a", "duration_ms": "5"}], "/at/0/duration_ms"),
        ([{"name": "a", "started_at": True}], "/at/0/started_at"),
    ],
)
def test_what_is_no_step_is_an_error_that_says_where(steps: Any, pointer: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        steps_given(steps, ("at",))
    assert (caught.value.code, caught.value.pointer) == ("invalid_document", pointer)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("args", "arguments"),
        ("input", "arguments"),
        ("is_error", "status"),
        ("argumets", "arguments"),
        ("output", "result"),
    ],
)
def test_a_key_that_a_step_does_not_have_is_an_error_that_names_the_one_that_is_meant(key: str, meant: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        steps_given([{"name": "a"}, {"name": "a", key: {"id": 7}}], ("actual",))
    assert caught.value.pointer == f"/actual/1/{key}"
    assert f"write `{meant}`" in caught.value.message
