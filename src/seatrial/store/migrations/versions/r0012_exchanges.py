"""Attempts belong to an exchange of their run. Every run that is there already has one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        # A default that is the same for all rows rewrites none of them.
        op.add_column("attempts", sa.Column("exchange", sa.Integer, nullable=False, server_default="1"))
        op.alter_column("attempts", "exchange", server_default=None)
        op.drop_constraint("attempts_pkey", "attempts")
        op.create_primary_key("attempts_pkey", "attempts", ["run", "exchange", "number"])
        return
    # SQLite cannot change the key of a table.
    op.execute("ALTER TABLE attempts RENAME TO attempts_before")
    op.create_table(
        "attempts",
        sa.Column(
            "run",
            _ID,
            sa.ForeignKey("runs.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("exchange", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("error_class", _TEXT),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.execute(
        "INSERT INTO attempts (run, exchange, number, error_class, data)"
        " SELECT run, 1, number, error_class, data FROM attempts_before"
    )
    op.execute("DROP TABLE attempts_before")
