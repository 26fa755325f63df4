"""Keys of the run service, and the sessions that browsers open with them. Of both, only digests are kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, get_args

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.runs import ApiKey, Scope
from seatrial.store.database import Operation, Transaction
from seatrial.store.documents import identifier
from seatrial.store.schema import api_keys, browser_sessions
from seatrial.store.served import moment
from seatrial.store.writer import Writer

SCOPES: tuple[Scope, ...] = get_args(Scope)

_SECRET = re.compile(r"st_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")


class Keyring:
    """The keys of a store. Times are in ms since the epoch."""

    def __init__(self, writer: Writer, reading: Callable[[], AbstractContextManager[sa.Connection]]) -> None:
        self._writer = writer
        self._reading = reading

    def add(self, name: str, scopes: Iterable[Scope], *, now: int, expires_at: int | None = None) -> tuple[ApiKey, str]:
        """Make a key; its secret, `st_<id>_...`, is given here and nowhere else."""
        operation = AddKey(name, scopes, now, expires_at)
        return self._writer.submit(operation).wait(), operation.secret

    def revoke(self, key_id: str, now: int) -> ApiKey:
        """End the life of a key, and of the sessions that were opened with it; `not_found` when there is none."""
        return self._writer.submit(RevokeKey(key_id, now)).wait()

    def all(self) -> list[ApiKey]:
        """All keys ever made, the oldest first."""
        with self._reading() as connection:
            query = sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.key_id)
            return [_key_of_row(row) for row in connection.execute(query)]

    def find(self, secret: str) -> ApiKey | None:
        """The key with this secret; whether it was revoked or has expired is for the caller to see."""
        match = _SECRET.fullmatch(secret)
        if match is None:
            return None
        with self._reading() as connection:
            found = connection.execute(sa.select(api_keys).where(api_keys.c.key_id == match[1])).first()
        if found is None or not hmac.compare_digest(found.hash, _hash(secret)):
            return None
        return _key_of_row(found)

    def exists(self) -> bool:
        """Whether any key was ever made: a store whose keys were all revoked is not open to everybody."""
        with self._reading() as connection:
            return connection.execute(sa.select(api_keys.c.key_id).limit(1)).first() is not None

    def open_session(self, key: ApiKey, *, now: int, expires_at: int) -> str:
        """Open a session with a key; its token is given here and nowhere else."""
        token = secrets.token_urlsafe(32)
        self._writer.submit(_OpenSession(_hash(token), key.key_id, now, expires_at)).wait()
        return token

    def session_key(self, token: str) -> ApiKey | None:
        """The key that a session was opened with; it expires with the session. None when there is no such session."""
        with self._reading() as connection:
            found = connection.execute(_SESSIONS.where(browser_sessions.c.hash == _hash(token))).first()
        return None if found is None else _key_of_session(found)

    def session_keys(self) -> dict[bytes, ApiKey]:
        """The keys of all sessions, by the digests of their tokens."""
        with self._reading() as connection:
            return {row.session: _key_of_session(row) for row in connection.execute(_SESSIONS)}

    def end_session(self, token: str) -> None:
        """Forget a session."""
        self._writer.submit(_EndSession(_hash(token))).wait()


_SESSIONS = sa.select(
    api_keys, browser_sessions.c.hash.label("session"), browser_sessions.c.expires_at.label("until")
).join(browser_sessions, browser_sessions.c.key_id == api_keys.c.key_id)


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


class _OpenSession(Operation[None]):
    def __init__(self, digest: bytes, key_id: str, now: int, expires_at: int) -> None:
        self._now = now
        self._values = {"hash": digest, "key_id": key_id, "created_at": now, "expires_at": expires_at}

    def run(self, to: Transaction) -> None:
        to.execute(sa.delete(browser_sessions).where(browser_sessions.c.expires_at <= self._now))
        # A transaction may be done again.
        to.execute(sa.delete(browser_sessions).where(browser_sessions.c.hash == self._values["hash"]))
        to.execute(sa.insert(browser_sessions).values(**self._values))


class _EndSession(Operation[None]):
    def __init__(self, digest: bytes) -> None:
        self._digest = digest

    def run(self, to: Transaction) -> None:
        to.execute(sa.delete(browser_sessions).where(browser_sessions.c.hash == self._digest))


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _key_of_row(row: sa.Row[Any]) -> ApiKey:
    return ApiKey(
        key_id=row.key_id,
        name=row.name,
        scopes=[scope for scope in SCOPES if scope in row.scopes.split()],
        created_at=moment(row.created_at),
        expires_at=moment(row.expires_at) if row.expires_at is not None else None,
        revoked_at=moment(row.revoked_at) if row.revoked_at is not None else None,
    )


def _key_of_session(row: sa.Row[Any]) -> ApiKey:
    key = _key_of_row(row)
    until = moment(row.until)
    return msgspec.structs.replace(key, expires_at=until if key.expires_at is None else min(key.expires_at, until))
