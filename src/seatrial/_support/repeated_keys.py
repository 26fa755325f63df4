"""Keys that occur twice in one object of a JSON text. Decoders take the last one, and say nothing of the others."""

from __future__ import annotations

import json
from typing import Any

from seatrial._support.nesting import is_too_deep

TWICE = "occurs twice in one object"


def repeated_keys(data: bytes | str) -> list[str] | None:
    """The keys that occur twice in one object, in order, each once; None when this is not JSON, or nested too deeply.

    What is repaired when it is decoded (a byte order mark, bytes that are not UTF-8) is no reason not to look.
    """
    if is_too_deep(data):
        return None
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
    """Whether a JSON text has more colons than its decoded value has keys; a far cheaper question than the above."""
    surplus = data.count(b":") if isinstance(data, bytes) else data.count(":")
    nested: list[Any] = [value]
    while surplus > 0 and nested:
        found = nested.pop()
        if type(found) is dict:
            surplus -= len(found)
            nested += found.values()
        elif type(found) is list:
            nested += found
    return surplus != 0
