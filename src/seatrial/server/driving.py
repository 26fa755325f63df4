"""One run of an agent, from its admission to its end.

Whatever happens, one terminal event is stored: the agent's own, or one that says what kept the agent from sending it.
No attempt is repeated: subscribers have seen what the first one said, and a second one would say it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from seatrial.agents.agent import Agent, Reply, RunRequest
from seatrial.driver import Recorder, conclude_run, internal_fault, run_error
from seatrial.driver.conclusion import attempt_of
from seatrial.errors import SeatrialError
from seatrial.events.order import Terminal
from seatrial.events.run_input import RunAgentInput
from seatrial.events.types import RunStarted
from seatrial.runs import Exchange, Fault, FaultRules, ServedRun
from seatrial.runs.conclusion import given_messages
from seatrial.server import conversation
from seatrial.server.context import ServiceContext
from seatrial.server.ending import (
    LOST,
    StoreWait,
    cancelled,
    end_by_log,
    ending_of,
    reply_of_log,
    spec_of,
    store_end,
)
from seatrial.server.logs import log
from seatrial.server.stored_log import read_log
from seatrial.store.served import Ending
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls
from seatrial.transcript import Message, Note

Halt: TypeAlias = Fault | Literal["cancelled", "over"]
"""Why an agent is not waited for any longer: a fault, a request, or that it has said that its run is over."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one agent may take."""

    concurrency: int = 16
    """How many of them run at once; the others wait, and are `pending`."""
    waiting: int = 1000
    """How many may wait; further ones are refused."""
    deadline_s: float | None = 300.0
    """How long each of them may take, from when the agent is called."""
    tool_access: ToolAccess = "own"
    """Which tools the agent has, as its suite says."""
    faults: FaultRules = FaultRules()
    """Whose fault a fault is, where the suite says so."""


class Drive:
    """Drives one run from its admission to its end."""

    def __init__(
        self,
        run: ServedRun,
        given: RunAgentInput,
        started: RunStarted,
        agent: Agent,
        limits: Limits,
        places: asyncio.Semaphore,
        context: ServiceContext,
        notes: Sequence[Note] = (),
    ) -> None:
        """`given` is what was asked for, with the messages that are new to the thread; `started` is what is stored.

        `notes` are on what had to be repaired in it.
        """
        self.run = run
        self._given = given
        self._agent = agent
        self._limits = limits
        self._places = places
        self._context = context
        self._halted: asyncio.Future[Halt] = asyncio.get_running_loop().create_future()
        self._recorder = Recorder(
            run.run_id,
            run.thread_id,
            context.clock,
            context.redaction,
            _ServedEvents(context, run.run_id),
            started=started,
            on_failure=self._give_up,
            on_terminal=self._expect_return,
        )
        self._recorder.notes += notes
        self._said_before: list[Message] = []
        self._observed = ObservedCalls()
        self._started_at = context.clock.now_ms()
        self._begun = context.clock.monotonic_s()

    def halt(self, why: Halt) -> None:
        """Wait no longer for the agent. The first reason counts, and none when the agent has ended its run itself."""
        if not self._halted.done() and (why == "over" or self._recorder.terminal is None):
            self._halted.set_result(why)

    async def execute(self) -> None:
        """Run it to its end."""
        recorder = self._recorder
        try:
            reply = await self._entered_and_asked()
            halted = self._halted.done() and recorder.terminal is None
            await recorder.close(broken_off=halted or reply is None or reply.fault is not None)
        except BaseException:
            await recorder.abandon()
            raise
        if recorder.failure is None:
            await self._end(reply)
        else:
            await self._recover(recorder.failure)

    # Asking

    async def _enter(self) -> bool:
        """Wait for a place among the runs of the agent; False when there is no need for one any more."""
        entering = asyncio.ensure_future(self._places.acquire())
        try:
            await asyncio.wait((entering, self._halted), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            _leave(entering, self._places)
            raise
        if self._halted.done():
            _leave(entering, self._places)
            return False
        return True

    async def _entered_and_asked(self) -> Reply | None:
        """The agent's reply, once it has a free place for the run."""
        if not await self._enter():
            return None
        try:
            return await self._asked()
        finally:
            self._places.release()

    async def _asked(self) -> Reply | None:
        """The agent's reply; None when it was stopped, or could not be asked."""
        context = self._context
        self._started_at, self._begun = context.clock.now_ms(), context.clock.monotonic_s()
        try:
            context.store.mark_run(self.run.run_id, status="running")
            request = await asyncio.to_thread(self._request)
        except SeatrialError as error:
            self.halt(Fault("recording_failed", f"the thread could not be read: {error.message}"))
            return None
        except Exception as error:  # noqa: BLE001 (what was said in a thread must not keep its runs from ending)
            return Reply(fault=internal_fault(error, context.redaction))
        log("run_started", run_id=self.run.run_id, agent=self.run.agent)
        asked = await context.driver.ask(self._agent, self.run.agent, request, self._recorder, halted=self._halted)
        if asked.stopped:
            # Unless it was halted: then there is a reason already.
            self.halt(Fault("deadline_exceeded", f"the run used up its deadline of {self._limits.deadline_s} s"))
        if asked.left_running:
            log("agent_left_running", run_id=self.run.run_id, agent=self.run.agent)
        return asked.reply

    def _request(self) -> RunRequest:
        context, run = self._context, self.run
        history = context.histories.of(run.thread_id, context.store.thread_runs(run.thread_id))
        if history.expired:
            runs = f"{history.expired} earlier runs" if history.expired > 1 else "an earlier run"
            self._recorder.note(
                conversation.HISTORY_EXPIRED,
                f"retention has deleted events of {runs} of the thread, which were not sent",
            )
        given = conversation.with_history(self._given, history)
        case = conversation.case_of(run.run_id, history.messages, given.state)
        self._said_before = given_messages(case)
        return RunRequest(
            run_id=run.run_id,
            case=case,
            trial=1,
            attempt=1,
            timeout_s=self._limits.deadline_s,
            run_input=given,
            observed=self._observed,
        )

    def _expect_return(self) -> None:
        """The agent has ended its run: it has a grace period to return, and is stopped after it."""
        asyncio.get_running_loop().call_later(self._context.driver.grace_s, self.halt, "over")

    def _give_up(self, error: SeatrialError) -> None:
        self.halt(Fault("recording_failed", f"the run's events could not be stored: {error.message}"))

    # Ending

    async def _end(self, reply: Reply | None) -> None:
        """Store the end of a run whose events are stored, or still here."""
        why = self._halted.result() if self._halted.done() else None
        own = self._recorder.terminal
        terminal: Terminal | None = None
        fault = None if reply is None else reply.fault
        if why == "cancelled":
            terminal, fault = cancelled(self.run), None
        elif isinstance(why, Fault):
            terminal, fault = run_error(why), why
        elif reply is None and own is None:
            fault = Fault("internal_error", "the agent was cancelled, but not by this server")
        if reply is None or (reply.reading is None and reply.streamed):
            brought = Reply() if reply is None else reply
            try:
                reply = await asyncio.to_thread(self._read_back, own if terminal is None else None)
            except SeatrialError:
                # The events stay there, to be read when the store can be. It is not the agent who said nothing.
                reply, terminal = Reply(streamed=True), terminal or own
            reply.body, reply.http_status = brought.body, brought.http_status
        reply.fault = fault
        ending = await asyncio.to_thread(self._ending, reply, terminal)
        if not await self._stored(lambda: store_end(self._context, self.run, ending)):
            self._lost("run_ended")

    def _ending(self, reply: Reply, terminal: Terminal | None) -> Ending:
        """The end of the run, with its record. Slow for a long run."""
        clock = self._context.clock
        duration_ms = (clock.monotonic_s() - self._begun) * 1000
        attempt = attempt_of(1, self._started_at, duration_ms, reply, self._observed)
        ended = conclude_run(
            spec_of(self.run, self._limits.tool_access),
            reply,
            [Exchange(number=1, attempts=[attempt])],
            self._recorder,
            started_at=self._started_at,
            duration_ms=duration_ms,
            faults=self._limits.faults,
            given=self._said_before,
            observed=self._observed,
            terminal=terminal,
            may_cancel=True,
        )
        return ending_of(ended, self._recorder, clock.now_ms())

    def _read_back(self, own: Terminal | None) -> Reply:
        """What the agent said, read from the log, when it did not return it."""
        return reply_of_log(read_log(self._context.store, self.run.run_id, list(self._recorder.pending)), own)

    async def _recover(self, failure: SeatrialError) -> None:
        """End a run of which the store did not take everything, where its log stands once that can be read."""
        if failure.code in LOST:
            self._lost(failure.code)
            return
        fault = Fault("recording_failed", f"the run's events could not be stored: {failure.message}")
        await self._stored(lambda: end_by_log(self._context, self.run, run_error(fault), fault))

    async def _stored(self, end: Callable[[], Awaitable[bool]]) -> bool:
        """Store the end of the run, waiting for a store that is away. False: it had ended already."""
        wait = StoreWait(self.run)
        while True:
            try:
                return await end()
            except SeatrialError as error:
                if error.code in LOST:
                    self._lost(error.code)
                    return True
                await wait.after(error)

    def _lost(self, code: str) -> None:
        """Another server has ended the run, because it considered this one dead."""
        log("run_lost", run_id=self.run.run_id, agent=self.run.agent, code=code)
        self._context.feeds.wake(self.run.run_id)


class _ServedEvents:
    """Stores the events of a run, and publishes them to its subscribers."""

    def __init__(self, context: ServiceContext, run_id: str) -> None:
        self._context = context
        self._run_id = run_id

    async def append(self, events: list[bytes], first: int) -> None:
        await self._context.append(self._run_id, events, first)


def _leave(entering: asyncio.Future[Literal[True]], places: asyncio.Semaphore) -> None:
    """Do not wait for a place; one that was given already is given back."""
    if not entering.cancel() and not entering.cancelled():
        places.release()
