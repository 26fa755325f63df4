"""What one call is doing to the ledger: it sees its own writes, and nobody else does before it is committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from seatrial._support import wire
from seatrial.ledger.changes import FieldChange, LedgerChange, LedgerOp
from seatrial.ledger.ledger import MAX_ROWS, Ledger
from seatrial.ledger.rows import Row, RowTree
from seatrial.trajectory.values import key


class Refusal(Exception):  # noqa: N818 (authors of worlds raise it by this name)
    """The world says no, as the real one would: `{"error": {"code", "message"}}`. It is no fault of anybody's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class LedgerTransaction:
    """A version in the making. Dropped, it leaves no trace."""

    def __init__(self, ledger: Ledger) -> None:
        self._from = ledger
        self._entities = dict(ledger.entities)
        self._flags = set(ledger.flags)
        self._next_order = ledger.next_order
        self._touched: dict[tuple[str, str], None] = {}

    @property
    def flags(self) -> frozenset[str]:
        """The flags that are set."""
        return frozenset(self._flags)

    def row(self, entity_type: str, row_id: str) -> Row | None:
        """One entity."""
        rows = self._entities.get(entity_type)
        return None if rows is None else rows.get(row_id)

    def rows(self, entity_type: str) -> Iterable[Row]:
        """The entities of a type, in the order in which they came to be."""
        return self._entities.get(entity_type, ())

    def add(self, entity_type: str, row_id: str, fields: dict[str, Any], *, upsert: bool = False) -> None:
        """Add an entity; one that is there is a refusal, or with `upsert` takes the fields."""
        known = self.row(entity_type, row_id)
        if known is not None:
            if not upsert:
                raise Refusal(409, f"{entity_type} {row_id} already exists")
            self._put(entity_type, row_id, {**known.fields, **fields}, known.order)
            return
        if sum(map(len, self._entities.values())) >= MAX_ROWS:
            raise Refusal(507, f"the state has {MAX_ROWS:,} rows, and takes no more")
        self._put(entity_type, row_id, fields, self._next_order)
        self._next_order += 1

    def update(self, entity_type: str, row_id: str, fields: dict[str, Any]) -> None:
        """Set fields of an entity; None is a value like any other."""
        known = self.existing(entity_type, row_id)
        self._put(entity_type, row_id, {**known.fields, **fields}, known.order)

    def remove(self, entity_type: str, row_id: str) -> None:
        """Remove an entity."""
        self.existing(entity_type, row_id)
        self._entities[entity_type] = self._entities[entity_type].without(row_id)
        self._touched[entity_type, row_id] = None

    def existing(self, entity_type: str, row_id: str) -> Row:
        """One entity; a refusal when it is not there."""
        known = self.row(entity_type, row_id)
        if known is None:
            raise Refusal(404, f"{entity_type} {row_id} not found")
        return known

    def set_flag(self, flag: str) -> None:
        """Set a flag."""
        self._flags.add(flag)

    def clear_flag(self, flag: str) -> None:
        """Clear a flag."""
        self._flags.discard(flag)

    @property
    def removed(self) -> Iterable[tuple[str, str]]:
        """The entities that were there and are not any more."""
        return [place for place in self._touched if self.row(*place) is None and self._from.row(*place) is not None]

    def written(self) -> Iterable[tuple[str, Row]]:
        """The entities that were added or changed, with their types."""
        for entity_type, row_id in self._touched:
            if (row := self.row(entity_type, row_id)) is not None:
                yield entity_type, row

    def changes(self) -> list[LedgerChange]:
        """What changed in all, entity by entity; what was changed back is not in it."""
        found = [change for place in self._touched if (change := self._change(*place)) is not None]
        before = self._from.flags
        found += [LedgerChange("set_flag", flag=flag) for flag in sorted(self._flags - before)]
        found += [LedgerChange("clear_flag", flag=flag) for flag in sorted(before - self._flags)]
        return found

    def committed(self) -> Ledger:
        """The next version; the same one when nothing changed."""
        if not self.changes():
            return self._from
        return Ledger(self._from.version + 1, self._entities, frozenset(self._flags), self._next_order)

    def _put(self, entity_type: str, row_id: str, fields: dict[str, Any], order: int) -> None:
        # As a store would give it back; and a handler may keep what it gave, and change it later.
        row = Row.of(row_id, wire.decode(wire.encode(fields)), order)
        self._entities[entity_type] = self._entities.get(entity_type, RowTree()).with_row(row)
        self._touched[entity_type, row_id] = None

    def _change(self, entity_type: str, row_id: str) -> LedgerChange | None:
        before, after = self._from.row(entity_type, row_id), self.row(entity_type, row_id)
        if before is None and after is None:
            return None
        op: LedgerOp
        if after is None or before is None:
            op = "remove" if after is None else "add"
        elif before.digest == after.digest:
            return None
        else:
            op = "update"
        old = {} if before is None else before.fields
        new = {} if after is None else after.fields
        fields = {
            name: FieldChange(old.get(name, UNSET), new.get(name, UNSET))
            for name in {**old, **new}
            if key(old.get(name, UNSET), b"before") != key(new.get(name, UNSET), b"after")
        }
        return LedgerChange(op, entity_type, row_id, fields)
