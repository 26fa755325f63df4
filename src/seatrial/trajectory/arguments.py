"""How a value that was expected and the one that came compare, and where they differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from seatrial.nesting import MAX_WRITTEN_DEPTH
from seatrial.trajectory.keys import same
from seatrial.transcript.note import pointer

Path = tuple[str | int, ...]

ArgsMatch = Literal["exact", "superset", "subset", "ignore"]
"""`superset`: the call has at least the expected keys, in every object. `subset`: it has no key beyond them.
In both, arrays have the same length and are compared item by item."""


_SCALARS = frozenset({str, int, bool, type(None)})
# Python refuses to read numbers of thousands of digits, and no array is that long.
_INDEX = re.compile(r"[0-9]{1,12}")


class TooDeepError(Exception):
    """Two values are nested too deeply to be compared."""


class Matcher(msgspec.Struct, frozen=True):
    """Stands in the place of an expected value and says itself what fits (see `matchers`)."""

    given: Any
    """As the configuration has it, for reports."""
    test: Callable[[Any], bool]


class Difference(msgspec.Struct, omit_defaults=True):
    """One place where a step is not as expected. A side that has nothing there is left out."""

    pointer: str
    """JSON pointer into the step: `/arguments/query`, `/status`."""
    expected: Any = UNSET
    actual: Any = UNSET


def differences(expected: Any, actual: Any, how: ArgsMatch = "exact", at: Path = ()) -> Iterator[Difference]:
    """Where the values differ, in the order of the expected one; nothing when they fit.

    Raises `TooDeepError` where both are nested too deeply.
    """
    if len(at) > MAX_WRITTEN_DEPTH:
        raise TooDeepError
    if type(expected) is Matcher:
        if not expected.test(actual):
            yield Difference(pointer(*at), expected.given, actual)
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for name, item in expected.items():
            if name in actual:
                found = actual[name]
                # Most values are equal scalars; these need no closer look.
                if type(item) is not type(found) or type(item) not in _SCALARS or item != found:
                    yield from differences(item, found, how, (*at, name))
            elif how != "subset":
                yield Difference(pointer(*at, name), as_given(item))
        if how != "superset" and not actual.keys() <= expected.keys():
            for name, item in actual.items():
                if name not in expected:
                    yield Difference(pointer(*at, name), UNSET, item)
    elif isinstance(expected, list) and isinstance(actual, list):
        for index in range(max(len(expected), len(actual))):
            if index >= len(actual):
                yield Difference(pointer(*at, index), as_given(expected[index]))
            elif index >= len(expected):
                yield Difference(pointer(*at, index), UNSET, actual[index])
            else:
                yield from differences(expected[index], actual[index], how, (*at, index))
    elif not same(expected, actual):
        yield Difference(pointer(*at), as_given(expected), actual)


def differences_at(paths: list[Path], expected: Any, actual: Any, at: Path = ()) -> Iterator[Difference]:
    """The same for these paths alone. One that is missing on both sides is no difference."""
    for path in paths:
        wanted, found = value_at(expected, path), value_at(actual, path)
        if wanted is UNSET or found is UNSET:
            if wanted is not found:
                yield Difference(pointer(*at, *path), as_given(wanted), found)
        else:
            yield from differences(wanted, found, "exact", (*at, *path))


def value_at(value: Any, path: Path) -> Any:
    """The value at a path of keys and array indices, UNSET when there is none."""
    for part in path:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(str(part)) and int(part) < len(value):
            value = value[int(part)]
        else:
            return UNSET
    return value


def as_given(value: Any) -> Any:
    """An expected value as its configuration had it, matchers included."""
    if type(value) is Matcher:
        return value.given
    if type(value) is dict:
        return {name: as_given(item) for name, item in value.items()}
    if type(value) is list:
        return [as_given(item) for item in value]
    return value
