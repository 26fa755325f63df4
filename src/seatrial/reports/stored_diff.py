"""Two stored runs aligned call by call, without having either of them in memory.

What is compared is what `seatrial diff` compares, by the same functions: this reads the steps in ranges, keeps a few
bytes of each, and gives rows of which any hundred can be shown.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from hashlib import blake2b
from math import isnan, nan
from threading import Lock
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec

from seatrial._support import wire
from seatrial.reports.run_diff import FirstDivergence
from seatrial.store import RunRecord, Store, StoredStep
from seatrial.trajectory.comparison import Parting, align
from seatrial.trajectory.completeness import known_calls
from seatrial.trajectory.step import Step, duration
from seatrial.trajectory.values import call_keys

STEPS_AT_ONCE = 1000
KEPT_FROM = 2000
"""Rows from which on an alignment is kept for the next page."""
MAX_KEPT = 16
NONE = -1
"""In place of a step that a run does not have."""

RowKind = Literal["equal", "result", "differs", "only_a", "only_b"]
"""`result`: equal calls that ended otherwise. `differs`: calls of the same tool with other arguments."""
_KINDS: tuple[RowKind, ...] = ("equal", "result", "differs", "only_a", "only_b")
EQUAL, RESULT, DIFFERS, ONLY_A, ONLY_B = range(len(_KINDS))


class AlignedRows(msgspec.Struct, frozen=True):
    """The calls of two runs in rows, in the order in which `seatrial diff` lists them."""

    a: array[int]
    b: array[int]
    """The steps of each row; `NONE` where a run has none."""
    kinds: bytearray
    names: list[str]
    """The tool of each row."""
    slower: array[float]
    """How much longer each step took in b, in milliseconds; not a number where that is not known."""
    first_divergence: Parting | None
    whole: bool
    """False when the runs were too long to be aligned in one piece."""

    def __len__(self) -> int:
        return len(self.kinds)

    def kind(self, row: int) -> RowKind:
        """What a row is."""
        return _KINDS[self.kinds[row]]

    def is_equal(self, row: int) -> bool:
        """Whether both runs make the same call, whatever came of it."""
        return self.kinds[row] <= RESULT

    def row_of(self, side: Literal["a", "b"], step: int) -> int | None:
        """The row of a step."""
        steps = self.a if side == "a" else self.b
        return steps.index(step) if step >= 0 and step in steps else None

    def stretches(self) -> Iterator[tuple[int, int]]:
        """The rows in order as (first row, how many): rows of equal calls that follow each other together, others
        alone."""
        at = 0
        while at < len(self):
            end = at + 1
            while self.is_equal(at) and end < len(self) and self.is_equal(end):
                end += 1
            yield at, end - at
            at = end

    def slower_in(self, first: int, count: int) -> float | None:
        """How much longer b took for some rows, where it is known of all of them."""
        total = sum(self.slower[first : first + count])
        return None if isnan(total) else total


class _Calls(msgspec.Struct):
    """What is kept of the steps of a run while they are aligned."""

    keys: list[bytes] = []
    names: list[str] = []
    results: list[bytes] = []
    took: array[float] = msgspec.field(default_factory=lambda: array("d"))


_Key = tuple[tuple[object, ...], ...]
_kept: WeakKeyDictionary[Store, dict[_Key, AlignedRows]] = WeakKeyDictionary()
_lock = Lock()


def aligned_rows(store: Store, a: RunRecord, b: RunRecord) -> AlignedRows:
    """Align the calls of two stored runs."""
    key = (_identity(a), _identity(b))
    with _lock:
        if (known := _kept.get(store, {}).get(key)) is not None:
            return known
    found = _aligned(_read(store, a.summary.run_id, b"a"), _read(store, b.summary.run_id, b"b"))
    if len(found) >= KEPT_FROM and None not in (a.summary.duration_ms, b.summary.duration_ms):
        with _lock:
            kept = _kept.setdefault(store, {})
            kept[key] = found
            while len(kept) > MAX_KEPT:
                del kept[next(iter(kept))]
    return found


def divergence_of(store: Store, a: RunRecord, b: RunRecord, rows: AlignedRows) -> FirstDivergence:
    """Where two aligned runs first differ."""
    first = rows.first_divergence
    return FirstDivergence(
        first=first,
        calls=sum(step != NONE for step in rows.a),
        step_a=None if first is None else _step(store, a.summary.run_id, first.a),
        step_b=None if first is None else _step(store, b.summary.run_id, first.b),
        all_known_a=knows_all_calls(a),
        all_known_b=knows_all_calls(b),
    )


def knows_all_calls(record: RunRecord) -> bool:
    """Whether all calls of a run are known."""
    return record.completeness is not None and known_calls(record.completeness).level == "complete"


def _step(store: Store, run_id: str, index: int | None) -> Step | None:
    found = [] if index is None else store.steps(run_id, index, 1, whole_arguments=True)
    return found[0].step if found else None


def _identity(record: RunRecord) -> tuple[object, ...]:
    # A run that is done anew may come back under the same id.
    summary = record.summary
    return summary.run_id, summary.started_at, summary.duration_ms, summary.steps, summary.status


def _read(store: Store, run_id: str, side: bytes) -> _Calls:
    found = _Calls()
    names: dict[str, str] = {}
    while some := store.steps(run_id, len(found.names), STEPS_AT_ONCE, whole_arguments=True):
        steps = [each.step for each in some]
        # Of a key that no other call has, the place is part: it must be another one in each range.
        place = side + str(len(found.names)).encode()
        found.keys += [blake2b(key, digest_size=16).digest() for key in call_keys(steps, place)]
        found.names += [names.setdefault(step.name, step.name) for step in steps]
        found.results += map(_result_key, some)
        for step in steps:
            took = duration(step)
            found.took.append(nan if took is None else took)
    return found


def _result_key(found: StoredStep) -> bytes:
    """What came of a call: equal for equal results."""
    step = found.step
    # What is long has its place taken by its address.
    long = [(text.pointer, text.address) for text in found.long_texts]
    result = None if step.result is msgspec.UNSET else step.result
    return blake2b(wire.encode([step.status, step.error, result, long]), digest_size=8).digest()


def _aligned(one: _Calls, other: _Calls) -> AlignedRows:
    found = align(one.keys, other.keys, one.names, other.names)
    a, b, kinds, names, slower = array("l"), array("l"), bytearray(), list[str](), array("d")

    def add(step_a: int, step_b: int, kind: int) -> None:
        a.append(step_a)
        b.append(step_b)
        kinds.append(kind)
        names.append(one.names[step_a] if step_a != NONE else other.names[step_b])
        slower.append(nan if NONE in (step_a, step_b) else other.took[step_b] - one.took[step_a])

    at_a = at_b = 0
    for step_a, step_b in [*zip(found.a, found.b, strict=True), (len(one.names), len(other.names))]:
        for index in range(at_a, step_a):
            add(index, NONE, ONLY_A)
        for index in range(at_b, step_b):
            add(NONE, index, ONLY_B)
        if step_a < len(one.names):
            same = one.keys[step_a] == other.keys[step_b]
            ended_alike = same and one.results[step_a] == other.results[step_b]
            add(step_a, step_b, EQUAL if ended_alike else RESULT if same else DIFFERS)
        at_a, at_b = step_a + 1, step_b + 1
    return AlignedRows(a, b, kinds, names, slower, found.first_divergence, found.whole)
