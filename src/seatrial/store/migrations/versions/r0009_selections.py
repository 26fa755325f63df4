"""Selections of cases, outlines, long values of steps by their address; and sums of cells are called sums.

Experiments that have their selection in their suite keep it there; runs that are there already have no outline stored.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("experiments", sa.Column("selective", sa.SmallInteger, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("texts", sa.LargeBinary))
    op.add_column("steps", sa.Column("texts", sa.LargeBinary))
    op.create_table(
        "selections",
        _key("experiment", "experiments.id"),
        sa.Column("agent", _TEXT, primary_key=True),
        sa.Column("case_id", _TEXT, primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "outlines",
        _key("run", "runs.id"),
        sa.Column("level", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("packed", sa.SmallInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    for old, new in (
        ("score", "score_sum"),
        ("steps", "step_sum"),
        ("cost", "cost_sum"),
        ("duration", "duration_sum"),
    ):
        op.execute(f"ALTER TABLE cells RENAME COLUMN {old} TO {new}")


def _key(name: str, parent: str) -> sa.Column[int]:
    return sa.Column(
        name,
        _ID,
        sa.ForeignKey(parent, ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
        primary_key=True,
        autoincrement=False,
    )
