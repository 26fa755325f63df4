"""What is kept for the run service: its runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.events.run_input import ResumeEntry
from seatrial.events.types import Interrupt, RunStatus
from seatrial.runs import Run, RunHead, ServedRun
from seatrial.store import rows
from seatrial.store.documents import unpack
from seatrial.store.event_log import following
from seatrial.store.filter.conditions import conditions
from seatrial.store.filter.language import FilterTerm
from seatrial.store.schema import bodies, events, experiments, runs, served_runs

ACTIVE: tuple[RunStatus, ...] = ("pending", "running")
"""Statuses of a run that has not ended."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE = re.compile(r"(-?[0-9]{1,18})\.([0-9]{1,18})")


class Admission(msgspec.Struct, kw_only=True):
    """A run that is asked for."""

    run_id: str
    thread_id: str
    agent: str
    pushed: bool = False
    """Whether no server drives it."""
    server_id: str
    """The server that was asked, of `Store.begin_serving`."""
    created_at: int
    """Milliseconds since the epoch; interrupts expire by it."""
    input: bytes
    """RunAgentInput, as JSON."""
    first_event: bytes
    """RUN_STARTED."""
    request: bytes
    """What was asked for, in one canonical form: what the same idempotency key must come with again."""
    idempotency_key: str | None = None
    """Unique among the runs of the agent."""
    resume: list[ResumeEntry] | None = None
    """Answers to the open interrupts of the thread."""
    status: Literal["pending", "running"] = "running"


class Admitted(msgspec.Struct):
    """A run that was asked for, and is there now."""

    run: ServedRun
    created: bool
    """False when it was there already, made by the same request."""


class Ending(msgspec.Struct, kw_only=True):
    """The end of a run."""

    run: Run
    """Its record. The store knows where it belongs: its key and its experiment are ignored."""
    status: Literal["completed", "failed", "cancelled", "input_required"]
    events: list[bytes]
    """The last events, and the terminal one at their end."""
    first: int
    """The sequence of the first of them."""
    ended_at: int
    """Milliseconds since the epoch."""
    interrupts: list[Interrupt] = []
    """What has to be answered before the thread can continue, when the status is `input_required`."""
    error_code: str | None = None
    error_message: str | None = None


class ServedData(msgspec.Struct, omit_defaults=True):
    """What of a served run is not asked for by queries."""

    interrupts: list[Interrupt] = []
    error_code: str | None = None
    error_message: str | None = None


DATA = msgspec.json.Decoder(ServedData)
SELECT = sa.select(runs.c.run_id, served_runs).join(runs, runs.c.id == served_runs.c.run)
"""Rows that `of_row` takes."""


def of_row(row: sa.Row[Any]) -> ServedRun:
    """The run of a row of `SELECT`."""
    try:
        data = wire.decode(row.data, DATA)
    except SeatrialError as error:
        # A list must not be lost with one of its runs.
        message = f"the stored record of the run is damaged: {error.message}"
        data = ServedData(error_code="record_damaged", error_message=message)
    return ServedRun(
        run_id=row.run_id,
        thread_id=row.thread_id,
        agent=row.agent,
        status=row.status,
        created_at=moment(row.created_at),
        ended_at=moment(row.ended_at) if row.ended_at is not None else None,
        pushed=bool(row.pushed),
        server_id=row.server_id,
        idempotency_key=row.idempotency_key,
        cancel_requested=bool(row.cancel_requested),
        interrupts=data.interrupts,
        error_code=data.error_code,
        error_message=data.error_message,
    )


def moment(milliseconds: int) -> datetime:
    """A time of the store's as the API gives it."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def one(connection: sa.Connection, run_id: str) -> ServedRun:
    """One run."""
    found = connection.execute(SELECT.where(runs.c.run_id == run_id)).first()
    if found is None:
        raise rows.no_run(run_id)
    return of_row(found)


def page(
    connection: sa.Connection,
    agent: str | None,
    thread_id: str | None,
    statuses: frozenset[RunStatus] | None,
    before: str | None,
    limit: int,
    terms: Sequence[FilterTerm] = (),
) -> tuple[list[ServedRun], str | None]:
    """Runs, the newest first, and where the next page begins."""
    query = SELECT.order_by(served_runs.c.created_at.desc(), served_runs.c.run.desc()).limit(limit + 1)
    if agent is not None:
        query = query.where(served_runs.c.agent == agent)
    if thread_id is not None:
        query = query.where(served_runs.c.thread_id == thread_id)
    if statuses is not None:
        query = query.where(served_runs.c.status.in_(sorted(statuses)))
    query = query.where(*conditions(terms))
    if before is not None:
        query = query.where(sa.tuple_(served_runs.c.created_at, served_runs.c.run) < _place(before))
    found = connection.execute(query).all()
    following = f"{found[limit - 1].created_at}.{found[limit - 1].run}" if len(found) > limit > 0 else None
    return [of_row(row) for row in found[:limit]], following


def of_thread(connection: sa.Connection, thread_id: str) -> list[ServedRun]:
    """All runs of a thread, in their order."""
    query = SELECT.where(served_runs.c.thread_id == thread_id).order_by(served_runs.c.position)
    return [of_row(row) for row in connection.execute(query)]


def active(connection: sa.Connection, server_id: str | None) -> list[ServedRun]:
    """Runs that have not ended, the oldest first."""
    query = SELECT.where(served_runs.c.status.in_(ACTIVE)).order_by(served_runs.c.created_at, served_runs.c.run)
    if server_id is not None:
        query = query.where(served_runs.c.server_id == server_id)
    return [of_row(row) for row in connection.execute(query)]


def input_of(connection: sa.Connection, run_id: str) -> bytes:
    """The RunAgentInput of a run."""
    found = connection.execute(
        sa.select(bodies.c.packed, bodies.c.data)
        .join(served_runs, served_runs.c.input == bodies.c.hash)
        .join(runs, runs.c.id == served_runs.c.run)
        .where(runs.c.run_id == run_id)
    ).first()
    if found is None:
        raise rows.no_run(run_id)
    return unpack(found.packed, found.data)


def head(connection: sa.Connection, run_id: str) -> RunHead:
    """What a stream needs to know of any run."""
    found = connection.execute(_HEAD, {"run_id": run_id}).first()
    if found is None:
        raise rows.no_run(run_id)
    return RunHead(
        run_id=run_id,
        thread_id=found.thread_id if found.thread_id is not None else found.experiment_id,
        status=found.served if found.served is not None else found.status,
        first=found.first,
        following=found.following,
        closed=found.status not in rows.UNFINISHED,
    )


def ended_before(connection: sa.Connection, ended_at: int, limit: int) -> list[str]:
    """Ids of runs that ended earlier and have events that can be forgotten, the longest ended first."""
    found = connection.execute(
        sa.select(runs.c.run_id)
        .join(served_runs, served_runs.c.run == runs.c.id)
        .where(served_runs.c.trimmed == 0, served_runs.c.ended_at < ended_at)
        .order_by(served_runs.c.ended_at)
        .limit(limit)
    )
    return list(found.scalars())


def _head() -> sa.Select[Any]:
    # One end of the key's index each: what a run has in between does not matter.
    first = sa.select(events.c.first).where(events.c.run == runs.c.id).order_by(events.c.first).limit(1)
    return (
        sa.select(
            runs.c.status,
            served_runs.c.status.label("served"),
            served_runs.c.thread_id,
            experiments.c.experiment_id,
            sa.func.coalesce(first.scalar_subquery(), 0).label("first"),
            following(),
        )
        .select_from(runs)
        .join(experiments, experiments.c.id == runs.c.experiment)
        .outerjoin(served_runs, served_runs.c.run == runs.c.id)
        .where(runs.c.run_id == sa.bindparam("run_id"))
    )


def _place(before: str) -> tuple[int, int]:
    match = _PLACE.fullmatch(before)
    if match is None:
        raise SeatrialError("invalid_request", f"{before[:80]!r} is not where a page of runs begins")
    return int(match[1]), int(match[2])


_HEAD = _head()
