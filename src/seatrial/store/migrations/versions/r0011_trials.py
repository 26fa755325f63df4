"""Trials are counted from 1."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    # By way of negative numbers: both databases check the unique key after each row, and trial 1 may be there still
    # when 0 becomes 1.
    op.execute("UPDATE runs SET trial = -1 - trial")
    op.execute("UPDATE runs SET trial = -trial")
