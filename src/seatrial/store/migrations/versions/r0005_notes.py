"""The weight of a note, and how complete the calls of a run are, as columns: every report counts by them.

Earlier rows have neither. A note without a weight has that of its code; of the calls of an earlier run nobody knows.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("notes", sa.Column("weight", _TEXT))
    op.add_column("runs", sa.Column("calls", _TEXT))
