"""The tables of a store, the same on SQLite and PostgreSQL.

What a query asks for has a column; the whole of each thing is beside it as JSON in `data`, so that a new field of a
step or a verdict needs no migration. Large JSON is compressed where `packed` is not 0 (see `documents`).

Runs and experiments have their text ids, and small integers that the other tables refer to: the children of a run
stay next to each other on disk, and an index entry is a few bytes. Integers of runs are never used again, because the
search index of SQLite keeps the words of a replaced run under its old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

REVISIONS = tuple(f"{number:04}" for number in range(1, 17))
"""Every version of the schema, oldest first; the last is what this code reads and writes."""
READABLE_FROM = "0014"
"""The oldest version of which reports can be made without a migration."""
VERSION_TABLE = "seatrial_version"

# Byte order, as in SQLite: results come in the same order from both, whatever the locale of the server.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# SQLite gives a table its implicit integer key only for exactly INTEGER.
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# Exact for whatever is likely. What does not fit 64 bits is still exact on PostgreSQL and rounded on SQLite, and an
# agent that says absurd numbers spoils a sum, but no transaction.
SUM = sa.BigInteger().with_variant(sa.Numeric(), "postgresql")

# Conditions of indexes that have only some rows, each in one piece of text: a database uses such an index only for a
# query that says the same.
HELD = "status IN ('pending', 'running', 'input_required')"
"""Of `served_runs`: the run has not ended, or waits for an answer."""
UNCOUNTED = "counted = 0"
FLAKY = "passed > 0 AND failed > 0"

# Checked at the end of a transaction, where it costs least.
_CASCADE: Any = {"ondelete": "CASCADE", "deferrable": True, "initially": "DEFERRED"}

metadata = sa.MetaData()


def _where(condition: str) -> dict[str, Any]:
    # An option of PostgreSQL would load all of its dialect, for every command: `postgres` sets it, where it is used.
    return {"sqlite_where": sa.text(condition)}


def partial_indexes() -> Iterator[tuple[sa.Index, Any]]:
    """Indexes that have only some rows, each with its condition."""
    for table in metadata.tables.values():
        for index in table.indexes:
            if (condition := index.dialect_options["sqlite"]["where"]) is not None:
                yield index, condition


def _of_run() -> sa.Column[int]:
    return sa.Column("run", ID, sa.ForeignKey("runs.id", **_CASCADE), primary_key=True, autoincrement=False)


experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("experiment_id", TEXT, nullable=False, unique=True),
    sa.Column("name", TEXT, nullable=False),
    sa.Column("suite_hash", TEXT, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("status", TEXT, nullable=False),
    sa.Column("stop_reason", TEXT),
    sa.Column("version", TEXT, nullable=False),
    # Null until the last case is in: an experiment that was killed before that has no runs, and is not shown.
    sa.Column("cases", sa.Integer),
    sa.Column("packed", sa.SmallInteger, nullable=False),
    sa.Column("suite", sa.LargeBinary, nullable=False),
    # 1: each agent runs only the cases that `selections` has for it. Earlier versions have these in the suite, under
    # `rows.SELECTED`.
    sa.Column("selective", sa.SmallInteger, nullable=False, server_default="0"),
    # The last experiments that ran a suite.
    sa.Index("experiments_suite", "suite_hash", "created_at", "id"),
)

# Which cases an agent runs, in an experiment in which that is not all.
selections = sa.Table(
    "selections",
    metadata,
    sa.Column("experiment", ID, sa.ForeignKey("experiments.id", **_CASCADE), primary_key=True, autoincrement=False),
    sa.Column("agent", TEXT, primary_key=True),
    sa.Column("case_id", TEXT, primary_key=True),
    sqlite_with_rowid=False,
)

# What agents said that belongs to no run. Earlier versions have it in the suite, under `rows.AGENT_NOTES`.
agent_notes = sa.Table(
    "agent_notes",
    metadata,
    sa.Column("experiment", ID, sa.ForeignKey("experiments.id", **_CASCADE), primary_key=True, autoincrement=False),
    sa.Column("agent", TEXT, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("code", TEXT, nullable=False),
    sa.Column("weight", TEXT),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

cases = sa.Table(
    "cases",
    metadata,
    sa.Column("experiment", ID, sa.ForeignKey("experiments.id", **_CASCADE), primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("case_id", TEXT, nullable=False),
    sa.Column("packed", sa.SmallInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("experiment", "case_id"),
)

# The tags of cases, each once. A case that is damaged has none here.
case_tags = sa.Table(
    "case_tags",
    metadata,
    sa.Column("experiment", ID, sa.ForeignKey("experiments.id", **_CASCADE), primary_key=True, autoincrement=False),
    sa.Column("tag", TEXT, primary_key=True),
    sa.Column("case_id", TEXT, primary_key=True),
    sqlite_with_rowid=False,
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("run_id", TEXT, nullable=False, unique=True),
    sa.Column("experiment", ID, nullable=False),
    sa.Column("case_id", TEXT, nullable=False),
    sa.Column("agent", TEXT, nullable=False),
    sa.Column("trial", sa.Integer, nullable=False),
    sa.Column("status", TEXT, nullable=False),
    sa.Column("outcome", TEXT, nullable=False),
    sa.Column("score", sa.Double),
    sa.Column("error_class", TEXT),
    sa.Column("started_at", sa.BigInteger),
    sa.Column("duration_ms", sa.Double),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("steps", sa.Integer, nullable=False),
    # How complete the steps are; null when there was no answer to read, or nobody had worked it out.
    sa.Column("calls", TEXT),
    sa.Column("input_tokens", sa.BigInteger),
    sa.Column("output_tokens", sa.BigInteger),
    sa.Column("cost_usd", sa.Double),
    # Which of the verdicts count: those of the latest grading. Earlier ones are kept, for they may have cost money.
    sa.Column("grading", sa.Integer, nullable=False),
    sa.Column("grade", sa.LargeBinary),
    sa.Column("body", sa.LargeBinary),
    sa.Column("data", sa.LargeBinary, nullable=False),
    # Where it first goes wrong, of a run that failed or errored: see `seatrial.runs.signature`.
    sa.Column("signature", TEXT),
    # 1: the rollups have it. 0: an earlier version wrote it, and it is counted later, see `conversion`. 2: it is never
    # counted, because it belongs to the run service and to no experiment.
    sa.Column("counted", sa.SmallInteger, nullable=False, server_default="0"),
    # That of its case; null until it is counted.
    sa.Column("position", sa.Integer),
    # Which texts of `data` are in `bodies`; null for none.
    sa.Column("texts", sa.LargeBinary),
    # In this order a case's runs are found together, so that a page of runs in suite order needs no sort.
    sa.UniqueConstraint("experiment", "case_id", "agent", "trial"),
    sa.ForeignKeyConstraint(["experiment", "case_id"], ["cases.experiment", "cases.case_id"], **_CASCADE),
    # A page of runs in the order of the suite, of one outcome: a page of several outcomes is merged from several.
    sa.Index("runs_page", "experiment", "outcome", "position"),
    sa.Index("runs_signature", "experiment", "agent", "signature", **_where("signature IS NOT NULL")),
    sa.Index("runs_uncounted", "experiment", "id", **_where(UNCOUNTED)),
    sqlite_autoincrement=True,
)

cells = sa.Table(
    "cells",
    metadata,
    sa.Column("experiment", ID, sa.ForeignKey("experiments.id", **_CASCADE), primary_key=True, autoincrement=False),
    sa.Column("case_id", TEXT, primary_key=True),
    sa.Column("agent", TEXT, primary_key=True),
    *[sa.Column(name, sa.Integer, nullable=False) for name in ("runs", "passed", "failed", "errored", "incomplete")],
    sa.Column("scored", sa.Integer, nullable=False),
    sa.Column("score_sum", SUM, nullable=False),
    sa.Column("stepped", sa.Integer, nullable=False),
    sa.Column("step_sum", SUM, nullable=False),
    sa.Column("priced", sa.Integer, nullable=False),
    sa.Column("cost_sum", SUM, nullable=False),
    sa.Column("timed", sa.Integer, nullable=False),
    sa.Column("duration_sum", SUM, nullable=False),
    sa.Index("cells_flaky", "experiment", "case_id", "agent", **_where(FLAKY)),
    sqlite_with_rowid=False,
)

tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("experiment", ID, sa.ForeignKey("experiments.id", **_CASCADE), primary_key=True, autoincrement=False),
    sa.Column("kind", TEXT, primary_key=True),
    sa.Column("agent", TEXT, primary_key=True),
    sa.Column("name", TEXT, primary_key=True),
    sa.Column("runs", sa.BigInteger, nullable=False),
    sa.Column("counted", sa.BigInteger, nullable=False),
    sa.Column("total", SUM, nullable=False),
    sqlite_with_rowid=False,
)

attempts = sa.Table(
    "attempts",
    metadata,
    _of_run(),
    sa.Column("exchange", sa.Integer, primary_key=True, autoincrement=False),
    # From 1 in its exchange.
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("error_class", TEXT),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    _of_run(),
    # One row holds the events of one append, a line each. Sequences have no gaps, so a writer that has missed another
    # writer's append always collides with it here.
    sa.Column("first", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("packed", sa.SmallInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

steps = sa.Table(
    "steps",
    metadata,
    _of_run(),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", TEXT, nullable=False),
    sa.Column("status", TEXT, nullable=False),
    sa.Column("duration_ms", sa.Double),
    sa.Column("data", sa.LargeBinary, nullable=False),
    # Which values of `data` are in `bodies`; null for none.
    sa.Column("texts", sa.LargeBinary),
)

notes = sa.Table(
    "notes",
    metadata,
    _of_run(),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("code", TEXT, nullable=False),
    # Null for that of the code.
    sa.Column("weight", TEXT),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

verdicts = sa.Table(
    "verdicts",
    metadata,
    _of_run(),
    sa.Column("grading", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("grader", TEXT, nullable=False),
    sa.Column("outcome", TEXT, nullable=False),
    sa.Column("score", sa.Double),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

# Judges' verdicts for which not all votes were alike.
split_votes = sa.Table(
    "split_votes",
    metadata,
    _of_run(),
    sa.Column("grading", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("grader", TEXT, nullable=False),
    # The share of the votes that the majority has.
    sa.Column("agreement", sa.Double, nullable=False),
)

# What people say of runs. Rows are only added: who changes their mind adds another, and the latest counts.
reviews = sa.Table(
    "reviews",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("run", ID, sa.ForeignKey("runs.id", **_CASCADE), nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("reviewer", TEXT, nullable=False),
    # The grader whose question was answered; null for the run as a whole.
    sa.Column("grader", TEXT),
    sa.Column("word", TEXT, nullable=False),
    # 1: what the grader said was hidden until the person had answered.
    sa.Column("blind", sa.SmallInteger, nullable=False),
    # How the run was chosen for review, and which draw of the random sample it was.
    sa.Column("chosen", TEXT, nullable=False),
    sa.Column("draw", sa.Integer),
    sa.Column("comment", sa.LargeBinary),
    sa.Index("reviews_run", "run"),
)

# What was made of an agent's record. A short transcript is in the document; of a longer one, what is not in `items`.
readings = sa.Table(
    "readings",
    metadata,
    _of_run(),
    sa.Column("packed", sa.SmallInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    # How many messages, and how many entries of the trace, are in `items`; null when they are here.
    sa.Column("messages", sa.Integer),
    sa.Column("trace", sa.Integer),
    # Which of its texts are in `bodies`; null for none.
    sa.Column("texts", sa.LargeBinary),
)

items = sa.Table(
    "items",
    metadata,
    _of_run(),
    # 0 for messages, 1 for entries of the trace.
    sa.Column("part", sa.SmallInteger, primary_key=True, autoincrement=False),
    sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("packed", sa.SmallInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("texts", sa.LargeBinary),
)

# What a timeline of a long run is drawn from; that of a short one is made when it is asked for. See `outline`.
outlines = sa.Table(
    "outlines",
    metadata,
    _of_run(),
    # 0: an entry for each message. 1: an entry for many.
    sa.Column("level", sa.SmallInteger, primary_key=True, autoincrement=False),
    sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("packed", sa.SmallInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

bodies = sa.Table(
    "bodies",
    metadata,
    sa.Column("hash", sa.LargeBinary, primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("packed", sa.SmallInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

served_runs = sa.Table(
    "served_runs",
    metadata,
    _of_run(),
    sa.Column("thread_id", TEXT, nullable=False),
    # Counts the runs of a thread, which come one after another, whatever the clocks say.
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("agent", TEXT, nullable=False),
    sa.Column("status", TEXT, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("ended_at", sa.BigInteger),
    sa.Column("pushed", sa.SmallInteger, nullable=False),
    sa.Column("server_id", TEXT),
    sa.Column("idempotency_key", TEXT),
    # Digests: of what was asked for, and of the answers that the run was given to begin with.
    sa.Column("request", sa.LargeBinary, nullable=False),
    sa.Column("resume", sa.LargeBinary),
    sa.Column("cancel_requested", sa.SmallInteger, nullable=False),
    # Whether all events are gone that retention can remove.
    sa.Column("trimmed", sa.SmallInteger, nullable=False),
    # Where its input is in `bodies`.
    sa.Column("input", sa.LargeBinary, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Index("served_runs_held", "thread_id", unique=True, **_where(HELD)),
    sa.Index("served_runs_thread", "thread_id", "position", unique=True),
    sa.Index("served_runs_key", "agent", "idempotency_key", unique=True),
    sa.Index("served_runs_resume", "resume"),
    sa.Index("served_runs_created", "created_at", "run"),
    sa.Index("served_runs_agent", "agent", "created_at", "run"),
    sa.Index("served_runs_status", "status", "created_at", "run"),
    sa.Index("served_runs_ended", "trimmed", "ended_at"),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("key_id", TEXT, primary_key=True),
    sa.Column("name", TEXT, nullable=False),
    sa.Column("scopes", TEXT, nullable=False),
    # SHA-256 of the secret, which is long and random: nothing slower is needed.
    sa.Column("hash", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger),
    sa.Column("revoked_at", sa.BigInteger),
)

# Those of the pages. A session ends with its key, and at its own time.
browser_sessions = sa.Table(
    "browser_sessions",
    metadata,
    # SHA-256 of the token, as of the secret of a key.
    sa.Column("hash", sa.LargeBinary, primary_key=True),
    sa.Column("key_id", TEXT, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
)
