"""The ledger: entities by type and id, and flags. Each version is immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import UNSET

from seatrial.errors import SeatrialError
from seatrial.ledger.changes import LedgerChange
from seatrial.ledger.rows import Row, RowTree, digest
from seatrial.trajectory.config import refuse, short
from seatrial.trajectory.values import key

State: TypeAlias = dict[str, dict[str, dict[str, Any]]]
"""Fields by entity type and id."""

MAX_ROWS = 1_000_000
HIDDEN_FLAG = "_"
"""Flags that begin with it are the author's bookkeeping: no state is compared by them."""


class StateView(Protocol):
    """What expressions and predicates read: a version, or a call that is changing one."""

    @property
    def flags(self) -> frozenset[str]:
        """The flags that are set."""

    def row(self, entity_type: str, row_id: str) -> Row | None:
        """One entity."""

    def rows(self, entity_type: str) -> Iterable[Row]:
        """The entities of a type, in the order in which they came to be."""


class Ledger(msgspec.Struct, frozen=True, eq=False):
    """One version."""

    version: int = 0
    entities: Mapping[str, RowTree] = {}
    flags: frozenset[str] = frozenset()
    next_order: int = 0
    """Of the next row that is added."""

    @classmethod
    def of(cls, state: State, flags: Iterable[str] = ()) -> Ledger:
        """The first version: what a run starts from."""
        entities, order = {}, 0
        for entity_type, given in state.items():
            rows = []
            for row_id, fields in given.items():
                rows.append(Row.of(row_id, fields, order))
                order += 1
            if order > MAX_ROWS:
                raise SeatrialError("invalid_config", f"the state has more than {MAX_ROWS:,} rows")
            entities[entity_type] = RowTree.of(rows)
        return cls(0, entities, frozenset(flags), order)

    def row(self, entity_type: str, row_id: str) -> Row | None:
        """One entity."""
        rows = self.entities.get(entity_type)
        return None if rows is None else rows.get(row_id)

    def rows(self, entity_type: str) -> Iterable[Row]:
        """The entities of a type, in the order in which they came to be."""
        return self.entities.get(entity_type, ())

    @property
    def state(self) -> State:
        """All entities, by type and id. The fields are the ledger's own: not to be changed."""
        return {
            entity_type: {row.id: row.fields for row in rows} for entity_type, rows in self.entities.items() if rows
        }

    @property
    def root(self) -> str:
        """The hash of the state: two versions have the same exactly when their entities and open flags are equal."""
        types = sorted((name, rows.digest.hex()) for name, rows in self.entities.items() if rows)
        return digest(key([types, open_flags(self.flags)])).hex()

    def after(self, changes: Iterable[LedgerChange]) -> Ledger:
        """The version that these recorded changes lead to."""
        entities, flags, order = dict(self.entities), set(self.flags), self.next_order
        for change in changes:
            if change.flag is not None:
                (flags.add if change.op == "set_flag" else flags.discard)(change.flag)
            elif change.type is not None and change.id is not None:
                rows = entities.get(change.type, RowTree())
                known = rows.get(change.id)
                if change.op == "remove":
                    entities[change.type] = rows.without(change.id)
                    continue
                fields = {} if known is None else dict(known.fields)
                for name, field in change.fields.items():
                    if field.after is UNSET:
                        fields.pop(name, None)
                    else:
                        fields[name] = field.after
                entities[change.type] = rows.with_row(Row.of(change.id, fields, known.order if known else order))
                order += known is None
        return Ledger(self.version + 1, entities, frozenset(flags), order)


def open_flags(flags: Iterable[str]) -> list[str]:
    """The flags that states are compared by."""
    return sorted(flag for flag in flags if not flag.startswith(HIDDEN_FLAG))


def read_state(given: Any, at: tuple[str | int, ...] = (), *, removes: bool = False) -> State:
    """The state that a world or a case gives; an error says where it is not one. With `removes`, a row may be null."""
    if not isinstance(given, dict):
        refuse(f"a state maps entity types to rows by id, got {short(given)}", at)
    for entity_type, rows in given.items():
        if not isinstance(rows, dict):
            found = "a list" if isinstance(rows, list) else short(rows)
            refuse(f"the rows of {entity_type!r} must be a mapping of id to fields, not {found}", (*at, entity_type))
        for row_id, fields in rows.items():
            if not isinstance(row_id, str):
                refuse(f"the ids of {entity_type!r} are text, got {short(row_id)}", (*at, entity_type))
            if not isinstance(fields, dict) and not (removes and fields is None):
                refuse(f"{entity_type} {row_id}: a row has fields, got {short(fields)}", (*at, entity_type, row_id))
    return given
