"""Typed tools: what is repaired, what is refused, and with which hint (transcript.md 1.2, TypedAgentTool)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from strategies.messages import json_values

from seatrial.transcript.tool import CancelSignal, ToolResult, ToolUpdateSink
from seatrial.transcript.typed_tool import TypedAgentTool, argument_hint, coerce_scalars, without_nulls


class Point(msgspec.Struct):
    x: int
    y: float = 0.0
    on: bool = False


class Move(msgspec.Struct):
    """Move the cursor."""

    steps: int
    speed: float | None = None
    smooth: bool = False
    label: str | None = None
    at: Point | None = None
    path: list[Point] = []
    wide: int | list[int] | None = None


class Never:
    cancelled = False


class MoveTool(TypedAgentTool[Move]):
    name = "move"
    description = "Moves the cursor."
    args_type = Move

    def prepare_arguments(self, arguments: Any) -> Any:
        if isinstance(arguments, dict) and "n" in arguments:
            return {"steps": arguments["n"]}
        return arguments

    async def run(self, call_id: str, args: Move, signal: CancelSignal, update: ToolUpdateSink) -> ToolResult:
        update(ToolResult.text("half way"))
        return ToolResult([], details=(call_id, args, signal.cancelled))


def called(arguments: Any) -> ToolResult:
    return asyncio.run(MoveTool().execute("call_1", arguments, Never(), lambda partial: None))


def moved(arguments: Any) -> Move:
    result = called(arguments)
    assert not result.is_error, result
    args = result.details[1]
    assert isinstance(args, Move)
    return args


def complaint(arguments: Any) -> str:
    result = called(arguments)
    assert result.is_error
    assert result.details == {
        "kind": "tool_argument_validation",
        "recoverable": True,
        "display_hidden": True,
        "tool": "move",
    }
    (block,) = result.content
    return getattr(block, "text", "")


def test_the_type_is_the_source_of_the_schema() -> None:
    schema = MoveTool().parameters_schema()
    assert schema["required"] == ["steps"]
    assert schema["properties"]["speed"]["type"] == ["number", "null"]


def test_arguments_that_fit_reach_the_tool_typed_with_the_call_id_and_the_update_sink() -> None:
    updates: list[ToolResult] = []
    result = asyncio.run(MoveTool().execute("call_1", {"steps": 3}, Never(), updates.append))
    assert result.details == ("call_1", Move(3), False)
    assert updates == [ToolResult.text("half way")]


def test_arguments_are_prepared_first() -> None:
    assert moved({"n": "4"}) == Move(4)


def test_null_means_left_out() -> None:
    assert moved({"steps": 1, "smooth": None, "path": None}) == Move(1)
    assert without_nulls({"a": None, "b": {"c": None}}) == {"b": {"c": None}}
    assert without_nulls([None]) == [None]


def test_quoted_scalars_are_read_as_what_the_schema_asks_for() -> None:
    assert moved({"steps": " -3 ", "speed": "1.5e2", "smooth": "True", "label": "7"}) == Move(-3, 150.0, True, "7")


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("integer", "18446744073709551615", 2**64 - 1),
        ("integer", "-9223372036854775808", -(2**63)),
        ("integer", "18446744073709551616", None),
        ("integer", "9" * 10_000, None),
        ("integer", "1_000", None),
        ("integer", "1.0", None),
        ("integer", "٣", None),
        ("integer", "", None),
        ("number", "5", 5.0),
        ("number", ".5", 0.5),
        ("number", "1e999", None),
        ("number", "nan", None),
        ("number", "inf", None),
        ("boolean", "FALSE", False),
        ("boolean", "yes", None),
        ("string", "5", None),
        (["integer", "null"], "5", 5),
        (["null", "boolean"], "true", True),
        (["integer", "string"], "5", None),
        (["integer", "number", "null"], "5", None),
        (None, "5", None),
    ],
)
def test_only_strings_that_spell_the_scalar_are_coerced(type_: Any, text: str, value: Any) -> None:
    schema = {"properties": {"a": {"type": type_} if type_ else {}}}
    coerced = coerce_scalars({"a": text, "unknown": "5"}, schema)
    assert coerced == {"a": text if value is None else value, "unknown": "5"}
    assert type(coerced["a"]) is type(text if value is None else value)


def test_nested_strings_are_not_coerced_but_hinted_at() -> None:
    assert complaint({"steps": 1, "at": {"x": "5"}}) == (
        "move: invalid arguments: Expected `int`, got `str` - at `$.at.x`. "
        "Did you mean the integer 5? Resend without quotes."
    )
    assert complaint({"steps": 1, "path": [{"x": 1, "y": "2.5"}]}).endswith(
        "Did you mean the number 2.5? Resend without quotes."
    )
    assert complaint({"steps": 1, "at": {"x": 1, "on": "TRUE"}}).endswith(
        "Did you mean true? Resend as a boolean literal (lowercase, no quotes)."
    )
    assert "JSON array" in complaint({"steps": 1, "path": "[1, 2]"})


def test_there_is_no_hint_when_the_string_spells_nothing_or_there_is_no_string() -> None:
    assert complaint({"steps": "many"}) == "move: invalid arguments: Expected `int`, got `str` - at `$.steps`"
    assert complaint({}) == "move: invalid arguments: Object missing required field `steps`"
    assert complaint("go").startswith("move: invalid arguments: Expected `object`")
    assert argument_hint("Expected `int`, got `str` - at `$[...]`", {"a": "5"}) is None
    assert argument_hint("Expected `int`, got `str` - at `$.a.b`", {"a": 5}) is None


@given(json_values(max_leaves=10))
def test_any_json_is_either_run_or_refused_politely(value: Any) -> None:
    called(value)
    called({"steps": value, "at": value, "path": [value]})
