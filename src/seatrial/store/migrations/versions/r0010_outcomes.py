"""What a verdict came to is called its outcome, as it is everywhere else.

Documents of earlier versions keep their word for it, and are read in both.
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.execute("ALTER TABLE verdicts RENAME COLUMN judgement TO outcome")
