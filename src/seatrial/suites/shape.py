"""Whether a plain value has the shape of a type: every difference, in words, where `msgspec` would tell the first.

Data that fits is converted by `msgspec` in one go. Only what does not fit is walked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from seatrial._support import wire
from seatrial.problems import KeyPath, Problems, listed, meant, nearest, path_of, quoted, suggestion

T = TypeVar("T")


def fit(value: object, kind: type[T], path: KeyPath, problems: Problems) -> T | None:
    """The value as the type, or None with problems told."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        before = problems.count
        compare(value, kind, path, problems)
        if problems.count == before:
            # A rule of the type that the walk does not know: msgspec's own words are better than none.
            told = wire.invalid_document(error)
            problems.add((*path, *path_of(told.pointer)), told.message)
        return None


def compare(value: object, kind: Any, path: KeyPath, problems: Problems) -> None:
    """Tell every place where a value differs from a type."""
    _walk(value, shape_of(kind), path, problems)


@cache
def shape_of(kind: Any) -> inspect.Type:
    """What msgspec makes of a type; looked up once, since that is slow."""
    return inspect.type_info(kind)


def _walk(value: object, shape: inspect.Type, path: KeyPath, problems: Problems) -> None:
    whole, shape = shape, shape.type if isinstance(shape, inspect.Metadata) else shape
    if isinstance(shape, inspect.UnionType):
        fitting = [option for option in shape.types if _is_of(value, option)]
        tagged = [option for option in fitting if isinstance(option, inspect.StructType) and option.tag_field]
        if tagged and isinstance(value, Mapping):
            _walk_tagged(value, tagged, path, problems)
        elif len(fitting) == 1:
            _walk(value, fitting[0], path, problems)
        elif not fitting:
            _wrong_type(value, shape, path, problems)
        return
    if not _is_of(value, shape):
        _wrong_type(value, shape, path, problems)
    elif isinstance(value, Mapping) and isinstance(shape, inspect.StructType):
        _walk_struct(value, shape, path, problems)
    elif isinstance(value, Mapping) and isinstance(shape, inspect.DictType):
        for key, item in value.items():
            _check_text(key, shape.key_type, (*path, key), problems, "the key")
            _walk(item, shape.value_type, (*path, key), problems)
    elif isinstance(value, list) and isinstance(shape, inspect.ListType):
        for index, item in enumerate(value):
            _walk(item, shape.item_type, (*path, index), problems)
    elif isinstance(shape, inspect.LiteralType):
        if value not in shape.values:
            choices = [str(choice) for choice in shape.values]
            given = quoted(value) if isinstance(value, str) else _given(value)
            hint = suggestion(value, choices) if isinstance(value, str) else None
            problems.add(path, f"{_subject(path)} must be one of {listed(choices)}, not {given}", hint)
    elif isinstance(shape, inspect.IntType | inspect.FloatType) and isinstance(value, int | float):
        _check_range(value, shape, path, problems)
    elif isinstance(value, str):
        _check_text(value, whole, path, problems, _subject(path))


def _walk_struct(value: Mapping[str, object], shape: inspect.StructType, path: KeyPath, problems: Problems) -> None:
    fields = {field.encode_name: field for field in shape.fields}
    missing = [name for name, field in fields.items() if field.required and name not in value]
    if shape.forbid_unknown_fields:
        for key in value:
            if key not in fields and key != shape.tag_field:
                # What is missing was meant before what may be missing, and what is there already not at all.
                near = nearest(key, missing) or key
                hint = meant(near, [name for name in fields if name not in value])
                problems.add((*path, key), f"unknown key {quoted(key)}", hint)
    for name in missing:
        problems.add(path, f"the key `{name}` is missing{_within(path)}")
    for name, field in fields.items():
        if name in value:
            _walk(value[name], field.type, (*path, name), problems)


def _walk_tagged(
    value: Mapping[str, object], options: list[inspect.StructType], path: KeyPath, problems: Problems
) -> None:
    tag_field = options[0].tag_field or ""
    known = {str(option.tag): option for option in options}
    chosen = choose(value, tag_field, known, path, problems)
    if chosen is not None:
        _walk_struct(value, chosen, path, problems)


def choose(
    value: Mapping[str, object], tag_field: str, known: Mapping[str, T], path: KeyPath, problems: Problems
) -> T | None:
    """What a mapping's tag stands for, or None with a problem told."""
    if tag_field not in value:
        problems.add(path, f"the key `{tag_field}` is missing{_within(path)}", f"one of {listed(known)}")
        return None
    tag = value[tag_field]
    if isinstance(tag, str) and tag in known:
        return known[tag]
    if isinstance(tag, str):
        problems.add(
            (*path, tag_field),
            f"unknown {tag_field} {quoted(tag)}",
            suggestion(tag, known) or f"one of {listed(known)}",
        )
    else:
        problems.add((*path, tag_field), f"`{tag_field}` must be text, not {_given(tag)}", f"one of {listed(known)}")
    return None


def _wrong_type(value: object, shape: inspect.Type, path: KeyPath, problems: Problems) -> None:
    hint = None
    if isinstance(value, str) and "${" in value:
        hint = "`${NAME}` can stand only where text is expected"
    problems.add(path, f"{_subject(path)} must be {expected(shape)}, not {_given(value)}", hint)


def _check_range(value: float, shape: inspect.IntType | inspect.FloatType, path: KeyPath, problems: Problems) -> None:
    bounds: list[tuple[float | None, str, Callable[[float], bool]]] = [
        (shape.ge, "at least", lambda bound: value >= bound),
        (shape.gt, "more than", lambda bound: value > bound),
        (shape.le, "at most", lambda bound: value <= bound),
        (shape.lt, "less than", lambda bound: value < bound),
    ]
    for bound, words, holds in bounds:
        if bound is not None and not holds(bound):
            problems.add(path, f"{_subject(path)} must be {words} {bound:g}, not {value}")
            return


def _check_text(text: str, shape: inspect.Type, path: KeyPath, problems: Problems, subject: str) -> None:
    wanted = None
    if isinstance(shape, inspect.Metadata):
        wanted = (shape.extra_json_schema or {}).get("description")
        shape = shape.type
    if not isinstance(shape, inspect.StrType):
        return
    if shape.min_length and len(text) < shape.min_length:
        problems.add(path, f"{subject} must not be empty")
    elif shape.max_length and len(text) > shape.max_length:
        problems.add(path, f"{subject} must not be longer than {shape.max_length} characters")
    elif shape.pattern and re.search(shape.pattern, text) is None:
        problems.add(path, f"{subject} must be {wanted or f'text that matches `{shape.pattern}`'}")


def _is_of(value: object, shape: inspect.Type) -> bool:
    if isinstance(shape, inspect.Metadata):
        return _is_of(value, shape.type)
    if isinstance(shape, inspect.UnionType):
        return any(_is_of(value, option) for option in shape.types)
    if isinstance(shape, inspect.LiteralType):
        return any(type(value) is type(choice) for choice in shape.values)
    if isinstance(shape, inspect.FloatType):
        return type(value) in (int, float)
    for kind, types in _TYPES.items():
        if isinstance(shape, kind):
            return isinstance(value, types) and (type(value) is not bool or kind is inspect.BoolType)
    return True


def expected(shape: inspect.Type) -> str:
    """What a type asks for, in words."""
    if isinstance(shape, inspect.Metadata):
        return expected(shape.type)
    if isinstance(shape, inspect.UnionType):
        options = [expected(option) for option in shape.types if not isinstance(option, inspect.NoneType)]
        return " or ".join(dict.fromkeys(options))
    if isinstance(shape, inspect.LiteralType):
        return f"one of {listed(shape.values)}"
    return next((words for kind, words in _WORDS.items() if isinstance(shape, kind)), "something else")


def _given(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    for types, words in _GIVEN.items():
        if isinstance(value, types):
            return words
    return f"something of type `{type(value).__name__}`"


def _subject(path: KeyPath) -> str:
    for position in range(len(path) - 1, -1, -1):
        part = path[position]
        if isinstance(part, str):
            nested = path[position + 1 :]
            return quoted(part) if not nested else f"item {int(nested[0]) + 1} of {quoted(part)}"
    return "this" if not path else f"item {int(path[0]) + 1}"


def _within(path: KeyPath) -> str:
    return f" in {_subject(path)}" if path else ""


_TYPES: dict[type[inspect.Type], type | tuple[type, ...]] = {
    inspect.StrType: str,
    inspect.BoolType: bool,
    inspect.IntType: int,
    inspect.NoneType: type(None),
    inspect.ListType: list,
    inspect.DictType: Mapping,
    inspect.StructType: Mapping,
}
_WORDS: dict[type[inspect.Type], str] = {
    inspect.AnyType: "any value",
    inspect.StrType: "text",
    inspect.BoolType: "`true` or `false`",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.NoneType: "empty",
    inspect.ListType: "a list",
    inspect.DictType: "a mapping",
    inspect.StructType: "a mapping",
}
_GIVEN: dict[type | tuple[type, ...], str] = {
    type(None): "empty",
    str: "text",
    int: "a whole number",
    float: "a decimal number",
    list: "a list",
    Mapping: "a mapping",
}
