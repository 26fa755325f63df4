"""JSON values: when two are equal, and where an expected one and an actual one differ.

A key is bytes that are equal exactly when two values are. `1 == 1.0`, `true != 1`, the order of keys does not matter.
What JSON has no number for (NaN, infinities) counts as null, which is how encoders write it. A value that is not JSON
at all equals nothing, itself included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from seatrial._support.nesting import MAX_WRITTEN_DEPTH, is_too_deep, is_value_too_deep
from seatrial.trajectory.step import Step
from seatrial.transcript.note import pointer

Path = tuple[str | int, ...]
ArgsMatch = Literal["exact", "superset", "subset", "ignore"]
"""`superset`: the call has at least the expected keys, in every object. `subset`: it has no key beyond them.
In both, arrays have the same length and are compared item by item."""
_SCALARS = frozenset({str, int, bool, type(None)})
# Python refuses to read numbers of thousands of digits, and no array is that long.
_INDEX = re.compile(r"[0-9]{1,12}")
_ENCODER = msgspec.json.Encoder(order="sorted")
# The encoder writes integers and fractions in one way each. Only a float that is an integer has two spellings, and
# it ends in `.0` or in an exponent without a sign. Text that looks so costs a second look, nothing else.
_POINT_ZERO = re.compile(rb"\.0[,}\]\n]")
# With all digits turned into zeros the pattern starts with fixed text, which is found several times as fast.
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_EXPONENT = re.compile(rb"0e0+[,}\]\n]")


def keys(values: list[Any], side: bytes = b"") -> list[bytes]:
    """The key of each value. Values that are no JSON get keys that no other value has, on another side neither."""
    try:
        written = _ENCODER.encode_lines(values)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return [_careful(value, side, index) for index, value in enumerate(values)]
    if len(written) > MAX_WRITTEN_DEPTH and is_too_deep(written, MAX_WRITTEN_DEPTH):
        return [_careful(value, side, index) for index, value in enumerate(values)]
    lines = written.split(b"\n")
    lines.pop()
    if _has_integral_float(written):
        for index, line in enumerate(lines):
            if _has_integral_float(line + b"\n"):
                lines[index] = _careful(values[index], side, index)
    return lines


def key(value: Any, side: bytes = b"") -> bytes:
    """The key of one value."""
    return keys([value], side)[0]


def same(one: Any, other: Any) -> bool:
    """Whether two scalars are the same JSON value."""
    return _scalar(one) == _scalar(other) and (type(one) is bool) == (type(other) is bool)


def call_keys(steps: list[Step], side: bytes = b"") -> list[bytes]:
    """For each step a key of its name and arguments; arguments that are not JSON are compared as text."""
    values = [
        [step.name, step.arguments] if step.arguments_text is None else [step.name, None, step.arguments_text]
        for step in steps
    ]
    return keys(values, side)


def _has_integral_float(written: bytes) -> bool:
    # Not `in`, which first asks whether the bytes are a number, and takes its time over the answer.
    if written.find(b".0") >= 0 and _POINT_ZERO.search(written):
        return True
    written = written.translate(_DIGITS_TO_ZERO)
    return written.find(b"0e0") >= 0 and _EXPONENT.search(written) is not None


def _careful(value: Any, side: bytes, index: int) -> bytes:
    try:
        if is_value_too_deep(value, MAX_WRITTEN_DEPTH):
            raise ValueError("nested too deeply")
        value = _normal(value)
        try:
            return _ENCODER.encode(value)
        except UnicodeEncodeError:
            import json  # msgspec writes no lone surrogates, this escapes them

            return b"!" + json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError, OverflowError):
        return b"?%b%d" % (side, index)


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _normal(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if type(value) is not float:
        return value
    if value - value != 0:
        return None
    return int(value) if value.is_integer() else value


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
