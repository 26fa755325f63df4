"""What lasts as long as a session of PostgreSQL does: listening for notices, and advisory locks, which end with the
process that has them."""

from __future__ import annotations

import hashlib
import os
import selectors
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any

import msgspec
import psycopg

from seatrial.errors import SeatrialError
from seatrial.store.database import Callback
from seatrial.store.presence import being_run, this_process

CHANNEL = "seatrial_runs"
MAX_NOTICE_BYTES = 7900
"""PostgreSQL takes 7,999."""
MAX_PAUSE_S = 5.0
"""Between two tries to connect again."""

_CLAIM = "SELECT pg_try_advisory_lock(%s)"
# Looked up, not tried: trying would be in the way of a server that claims again.
_HELD = """
    SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_HOLDER = """
    SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) | objid::bigint = %s
"""

PATIENCE_S = 3.0
"""How long the lock of a process that died may outlive it, until the database has noticed."""
_PAUSE_S = 0.1

_IDS = msgspec.json.Decoder(list[str])


def notices_of(run_ids: Iterable[str]) -> Iterator[str]:
    """Notices that name these runs, each as long as it may be."""
    size = 0
    some: list[bytes] = []
    for run_id in dict.fromkeys(run_ids):
        name = msgspec.json.encode(run_id)
        if some and size + len(name) > MAX_NOTICE_BYTES:
            yield _notice(some)
            size, some = 0, []
        some.append(name)
        size += len(name) + 1
    if some:
        yield _notice(some)


def read_notice(notice: str) -> list[str]:
    """The ids in a notice; none when it is not one of ours."""
    try:
        return _IDS.decode(notice)
    except msgspec.DecodeError:
        return []


def _notice(names: list[bytes]) -> str:
    return f"[{b','.join(names).decode()}]"


class SessionListener:
    """A thread that waits for notices, and connects again when its session is lost."""

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        own_process: Callable[[], int | None],
        callback: Callback,
    ) -> None:
        self._connect = connect
        self._own_process = own_process
        self._callback = callback
        self._closed = threading.Event()
        session = self._listening()
        self._waking, self._wake = os.pipe()
        self.live = True
        self._thread = threading.Thread(target=self._work, args=(session,), name="seatrial-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; not to be called by the callback."""
        if not self._closed.is_set():
            self._closed.set()
            os.write(self._wake, b".")
            self._thread.join()
            self.live = False
            os.close(self._wake)
            os.close(self._waking)

    def _work(self, session: psycopg.Connection[Any] | None) -> None:
        pause = 0.1
        while not self._closed.is_set():
            try:
                with closing(session or self._listening()) as session:
                    self.live, pause = True, 0.1
                    self._hear(session)
            except psycopg.Error:
                self.live = False
                self._closed.wait(pause)
                pause = min(2 * pause, MAX_PAUSE_S)
            finally:
                self.live = False  # also when it was the callback that failed
            session = None

    def _hear(self, session: psycopg.Connection[Any]) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._waking, selectors.EVENT_READ)
            selector.register(session.fileno(), selectors.EVENT_READ)
            while not self._closed.is_set():
                # First what came with the answer to LISTEN: nothing may follow that would wake us.
                for notice in session.notifies(timeout=0):
                    if notice.pid != self._own_process():
                        self._tell(read_notice(notice.payload))
                selector.select()

    def _tell(self, run_ids: list[str]) -> None:
        for run_id in run_ids:
            if not self._closed.is_set():
                self._callback(run_id)

    def _listening(self) -> psycopg.Connection[Any]:
        session = self._connect()
        try:
            session.execute(f"LISTEN {CHANNEL}")
        except psycopg.Error:
            session.close()
            raise
        return session


class SessionHold:
    """The right to run an experiment."""

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        explained: Callable[[Exception], SeatrialError],
        experiment_id: str,
    ) -> None:
        self._connect = connect
        self._experiment_id = experiment_id
        self._key = _key(f"experiment {experiment_id}")
        self._owner = this_process()
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._session = self._held(PATIENCE_S)
        except psycopg.Error as error:
            raise explained(error) from error

    def check(self) -> None:
        with self._lock:
            if self._closed:
                return
            try:
                self._session.execute("SELECT 1")
            except psycopg.Error:
                self._session.close()
                self._hold_again()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._session.close()

    def _hold_again(self) -> None:
        with suppress(psycopg.Error):  # the database is away, which the writer notices too
            try:
                self._session = self._held(0)
            except SeatrialError:
                # A connection can break without the database noticing at once: it counts as ours until then.
                if self._holder() != self._owner:
                    raise

    def _held(self, patience_s: float) -> psycopg.Connection[Any]:
        """A session that holds the lock."""
        session = self._connect()
        deadline = time.monotonic() + patience_s
        try:
            session.execute("SELECT set_config('application_name', %s, false)", (self._owner,))
            while not session.execute(_CLAIM, (self._key,)).fetchall()[0][0]:
                if time.monotonic() > deadline:
                    raise being_run(self._experiment_id, self._holder(session))
                time.sleep(_PAUSE_S)
        except BaseException:
            session.close()
            raise
        return session

    def _holder(self, session: psycopg.Connection[Any] | None = None) -> str | None:
        if session is None:
            with self._connect() as session:
                return self._holder(session)
        found = session.execute(_HOLDER, (self._key,)).fetchone()
        return None if found is None else str(found[0])


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
