"""Finished runs on their way to the store."""

from __future__ import annotations

import asyncio
from collections import deque

from seatrial.driver.conclusion import without_content
from seatrial.engine.trial import Finished
from seatrial.errors import SeatrialError
from seatrial.runs import Grade, Run
from seatrial.store import Receipt, Store

MAX_UNCONFIRMED = 256
"""Runs that may wait for their commit at once; bounds the memory, and what a kill can cost."""

TOGETHER = 64
"""Runs that are made into rows one right after the other, at most."""

_UNSTORABLE = frozenset({"unstorable", "too_deep"})
"""What the store says to a run that would fit into no store."""


class Outbox:
    """Hands runs to the store, and makes sure that each of them was taken.

    All that end in one turn of the event loop are handed over together. With the encoding code still in the
    processor's caches, that takes a tenth off the time of a run when there are a thousand at once.
    """

    def __init__(self, store: Store) -> None:
        self.elsewhere = 0
        """Runs that another process at the same experiment recorded first: its result counts."""
        self._store = store
        self._gathered: list[Finished] = []
        self._waiting: deque[tuple[Receipt[bool], Finished]] = deque()
        self._failure: Exception | None = None

    async def put(self, finished: Finished) -> None:
        """Hand a run over; waits for earlier ones when there are too many. Raises what the store fails with."""
        self._gathered.append(finished)
        if len(self._gathered) == 1:
            asyncio.get_running_loop().call_soon(self.send)
        elif len(self._gathered) >= TOGETHER:
            self.send()
        self._check_failure()
        waiting = self._waiting
        # What has been committed is released at once: bodies may be large.
        while len(waiting) > MAX_UNCONFIRMED or (waiting and waiting[0][0].done):
            await self._confirm()

    async def put_through(self, finished: Finished) -> None:
        """Hand a run over, and wait until it is stored. Raises what the store fails with."""
        await self._settled(self._sent(finished), finished)

    async def empty(self) -> None:
        """Wait until all runs are stored."""
        self.send()
        self._check_failure()
        while self._waiting:
            await self._confirm()

    def send(self) -> None:
        """Hand over what was gathered, without waiting."""
        gathered, self._gathered = self._gathered, []
        for finished in gathered:
            try:
                self._waiting.append((self._sent(finished), finished))
            except Exception as error:  # noqa: BLE001 (raised by the next `put`: the event loop would only print it)
                # The others are sent nevertheless: what has run should not have to run again.
                self._failure = self._failure or error

    def _check_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _sent(self, finished: Finished) -> Receipt[bool]:
        run = finished.kept
        try:
            return self._store.record_run(
                run, events=finished.events, first=finished.first_event, bodies=finished.earlier_bodies
            )
        except SeatrialError as error:
            if error.code not in _UNSTORABLE:
                raise
            return self._store.record_run(_without_content(run, error))

    async def _confirm(self) -> None:
        await self._settled(*self._waiting.popleft())

    async def _settled(self, receipt: Receipt[bool], finished: Finished) -> None:
        try:
            stored = await receipt
        except SeatrialError as error:
            if error.code not in _UNSTORABLE:
                raise
            stored = await self._store.record_run(_without_content(finished.kept, error))
        if not stored:
            self.elsewhere += 1


def _without_content(run: Run, error: SeatrialError) -> Run:
    kept = without_content(run, error)
    reasons = [] if kept.fault is None else [f"{kept.fault.error_class}: {kept.fault.message}"]
    kept.grade = Grade(outcome="errored", reasons=reasons)
    return kept
