"""JSON Schema of a tool's arguments, in the plain form that model providers take.

Draft-07, sub-schemas inlined, and a union of tagged structs flattened to one object: providers understand
properties, few of them understand `oneOf`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from seatrial.errors import SeatrialError

DRAFT_07 = "http://json-schema.org/draft-07/schema#"

ToolSchema: TypeAlias = dict[str, Any]


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
