"""One vocabulary of statuses: a run that errored has the status `failed`, and its fault and outcome say the rest."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.execute("UPDATE runs SET status = 'failed' WHERE status = 'errored'")
