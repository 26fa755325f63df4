"""Two states side by side: where one is not as the other.

RowTree whose ids the world made up are matched by what is in them, not by name, so another order of creation is no
difference. What remains is data: a place, what was expected there, and what there is.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import UNSET

from seatrial.ledger.conditions import Fit, compile_fit
from seatrial.ledger.expressions import RowScope
from seatrial.ledger.ledger import Ledger, open_flags
from seatrial.ledger.predicates import Looking
from seatrial.ledger.rows import Row, RowTree, differing, digest
from seatrial.trajectory.config import Path, as_written, is_number, short
from seatrial.trajectory.values import key

Place = tuple[str, str]
"""Entity type and id."""


class StateDifference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place where a state is not as expected. A side that has nothing there is left out."""

    type: str | None = None
    id: str | None = None
    field: str | None = None
    """None: the whole row."""
    flag: str | None = None
    expected: Any = UNSET
    actual: Any = UNSET

    @property
    def text(self) -> str:
        """The difference in words."""
        if self.flag is not None:
            return (
                f"flag {self.flag} is set, expected not" if self.actual else f"flag {self.flag} is not set, expected it"
            )
        what = f"{self.type} {self.id}"
        if self.field is None:
            return f"{what} is one too many" if self.expected is UNSET else f"{what} is missing"
        if self.expected is UNSET:
            return f"{what}: {self.field} is {_shown(self.actual)}, expected not to be there"
        if self.actual is UNSET:
            return f"{what}: {self.field} is not there, expected {_shown(self.expected)}"
        return f"{what}: {self.field} is {_shown(self.actual)}, expected {_shown(self.expected)}"


class StateMatch(msgspec.Struct, frozen=True):
    """How two states compare."""

    differences: list[StateDifference]
    changed: int
    """Fields that either side changed."""
    differing: int
    """Fields that differ."""

    @property
    def score(self) -> float:
        """The share of changed fields that are as expected."""
        if not self.differing:
            return 1.0
        return max(0.0, 1 - self.differing / max(self.changed, self.differing))


class Tolerances(msgspec.Struct, frozen=True):
    """Which differences do not count. A glob covers places such as `order/o-1.status`."""

    ignore: tuple[str, ...] = ()
    absolute: float = 0.0
    """How far two numbers may be apart."""
    match: Mapping[str, Fit] = {}
    """What fields that may be worded freely have to fit instead."""

    @classmethod
    def of(
        cls, ignore: Iterable[str] = (), absolute: float = 0.0, match: Mapping[str, Any] | None = None, at: Path = ()
    ) -> Tolerances:
        """From a configuration."""
        fits = {glob: compile_fit(wanted, (*at, glob)) for glob, wanted in (match or {}).items()}
        return cls(tuple(ignore), absolute, fits)

    def ignores(self, place: str) -> bool:
        """Whether nothing is compared at a place."""
        return any(fnmatchcase(place, glob) for glob in self.ignore)

    def fit(self, place: str) -> Fit | None:
        """What a field has to fit instead of being equal."""
        return next((fit for glob, fit in self.match.items() if fnmatchcase(place, glob)), None)

    def same(self, expected: Any, actual: Any) -> bool:
        """Whether two values count as equal."""
        if self.absolute and is_number(expected) and is_number(actual):
            return abs(as_written(expected) - as_written(actual)) <= as_written(self.absolute)
        return key(expected, b"expected") == key(actual, b"actual")


class EndState(msgspec.Struct, frozen=True, eq=False):
    """A state, and the ids in it that the world made up."""

    ledger: Ledger
    made: frozenset[str] = frozenset()


def compare_states(
    expected: EndState, actual: EndState, start: Ledger, tolerances: Tolerances | None = None
) -> StateMatch:
    """Where a state is not as expected; `start` is where both began."""
    tolerated = tolerances or Tolerances()
    names = _Names(expected, actual, start, tolerated)
    found: list[StateDifference] = []
    changed = differing = 0
    for place, wanted, got, before in names.pairs():
        fields, differences = _row(place, wanted, got, before, names, tolerated)
        changed += fields
        differing += sum(_weight(difference) for difference in differences)
        found += differences
    flags = [set(open_flags(side.flags)) for side in (start, expected.ledger, actual.ledger)]
    changed += len((flags[0] ^ flags[1]) | (flags[0] ^ flags[2]))
    for flag in sorted(flags[1] ^ flags[2]):
        if not tolerated.ignores(flag):
            differing += 1
            wanted_set = flag in flags[1]
            found.append(StateDifference(flag=flag, expected=wanted_set, actual=not wanted_set))
    return StateMatch(found, changed, differing)


def _row(
    place: Place, wanted: Row | None, got: Row | None, before: Row | None, names: _Names, tolerated: Tolerances
) -> tuple[int, list[StateDifference]]:
    """How many fields of a row changed on either side, and where the sides differ."""
    entity_type, row_id = place
    whole = f"{entity_type}/{row_id}"
    if tolerated.ignores(whole):
        return 0, []
    old = {} if before is None else before.fields
    old_key = {name: key(value) for name, value in old.items()}
    expected = {} if wanted is None else wanted.fields
    actual = {} if got is None else names.as_expected(got.fields)
    changed, differences = 0, []
    for name in {**old, **expected, **actual}:
        at = f"{whole}.{name}"
        if tolerated.ignores(at):
            continue
        one, other = expected.get(name, UNSET), actual.get(name, UNSET)
        was = old_key.get(name)
        if was is None or any(side is UNSET or key(side) != was for side in (one, other)):
            changed += 1
        fit = tolerated.fit(at)
        if fit is not None and got is not None:
            agrees = fit(other, RowScope(Looking(names.actual.ledger)))
        else:
            agrees = (one is UNSET and other is UNSET) or (
                one is not UNSET and other is not UNSET and tolerated.same(one, other)
            )
        if not agrees:
            differences.append(StateDifference(entity_type, row_id, name, expected=one, actual=other))
    if wanted is None and got is not None:
        return max(changed, 1), [StateDifference(entity_type, row_id, actual=got.fields)]
    if got is None and wanted is not None:
        return max(changed, 1), [StateDifference(entity_type, row_id, expected=wanted.fields)]
    return changed, differences


def _weight(difference: StateDifference) -> int:
    if difference.field is not None or difference.flag is not None:
        return 1
    fields = difference.expected if difference.actual is UNSET else difference.actual
    return max(len(fields), 1)


class _Names:
    """Which row of one state is which of the other."""

    def __init__(self, expected: EndState, actual: EndState, start: Ledger, tolerated: Tolerances) -> None:
        self.expected, self.actual, self._start = expected, actual, start
        self._tolerated = tolerated
        self._id_of: dict[str, str] = {}
        """What the ids that the actual world made up are called in the expected one."""
        self._partner: dict[Place, Row] = {}
        """The actual row of an expected one that the world made up."""
        self._match_made()

    def as_expected(self, value: Any) -> Any:
        """A value of the actual state, with the names of the expected one."""
        return _renamed(value, self._id_of)

    def pairs(self) -> Iterator[tuple[Place, Row | None, Row | None, Row | None]]:
        """Every place that changed on either side, with its row as expected, as it is, and as it was at first."""
        expected, actual = self.expected.ledger, self.actual.ledger
        for entity_type in {**expected.entities, **actual.entities}:
            start, wanted, got = (
                ledger.entities.get(entity_type, RowTree()) for ledger in (self._start, expected, actual)
            )
            for row_id in sorted(differing(start, wanted) | differing(start, got)):
                one = None if row_id in self.expected.made else wanted.get(row_id)
                other = None if row_id in self.actual.made else got.get(row_id)
                before = start.get(row_id)
                if (one, other, before) != (None, None, None):
                    yield (entity_type, row_id), one, other, before
            partners = set()
            for row in _made_rows(self.expected, entity_type):
                partner = self._partner.get((entity_type, row.id))
                partners.add(None if partner is None else partner.id)
                yield (entity_type, row.id), row, partner, None
            for row in _made_rows(self.actual, entity_type):
                if row.id not in partners:
                    yield (entity_type, row.id), None, row, None

    def _match_made(self) -> None:
        for entity_type in {**self.expected.ledger.entities, **self.actual.ledger.entities}:
            wanted = _made_rows(self.expected, entity_type)
            got = _made_rows(self.actual, entity_type)
            for one, other in self._paired(entity_type, wanted, got):
                self._partner[entity_type, one.id] = other
                self._id_of[other.id] = one.id
        # Of the others, names that cannot be mistaken for an expected id.
        for made in self.actual.made:
            self._id_of.setdefault(made, f"{made} (made)")

    def _paired(self, entity_type: str, wanted: list[Row], got: list[Row]) -> Iterator[tuple[Row, Row]]:
        for names in (self._second_names, self._first_names, self._no_names):
            there: dict[bytes, deque[Row]] = defaultdict(deque)
            for name, row in zip(names(self.actual, entity_type, got), got, strict=True):
                there[name].append(row)
            left = []
            for name, row in zip(names(self.expected, entity_type, wanted), wanted, strict=True):
                if there[name]:
                    yield row, there[name].popleft()
                else:
                    left.append(row)
            wanted, got = left, sorted((row for rows in there.values() for row in rows), key=lambda row: row.order)

    def _no_names(self, side: EndState, entity_type: str, rows: list[Row]) -> list[bytes]:
        return [b""] * len(rows)

    def _first_names(self, side: EndState, entity_type: str, rows: list[Row]) -> list[bytes]:
        blank = dict.fromkeys(side.made, "")
        return [digest(key(_renamed(self._compared(entity_type, row), blank))) for row in rows]

    def _second_names(self, side: EndState, entity_type: str, rows: list[Row]) -> list[bytes]:
        blank = dict.fromkeys(side.made, "")
        names = {
            row.id: digest(key([name, _renamed(self._compared(name, row), blank)])).hex()
            for name in side.ledger.entities
            for row in _made_rows(side, name)
        }
        return [digest(key(_renamed(self._compared(entity_type, row), names))) for row in rows]

    def _compared(self, entity_type: str, row: Row) -> dict[str, Any]:
        """The fields by which a row is known again."""
        place = f"{entity_type}/{row.id}."
        return {
            name: value
            for name, value in row.fields.items()
            if not self._tolerated.ignores(place + name)
            and self._tolerated.fit(place + name) is None
            and not (self._tolerated.absolute and is_number(value))
        }


def _made_rows(side: EndState, entity_type: str) -> list[Row]:
    found = (side.ledger.row(entity_type, row_id) for row_id in side.made)
    return sorted((row for row in found if row is not None), key=lambda row: row.order)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {name: _renamed(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value.isidentifier() else short(value)
