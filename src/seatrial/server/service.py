"""The run service: it admits runs, drives them, and shows them.

A run continues when its client disconnects. One that its server did not survive is ended by the next one, and one
that another server on the same database drives is left to that server for as long as it lives.
"""

from __future__ import annotations

import asyncio
import secrets as chance
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from traceback import extract_tb
from typing import Any, Self, TypeVar

import msgspec

from seatrial._support import wire
from seatrial.agents.agent import Agent, BatchAgent
from seatrial.api import CreateRun, EventPage, PushEvents, PushResult, RunPage, Thread
from seatrial.driver import Clock, Driver, Redaction, SystemClock
from seatrial.engine.local import opened_proxy
from seatrial.errors import SeatrialError
from seatrial.events import agui_messages as agui
from seatrial.events import encode_event, envelope_bytes, envelope_head
from seatrial.events.run_input import PROTOCOL_VERSION, RunAgentInput
from seatrial.events.types import RunStarted, RunStatus
from seatrial.runs import Fault, ServedRun
from seatrial.server import conversation
from seatrial.server.context import Publishing, ServiceContext
from seatrial.server.conversation import Histories
from seatrial.server.driving import Drive, Limits
from seatrial.server.logs import log, log_fault
from seatrial.server.maintenance import Reaper
from seatrial.server.push import Pushes
from seatrial.server.run_feed import native_event
from seatrial.store import Store
from seatrial.store.filter import parse_filter
from seatrial.store.served import Admission, Admitted
from seatrial.suites import Secrets
from seatrial.transcript import Note

T = TypeVar("T")

ENDING_S = 10.0
"""How long the ends of runs may take to be stored when the server stops."""

_CANONICAL = msgspec.json.Encoder(order="sorted")


class RunService:
    """Admits, drives and shows runs. It serves inside its `async with` block."""

    def __init__(
        self,
        store: Store,
        feeds: Publishing,
        agents: Mapping[str, Agent],
        *,
        limits: Mapping[str, Limits] | None = None,
        secrets: Secrets | None = None,
        drain_s: float = 30.0,
        grace_s: float = 5.0,
        push_idle_s: float = 900.0,
        sweep_every_s: float = 2.0,
        clock: Clock | None = None,
    ) -> None:
        """`agents` are entered and left by the service; `limits` are theirs, where the defaults will not do.

        When it ends, running runs get `drain_s` to finish. An agent that is cancelled has `grace_s` to clean up. A
        pushed run to which nothing comes for `push_idle_s` is ended. Every `sweep_every_s` the service looks for runs
        that others have left, or want cancelled.
        """
        for name, agent in agents.items():
            if isinstance(agent, BatchAgent):
                raise SeatrialError("invalid_config", f"agent {name!r} takes all cases at once, and cannot be served")
        self._agents = dict(agents)
        self._limits = dict(limits or {})
        self._drain_s = drain_s
        self._context = ServiceContext(
            server_id=f"server-{chance.token_hex(8)}",
            store=store,
            feeds=feeds,
            histories=Histories(store),
            driver=Driver(SystemClock() if clock is None else clock, Redaction(secrets), grace_s=grace_s),
        )
        self._places: dict[str, asyncio.Semaphore] = {}
        self._pushes = Pushes(self._context)
        self._drives: dict[str, Drive] = {}
        self._admitting: set[str] = set()
        self._asked_of: Counter[str] = Counter()
        """How many runs each agent has here, those that wait or are being admitted included."""
        self._reaper = Reaper(
            self._context, self._drives, self._admitting, every_s=sweep_every_s, push_idle_s=push_idle_s
        )
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stack = AsyncExitStack()
        self._open = False

    # Its life

    async def __aenter__(self) -> Self:
        context = self._context
        async with AsyncExitStack() as stack:
            presence = await asyncio.to_thread(context.store.begin_serving, context.server_id, context.clock.now_ms())
            stack.push_async_callback(asyncio.to_thread, presence.close)
            context.driver.proxy = await opened_proxy(self._agents.values(), stack)
            for agent in self._agents.values():
                await stack.enter_async_context(agent)
            loop = asyncio.get_running_loop()

            def noticed(run_id: str) -> None:
                with suppress(RuntimeError):  # the loop is closed: nobody follows anything any more
                    loop.call_soon_threadsafe(self._noticed, run_id)

            listener = await asyncio.to_thread(context.store.listen, noticed)
            stack.push_async_callback(asyncio.to_thread, listener.close)
            await stack.enter_async_context(self._reaper.running(presence))
            self._stack = stack.pop_all()
        self._open = True
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._open = False
        try:
            # What was broken off is not waited for.
            await self._drain(self._drain_s if kind is None else 0.0)
        finally:
            try:
                await self._context.driver.close()
            finally:
                await self._stack.aclose()

    @property
    def ready(self) -> bool:
        """Whether it takes new runs."""
        return self._open

    @property
    def active(self) -> int:
        """How many runs it drives, those that wait for their agent included."""
        return len(self._drives)

    # Asking

    async def create(self, request: CreateRun) -> Admitted:
        """Admit a run; it runs whether or not the client waits for it. The same request again gives the same run."""
        if not self._open:
            raise SeatrialError("shutting_down", "the server takes no new runs", hint="ask again when it has restarted")
        if not request.push and request.agent not in self._agents:
            known = ", ".join(sorted(self._agents)) or "none"
            raise SeatrialError("not_found", f"there is no agent {request.agent!r}", hint=f"the agents are: {known}")
        # What was begun is finished, also when nobody waits for it any more.
        return await asyncio.shield(self._spawn(self._admitted(request)))

    async def cancel(self, run_id: str) -> ServedRun:
        """Ask for the end of a run. One that has ended is left as it is."""
        return await asyncio.shield(self._spawn(self._cancelled(run_id)))

    async def push(self, run_id: str, pushed: PushEvents, size: int = 0) -> PushResult:
        """Store events that an agent posts, of so many bytes: all of them, or none."""
        return await asyncio.shield(self._spawn(self._pushes.push(run_id, pushed, size)))

    # Looking

    async def run(self, run_id: str) -> ServedRun:
        """One run."""
        return await asyncio.to_thread(self._context.store.served_run, run_id)

    async def runs(
        self,
        *,
        agent: str | None = None,
        thread_id: str | None = None,
        statuses: frozenset[RunStatus] | None = None,
        before: str | None = None,
        limit: int = 50,
        where: str = "",
    ) -> RunPage:
        """A page of runs, the newest first; `where` is a filter as it is typed."""
        terms = parse_filter(where, self._context.clock.now_ms())
        runs, following = await asyncio.to_thread(
            self._context.store.served_runs,
            agent=agent,
            thread_id=thread_id,
            statuses=statuses,
            before=before,
            limit=limit,
            terms=terms,
        )
        return RunPage(runs=runs, next=following)

    async def thread(self, thread_id: str) -> Thread:
        """A conversation: its runs, and what they add up to."""
        return await asyncio.to_thread(thread_page, self._context.store, self._context.histories, thread_id)

    async def events(self, run_id: str, after: int | None = None, limit: int = 1000) -> EventPage:
        """A page of events of any run in the store, those behind `after`."""
        return await asyncio.to_thread(event_page, self._context.store, run_id, after, limit)

    # How

    async def _admitted(self, request: CreateRun) -> Admitted:
        if request.push:
            return await self._admit(request)
        agent, limits = request.agent, self._limits_of(request.agent)
        if self._asked_of[agent] >= limits.concurrency + limits.waiting:
            raise SeatrialError(
                "agent_busy",
                f"{limits.concurrency} runs of agent {agent!r} are running, and {limits.waiting} are waiting",
                hint="ask again when some of them have ended",
            )
        self._asked_of[agent] += 1
        started = False
        try:
            admitted = await self._admit(request)
            started = admitted.created
        finally:
            if not started:
                self._asked_of[agent] -= 1
        return admitted

    async def _admit(self, request: CreateRun) -> Admitted:
        run_id = request.run_id or f"run-{chance.token_hex(12)}"
        thread_id = request.thread_id or f"thread-{chance.token_hex(12)}"
        notes: list[Note] = []
        messages = conversation.read_messages(request, run_id, notes)
        if request.thread_id is not None and messages:
            messages = await asyncio.to_thread(self._new_to, thread_id, messages)
        given = conversation.run_input(request, run_id, thread_id, messages)
        started, admission = self._admission(request, given)
        self._admitting.add(run_id)
        try:
            admitted = await self._context.store.admit_run(admission)
            if admitted.created:
                log("run_admitted", run_id=run_id, agent=request.agent)
                if not request.push:
                    self._start(admitted.run, given, started, notes)
        finally:
            self._admitting.discard(run_id)
        return admitted

    def _admission(self, request: CreateRun, given: RunAgentInput) -> tuple[RunStarted, Admission]:
        """The first event of a run, and what the store is asked for."""
        redaction, now = self._context.redaction, self._context.clock.now_ms()
        started = RunStarted(
            thread_id=given.thread_id,
            run_id=given.run_id,
            protocol_version=PROTOCOL_VERSION,
            input=msgspec.to_builtins(given),
            timestamp=now,
        )
        return started, Admission(
            run_id=given.run_id,
            thread_id=given.thread_id,
            agent=request.agent,
            pushed=request.push,
            server_id=self._context.server_id,
            created_at=now,
            input=redaction.document(wire.encode(given)),
            first_event=redaction.document(encode_event(started)),
            request=_CANONICAL.encode(wire.without_surrogates(msgspec.structs.replace(request, idempotency_key=None))),
            idempotency_key=request.idempotency_key,
            resume=request.resume,
            status="running" if request.push else "pending",
        )

    def _new_to(self, thread_id: str, messages: list[agui.Message]) -> list[agui.Message]:
        store = self._context.store
        history = self._context.histories.of(thread_id, store.thread_runs(thread_id))
        known = {message.id for message in history.messages}
        return [message for message in messages if message.id not in known]

    def _start(self, run: ServedRun, given: RunAgentInput, started: RunStarted, notes: list[Note]) -> None:
        limits = self._limits_of(run.agent)
        if run.agent not in self._places:
            self._places[run.agent] = asyncio.Semaphore(limits.concurrency)
        agent, places = self._agents[run.agent], self._places[run.agent]
        drive = Drive(run, given, started, agent, limits, places, self._context, notes)
        self._drives[run.run_id] = drive
        self._spawn(self._driven(drive))

    def _limits_of(self, agent: str) -> Limits:
        return self._limits.get(agent, Limits())

    async def _driven(self, drive: Drive) -> None:
        try:
            await drive.execute()
        except Exception as error:  # noqa: BLE001 (a fault of ours in one run must not be silent, nor end the others)
            log_fault("run", type(error).__name__, extract_tb(error.__traceback__))
        finally:
            del self._drives[drive.run.run_id]
            self._asked_of[drive.run.agent] -= 1

    async def _cancelled(self, run_id: str) -> ServedRun:
        context = self._context
        run = await context.store.mark_run(run_id, cancel_requested=True)
        if run.ended_at is not None:
            return run
        log("cancel_requested", run_id=run_id)
        drive = self._drives.get(run_id)
        if drive is not None:
            drive.halt("cancelled")
        elif run.pushed:
            await self._pushes.cancel(run)
            run = await self.run(run_id)
        return run

    def _noticed(self, run_id: str) -> None:
        """Another process has changed a run."""
        self._context.feeds.wake(run_id)
        if run_id in self._drives:
            self._spawn(self._look_after(run_id))

    async def _look_after(self, run_id: str) -> None:
        with suppress(SeatrialError):  # the reaper will see it
            run = await self.run(run_id)
            drive = self._drives.get(run_id)
            if run.cancel_requested and drive is not None:
                drive.halt("cancelled")

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it was raised where the task is awaited

    async def _drain(self, drain_s: float) -> None:
        """Give running runs time to finish, and then end them."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(drain_s):
                    while self._drives or self._admitting:
                        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            fault = Fault("server_stopped", "the server was stopped before the run had ended")
            for drive in list(self._drives.values()):
                drive.halt(fault)
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=2 * self._context.driver.grace_s + ENDING_S)
        finally:
            # What is left waits for a store that is away: the next server of the store ends these runs.
            left = list(self._tasks)
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=ENDING_S)


def thread_page(store: Store, histories: Histories, thread_id: str) -> Thread:
    """A conversation: its runs, and what they add up to."""
    runs = store.thread_runs(thread_id)
    if not runs:
        raise SeatrialError("not_found", f"there is no thread {thread_id!r}")
    history = histories.of(thread_id, runs)
    return Thread(
        thread_id=thread_id,
        runs=runs,
        messages=[msgspec.to_builtins(message) for message in history.messages],
        state=history.state,
        active_run_id=None if runs[-1].ended_at is not None else runs[-1].run_id,
    )


def event_page(store: Store, run_id: str, after: int | None, limit: int) -> EventPage:
    """Events of any run, those behind `after`; a gap is an error, as it is in a stream."""
    head = store.run_head(run_id)
    if after is not None and after >= head.following:
        raise SeatrialError("cursor_ahead", f"the run has no event {after} yet", details={"head": head.following - 1})
    wanted = 0 if after is None else after + 1
    if wanted < head.first:
        raise SeatrialError(
            "cursor_expired", f"events before {head.first} are not kept any more", details={"first": head.first}
        )
    page = store.events(run_id, after=wanted - 1, limit=limit)
    start = envelope_head(run_id, head.thread_id)
    last = page[-1][0] if page else wanted - 1
    more = last + 1 < head.following
    return EventPage(
        run_id=run_id,
        thread_id=head.thread_id,
        events=[msgspec.Raw(envelope_bytes(start, sequence, native_event(data))) for sequence, data in page],
        next=last if more else None,
        closed=head.closed and not more,
    )
