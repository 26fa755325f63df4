"""Background work of a server: ending runs that no process drives, deleting old events, and probing the store.

The store says which runs there are; notifications only make it quicker. A missed one costs time, and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from traceback import extract_tb
from typing import NoReturn

import msgspec

from seatrial.driver import run_error
from seatrial.errors import SeatrialError
from seatrial.runs import Fault, ServedRun
from seatrial.server.context import ServiceContext
from seatrial.server.driving import Drive
from seatrial.server.ending import LOST, PASSING, end_by_log
from seatrial.server.logs import log, log_fault
from seatrial.store import Receipt, Store
from seatrial.store.presence import Presence

AT_ONCE = 8
"""How many runs are ended at the same time: each of their logs is read."""
COUNTS = 10
"""How often the events of pushed runs are counted in the time after which one that has no more is ended."""


class Survey(msgspec.Struct):
    """What there is in the store that has not ended."""

    runs: list[ServedRun]
    dead: set[str]
    """Servers that are gone."""
    lengths: dict[str, int] | None
    """How many events the pushed runs have; None when it is not time to count."""


class Reaper:
    """Ends runs whose server died or whose agent went silent, and forwards requests to cancel; sweeps regularly."""

    def __init__(
        self,
        context: ServiceContext,
        drives: Mapping[str, Drive],
        admitting: set[str],
        *,
        every_s: float,
        push_idle_s: float,
    ) -> None:
        """`drives` are the runs that this server drives, `admitting` those that it is about to."""
        self._context = context
        self._drives = drives
        self._admitting = admitting
        self._every_s = every_s
        self._push_idle_s = push_idle_s
        self._silent: dict[str, tuple[int, float]] = {}
        """Pushed runs: how many events they had, and since when."""
        self._count_at = 0.0
        self._over = asyncio.Event()
        self._unattended: set[str] = set()
        """Runs of this server that no task was driving at the last sweep."""

    @asynccontextmanager
    async def running(self, presence: Presence) -> AsyncIterator[None]:
        """Sweep now, and regularly inside this block. Leaving it waits for a sweep that is running."""
        await self.sweep(presence)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run(presence))
            try:
                yield
            finally:
                self._over.set()

    async def _run(self, presence: Presence) -> None:
        while not self._over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._over.wait()
                    return
            try:
                await self.sweep(presence)
            except SeatrialError as error:
                log("sweep_failed", code=error.code)
            except Exception as error:  # noqa: BLE001 (a fault of ours must not keep it from ever looking again)
                log_fault("reaper", type(error).__name__, extract_tb(error.__traceback__))

    async def sweep(self, presence: Presence) -> None:
        """Look once, and end or cancel what has to be."""
        survey = await asyncio.to_thread(self._survey, presence)
        self._pass_on_cancels(survey)
        ends = [*self._of_the_dead(survey), *self._unattended_ones(survey), *self._silent_ones(survey)]
        places = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for run, fault in ends:
                group.create_task(self._end(run, fault, places))

    def _survey(self, presence: Presence) -> Survey:
        store, own = self._context.store, self._context.server_id
        runs = store.active_runs()
        # Asked also when there are no others: it is how the loss of the own claim is noticed.
        dead = presence.dead({run.server_id for run in runs if run.server_id is not None and run.server_id != own})
        if presence.lost:
            log("presence_lost")
            presence.renew()
        lengths = None
        now = self._context.clock.monotonic_s()
        if now >= self._count_at:
            lengths = {run.run_id: store.run_head(run.run_id).following for run in runs if run.pushed}
            self._count_at = now + self._push_idle_s / COUNTS
        return Survey(runs, dead, lengths)

    def _pass_on_cancels(self, survey: Survey) -> None:
        for run in survey.runs:
            if run.cancel_requested and (drive := self._drives.get(run.run_id)) is not None:
                drive.halt("cancelled")

    def _of_the_dead(self, survey: Survey) -> list[tuple[ServedRun, Fault]]:
        fault = Fault("server_restarted", "the server that ran it is gone")
        return [(run, fault) for run in survey.runs if run.server_id in survey.dead]

    def _unattended_ones(self, survey: Survey) -> list[tuple[ServedRun, Fault]]:
        """Runs that were admitted when the store said that they were not, or whose end failed by a fault of ours."""
        unattended = {
            run.run_id: run
            for run in survey.runs
            if run.server_id == self._context.server_id
            and run.run_id not in self._drives
            and run.run_id not in self._admitting
        }
        fault = Fault("internal_error", "the server has lost the run")
        # One that is there for the first time may be on its way.
        due = [(run, fault) for run_id, run in unattended.items() if run_id in self._unattended]
        self._unattended = set(unattended)
        return due

    def _silent_ones(self, survey: Survey) -> list[tuple[ServedRun, Fault]]:
        if survey.lengths is None:
            return []
        now = self._context.clock.monotonic_s()
        silent = {}
        for run_id, length in survey.lengths.items():
            known, since = self._silent.get(run_id, (-1, now))
            silent[run_id] = (length, since if length == known else now)
        self._silent = silent
        fault = Fault("push_timeout", f"no event was pushed for {self._push_idle_s:g} s")
        runs = [run for run in survey.runs if run.pushed]
        return [(run, fault) for run in runs if now - silent[run.run_id][1] >= self._push_idle_s]

    async def _end(self, run: ServedRun, fault: Fault, places: asyncio.Semaphore) -> None:
        async with places:
            try:
                await end_by_log(self._context, run, run_error(fault), fault)
            except SeatrialError as error:
                # Another server was quicker, or the store is away: the next sweep looks again.
                if error.code not in LOST | PASSING:
                    log("end_failed", run_id=run.run_id, code=error.code)


EVERY_S = 3600.0

_RUNS_AT_ONCE = 100
_DAY_MS = 24 * 3600 * 1000


async def keep_for(store: Store, days: float) -> NoReturn:
    """Keep deleting the events of runs that ended earlier, until cancelled."""
    while True:
        try:
            forgotten = await forget_before(store, round(time.time() * 1000 - days * _DAY_MS))
        except SeatrialError as error:
            log("retention", code=error.code)
        else:
            if forgotten:
                log("retention", runs=forgotten)
        await asyncio.sleep(EVERY_S)


async def forget_before(store: Store, ended_at: int) -> int:
    """Delete the events of runs that ended before a time (in ms); gives how many runs."""
    count = 0
    while run_ids := await asyncio.to_thread(store.ended_before, ended_at, _RUNS_AT_ONCE):
        for run_id in run_ids:
            head = await asyncio.to_thread(store.run_head, run_id)
            await store.forget_events(run_id, head.following)
        count += len(run_ids)
    return count


WRITE_TIMEOUT_S = 2.0
"""How long a write may take before the store counts as not ready."""
KEPT_S = 1.0
"""How long an answer is reused: probes need no key, and must not be able to keep the store busy."""


class Readiness:
    """Checks that the store takes writes, one check at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked: Receipt[None] | None = None
        self._asked_at = 0.0
        self._lock = asyncio.Lock()

    async def check(self) -> None:
        """Raise `SeatrialError` when the store refuses to write, or does not get to it in time."""
        async with self._lock:
            if self._asked is None or (self._asked.done and time.monotonic() - self._asked_at > KEPT_S):
                self._asked = None
                self._asked = await asyncio.to_thread(self._store.probe)
                self._asked_at = time.monotonic()
            asked = self._asked
        try:
            async with asyncio.timeout(max(0.0, WRITE_TIMEOUT_S - (time.monotonic() - self._asked_at))):
                await asked
        except TimeoutError:
            raise SeatrialError(
                "store_unavailable", f"the store did not take a write within {WRITE_TIMEOUT_S:g} s"
            ) from None
