"""Full-text search, also over the runs that are there already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import context, op

from seatrial._support import wire
from seatrial.store import rows
from seatrial.store.database import Database
from seatrial.store.documents import unpack
from seatrial.store.search import indexed_text
from seatrial.trajectory.step import Step

revision = "0002"
down_revision = "0001"

_AT_ONCE = 500
_runs = sa.table("runs", sa.column("id"))
_readings = sa.table("readings", sa.column("run"), sa.column("packed"), sa.column("data"))
_steps = sa.table("steps", sa.column("run"), sa.column("position"), sa.column("data"))


def upgrade() -> None:
    dialect: Database = context.config.attributes["dialect"]
    connection = op.get_bind()
    dialect.create_index(connection)
    last = 0
    while numbers := connection.scalars(
        sa.select(_runs.c.id).where(_runs.c.id > last).order_by(_runs.c.id).limit(_AT_ONCE)
    ).all():
        last = numbers[-1]
        dialect.insert(connection, {}, _texts(connection, numbers))


def _texts(connection: sa.Connection, numbers: Sequence[int]) -> list[tuple[int, str]]:
    readings = {
        number: rows.reading_of(unpack(packed, data), [])
        for number, packed, data in connection.execute(sa.select(_readings).where(_readings.c.run.in_(numbers)))
    }
    steps: defaultdict[int, list[Step]] = defaultdict(list)
    in_order = sa.select(_steps.c.run, _steps.c.data).order_by(_steps.c.run, _steps.c.position)
    for number, data in connection.execute(in_order.where(_steps.c.run.in_(numbers))):
        steps[number].append(wire.decode(data, rows.STEP))
    texts = [(number, indexed_text(readings.get(number), steps[number])) for number in numbers]
    return [(number, text) for number, text in texts if text]
