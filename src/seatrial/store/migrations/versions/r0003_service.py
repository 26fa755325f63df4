"""The run service: threads of runs that were asked for, and keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_HELD = sa.text("status IN ('pending', 'running', 'input_required')")


def upgrade() -> None:
    op.create_table(
        "served_runs",
        sa.Column(
            "run",
            _ID,
            sa.ForeignKey("runs.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("thread_id", _TEXT, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("agent", _TEXT, nullable=False),
        sa.Column("status", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("pushed", sa.SmallInteger, nullable=False),
        sa.Column("server_id", _TEXT),
        sa.Column("idempotency_key", _TEXT),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("resume", sa.LargeBinary),
        sa.Column("cancel_requested", sa.SmallInteger, nullable=False),
        sa.Column("trimmed", sa.SmallInteger, nullable=False),
        sa.Column("input", sa.LargeBinary, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index(
        "served_runs_held", "served_runs", ["thread_id"], unique=True, sqlite_where=_HELD, postgresql_where=_HELD
    )
    op.create_index("served_runs_thread", "served_runs", ["thread_id", "position"], unique=True)
    op.create_index("served_runs_key", "served_runs", ["agent", "idempotency_key"], unique=True)
    op.create_index("served_runs_resume", "served_runs", ["resume"])
    op.create_index("served_runs_created", "served_runs", ["created_at", "run"])
    op.create_index("served_runs_agent", "served_runs", ["agent", "created_at", "run"])
    op.create_index("served_runs_status", "served_runs", ["status", "created_at", "run"])
    op.create_index("served_runs_ended", "served_runs", ["trimmed", "ended_at"])
    op.create_table(
        "api_keys",
        sa.Column("key_id", _TEXT, primary_key=True),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("scopes", _TEXT, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
    )
