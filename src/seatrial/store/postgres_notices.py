"""Notices from PostgreSQL, by LISTEN in a session of its own."""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg

from seatrial.store import notices

CHANNEL = "seatrial_runs"
MAX_PAUSE_S = 5.0
"""Between two tries to connect again."""


class SessionListener:
    """A thread that waits for notices, and connects again when its session is lost."""

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        own_process: Callable[[], int | None],
        callback: notices.Callback,
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
                        self._tell(notices.read(notice.payload))
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
