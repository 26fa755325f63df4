"""The record: experiments, cases, runs and everything that belongs to a run."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_CASCADE: Any = {"ondelete": "CASCADE", "deferrable": True, "initially": "DEFERRED"}
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("experiment_id", _TEXT, nullable=False, unique=True),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("suite_hash", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("status", _TEXT, nullable=False),
        sa.Column("stop_reason", _TEXT),
        sa.Column("version", _TEXT, nullable=False),
        sa.Column("cases", sa.Integer),
        sa.Column("packed", sa.SmallInteger, nullable=False),
        sa.Column("suite", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "cases",
        sa.Column(
            "experiment",
            _ID,
            sa.ForeignKey("experiments.id", **_CASCADE),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("case_id", _TEXT, nullable=False),
        sa.Column("packed", sa.SmallInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("experiment", "case_id"),
    )
    op.create_table(
        "runs",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("run_id", _TEXT, nullable=False, unique=True),
        sa.Column("experiment", _ID, nullable=False),
        sa.Column("case_id", _TEXT, nullable=False),
        sa.Column("agent", _TEXT, nullable=False),
        sa.Column("trial", sa.Integer, nullable=False),
        sa.Column("status", _TEXT, nullable=False),
        sa.Column("outcome", _TEXT, nullable=False),
        sa.Column("score", sa.Double),
        sa.Column("error_class", _TEXT),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("duration_ms", sa.Double),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("steps", sa.Integer, nullable=False),
        sa.Column("input_tokens", sa.BigInteger),
        sa.Column("output_tokens", sa.BigInteger),
        sa.Column("cost_usd", sa.Double),
        sa.Column("grading", sa.Integer, nullable=False),
        sa.Column("grade", sa.LargeBinary),
        sa.Column("body", sa.LargeBinary),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("experiment", "case_id", "agent", "trial"),
        sa.ForeignKeyConstraint(["experiment", "case_id"], ["cases.experiment", "cases.case_id"], **_CASCADE),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "attempts",
        _of_run(),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("error_class", _TEXT),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "events",
        _of_run(),
        sa.Column("first", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("packed", sa.SmallInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "steps",
        _of_run(),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("status", _TEXT, nullable=False),
        sa.Column("duration_ms", sa.Double),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "notes",
        _of_run(),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("code", _TEXT, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "verdicts",
        _of_run(),
        sa.Column("grading", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("grader", _TEXT, nullable=False),
        sa.Column("judgement", _TEXT, nullable=False),
        sa.Column("score", sa.Double),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "readings",
        _of_run(),
        sa.Column("packed", sa.SmallInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "bodies",
        sa.Column("hash", sa.LargeBinary, primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("packed", sa.SmallInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )


def _of_run() -> sa.Column[int]:
    return sa.Column("run", _ID, sa.ForeignKey("runs.id", **_CASCADE), primary_key=True, autoincrement=False)
