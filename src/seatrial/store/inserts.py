"""The ways in which rows go into tables, many at a time."""

from __future__ import annotations

import sqlalchemy as sa

from seatrial.store import schema


class Insert:
    """Rows of one table, and what becomes of a row that is there already: without a clause it is an error."""

    def __init__(self, table: sa.Table, on_conflict: str = "") -> None:
        self.table = table.name
        self.columns = [column.name for column in table.columns]
        self.types = [column.type for column in table.columns]
        self.on_conflict = on_conflict


def _replaced(table: sa.Table, key: tuple[str, ...]) -> str:
    columns = [column.name for column in table.columns if column.name not in key]
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in columns)}"


# The same case again is the same case; two cases of one id are an error.
CASE = Insert(schema.cases, "ON CONFLICT (experiment, position) DO NOTHING")
BODY = Insert(schema.bodies, "ON CONFLICT (hash) DO NOTHING")
RUN = Insert(schema.runs)
BEGUN_RUN = Insert(schema.runs, _replaced(schema.runs, ("id",)))
"""A run that was begun before and is finished by this row."""
ATTEMPT = Insert(schema.attempts)
EVENTS = Insert(schema.events)
STEP = Insert(schema.steps)
NOTE = Insert(schema.notes)
VERDICT = Insert(schema.verdicts)
READING = Insert(schema.readings)
SERVED_RUN = Insert(schema.served_runs)

ALL = (CASE, BODY, RUN, BEGUN_RUN, ATTEMPT, EVENTS, STEP, NOTE, VERDICT, READING, SERVED_RUN)
"""In the order in which they are sent: what is referred to comes first."""
