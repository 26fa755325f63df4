"""Sums of cells are called sums."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for old, new in (
        ("score", "score_sum"),
        ("steps", "step_sum"),
        ("cost", "cost_sum"),
        ("duration", "duration_sum"),
    ):
        op.execute(f"ALTER TABLE cells RENAME COLUMN {old} TO {new}")
