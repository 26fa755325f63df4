"""The tags of cases in a table, so that runs can be filtered by them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from seatrial.errors import SeatrialError
from seatrial.store.documents import unpack
from seatrial.store.experiments import tags_in

revision = "0014"
down_revision = "0013"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT_ONCE = 1_000


def upgrade() -> None:
    tags = op.create_table(
        "case_tags",
        sa.Column(
            "experiment",
            _ID,
            sa.ForeignKey("experiments.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("tag", _TEXT, primary_key=True),
        sa.Column("case_id", _TEXT, primary_key=True),
        sqlite_with_rowid=False,
    )
    cases = sa.table("cases", *[sa.column(name) for name in ("experiment", "position", "case_id", "packed", "data")])
    connection = op.get_bind()
    after = (-1, -1)
    while page := connection.execute(
        sa.select(cases)
        .where(sa.tuple_(cases.c.experiment, cases.c.position) > after)
        .order_by(cases.c.experiment, cases.c.position)
        .limit(_AT_ONCE)
    ).all():
        after = (page[-1].experiment, page[-1].position)
        found = [
            {"experiment": row.experiment, "tag": tag, "case_id": row.case_id} for row in page for tag in _tags(row)
        ]
        if found:
            op.bulk_insert(tags, found)


def _tags(row: sa.Row[tuple[object, ...]]) -> list[str]:
    try:
        return tags_in(unpack(row.packed, row.data))
    except (SeatrialError, ValueError):
        return []  # the case is damaged, which is said where it is read
