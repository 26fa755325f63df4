"""The output of a streamed response: the items that began, those that were done, and the list that ends the stream.

An item stands in several events. What was done is never lost because the last event leaves it out, and what began and
never turns up again is noted, since it may have been a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from seatrial import wire

_WITHOUT_CALL: Final = frozenset({"message", "reasoning"})
_CALL_EVENT: Final = re.compile(
    r"response\.((?:function|custom_tool|mcp|code_interpreter|web_search|file_search|image_generation|local_shell|shell"
    r"|apply_patch|computer|tool_search)_call)(?:_[a-z_]+)?\.[a-z_]+"
)
_OTHER_EVENT: Final = re.compile(
    r"response\.(?:in_progress|queued|content_part\.(?:added|done)|output_text\.annotation\.added"
    r"|(?:output_text|refusal|reasoning|reasoning_text|reasoning_summary|reasoning_summary_text|audio|audio\.transcript)"
    r"\.(?:delta|done)|reasoning_summary_part\.(?:added|done)|mcp_list_tools\.[a-z_]+)"
)


def call_of_event(kind: str) -> str | None:
    """The type of the call whose progress events of this type tell."""
    found = _CALL_EVENT.fullmatch(kind)
    return None if found is None else found[1]


def tells_no_call(kind: str) -> bool:
    """Whether events of this type carry pieces of text, or report that the response is in progress."""
    return _OTHER_EVENT.fullmatch(kind) is not None


class Begun(msgspec.Struct, frozen=True):
    """What an event says of an item that is not done yet."""

    type: str | None
    name: str | None = None
    index: int | None = None
    id: str | None = None


class ResponseOutput:
    """Collects the items of one response."""

    def __init__(self) -> None:
        self._begun: dict[Begun, None] = {}
        self._done: list[tuple[int | None, Any]] = []

    def begin(self, item: Any, index: int | None) -> None:
        """An item was added to the output, or a call is under way."""
        given = item if type(item) is dict else {}
        self._begun[Begun(_text(given, "type"), _text(given, "name"), index, _text(given, "id"))] = None

    def finish(self, item: Any, index: int | None) -> None:
        """An item was done."""
        self._done.append((index, item))

    def whole(self, output: Any) -> tuple[Any, list[Begun]]:
        """The output as the last event gives it with all that was done, and what had begun and is not among it."""
        if not self._done and not self._begun:
            return output, []
        items = list(output) if type(output) is list else []
        missing = self._missing(items)
        items_at = {index: item for index, item in self._done if index is not None}
        # In the order of their places; what has none comes last.
        first = 0
        for index, item in sorted(missing, key=lambda pair: (pair[0] is None, pair[0] or 0)):
            place = len(items) if index is None else min(max(index, first), len(items))
            items.insert(place, item)
            first = place + 1
        ids = {found for item in items for found in _ids(item)}
        types = {_text(item, "type") for item in items if type(item) is dict}
        lost = []
        for begun in self._begun:
            if begun.id is not None and begun.id in ids:
                continue
            if begun.index is not None:
                places = [items_at.get(begun.index), items[begun.index] if 0 <= begun.index < len(items) else None]
                if any(_may_be(begun, item) for item in places):
                    continue
            elif begun.id is None and begun.type in types:
                continue
            lost.append(begun)
        return items, lost

    def _missing(self, items: list[Any]) -> list[tuple[int | None, Any]]:
        """What was done and is not in the list: the same id or the same words are the same item."""
        places: dict[tuple[str, ...], list[int]] = {}
        for place, item in enumerate(items):
            for key in _keys(item):
                places.setdefault(key, []).append(place)
        taken: set[int] = set()
        left = self._done
        for rank in ("id", "words"):
            unmatched = []
            for index, item in left:
                free = (at for key in _keys(item) if key[0] == rank for at in _free(places.get(key, []), taken))
                if (found := next(free, None)) is None:
                    unmatched.append((index, item))
                else:
                    taken.add(found)
            left = unmatched
        # An item that was done twice is one; words that the last event has otherwise are in it as they should be.
        missing: dict[tuple[str, ...] | int, tuple[int | None, Any]] = {}
        known = {key for place in taken for key in _keys(items[place]) if key[0] == "id"}
        for index, item in left:
            keys = [key for key in _keys(item) if key[0] == "id"]
            if any(key in known for key in keys):
                continue
            if index is not None and 0 <= index < len(items) and index not in taken and _same_kind(items[index], item):
                continue
            missing[keys[0] if keys else len(missing)] = (index, item)
        return list(missing.values())


def _keys(item: Any) -> Iterator[tuple[str, ...]]:
    if type(item) is not dict:
        yield ("words", wire.encode(item).decode())
        return
    kind, name = _text(item, "type") or "", _text(item, "name") or ""
    for found in _ids(item):
        yield ("id", kind, name, found)
    words = {key: what for key, what in item.items() if key not in ("id", "call_id", "status")}
    yield ("words", wire.encode(words).decode())


def _ids(item: Any) -> list[str]:
    given = item if type(item) is dict else {}
    return [found for key in ("id", "call_id") if (found := _text(given, key)) is not None]


def _free(places: list[int], taken: set[int]) -> Iterator[int]:
    while places and places[0] in taken:
        places.pop(0)
    yield from places[:1]


def _same_kind(item: Any, other: Any) -> bool:
    if type(item) is not dict or type(other) is not dict:
        return False
    kind = _text(item, "type")
    return kind in _WITHOUT_CALL and kind == _text(other, "type")


def _may_be(begun: Begun, item: Any) -> bool:
    if type(item) is not dict or begun.type not in (None, item.get("type")):
        return False
    return begun.name in (None, item.get("name"))


def _text(given: dict[str, Any], key: str) -> str | None:
    found = given.get(key)
    return found if type(found) is str and found else None
