"""Keys that occur twice in one object of a JSON text. Decoders take the last one, and say nothing of the others."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from seatrial._support.nesting import is_too_deep

TWICE = "occurs twice in one object"


def repeated_keys(data: bytes | str) -> list[str] | None:
    """The keys that occur twice in one object, in order, each once; None when this is not JSON, or nested too deeply.

    What is repaired when it is decoded (a byte order mark, bytes that are not UTF-8) is no reason not to look.
    """
    if is_too_deep(data):
        return None
    try:
        if not may_repeat_keys(data, _decode(data)):
            return []  # as almost always
    except (msgspec.DecodeError, UnicodeError):
        pass  # some of what cannot be decoded is repaired
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    repeated: dict[str, None] = {}

    def look(members: list[tuple[str, Any]]) -> None:
        if len(members) > 1 and len(members) != len({key for key, _ in members}):
            seen: set[str] = set()
            for key, _ in members:
                if key in seen:
                    repeated[key] = None
                seen.add(key)

    try:
        # Numbers stay text: Python refuses very long ones.
        json.loads(text.removeprefix("\ufeff"), object_pairs_hook=look, parse_int=str, parse_float=str, strict=False)
    except ValueError:
        return None
    return list(repeated)


def may_repeat_keys(data: bytes | str, value: Any) -> bool:
    """Whether a JSON text has more colons than its decoded value has once it is written again; a far cheaper question
    than the above. A member that was lost had one, and those inside texts are the same in both, unless escaped."""
    colons = data.count(":") if isinstance(data, str) else data.count(b":")
    if type(value) is dict and colons == len(value):
        return False  # a flat object with no colon in a text, as most arguments are
    escaped = "\\u003" in data if isinstance(data, str) else b"\\u003" in data
    return escaped or colons != _encode(value).count(b":")


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
