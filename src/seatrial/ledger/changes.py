"""What one call did to the ledger."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET

LedgerOp = Literal["add", "update", "remove", "set_flag", "clear_flag"]


class FieldChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field before and after. A side on which the field was not there is left out."""

    before: Any = UNSET
    after: Any = UNSET


class LedgerChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one entity, or of one flag, in one call."""

    op: LedgerOp
    type: str | None = None
    id: str | None = None
    fields: dict[str, FieldChange] = {}
    flag: str | None = None

    @property
    def place(self) -> str:
        """What was changed, as evidence names it: `order/o-1`, or the flag."""
        return self.flag or "" if self.type is None else f"{self.type}/{self.id}"


class Violation(msgspec.Struct, frozen=True):
    """A row that breaks the schema of the ledger."""

    code: str
    pointer: str
    """Into the state: `/order/o-1/status`."""
    message: str


class LedgerDiff(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one call did, in all."""

    from_version: int
    to_version: int
    changes: list[LedgerChange] = []
    violations: list[Violation] = []


def inverse(changes: list[LedgerChange]) -> list[LedgerChange]:
    """The changes that undo these."""
    opposite: dict[str, LedgerOp] = {
        "add": "remove",
        "remove": "add",
        "update": "update",
        "set_flag": "clear_flag",
        "clear_flag": "set_flag",
    }
    return [
        LedgerChange(
            opposite[change.op],
            change.type,
            change.id,
            {name: FieldChange(field.after, field.before) for name, field in change.fields.items()},
            change.flag,
        )
        for change in reversed(changes)
    ]
