"""What people say of runs; which judges' votes are split; and experiments by the suite that they ran.

Votes of verdicts that are there already are not looked through.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0016"
down_revision = "0015"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _run(*, key: bool) -> sa.Column[int]:
    parent = sa.ForeignKey("runs.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED")
    return sa.Column("run", _ID, parent, primary_key=key, nullable=False, autoincrement=False)


def upgrade() -> None:
    op.create_table(
        "reviews",
        sa.Column("id", _ID, primary_key=True),
        _run(key=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("reviewer", _TEXT, nullable=False),
        sa.Column("grader", _TEXT),
        sa.Column("word", _TEXT, nullable=False),
        sa.Column("blind", sa.SmallInteger, nullable=False),
        sa.Column("chosen", _TEXT, nullable=False),
        sa.Column("draw", sa.Integer),
        sa.Column("comment", sa.LargeBinary),
    )
    op.create_index("reviews_run", "reviews", ["run"])
    op.create_table(
        "split_votes",
        _run(key=True),
        sa.Column("grading", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("grader", _TEXT, nullable=False),
        sa.Column("agreement", sa.Double, nullable=False),
    )
    op.create_index("experiments_suite", "experiments", ["suite_hash", "created_at", "id"])
