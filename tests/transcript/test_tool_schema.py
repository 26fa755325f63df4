"""JSON Schema of a tool's arguments (transcript.md 1.2, schema post-processing)."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import jsonschema_rs
import msgspec
import pytest

from seatrial.errors import SeatrialError
from seatrial.transcript.typed_tool import DRAFT_07, arguments_schema, flatten_tagged_union


class Point(msgspec.Struct):
    """A point."""

    x: int
    y: int | None = None


class Search(msgspec.Struct):
    """Look something up."""

    query: Annotated[str, msgspec.Meta(description="What to look for.")]
    near: Point
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    anything: list[Any] = []
    pair: tuple[int, str] = (0, "")


class Read(msgspec.Struct, tag_field="action", tag="read"):
    path: Annotated[str, msgspec.Meta(description="The file.")]
    lines: int = 10


class Write(msgspec.Struct, tag_field="action", tag="write"):
    path: str
    text: Annotated[str, msgspec.Meta(description="What to write.")]


class Delete(msgspec.Struct, tag_field="action", tag="delete"):
    path: str
    force: bool = False
    lines: str = ""


class Tree(msgspec.Struct):
    children: list[Tree] = []


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_sub_schemas_are_inlined_in_draft_07() -> None:
    assert as_json(arguments_schema(Search)) == {
        "$schema": DRAFT_07,
        "title": "Search",
        "description": "Look something up.",
        "type": "object",
        "properties": {
            "query": {"description": "What to look for.", "type": "string"},
            "near": {
                "title": "Point",
                "description": "A point.",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": ["integer", "null"], "default": None}},
                "required": ["x"],
            },
            "limit": {"type": ["integer", "null"], "minimum": 1, "default": None},
            "anything": {"type": "array", "items": {}, "default": []},
            "pair": {
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
                "items": [{"type": "integer"}, {"type": "string"}],
                "additionalItems": False,
                "default": [0, ""],
            },
        },
        "required": ["query", "near"],
    }


def test_the_schema_accepts_what_the_type_accepts() -> None:
    validator = jsonschema_rs.validator_for(arguments_schema(Search))
    good = {"query": "x", "near": {"x": 1}, "limit": None, "anything": [1, "a"], "pair": [1, "b"]}
    assert validator.is_valid(good)
    for bad in ({**good, "near": {}}, {**good, "limit": 0}, {**good, "pair": [1, "b", 2]}):
        assert not validator.is_valid(bad)


def test_a_union_of_tagged_structs_becomes_one_object() -> None:
    schema = arguments_schema(Read | Write | Delete)
    assert list(schema) == ["$schema", "type", "properties", "required"]
    assert schema["required"] == ["action"]
    assert list(schema["properties"].items()) == [
        ("action", {"type": "string", "enum": ["read", "write", "delete"]}),
        ("path", {"description": "The file.", "type": "string"}),
        (
            "lines",
            {"type": "integer", "default": 10, "description": "(applies when action in: [delete, read])"},
        ),
        ("text", {"description": "What to write. (applies when action in: [write])", "type": "string"}),
        ("force", {"type": "boolean", "default": False, "description": "(applies when action in: [delete])"}),
    ]


def test_a_described_union_keeps_its_description_first_and_an_optional_tag_is_not_required() -> None:
    variants = [
        {"type": "object", "properties": {"a": {"type": "string"}, "kind": {"enum": ["x"]}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"type": "string", "enum": ["y"]}}, "required": []},
    ]
    flat = flatten_tagged_union({"$schema": DRAFT_07, "oneOf": variants, "description": "Either."})
    assert list(flat) == ["description", "$schema", "type", "properties"]
    assert list(flat["properties"]) == ["kind", "a"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"enum": ["x"]}}},
        {"anyOf": []},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"oneOf": [True, False]},
        {"anyOf": [{"properties": {"k": {"enum": ["x"]}}}, {"properties": {"k": {"enum": ["y", "z"]}}}]},
        {"anyOf": [{"properties": {"k": {"enum": [1]}}}, {"properties": {"k": {"enum": [2]}}}]},
    ],
)
def test_what_is_no_union_of_tagged_objects_is_left_as_it_is(schema: dict[str, Any]) -> None:
    assert flatten_tagged_union(schema) == schema


def test_a_type_that_contains_itself_keeps_one_definition() -> None:
    schema = arguments_schema(Tree)
    assert schema["properties"]["children"]["items"] == {"$ref": "#/definitions/Tree"}
    assert list(schema["definitions"]) == ["Tree"]
    validator = jsonschema_rs.validator_for(schema)
    assert validator.is_valid({"children": [{"children": []}]})
    assert not validator.is_valid({"children": [{"children": [5]}]})


def test_items_true_becomes_an_empty_schema_at_any_depth() -> None:
    class Loose(msgspec.Struct):
        rows: Annotated[list[list[Any]], msgspec.Meta(extra_json_schema={"items": {"type": "array", "items": True}})]

    assert arguments_schema(Loose)["properties"]["rows"]["items"] == {"type": "array", "items": {}}


def test_an_example_that_looks_like_a_schema_is_left_alone() -> None:
    class Odd(msgspec.Struct):
        schema: Annotated[dict[str, Any], msgspec.Meta(examples=[{"type": "array", "$ref": "#/nowhere"}])]

    assert arguments_schema(Odd)["properties"]["schema"]["examples"] == [{"type": "array", "$ref": "#/nowhere"}]


def test_only_a_plain_type_is_joined_with_null() -> None:
    class Choice(msgspec.Struct):
        mode: Literal["a", "b"] | None = None
        where: Point | None = None
        size: int | str | None = None

    properties = arguments_schema(Choice)["properties"]
    assert properties["where"]["type"] == ["object", "null"]
    assert properties["where"]["required"] == ["x"]
    assert properties["mode"]["anyOf"] == [{"enum": ["a", "b"]}, {"type": "null"}]
    assert [option.get("type") for option in properties["size"]["anyOf"]] == ["integer", "string", "null"]


def test_a_type_without_a_schema_is_one_clear_error() -> None:
    with pytest.raises(SeatrialError) as caught:
        arguments_schema(object)
    assert caught.value.code == "invalid_config"
