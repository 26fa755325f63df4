"""How deeply JSON may be nested: one limit, the same on every version of Python.

The interpreter has limits of its own, which differ between versions and depend on the caller's stack. Everything here
is well below them, and is found out from the bytes before they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final

import msgspec

MAX_DEPTH: Final = 200
"""Levels of objects and arrays in anything that is read."""
MAX_WRITTEN_DEPTH: Final = MAX_DEPTH + 50
"""The same for what Seatrial writes, and reads again: it puts what it has read into lists, envelopes and verdicts."""

_CONTAINERS: Final = (dict, list, tuple)
_SLICE: Final = 64 * 1024
# Each round takes the innermost objects and arrays away; few documents need more.
_ROUNDS: Final = 8
_SIGNS: Final = b'"[]{}'
_OTHERS: Final = bytes(sign for sign in range(256) if sign not in _SIGNS)
_AS_ARRAYS: Final = bytes.maketrans(b"{}", b"[]")
_STEP: Final = {ord("["): 1, ord("]"): -1}
_RAW: Final = msgspec.json.Decoder(msgspec.Raw)
_TRUNCATED: Final = "Input data was truncated"
"""What msgspec says of JSON that ends too early."""


def is_too_deep(data: bytes | str, limit: int = MAX_DEPTH) -> bool:
    """Whether this is JSON, or begins as JSON, that is nested more deeply than the limit.

    Text that is not JSON is never too deep, however many brackets there are in it.
    """
    if len(data) <= limit:
        return False
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    elif type(data) is not bytes:
        data = bytes(data)
    # Slice by slice, and no further than needed: no other thread runs during a call. Where there are few of them,
    # `replace` is three times as fast as `count`, which looks at one byte after the other.
    opened = 0
    for start in range(0, len(data), _SLICE):
        piece = data[start : start + _SLICE]
        opened += 2 * len(piece) - len(piece.replace(b"{", b"")) - len(piece.replace(b"[", b""))
        if opened > limit:
            break
    else:
        return False
    end = _first_beyond(data, limit)
    return end is not None and _is_beginning_of_json(data[:end])


def is_value_too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """The same for a value of dicts, lists and tuples."""
    # Level by level, and each container once: what is in a value many times need not be looked at as often.
    level = {id(value): value} if isinstance(value, _CONTAINERS) else {}
    for _ in range(limit):
        level = {
            id(inner): inner
            for item in level.values()
            for inner in (item.values() if isinstance(item, dict) else item)
            if isinstance(inner, _CONTAINERS)
        }
        if not level:
            return False
    return bool(level)


def _first_beyond(data: bytes, limit: int) -> int | None:
    """Where a bracket goes beyond the limit, as far as the bytes are JSON; the position after it."""
    depth = 0
    in_string = in_escape = False
    for start in range(0, len(data), _SLICE):
        piece = data[start : start + _SLICE]
        outline, ends_in_string, ends_in_escape = _outline(piece, in_string, in_escape)
        if depth + _greatest_depth(outline) > limit and depth + max(_depths(outline)) > limit:
            return start + _position(piece, depth, limit, in_string, in_escape)
        depth += 2 * outline.count(b"[") - len(outline)
        in_string, in_escape = ends_in_string, ends_in_escape
    return None


def _outline(piece: bytes, in_string: bool, in_escape: bool) -> tuple[bytes, bool, bool]:
    """The brackets that are not inside strings, and whether the piece ends inside a string, or an escape in one."""
    if in_escape:
        piece = piece[1:]
    ends_in_escape = False
    if b"\\" in piece:
        piece = piece.replace(rb"\\", b"").replace(rb"\"", b"")
        ends_in_escape = piece.endswith(b"\\")
    parts = piece.translate(_AS_ARRAYS, _OTHERS).split(b'"')
    return b"".join(parts[in_string::2]), in_string ^ (len(parts) % 2 == 0), ends_in_escape


def _greatest_depth(outline: bytes) -> int:
    """A bound on how deep the brackets go, found in a fraction of the time that looking at each of them takes."""
    rounds = 0
    while rounds < _ROUNDS and len(shorter := outline.replace(b"[]", b"")) < len(outline):
        outline = shorter
        rounds += 1
    return rounds + max(_depths(outline))


def _depths(outline: bytes) -> Iterable[int]:
    return accumulate(map(_STEP.__getitem__, outline), initial=0)


def _position(piece: bytes, depth: int, limit: int, in_string: bool, in_escape: bool) -> int:
    for place, sign in enumerate(piece):
        if in_escape:
            in_escape = False
        elif in_string:
            in_string = sign != 0x22  # a quotation mark
            in_escape = sign == 0x5C  # a backslash
        elif sign == 0x22:
            in_string = True
        elif sign in b"[{":
            depth += 1
            if depth > limit:
                return place + 1
        elif sign in b"]}":
            depth -= 1
    return len(piece)


def _is_beginning_of_json(data: bytes) -> bool:
    try:
        _RAW.decode(data)
    except msgspec.DecodeError as error:
        return str(error) == _TRUNCATED
    return True
