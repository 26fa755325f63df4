"""What is kept for the run service: its runs and its keys. Of a key there is a digest, which does not give the key."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.events.run_input import ResumeEntry
from seatrial.events.types import Interrupt, RunStatus
from seatrial.runs import ApiKey, Run, RunHead, Scope, ServedRun
from seatrial.store import rows
from seatrial.store.database import Operation, Transaction
from seatrial.store.documents import identifier, unpack
from seatrial.store.event_log import following
from seatrial.store.schema import api_keys, bodies, events, experiments, runs, served_runs

ACTIVE: tuple[RunStatus, ...] = ("pending", "running")
"""Statuses of a run that has not ended."""

SCOPES: tuple[Scope, ...] = get_args(Scope)

_SECRET = re.compile(r"st_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
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
) -> tuple[list[ServedRun], str | None]:
    """Runs, the newest first, and where the next page begins."""
    query = SELECT.order_by(served_runs.c.created_at.desc(), served_runs.c.run.desc()).limit(limit + 1)
    if agent is not None:
        query = query.where(served_runs.c.agent == agent)
    if thread_id is not None:
        query = query.where(served_runs.c.thread_id == thread_id)
    if statuses is not None:
        query = query.where(served_runs.c.status.in_(sorted(statuses)))
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


class AddKey(Operation[ApiKey]):
    """Store a new key."""

    def __init__(self, name: str, scopes: Iterable[Scope], now: int, expires_at: int | None) -> None:
        wanted = set(scopes)
        if not wanted or not wanted <= set(SCOPES):
            raise SeatrialError("invalid_request", f"the scopes of a key are some of {', '.join(SCOPES)}")
        key_id = secrets.token_hex(6)
        self.secret = f"st_{key_id}_{secrets.token_urlsafe(32)}"
        self._values: dict[str, object] = {
            "key_id": key_id,
            "name": identifier("name of a key", name),
            "scopes": " ".join(scope for scope in SCOPES if scope in wanted),
            "hash": _hash(self.secret),
            "created_at": now,
            "expires_at": expires_at,
        }

    def run(self, to: Transaction) -> ApiKey | SeatrialError:
        this = sa.select(api_keys).where(api_keys.c.key_id == self._values["key_id"])
        found = to.execute(this).first()
        if found is None:
            to.execute(sa.insert(api_keys).values(**self._values))
            found = to.execute(this).one()
        elif found.hash != self._values["hash"]:
            return SeatrialError("conflict", "a key with the same id was made before: try again")
        return _key_of_row(found)


class RevokeKey(Operation[ApiKey]):
    """End the life of a key, unless it was ended before."""

    def __init__(self, key_id: str, now: int) -> None:
        self._key_id = key_id
        self._now = now

    def run(self, to: Transaction) -> ApiKey | SeatrialError:
        this = api_keys.c.key_id == self._key_id
        to.execute(sa.update(api_keys).where(this, api_keys.c.revoked_at.is_(None)).values(revoked_at=self._now))
        found = to.execute(sa.select(api_keys).where(this)).first()
        if found is None:
            return SeatrialError("not_found", f"there is no key {self._key_id!r} in the store")
        return _key_of_row(found)


def all_keys(connection: sa.Connection) -> list[ApiKey]:
    """All keys ever made, the oldest first."""
    query = sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.key_id)
    return [_key_of_row(row) for row in connection.execute(query)]


def find_key(connection: sa.Connection, secret: str) -> ApiKey | None:
    """The key with this secret, also one that was revoked or has expired."""
    match = _SECRET.fullmatch(secret)
    if match is None:
        return None
    found = connection.execute(sa.select(api_keys).where(api_keys.c.key_id == match[1])).first()
    if found is None or not hmac.compare_digest(found.hash, _hash(secret)):
        return None
    return _key_of_row(found)


def has_keys(connection: sa.Connection) -> bool:
    """Whether any key was ever made: a store whose keys were all revoked is not open to everybody."""
    return connection.execute(sa.select(api_keys.c.key_id).limit(1)).first() is not None


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _key_of_row(row: sa.Row[Any]) -> ApiKey:
    return ApiKey(
        key_id=row.key_id,
        name=row.name,
        scopes=[scope for scope in SCOPES if scope in row.scopes.split()],
        created_at=moment(row.created_at),
        expires_at=moment(row.expires_at) if row.expires_at is not None else None,
        revoked_at=moment(row.revoked_at) if row.revoked_at is not None else None,
    )


_HEAD = _head()
