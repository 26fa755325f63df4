"""The schema of a ledger: which entities there are, and what their fields may hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from seatrial.ledger.changes import Violation
from seatrial.ledger.ledger import Ledger, StateView
from seatrial.ledger.rows import Row
from seatrial.trajectory.config import is_number, short
from seatrial.trajectory.values import same
from seatrial.transcript.note import pointer

FieldType = Literal["string", "number", "integer", "boolean", "object", "array"]


class Referring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the items of an array are."""

    ref: str
    """The entity type whose ids they are."""


class FieldSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One field."""

    name: str
    type: FieldType
    enum: list[Any] | None = None
    """The values that it may have."""
    description: str | None = None
    ref: str | None = None
    """The entity type whose ids it holds."""
    items: Referring | None = None


class EntitySchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One entity type."""

    type: Annotated[str, Meta(pattern="^[a-z][a-z0-9_]*$")]
    id_field: str = "id"
    """Under which name answers have the id."""
    fields: Annotated[list[FieldSchema], Meta(max_length=100)] = []
    """Empty: any."""
    description: str | None = None


class FlagSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The flags of the world."""

    policy: Literal["open", "closed"] = "open"
    """`closed`: only the listed ones, and those that begin with `_`."""
    values: list[str] = []


class LedgerSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the state may hold. Without one, anything."""

    entities: Annotated[list[EntitySchema], Meta(max_length=100)] = []
    """Empty: any."""
    flags: FlagSchema = FlagSchema()

    def entity(self, entity_type: str) -> EntitySchema | None:
        """The schema of a type."""
        return next((entity for entity in self.entities if entity.type == entity_type), None)

    def id_field(self, entity_type: str) -> str:
        """Under which name answers have the id of such entities."""
        entity = self.entity(entity_type)
        return "id" if entity is None else entity.id_field

    def takes_flag(self, flag: str) -> bool:
        """Whether a flag may be set."""
        return self.flags.policy == "open" or flag in self.flags.values or flag.startswith("_")

    def violations(self, rows: Iterable[tuple[str, Row]], view: StateView) -> list[Violation]:
        """What is wrong with these rows of a state."""
        return [violation for entity_type, row in rows for violation in self._row(entity_type, row, view)]

    def dangling(self, removed: Iterable[tuple[str, str]], view: StateView) -> list[Violation]:
        """The rows that refer to entities which were removed."""
        gone: dict[str, set[str]] = {}
        for entity_type, row_id in removed:
            gone.setdefault(entity_type, set()).add(row_id)
        referring = [
            entity.type
            for entity in self.entities
            if gone
            and any({field.ref, field.items.ref if field.items else None} & gone.keys() for field in entity.fields)
        ]
        return self.violations(((name, row) for name in referring for row in view.rows(name)), view)

    def violations_of(self, ledger: Ledger) -> list[Violation]:
        """What is wrong with a whole state."""
        return self.violations(((name, row) for name, rows in ledger.entities.items() for row in rows), ledger)

    def _row(self, entity_type: str, row: Row, view: StateView) -> Iterable[Violation]:
        entity = self.entity(entity_type)
        if entity is None:
            if self.entities:
                text = f"{entity_type} {row.id}: there is no entity type {entity_type!r}"
                yield Violation("unknown_type", pointer(entity_type), text)
            return
        known = {field.name: field for field in entity.fields}
        for name, value in row.fields.items():
            field = known.get(name)
            if field is not None:
                yield from self._field(entity_type, row, field, value, view)
            elif name == entity.id_field:
                if value != row.id:
                    text = f"{entity_type} {row.id}: {name!r} is {short(value)}, which is not its id"
                    yield Violation("id_differs", pointer(entity_type, row.id, name), text)
            elif known:
                text = f"{entity_type} {row.id}: there is no field {name!r}"
                yield Violation("unknown_field", pointer(entity_type, row.id, name), text)

    def _field(
        self, entity_type: str, row: Row, field: FieldSchema, value: Any, view: StateView
    ) -> Iterable[Violation]:
        if value is None:
            return
        at = pointer(entity_type, row.id, field.name)
        what = f"{entity_type} {row.id}: {field.name!r}"
        if not _is(field.type, value):
            yield Violation("wrong_type", at, f"{what} is {short(value)}, not {_A[field.type]}")
            return
        if field.enum is not None and not any(same(value, one) for one in field.enum):
            yield Violation("not_in_enum", at, f"{what} is {short(value)}, not one of {_listed(field.enum)}")
        if field.ref is not None and (not isinstance(value, str) or view.row(field.ref, value) is None):
            yield Violation("dangling_ref", at, f"{what} names {field.ref} {short(value)}, which is not in the state")
        if field.items is not None and isinstance(value, list):
            for item in value:
                if not isinstance(item, str) or view.row(field.items.ref, item) is None:
                    text = f"{what} names {field.items.ref} {short(item)}, which is not in the state"
                    yield Violation("dangling_ref", at, text)


_A = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}


def _is(kind: FieldType, value: Any) -> bool:
    if kind == "number":
        return is_number(value)
    if kind == "integer":
        return is_number(value) and value == int(value)
    wanted = {"string": str, "boolean": bool, "object": dict, "array": list}[kind]
    return isinstance(value, wanted)


def _listed(values: list[Any]) -> str:
    return ", ".join(short(value) for value in values[:10]) + (", ..." if len(values) > 10 else "")
