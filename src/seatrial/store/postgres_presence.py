"""Presence in PostgreSQL: an advisory lock in a session of its own, which ends with the server that has it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from typing import Any

import psycopg

from seatrial.errors import SeatrialError

_CLAIM = "SELECT pg_try_advisory_lock(%s)"
# Looked up, not tried: trying would be in the way of a server that claims again.
_HELD = """
    SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class SessionClaim:
    """The claim of one server among several."""

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        explained: Callable[[Exception], SeatrialError],
        server_id: str,
    ) -> None:
        self._connect = connect
        self._explained = explained
        self._server_id = server_id
        self._lock = threading.Lock()
        self._session = self._claimed()
        if self._session is None:
            raise SeatrialError("conflict", f"another server has the id {server_id!r}")

    @property
    def lost(self) -> bool:
        return self._session is None

    def renew(self) -> None:
        with self._lock:
            if self._session is None:
                self._session = self._claimed()
            if self._session is None:
                # A connection can break without the database noticing at once: it counts as ours until then.
                raise SeatrialError("store_unavailable", "the database holds on to the connection that was lost")

    def dead(self, server_ids: Iterable[str]) -> set[str]:
        with self._lock:
            if self._session is None:
                return set()
            try:
                held = {key for (key,) in self._session.execute(_HELD)}
            except psycopg.Error:
                self._session.close()
                self._session = None
                return set()
        own = _key(self._server_id)
        return {server_id for server_id in server_ids if (key := _key(server_id)) not in held and key != own}

    def close(self) -> None:
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    def _claimed(self) -> psycopg.Connection[Any] | None:
        """A session that holds the lock; None when another one does."""
        try:
            session = self._connect()
            [(ours,)] = session.execute(_CLAIM, (_key(self._server_id),)).fetchall()
        except psycopg.Error as error:
            raise self._explained(error) from error
        if ours:
            return session
        session.close()
        return None


def _key(server_id: str) -> int:
    """A number for a server, in the range of the locks' keys."""
    return int.from_bytes(hashlib.sha256(server_id.encode()).digest()[:8], "big", signed=True)
