"""Rollups, signatures, and runs in the order of the suite. Runs that are there already are counted later, a few at a
time: nothing here takes longer the more of them there are, but the indexes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SUM = sa.BigInteger().with_variant(postgresql.NUMERIC(), "postgresql")


def upgrade() -> None:
    op.add_column("runs", sa.Column("signature", _TEXT))
    op.add_column("runs", sa.Column("counted", sa.SmallInteger, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("position", sa.Integer))
    op.create_index("runs_page", "runs", ["experiment", "outcome", "position"])
    _create_partial_index("runs_signature", "runs", ["experiment", "agent", "signature"], "signature IS NOT NULL")
    _create_partial_index("runs_uncounted", "runs", ["experiment", "id"], "counted = 0")
    op.create_table(
        "cells",
        _of_experiment(),
        sa.Column("case_id", _TEXT, primary_key=True),
        sa.Column("agent", _TEXT, primary_key=True),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("passed", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("errored", sa.Integer, nullable=False),
        sa.Column("incomplete", sa.Integer, nullable=False),
        sa.Column("scored", sa.Integer, nullable=False),
        sa.Column("score", _SUM, nullable=False),
        sa.Column("stepped", sa.Integer, nullable=False),
        sa.Column("steps", _SUM, nullable=False),
        sa.Column("priced", sa.Integer, nullable=False),
        sa.Column("cost", _SUM, nullable=False),
        sa.Column("timed", sa.Integer, nullable=False),
        sa.Column("duration", _SUM, nullable=False),
        sqlite_with_rowid=False,
    )
    _create_partial_index("cells_flaky", "cells", ["experiment", "case_id", "agent"], "passed > 0 AND failed > 0")
    op.create_table(
        "tallies",
        _of_experiment(),
        sa.Column("kind", _TEXT, primary_key=True),
        sa.Column("agent", _TEXT, primary_key=True),
        sa.Column("name", _TEXT, primary_key=True),
        sa.Column("runs", sa.BigInteger, nullable=False),
        sa.Column("counted", sa.BigInteger, nullable=False),
        sa.Column("total", _SUM, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _of_experiment() -> sa.Column[int]:
    return sa.Column(
        "experiment",
        _ID,
        sa.ForeignKey("experiments.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
        primary_key=True,
        autoincrement=False,
    )
