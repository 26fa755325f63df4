"""Long transcripts in rows of at most a hundred messages, and long texts by the address of their content. Readings that
are there already stay as they are until they are converted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("readings", sa.Column("messages", sa.Integer))
    op.add_column("readings", sa.Column("trace", sa.Integer))
    op.add_column("readings", sa.Column("texts", sa.LargeBinary))
    op.create_table(
        "items",
        sa.Column(
            "run",
            _ID,
            sa.ForeignKey("runs.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("part", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("packed", sa.SmallInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("texts", sa.LargeBinary),
    )
