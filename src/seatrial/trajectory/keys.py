"""Keys: bytes that are equal exactly when two JSON values are.

`1 == 1.0`, `true != 1`, the order of keys does not matter. What JSON has no number for (NaN, infinities) counts as
null, which is how encoders write it. A value that is no JSON at all equals nothing, itself included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from seatrial.nesting import MAX_WRITTEN_DEPTH, is_too_deep, is_value_too_deep
from seatrial.trajectory.step import Step

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


def keys_of_normal(values: Iterable[Any]) -> list[bytes]:
    """The same, quicker, for values of `decode_normal`: in those no float is an integer, and none is too deep."""
    lines = _ENCODER.encode_lines(values).split(b"\n")
    lines.pop()
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


def _normal_number(text: str) -> int | float:
    number = float(text)
    if number - number != 0:
        raise ValueError("Number out of range")
    return int(number) if number.is_integer() else number


decode_normal = msgspec.json.Decoder(float_hook=_normal_number).decode
"""Decodes JSON text; a number that is an integer becomes one, however it is written."""


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
