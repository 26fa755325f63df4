"""What agents said that belongs to no run, in a table of its own.

Experiments that have it in their suite keep it there.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "agent_notes",
        sa.Column(
            "experiment",
            _ID,
            sa.ForeignKey("experiments.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("agent", _TEXT, primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("code", _TEXT, nullable=False),
        sa.Column("weight", _TEXT),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
