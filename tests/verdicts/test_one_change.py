"""One change to a record hides no call (`verdicts.md` 1): where its name still stands, it is a step, or the calls are
not complete. Every change of one key or value, in every shape in which messages are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from seatrial import SeatrialError, formats
from seatrial.trajectory import extract
from verdicts.corpus import DELETE, FIND
from verdicts.shapes import LISTS, Json

_OTHERS: tuple[Any, ...] = (None, "x", [], 7)
_KEYS = ("metadata", "annotations", "data", "Input")


@pytest.mark.parametrize("shape", LISTS)
def test_a_call_is_seen_or_in_doubt_whatever_is_changed_beside_it(shape: str) -> None:
    record = LISTS[shape]([FIND, DELETE])
    changed = 0
    for index, item in enumerate(record):
        for path in _paths(item):
            for other in _changed(item, path):
                if DELETE.name in (written := json.dumps([*record[:index], *other, *record[index + 1 :]])):
                    changed += 1
                    assert _is_seen_or_in_doubt(written.encode()), written
    assert changed > 100


def _is_seen_or_in_doubt(record: bytes) -> bool:
    try:
        found = extract(formats.read(record))
    except SeatrialError:
        return True  # nothing is judged by it
    return found.completeness.level != "complete" or any(step.name == DELETE.name for step in found.steps)


def _paths(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    for key, inside in value.items() if type(value) is dict else enumerate(value) if type(value) is list else ():
        yield (*at, key)
        yield from _paths(inside, (*at, key))


def _changed(item: Json, path: tuple[str | int, ...]) -> Iterator[list[Any]]:
    """The item with what stands at a path left out, replaced, wrapped, encoded, under another key or there twice."""
    *before, key = path
    written = json.dumps(item)

    def copied() -> tuple[Json, Any]:
        copy = inner = json.loads(written)
        for part in before:
            inner = inner[part]
        return copy, inner

    for other in _OTHERS:
        copy, inner = copied()
        inner[key] = other
        yield [copy]
    copy, inner = copied()
    inner[key] = [inner[key]]
    yield [copy]
    copy, inner = copied()
    inner[key] = json.dumps(inner[key])
    yield [copy]
    copy, inner = copied()
    if type(inner) is list:
        inner.insert(int(key), inner[int(key)])
        yield [copy]
    else:
        for name in _KEYS:
            copy, inner = copied()
            inner[name] = inner.pop(key)
            yield [copy]
            copy, inner = copied()
            inner[key] = {name: inner[key]}
            yield [copy]
    copy, inner = copied()
    del inner[key]
    yield [copy]
    yield [copy, item]
