"""A worker elsewhere: opens the suite, the store and the world itself, and runs the trials that it is sent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial._support.environment import STORE_VARIABLE
from seatrial._support.garbage import rare_collections
from seatrial._version import __version__
from seatrial.driver.clock import SystemClock
from seatrial.engine.executor import Assignment, RunEnd
from seatrial.engine.limit import MAX_PAUSE_S
from seatrial.engine.local import opened_worker
from seatrial.engine.messages import (
    JOB,
    ORDERS,
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
from seatrial.engine.stop import Stop, StopRequestedError
from seatrial.engine.trial import Trial, trial_of
from seatrial.engine.worker import Worker
from seatrial.errors import SeatrialError, first_error
from seatrial.runs import RunKey
from seatrial.store import Store, open_store
from seatrial.store.database import without_passwords
from seatrial.suites import Secrets, stored_suite
from seatrial.suites.secrets import secrets_of

TOGETHER_S = 0.005
"""How long the end of an attempt may wait for the end of its run, to be reported with it."""


class WorkerHost:
    """One worker, for the event loop that it is made in. Whoever has started it passes orders in and reports out."""

    def __init__(
        self,
        job: bytes,
        variables: MutableMapping[str, str] | None = None,
        *,
        redacted: Callable[[Secrets], None] | None = None,
    ) -> None:
        """`variables` are those of the environment, unless given; `redacted` is given what must not be printed."""
        self.stop = Stop()
        self.waiting: dict[str, asyncio.Future[None]] = {}
        """Runs that wait until their next attempt may begin."""
        self.paused: dict[str, float] = {}
        """Until when agents are not called, by the clock of the event loop."""
        self._variables = os.environ if variables is None else variables
        self._redacted = redacted
        self._secrets = Secrets({})
        self._orders: asyncio.Queue[WorkerOrder] = asyncio.Queue()
        self._reports: list[WorkerReport] = []
        self._reported = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._serving = asyncio.create_task(self._serve(JOB.decode(job)))

    def obey(self, orders: bytes) -> None:
        """Take orders."""
        for order in ORDERS.decode(orders):
            match order:
                # These do not wait for a place in the queue: what they are about may be under way.
                case StopWork(reason):
                    self.stop.request(reason)
                case Admit(run_id):
                    waiting = self.waiting.get(run_id)
                    if waiting is not None and not waiting.done():
                        waiting.set_result(None)
                case Pause(agent, seconds):
                    self.pause(agent, seconds)
                case _:
                    self._orders.put_nowait(order)

    async def reports(self) -> bytes:
        """Wait for something to report, and give all there is."""
        await self._reported.wait()
        self._reported.clear()
        reports, self._reports = self._reports, []
        return wire.encode(reports)

    async def end(self) -> None:
        """End it, whatever it is doing; what has ended is stored."""
        self._serving.cancel()
        await asyncio.wait({self._serving})

    def report(self, report: WorkerReport, within_s: float = 0.0) -> None:
        """Say something at once, or with what comes next within so many seconds."""
        self._reports.append(report)
        if within_s:
            asyncio.get_running_loop().call_later(within_s, self._reported.set)
        else:
            self._reported.set()

    def pause(self, agent: str, seconds: float) -> None:
        """Note that an agent is not to be called for so long."""
        until = asyncio.get_running_loop().time() + min(seconds, MAX_PAUSE_S)
        self.paused[agent] = max(self.paused.get(agent, 0.0), until)

    async def _serve(self, job: Job) -> None:
        try:
            await self._work(job)
        except BaseExceptionGroup as errors:
            self._break(first_error(errors))
        except BaseException as error:  # noqa: BLE001 (whatever it is: who waits for this worker must hear of it)
            self._break(error)

    def _break(self, error: BaseException) -> None:
        if isinstance(error, SeatrialError):
            hint = None if error.hint is None else self._secrets.redact(error.hint)
            self.report(Broken(error.code, self._secrets.redact(error.message), hint))
        else:
            message = self._secrets.redact(f"{type(error).__name__}: {error}")
            self.report(Broken("internal_error", f"a worker failed: {message}"))

    async def _work(self, job: Job) -> None:
        if job.version != __version__:
            message = f"a worker has Seatrial {__version__}, and the experiment is run by {job.version}"
            raise SeatrialError("executor_failed", message, hint="install the same version everywhere")
        if os.path.isdir(job.directory):
            os.chdir(job.directory)
        async with AsyncExitStack() as stack:
            stack.enter_context(rare_collections())
            suite = stored_suite(wire.decode(bytes(job.suite), _PLAIN))
            suite = msgspec.structs.replace(
                suite, file=None if job.file is None else Path(job.file), grading=job.grading
            )
            store = self._opened(job.store)
            stack.push_async_callback(asyncio.to_thread, store.close)
            others = [f"${{{name}}}" for name in job.secrets]
            self._secrets = secrets_of([suite.agents, suite.judge, others], self._variables)
            if self._redacted is not None:
                self._redacted(self._secrets)
            work = Assignment(
                experiment=store.resolve_experiment(job.experiment_id),
                suite=suite,
                agents=job.agents,
                store=store,
                variables=self._variables,
                secrets=self._secrets,
                stop=self.stop,
                clock=SystemClock(),
            )
            seed = int.from_bytes(os.urandom(4))
            worker = await stack.enter_async_context(opened_worker(work, confirms=True, seed=seed))
            self.report(Ready(sorted(worker.batches)))
            async with asyncio.TaskGroup() as group:
                while not isinstance(order := await self._orders.get(), Close):
                    task = group.create_task(self._obey(order, work, worker))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
                if order.now:
                    for task in self._running:
                        task.cancel()
            end = await worker.finish()
        self.report(Closed(end))

    def _opened(self, address: str) -> Store:
        # Taken out: the programs that agents start have nothing to do with it.
        own = self._variables.pop(STORE_VARIABLE, None)
        if own is not None and "://" in own and without_passwords(sa.make_url(own)) == address:
            address = own
        return open_store(address, create=False)

    async def _obey(self, order: WorkerOrder, work: Assignment, worker: Worker) -> None:
        if isinstance(order, BeginBatch):
            await self._run_batch(order, work, worker)
        elif isinstance(order, Begin):
            experiment_id = work.experiment.experiment_id
            trial = trial_of(work.suite, experiment_id, order.run_id, order.key, order.case, order.interrupted)
            trial.fault = order.fault
            answered = partial(self._let_on, order.run_id) if order.alone else None
            try:
                end = await worker.run(trial, _HostGate(self, order.run_id, order.key.agent), answered)
            except StopRequestedError:
                self.report(Dropped(order.run_id))
                return
            self.report(RunEnded(order.run_id, end))
            await worker.stored(order.run_id)
            self.report(Stored(order.run_id), within_s=TOGETHER_S)

    async def _let_on(self, run_id: str) -> None:
        """Say that the agent is done with a run, and wait until that was heard."""
        heard = self.waiting[run_id] = asyncio.get_running_loop().create_future()
        self.report(Answered(run_id))
        try:
            await heard
        finally:
            del self.waiting[run_id]

    async def _run_batch(self, order: BeginBatch, work: Assignment, worker: Worker) -> None:
        ids = {key: run_id for run_id, key in order.runs}
        dropped = False

        async def confirm(end: RunEnd) -> None:
            if end.before is None:
                await worker.stored(ids[end.key])
            self.report(RunEnded(ids[end.key], end))

        async with asyncio.TaskGroup() as storing:
            try:
                async for end in worker.run_batch(order.agent, _batch(work, ids)):
                    if isinstance(end, RunEnd):
                        storing.create_task(confirm(end))
                    else:
                        self.report(Noted(end))
            except StopRequestedError:
                dropped = True
        self.report(BatchEnded(order.agent, dropped))


def _batch(work: Assignment, ids: dict[RunKey, str]) -> Iterator[Trial]:
    """The trials of a batch, whose cases are read as they are taken."""
    experiment_id = work.experiment.experiment_id
    for agent, number in dict.fromkeys((key.agent, key.trial) for key in ids):
        for case in work.store.cases(experiment_id, damaged=[]):
            key = RunKey(agent, case.id, number)
            if key in ids:
                yield trial_of(work.suite, experiment_id, ids[key], key, case)


class _HostGate:
    """The gate of one run: its coordinator has let the first attempt in, and is asked about the others."""

    def __init__(self, host: WorkerHost, run_id: str, agent: str) -> None:
        self._host = host
        self._run_id = run_id
        self._agent = agent
        self._is_in = True

    async def enter(self) -> int:
        if self._is_in:
            self._is_in = False
            self._host.stop.check()
            return 0
        host, run_id = self._host, self._run_id
        waiting = host.waiting[run_id] = asyncio.get_running_loop().create_future()
        host.report(Waiting(run_id))
        try:
            await host.stop.unless_asked(waiting)
        except BaseException:
            host.report(Left(run_id))
            raise
        finally:
            del host.waiting[run_id]
        return 0

    def leave(self, ticket: int, *, refused: bool = False, retry_after_s: float | None = None) -> None:
        if refused and retry_after_s is not None:
            self._host.pause(self._agent, retry_after_s)
        # An attempt that ended well is mostly followed by the end of its run, which is news enough for one message.
        self._host.report(Left(self._run_id, refused, retry_after_s), within_s=0.0 if refused else TOGETHER_S)

    def pause_s(self) -> float:
        until = self._host.paused.get(self._agent)
        return 0.0 if until is None else max(until - asyncio.get_running_loop().time(), 0.0)


_PLAIN: msgspec.json.Decoder[Mapping[str, Any]] = msgspec.json.Decoder(dict[str, Any])
