"""The ways in which rows go into tables, many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from seatrial.store import schema


class Insert:
    """Rows of one table, and what becomes of a row that is there already: without a clause it is an error."""

    def __init__(
        self,
        table: sa.Table,
        on_conflict: str = "",
        *,
        computed: Mapping[str, str] | None = None,
        returning: Sequence[str] = (),
    ) -> None:
        self.table = table.name
        self.computed = dict(computed or {})
        """Columns that the database finds out from the others: SQL with their names in braces."""
        given = [column for column in table.columns if column.name not in self.computed]
        self.columns = [column.name for column in given]
        """Those that a row gives, in order."""
        self.types = [column.type for column in given]
        self.key = len(table.primary_key)
        """How many of them, from the first, say which row it is."""
        self.on_conflict = on_conflict
        self.returning = f"RETURNING {', '.join(returning)}" if returning else ""


def _replaced(table: sa.Table, key: tuple[str, ...]) -> str:
    columns = [column.name for column in table.columns if column.name not in key]
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in columns)}"


def _added(table: sa.Table) -> str:
    key = [column.name for column in table.primary_key]
    sums = [column.name for column in table.columns if column.name not in key]
    added = [f"{name} = {table.name}.{name} + excluded.{name}" for name in sums]
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(added)}"


POSITION = "(SELECT cases.position FROM cases WHERE cases.experiment = {experiment} AND cases.case_id = {case_id})"
"""Where in its experiment the case of a run is."""
_POSITION = {"position": POSITION}

# The same case again is the same case; two cases of one id are an error.
CASE = Insert(schema.cases, "ON CONFLICT (experiment, position) DO NOTHING")
AGENT_NOTE = Insert(schema.agent_notes)
BODY = Insert(schema.bodies, "ON CONFLICT (hash) DO NOTHING")
RUN = Insert(schema.runs, computed=_POSITION)
BEGUN_RUN = Insert(schema.runs, _replaced(schema.runs, ("id",)), computed=_POSITION)
"""A run that was begun before and is finished by this row."""
ATTEMPT = Insert(schema.attempts)
EVENTS = Insert(schema.events)
STEP = Insert(schema.steps)
NOTE = Insert(schema.notes)
VERDICT = Insert(schema.verdicts)
READING = Insert(schema.readings)
ITEMS = Insert(schema.items)
SERVED_RUN = Insert(schema.served_runs)
CELL = Insert(
    schema.cells, _added(schema.cells), returning=("experiment", "case_id", "agent", "runs", "passed", "failed")
)
"""Numbers that are added to those of a cell; gives what came of it."""
TALLY = Insert(schema.tallies, _added(schema.tallies))
"""Numbers that are added to those of a tally."""

ALL = (
    CASE,
    AGENT_NOTE,
    BODY,
    RUN,
    BEGUN_RUN,
    ATTEMPT,
    EVENTS,
    STEP,
    NOTE,
    VERDICT,
    READING,
    ITEMS,
    SERVED_RUN,
    CELL,
    TALLY,
)
"""In the order in which they are sent: what is referred to comes first."""
