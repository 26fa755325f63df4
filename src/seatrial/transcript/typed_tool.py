"""Tools whose arguments are a msgspec type: the one source for their schema and for reading them."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from seatrial.transcript.tool import AgentTool, CancelSignal, ToolUpdateSink
from seatrial.transcript.tool_result import ToolResult
from seatrial.transcript.tool_schema import arguments_schema

Args = TypeVar("Args")


class TypedAgentTool(AgentTool, Generic[Args]):
    """A tool that gets its arguments typed. A subclass sets `args_type` and runs.

    Models send null for what they mean to leave out, and quote numbers; both are mended before the arguments are
    read. What still does not fit goes back to the model with a hint.
    """

    args_type: type[Args]
    """A msgspec Struct, or a union of tagged ones."""

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return arguments_schema(self.args_type)

    def parameters_schema(self) -> dict[str, Any]:
        """JSON Schema of `args_type`."""
        return self._schema

    async def execute(self, call_id: str, arguments: Any, signal: CancelSignal, update: ToolUpdateSink) -> ToolResult:
        """Mend and read the arguments, then run."""
        arguments = without_nulls(self.prepare_arguments(arguments))
        arguments = coerce_scalars(arguments, self.parameters_schema())
        try:
            typed = msgspec.convert(arguments, self.args_type)
        except msgspec.ValidationError as error:
            text = f"{self.name}: invalid arguments: {error}"
            hint = argument_hint(str(error), arguments)
            return ToolResult.argument_validation_error(self.name, f"{text}. {hint}" if hint else text)
        return await self.run(call_id, typed, signal, update)

    @abstractmethod
    async def run(self, call_id: str, args: Args, signal: CancelSignal, update: ToolUpdateSink) -> ToolResult:
        """Carry out one call with arguments that fit."""


def without_nulls(arguments: Any) -> Any:
    """The arguments without top-level keys whose value is null; anything but an object as it is."""
    if not isinstance(arguments, dict):
        return arguments
    return {key: value for key, value in arguments.items() if value is not None}


def coerce_scalars(arguments: Any, schema: dict[str, Any]) -> Any:
    """The arguments with top-level strings turned into the scalar that the schema asks for, where they spell one."""
    if not isinstance(arguments, dict):
        return arguments
    properties = schema.get("properties", {})
    coerced = dict(arguments)
    for key, value in arguments.items():
        if isinstance(value, str) and key in properties:
            scalar = _scalar(value, _scalar_type(properties[key]))
            if scalar is not None:
                coerced[key] = scalar
    return coerced


def argument_hint(error: str, arguments: Any) -> str | None:
    """What to send instead of a string, for msgspec's complaint about one; None when the string spells nothing."""
    complaint = _GOT_STRING.match(error)
    if complaint is None:
        return None
    expected = complaint["expected"].split(" | ")
    text = _value_at(complaint["path"] or "$", arguments)
    if not isinstance(text, str):
        return None
    for type_, words in (("int", "integer"), ("float", "number"), ("bool", "boolean")):
        scalar = _scalar(text, words) if type_ in expected else None
        if isinstance(scalar, bool):
            return f"Did you mean {str(scalar).lower()}? Resend as a boolean literal (lowercase, no quotes)."
        if scalar is not None:
            return f"Did you mean the {words} {scalar}? Resend without quotes."
    if "array" in expected:
        return "Send a JSON array, not a string: put the values in square brackets, without quotes around the whole."
    return None


def _scalar_type(schema: Any) -> str | None:
    """The scalar type of a schema, also when it may be null; None for a wider one."""
    type_ = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(type_, list) and len(type_) == 2 and "null" in type_:
        type_ = type_[0] if type_[1] == "null" else type_[1]
    return type_ if isinstance(type_, str) else None


def _scalar(text: str, type_: str | None) -> int | float | bool | None:
    text = text.strip()
    if type_ == "boolean":
        return _BOOLEANS.get(text)
    if type_ == "integer" and _INTEGER.fullmatch(text):
        # Longer than any 64-bit number; int() refuses thousands of digits.
        number = int(text) if len(text) <= 40 else 2**64
        return number if -(2**63) <= number < 2**64 else None
    if type_ == "number" and _NUMBER.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else None
    return None


def _value_at(path: str, value: Any) -> Any:
    """What stands at a path of msgspec's, such as `$.points[0].x`; None where it leads nowhere."""
    for key, index in _PATH_PART.findall(path.removeprefix("$")):
        if key and isinstance(value, dict):
            value = value.get(key)
        elif index and isinstance(value, list) and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return value


_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GOT_STRING = re.compile(r"Expected `(?P<expected>[^`]+)`, got `str`(?: - at `(?P<path>.*)`)?$", re.DOTALL)
_PATH_PART = re.compile(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]")
