"""Keys of the run service: the store has a digest of each, from which nobody gets the key."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from typing import Any, get_args

import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.runs import ApiKey, Scope
from seatrial.store import rows
from seatrial.store.schema import api_keys
from seatrial.store.served import moment
from seatrial.store.transaction import Operation, Transaction

SCOPES: tuple[Scope, ...] = get_args(Scope)

_SECRET = re.compile(r"st_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")


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
            "name": rows.identifier("name of a key", name),
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
        return _of_row(found)


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
        return _of_row(found)


def every(connection: sa.Connection) -> list[ApiKey]:
    """All keys ever made, the oldest first."""
    query = sa.select(api_keys).order_by(api_keys.c.created_at, api_keys.c.key_id)
    return [_of_row(row) for row in connection.execute(query)]


def find(connection: sa.Connection, secret: str) -> ApiKey | None:
    """The key with this secret, also one that was revoked or has expired."""
    match = _SECRET.fullmatch(secret)
    if match is None:
        return None
    found = connection.execute(sa.select(api_keys).where(api_keys.c.key_id == match[1])).first()
    if found is None or not hmac.compare_digest(found.hash, _hash(secret)):
        return None
    return _of_row(found)


def exist(connection: sa.Connection) -> bool:
    """Whether any key was ever made: a store whose keys were all revoked is not open to everybody."""
    return connection.execute(sa.select(api_keys.c.key_id).limit(1)).first() is not None


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _of_row(row: sa.Row[Any]) -> ApiKey:
    return ApiKey(
        key_id=row.key_id,
        name=row.name,
        scopes=[scope for scope in SCOPES if scope in row.scopes.split()],
        created_at=moment(row.created_at),
        expires_at=moment(row.expires_at) if row.expires_at is not None else None,
        revoked_at=moment(row.revoked_at) if row.revoked_at is not None else None,
    )
