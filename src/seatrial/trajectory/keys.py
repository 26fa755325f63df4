"""Keys: bytes that are equal exactly when two JSON values are.

`1 == 1.0`, `true != 1`, the order of keys does not matter. What JSON has no number for (NaN, infinities) counts as
null, which is how encoders write it. A value that is no JSON at all equals nothing, itself included.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

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


def call_keys(steps: list[Step]) -> list[bytes]:
    """For each step a key of its name and arguments; arguments that are not JSON are compared as text."""
    return keys(
        [
            [step.name, step.arguments] if step.arguments_text is None else [step.name, None, step.arguments_text]
            for step in steps
        ]
    )


def _has_integral_float(written: bytes) -> bool:
    if b".0" in written and _POINT_ZERO.search(written):
        return True
    written = written.translate(_DIGITS_TO_ZERO)
    return b"0e0" in written and _EXPONENT.search(written) is not None


def _careful(value: Any, side: bytes, index: int) -> bytes:
    try:
        value = _normal(value)
        try:
            return _ENCODER.encode(value)
        except UnicodeEncodeError:
            import json  # msgspec writes no lone surrogates, this escapes them

            return b"!" + json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except (TypeError, ValueError, OverflowError, RecursionError):
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
