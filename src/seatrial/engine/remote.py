"""Workers elsewhere, as one experiment sees them: who has which run, and what becomes of the runs of a worker that is
lost.

Limits, budget and stop stay with the experiment. A run goes to the worker that has the fewest, and its first attempt
begins there at once; for every other one the worker asks. What a lost worker had not stored goes to another one.

Any run of a lost worker may be what ended it. Each of them is run again alone, on a worker that has nothing else: one
that loses that worker as well ends with a fault of its own, and the others are run as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol
from uuid import uuid4

import msgspec

from seatrial._support import wire
from seatrial._version import __version__
from seatrial.agents.python.config import PythonConfig
from seatrial.engine.budget import spent_by
from seatrial.engine.executor import AgentNotes, Assignment, RunEnd, WorkersEnd
from seatrial.engine.interrupted import interrupted_attempt
from seatrial.engine.limit import AttemptGate
from seatrial.engine.messages import (
    REPORTS,
    Admit,
    Answered,
    BatchEnded,
    Begin,
    BeginBatch,
    Broken,
    Close,
    Closed,
    Dropped,
    Job,
    Left,
    Noted,
    Pause,
    Ready,
    RunEnded,
    StopWork,
    Stored,
    Waiting,
    WorkerOrder,
    WorkerReport,
)
from seatrial.engine.stop import StopRequestedError
from seatrial.engine.trial import Trial
from seatrial.errors import SeatrialError
from seatrial.runs import Fault, RunKey
from seatrial.store import RunFilter
from seatrial.suites import Budget, stored_form

PATIENCE_S = 120.0
"""How long there may be no worker at all before the experiment gives up."""
MAX_LOSSES = 5
"""Workers that one run may lose before it ends with a fault."""
LOST_ALONE = 2
"""The same for a run that is alone, when it may well be what ends them; a machine may be lost once at that moment."""
PING_S = 5.0
"""Between two questions whether a worker responds."""
SILENT_S = 30.0
"""How long a worker may take to respond, when none of its runs has time left, or had it so long ago."""
TOGETHER_S = 5.0
"""How long the first worker waits for the others."""
RESTART_S = 0.5
"""Between the loss of a worker and the start of another one."""
ENDING_S = 1.5
"""How long workers may take to store what has ended, when the experiment is cancelled."""
FINISH_S = 60.0
"""The same when nothing is in a hurry."""


class WorkerLostError(Exception):
    """A worker is gone: its process, its machine, or the way to it."""


class WorkerStuckError(WorkerLostError):
    """A worker does not respond: something keeps its event loop, or its interpreter."""


class WorkerLink(Protocol):
    """The way to one worker, which runs a `seatrial.engine.host.WorkerHost`. Every method raises `WorkerLostError`."""

    async def send(self, orders: bytes) -> None:
        """Pass orders to `WorkerHost.obey`."""

    async def receive(self) -> bytes:
        """Wait for what `WorkerHost.reports` gives."""

    async def end(self) -> None:
        """End the worker, whatever it is doing."""


class WorkerPool(Protocol):
    """Where workers are started."""

    async def start(self, job: bytes) -> WorkerLink:
        """Start one more worker with a job, and wait as long as there is no room for one. Raises `SeatrialError` when
        there can never be one."""


def job_of(work: Assignment) -> Job:
    """What workers are started with. Raises `SeatrialError` when they could not open the store."""
    store = work.store.address()
    if store is None:
        raise SeatrialError(
            "usage",
            "workers in other processes cannot share this store, which is a file or in memory",
            hint="keep it in PostgreSQL: --store postgresql://user@host/database",
        )
    suite = work.suite
    return Job(
        experiment_id=work.experiment.experiment_id,
        version=__version__,
        suite=msgspec.Raw(wire.encode(stored_form(msgspec.structs.replace(suite, cases=[])))),
        file=None if suite.file is None else os.path.abspath(suite.file),
        directory=os.getcwd(),
        grading=suite.grading,
        agents=list(work.agents),
        secrets=work.secrets.names,
        store=store,
    )


@asynccontextmanager
async def remote_workers(work: Assignment, pool: WorkerPool, count: int) -> AsyncIterator[RemoteWorkers]:
    """So many workers of a pool, ready, for as long as the block lasts."""
    workers = RemoteWorkers(work, pool)
    job = wire.encode(job_of(work))
    tasks = [asyncio.create_task(workers.keep(job)) for _ in range(count)]
    tasks.append(asyncio.create_task(workers.pass_on_stop()))
    try:
        await workers.all_ready(count)
        yield workers
    finally:
        tasks += workers.again
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Lease:
    """A run that a worker has."""

    def __init__(self, trial: Trial, gate: AttemptGate, ticket: int, *, alone: bool = False) -> None:
        self.trial = trial
        self.alone = alone
        self.answered = False
        """Whether the agent is done with it; known only of one that is alone."""
        now_s = asyncio.get_running_loop().time()
        self.until_s = math.inf if trial.deadline_s is None else now_s + trial.deadline_s
        self.gate = gate
        self.ticket: int | None = ticket
        """With which its attempt was let in; None when none is active."""
        self.entering: asyncio.Task[None] | None = None
        """Waits until its next attempt may begin."""
        self.end: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()

    def leave(self, *, refused: bool = False, retry_after_s: float | None = None) -> None:
        """No attempt is active any more."""
        if self.entering is not None:
            self.entering.cancel()
            self.entering = None
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            self.gate.leave(ticket, refused=refused, retry_after_s=retry_after_s)


class RemoteWorkers:
    """The `Workers` of an executor whose workers are other processes."""

    def __init__(self, work: Assignment, pool: WorkerPool) -> None:
        self.batches: frozenset[str] = frozenset()
        self._work = work
        self._pool = pool
        self._ready: list[_Worker] = []
        self._someone = asyncio.Event()
        self._failure: SeatrialError | None = None
        self._last_loss = "none was started yet"
        self._losses: Counter[RunKey] = Counter()
        """How many workers each run has lost."""
        self._lost_alone: Counter[RunKey] = Counter()
        """The same of runs that were alone."""
        self._freed = asyncio.Event()
        """Set whenever a worker may take runs again, or is gone."""
        self._end = WorkersEnd()
        self._finishing = False
        self.again: set[asyncio.Task[None]] = set()
        """Runs that are run again."""
        self.settled = asyncio.Event()
        """Set whenever there is less to wait for."""

    async def run(self, trial: Trial, gate: AttemptGate) -> RunEnd:
        key = trial.key
        while self._losses[key] <= 2 * MAX_LOSSES:
            alone = self._losses[key] > 0 and trial.fault is None
            lease = _Lease(trial, gate, await gate.enter(), alone=alone)
            try:
                async with self._chosen(alone=alone) as worker:
                    return await worker.run(trial.run_id, lease)
            except WorkerLostError as error:
                stored = self._stored({key: trial.run_id})
                if stored:
                    return stored[0]
                self._losses[key] += 1
                self._lost_alone[key] += alone
                trial = self._once_more(trial)
                trial.fault = trial.fault or self._fault_of(lease, error)
            finally:
                lease.leave()
        # It was not even run in the end: it is not what ends them.
        message = f"the run of {key.case_id!r} by {key.agent!r} lost {self._losses[key]} workers"
        raise SeatrialError("executor_failed", f"{message}: {self._last_loss}", hint="look at the workers' machines")

    def _fault_of(self, lease: _Lease, error: WorkerLostError) -> Fault | None:
        """The fault of a run that has lost a worker; None when it is to be run again."""
        key = lease.trial.key
        stuck = lease.alone and isinstance(error, WorkerStuckError)
        if not stuck and self._lost_alone[key] < LOST_ALONE and self._losses[key] < MAX_LOSSES:
            return None
        # Only functions run in the worker's own process; what comes after the answer is the doing of graders, or ours.
        if not lease.alone or lease.answered or not isinstance(self._work.suite.agents[key.agent], PythonConfig):
            what = "while it was graded" if lease.answered else "while it was run"
            return Fault("internal_error", f"{self._losses[key]} workers were lost {what}, the last one: {error}")
        if stuck:
            message = (
                f"the function had not returned by its deadline of {lease.trial.deadline_s:g} s, and kept the worker "
                "from running anything else; the worker was ended"
            )
            return Fault("deadline_exceeded", message)
        message = (
            f"{self._losses[key]} workers ended while the function ran, {self._lost_alone[key]} of them with no other"
        )
        return Fault(
            "agent_exit", f"{message} run: the function ends its process (os._exit, a crash in C, too much memory)"
        )

    async def run_batch(self, agent: str, trials: Iterator[Trial]) -> AsyncGenerator[RunEnd | AgentNotes, None]:
        missing = {trial.key: trial.run_id for trial in trials}
        for _ in range(MAX_LOSSES):
            worker = await self.any_ready()
            try:
                async for end in worker.run_batch(agent, missing):
                    if isinstance(end, RunEnd):
                        missing.pop(end.key, None)  # one that was graded again is not missing any more
                    yield end
            except WorkerLostError:
                for stored in self._stored(missing):
                    del missing[stored.key]
                    yield stored
                missing = {key: uuid4().hex for key in missing}
                if not missing:
                    return
            else:
                return
        raise SeatrialError("executor_failed", f"the batch of {agent!r} lost {MAX_LOSSES} workers: {self._last_loss}")

    async def finish(self) -> WorkersEnd:
        while self.again or any(worker.unstored for worker in self._ready):
            self.settled.clear()
            await self.settled.wait()
            if self._failure is not None:
                raise self._failure
        self._finishing = True
        ready = list(self._ready)
        for worker in ready:
            worker.tell(Close())
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_S):
                for worker in ready:
                    await worker.gone.wait()  # everything is stored, also of one that is lost now
        return self._end

    @asynccontextmanager
    async def _chosen(self, *, alone: bool) -> AsyncIterator[_Worker]:
        """A worker for a run; for one that is to be alone, a worker that has no other as long as the block lasts."""
        worker = await self.any_ready()
        if not alone:
            yield worker
            return
        worker.reserved = True
        try:
            while (worker.load or worker.unstored) and not worker.gone.is_set():
                worker.lessened.clear()
                await self._work.stop.unless_asked(worker.lessened.wait())
            if worker.gone.is_set():
                raise WorkerLostError("the worker is gone")
            yield worker
        finally:
            worker.reserved = False
            self._freed.set()

    async def any_ready(self) -> _Worker:
        """The worker that has the fewest runs; waits for one."""
        while self._failure is None and not any(not worker.reserved for worker in self._ready):
            if self._ready:
                self._freed.clear()
                await self._work.stop.unless_asked(self._freed.wait())
                continue
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._work.stop.unless_asked(self._someone.wait())
            except TimeoutError:
                message = f"there has been no worker for {PATIENCE_S:g} s: {self._last_loss}"
                raise SeatrialError(
                    "executor_failed", message, hint="look at the workers' machines, then resume"
                ) from None
        if self._failure is not None:
            raise self._failure
        return min((worker for worker in self._ready if not worker.reserved), key=lambda worker: worker.load)

    async def all_ready(self, count: int) -> None:
        """Wait for the first worker, and for a moment for so many, lest the first gets all there is to do."""
        await self.any_ready()
        with suppress(TimeoutError):
            async with asyncio.timeout(TOGETHER_S):
                while len(self._ready) < count and self._failure is None and self._work.stop.reason is None:
                    await asyncio.sleep(0.05)

    async def keep(self, job: bytes) -> None:
        """Have a worker, and another one whenever it is lost."""
        try:
            while not self._finishing:
                worker = _Worker(await self._pool.start(job), self)
                try:
                    await self._served(worker)
                except WorkerLostError as error:
                    self._last_loss = str(error)
                    self._work.warn(f"a worker was lost, and what it had goes to another: {error}")
                    self._recover(worker.unstored)
                    await asyncio.sleep(RESTART_S)
        except SeatrialError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 (nobody else waits for this task: its runs would wait for ever)
            self._fail(SeatrialError("internal_error", f"a worker could not be led: {type(error).__name__}: {error}"))

    async def pass_on_stop(self) -> None:
        """Tell the workers of a stop."""
        reason = await self._work.stop.requested()
        for worker in self._ready:
            worker.tell(StopWork(reason))

    def joined(self, worker: _Worker, batches: Iterable[str]) -> None:
        """A worker takes trials now."""
        self.batches = frozenset(batches)
        if self._work.stop.reason is not None:
            worker.tell(StopWork(self._work.stop.reason))
        self._ready.append(worker)
        worker.has_joined = True
        self._someone.set()
        self._freed.set()

    def ended(self, end: WorkersEnd) -> None:
        """A worker has closed, and said so."""
        self._end.elsewhere += end.elsewhere
        for agent, runs in end.left_running.items():
            self._end.left_running[agent] = self._end.left_running.get(agent, 0) + runs

    def pause_others(self, worker: _Worker, agent: str, seconds: float) -> None:
        """Tell all other workers what one was asked for by an agent."""
        for other in self._ready:
            if other is not worker:
                other.tell(Pause(agent, seconds))

    async def _served(self, worker: _Worker) -> None:
        """Talk with a worker until it is closed; then, or when it is lost or cancelled, it has ended."""
        try:
            await worker.talk()
        except asyncio.CancelledError:
            await worker.wind_up()
            raise
        except WorkerLostError as error:
            worker.lose(error)
            raise
        finally:
            if worker in self._ready:
                self._ready.remove(worker)
            if not self._ready:
                self._someone.clear()
            self._freed.set()
            worker.lose()
            await worker.end()

    def _recover(self, unstored: dict[str, _Unstored]) -> None:
        """Run again what had ended on a worker and was not stored."""
        stored = {end.key for end in self._stored({each.trial.key: run_id for run_id, each in unstored.items()})}
        for each in unstored.values():
            if each.trial.key not in stored:
                self._losses[each.trial.key] += 1
                task = asyncio.create_task(self._run_again(each))
                self.again.add(task)
                task.add_done_callback(self._ran_again)
        self.settled.set()

    async def _run_again(self, lost: _Unstored) -> None:
        trial = self._once_more(lost.trial)
        if self._losses[trial.key] >= MAX_LOSSES:
            message = f"{self._losses[trial.key]} workers were lost before the run was stored"
            trial.fault = Fault("internal_error", f"{message}, the last one: {self._last_loss}")
        after: RunEnd | None = None
        try:
            after = await self.run(trial, lost.gate)
        except StopRequestedError:
            pass
        except SeatrialError as error:
            self._fail(error)
        self._end.replaced.append((lost.end, after))

    def _once_more(self, lost: Trial) -> Trial:
        """The trial that takes the place of a lost one."""
        number, now_ms = len(lost.interrupted) + 1, self._work.clock.now_ms()
        attempt = interrupted_attempt(
            self._work.store, lost.run_id, lost.case, lost.tool_access, number=number, now_ms=now_ms
        )
        # A new id: of the other one something may still come.
        return msgspec.structs.replace(lost, run_id=uuid4().hex, interrupted=[*lost.interrupted, attempt])

    def _ran_again(self, task: asyncio.Task[None]) -> None:
        self.again.discard(task)
        self.settled.set()

    def _fail(self, error: SeatrialError) -> None:
        self._failure = self._failure or error
        self._someone.set()
        self._freed.set()
        self.settled.set()
        for worker in list(self._ready):
            worker.lose(self._failure)

    def _stored(self, runs: dict[RunKey, str]) -> list[RunEnd]:
        """Of runs whose worker is lost, those that it had stored."""
        found: list[RunEnd] = []
        ids = list(runs.values())
        for first in range(0, len(ids), 500):
            where = RunFilter(run_ids=frozenset(ids[first : first + 500]))
            for row in self._work.store.runs(self._work.experiment.experiment_id, where):
                if row.outcome == "unfinished":
                    continue
                budget = self._work.suite.budget
                spent = None if budget == Budget() else spent_by(self._work.store.run(row.run_id), budget)
                found.append(RunEnd(row.key, row.outcome, spent))
        return found


class _Unstored(msgspec.Struct):
    """A run that has ended, and is on its way to the store."""

    trial: Trial
    gate: AttemptGate
    end: RunEnd


class _Worker:
    """One worker and what it has."""

    def __init__(self, link: WorkerLink, crew: RemoteWorkers) -> None:
        self.gone = asyncio.Event()
        self.has_joined = False
        self.reserved = False
        """Whether it takes no other run than the one that it is reserved for."""
        self.lessened = asyncio.Event()
        """Set whenever it has less to do, or is gone."""
        self.unstored: dict[str, _Unstored] = {}
        self._link = link
        self._crew = crew
        self._leases: dict[str, _Lease] = {}
        self._batches: dict[str, asyncio.Queue[RunEnd | AgentNotes | BatchEnded | Exception]] = {}
        self._orders: list[WorkerOrder] = []
        self._ordered = asyncio.Event()

    @property
    def load(self) -> int:
        """How many runs it has; a batch counts as one."""
        return len(self._leases) + len(self._batches)

    def tell(self, order: WorkerOrder) -> None:
        """Send an order, soon."""
        self._orders.append(order)
        self._ordered.set()

    async def run(self, run_id: str, lease: _Lease) -> RunEnd:
        """Send a trial to the worker; its first attempt begins at once."""
        self._leases[run_id] = lease
        trial = lease.trial
        self.tell(Begin(run_id, trial.key, trial.case, trial.interrupted, trial.fault, lease.alone))
        try:
            return await lease.end
        finally:
            self._leases.pop(run_id, None)
            self.lessened.set()

    async def run_batch(self, agent: str, runs: dict[RunKey, str]) -> AsyncGenerator[RunEnd | AgentNotes, None]:
        """Send a batch to the worker."""
        said = self._batches[agent] = asyncio.Queue()
        self.tell(BeginBatch(agent, [(run_id, key) for key, run_id in runs.items()]))
        try:
            while not isinstance(item := await said.get(), BatchEnded):
                if isinstance(item, Exception):
                    raise item
                yield item
            if item.dropped:
                raise StopRequestedError("the batch was stopped")
        finally:
            self._batches.pop(agent, None)
            self.lessened.set()

    async def talk(self) -> None:
        """Pass orders and reports until the worker has closed. Raises `WorkerLostError` and `SeatrialError`."""
        sending = asyncio.create_task(self._send())
        receiving = asyncio.create_task(self._receive())
        watching = asyncio.create_task(self._watch())
        try:
            await asyncio.wait({sending, receiving, watching}, return_when=asyncio.FIRST_COMPLETED)
            # What the worker said last counts before the fact that nothing can be sent to it.
            (receiving if receiving.done() else sending if sending.done() else watching).result()
        finally:
            for task in (sending, receiving, watching):
                task.cancel()
            await asyncio.wait({sending, receiving, watching})

    async def wind_up(self) -> None:
        """Have the worker store what has ended, for a moment."""
        with suppress(WorkerLostError, SeatrialError, TimeoutError):
            async with asyncio.timeout(ENDING_S):
                self.tell(Close(now=True))
                await self.talk()

    def lose(self, error: Exception | None = None) -> None:
        """Wake everything that waits for this worker: it will not answer."""
        error = WorkerLostError("the worker is gone") if error is None else error
        self.gone.set()
        self.lessened.set()
        for lease in self._leases.values():
            if not lease.end.done():
                lease.end.set_exception(error)
        for said in self._batches.values():
            said.put_nowait(error)

    async def end(self) -> None:
        """End the process of the worker."""
        with suppress(WorkerLostError):
            await self._link.end()

    async def _send(self) -> None:
        while True:
            await self._ordered.wait()
            self._ordered.clear()
            orders, self._orders = self._orders, []
            await self._link.send(wire.encode(orders))

    async def _watch(self) -> None:
        """Find out whether the worker still responds. One whose runs have time left may be busy with them."""
        while True:
            await asyncio.sleep(PING_S)
            try:
                async with asyncio.timeout(SILENT_S):
                    await self._link.send(wire.encode([]))
            except TimeoutError:
                late_s = asyncio.get_running_loop().time() - SILENT_S
                if (
                    self.has_joined
                    and not self._batches
                    and all(each.until_s < late_s for each in self._leases.values())
                ):
                    message = f"it did not respond for {SILENT_S:g} s, and none of its runs had time left"
                    raise WorkerStuckError(message) from None

    async def _receive(self) -> None:
        while True:
            for report in REPORTS.decode(await self._link.receive()):
                if isinstance(report, Closed):
                    self._crew.ended(report.end)
                    return
                self._take(report)

    def _take(self, report: WorkerReport) -> None:
        match report:
            case Ready(batches):
                self._crew.joined(self, batches)
            case RunEnded(run_id, end):
                if (said := self._batches.get(end.key.agent)) is not None:
                    said.put_nowait(end)
                elif (lease := self._leases.get(run_id)) is not None and not lease.end.done():
                    self.unstored[run_id] = _Unstored(lease.trial, lease.gate, end)
                    lease.end.set_result(end)
            case Stored(run_id):
                if self.unstored.pop(run_id, None) is not None:
                    self._crew.settled.set()
                    self.lessened.set()
            case Dropped(run_id):
                if (lease := self._leases.get(run_id)) is not None and not lease.end.done():
                    lease.end.set_exception(StopRequestedError("the run was stopped"))
            case Left(run_id, refused, retry_after_s):
                self._left(run_id, refused, retry_after_s)
            case Waiting(run_id):
                if (lease := self._leases.get(run_id)) is not None:
                    lease.entering = asyncio.create_task(self._admit(run_id, lease))
            case Answered(run_id):
                if (lease := self._leases.get(run_id)) is not None:
                    lease.answered = True
                self.tell(Admit(run_id))
            case Noted(said_by):
                if (said := self._batches.get(said_by.agent)) is not None:
                    said.put_nowait(said_by)
            case BatchEnded(agent):
                if (said := self._batches.get(agent)) is not None:
                    said.put_nowait(report)
            case Broken(code, message, hint):
                raise SeatrialError(code, message, hint=hint)

    def _left(self, run_id: str, refused: bool, retry_after_s: float | None) -> None:
        lease = self._leases.get(run_id)
        if lease is None:
            return
        lease.leave(refused=refused, retry_after_s=retry_after_s)
        if refused and retry_after_s is not None:
            self._crew.pause_others(self, lease.trial.key.agent, retry_after_s)

    async def _admit(self, run_id: str, lease: _Lease) -> None:
        with suppress(StopRequestedError):  # the worker has heard of it, too
            lease.ticket = await lease.gate.enter()
            lease.entering = None
            self.tell(Admit(run_id))
