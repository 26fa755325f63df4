"""Tools whose arguments are a msgspec type: the one source for their schema and for reading them."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from seatrial.errors import SeatrialError
from seatrial.transcript.tool import AgentTool, CancelSignal, ToolResult, ToolUpdateSink

Args = TypeVar("Args")
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
ToolSchema: TypeAlias = dict[str, Any]


class TypedAgentTool(AgentTool, Generic[Args]):
    """A tool that gets its arguments typed. A subclass sets `args_type` and runs.

    Models send null for what they mean to leave out, and quote numbers; both are repaired before the arguments are
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
        """Repair and read the arguments, then run."""
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
        """Make one call with arguments that fit."""


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


def arguments_schema(args_type: Any) -> ToolSchema:
    """The schema of the arguments that a msgspec type describes."""
    try:
        schema = msgspec.json.schema(args_type)
    except TypeError as error:
        raise SeatrialError("invalid_config", f"no schema can be made of {args_type!r}: {error}") from None
    inliner = _Inliner(schema.pop("$defs", {}))
    flat = flatten_tagged_union({"$schema": DRAFT_07, **inliner.inline(schema)})
    if definitions := inliner.definitions():
        flat["definitions"] = definitions
    return flat


def flatten_tagged_union(schema: ToolSchema) -> ToolSchema:
    """One object for a union of objects that a property with a single value tells apart; other schemas unchanged.

    What only some of them have is no longer required, and says in its description which they are.
    """
    variants = schema.get("oneOf", schema.get("anyOf"))
    tag = _discriminator(variants)
    if variants is None or tag is None:
        return schema
    values = [_single_value(variant["properties"][tag]) for variant in variants]
    owners: dict[str, list[str]] = {}
    properties: ToolSchema = {tag: {"type": "string", "enum": values}}
    for variant, value in zip(variants, values, strict=True):
        for name, subschema in variant["properties"].items():
            properties.setdefault(name, subschema)
            owners.setdefault(name, []).append(str(value))
    for name, having in owners.items():
        if name != tag and len(having) < len(variants):
            suffix = f" (applies when {tag} in: [{', '.join(sorted(having))}])"
            description = (properties[name].get("description", "") + suffix).lstrip()
            properties[name] = {**properties[name], "description": description}
    flat: ToolSchema = {key: schema[key] for key in ("description", "$schema") if key in schema}
    flat |= {"type": "object", "properties": properties}
    if all(tag in variant.get("required", ()) for variant in variants):
        flat["required"] = [tag]
    return flat


def _discriminator(variants: Any) -> str | None:
    """The first property that has a single string value in every variant."""
    if not variants or not all(isinstance(v, dict) and isinstance(v.get("properties"), dict) for v in variants):
        return None
    for name in variants[0]["properties"]:
        if all(_single_value(variant["properties"].get(name, {})) is not None for variant in variants):
            return str(name)
    return None


def _single_value(schema: ToolSchema) -> str | None:
    values = schema.get("enum", ())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else None


class _Inliner:
    """Replaces references by what they refer to. Only a type that contains itself keeps its definition."""

    def __init__(self, named: dict[str, ToolSchema]) -> None:
        self._named = named
        self._recursive: list[str] = []

    def definitions(self) -> dict[str, ToolSchema]:
        """The definitions that are still referred to."""
        # The list grows while it is walked, when a definition refers to further recursive types.
        return {name: self.inline(self._named[name], (name,)) for name in self._recursive}

    def inline(self, schema: ToolSchema, within: tuple[str, ...] = ()) -> ToolSchema:
        inlined: ToolSchema = {}
        for key, value in schema.items():
            if key == "$ref":
                inlined |= self._referred(value.rpartition("/")[2], within)
            elif key == "properties":
                inlined[key] = {name: self.inline(subschema, within) for name, subschema in value.items()}
            elif key in ("anyOf", "oneOf", "allOf"):
                inlined[key] = [self.inline(subschema, within) for subschema in value]
            elif key == "prefixItems":
                inlined["items"] = [self.inline(subschema, within) for subschema in value]
                inlined["additionalItems"] = False
            elif key in ("items", "additionalProperties") and isinstance(value, dict):
                inlined[key] = self.inline(value, within)
            elif key == "items":
                # Some providers refuse `true`; and beside `prefixItems` it is `false`, said by `additionalItems`.
                inlined.setdefault("items", {})
            elif key != "discriminator":
                inlined[key] = value
        if inlined.get("type") == "array":
            inlined.setdefault("items", {})
        return _with_plain_null(inlined)

    def _referred(self, name: str, within: tuple[str, ...]) -> ToolSchema:
        if name not in within:
            return self.inline(self._named[name], (*within, name))
        if name not in self._recursive:
            self._recursive.append(name)
        return {"$ref": f"#/definitions/{name}"}


def _with_plain_null(schema: ToolSchema) -> ToolSchema:
    """`anyOf` a simple type and null, as a list of two types."""
    options = schema.get("anyOf", ())
    null: ToolSchema = {"type": "null"}
    if len(options) != 2 or null not in options:
        return schema
    other = options[0] if options[1] == null else options[1]
    if not isinstance(other.get("type"), str) or "enum" in other or "const" in other or other == null:
        return schema
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**other, "type": [other["type"], "null"], **rest}


_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GOT_STRING = re.compile(r"Expected `(?P<expected>[^`]+)`, got `str`(?: - at `(?P<path>.*)`)?$", re.DOTALL)
_PATH_PART = re.compile(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]")
