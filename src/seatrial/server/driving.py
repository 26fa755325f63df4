"""One run of an agent, from its admission to its end.

Whatever happens, one terminal event is stored: the agent's own, or one that says what kept the agent from sending it.
No attempt is repeated: whoever follows the log has seen what the first one said, and a second one would say it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from seatrial.agents.agent import Agent, Reply, RunRequest
from seatrial.agents.off_loop import off_loop
from seatrial.engine.trial import internal_fault
from seatrial.errors import SeatrialError
from seatrial.events import EventReader, unfold
from seatrial.events.run_input import RunAgentInput
from seatrial.events.types import CancelledOutcome, RunError, RunFinished, RunStarted
from seatrial.runs import Fault, FaultRules, ServedRun
from seatrial.runs.conclusion import given_messages
from seatrial.server import asking
from seatrial.server.ending import (
    LOST,
    Patience,
    Record,
    Terminal,
    cancelled,
    end_by_log,
    reply_of_log,
    run_error,
    store_end,
)
from seatrial.server.logs import log
from seatrial.server.means import Means
from seatrial.server.run_log import RunLog
from seatrial.server.stored_log import read_log
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls
from seatrial.transcript import Message, Note
from seatrial.transcript.given import mark_given

Halt: TypeAlias = Fault | Literal["cancelled", "over"]
"""Why an agent is not waited for any longer: a fault, a request, or that it has said that its run is over."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one agent may take."""

    concurrency: int = 16
    """How many of them go on at once; the others wait, and are `pending`."""
    waiting: int = 1000
    """How many may wait; further ones are refused."""
    deadline_s: float | None = 300.0
    """How long each of them may take, from when the agent is called."""
    tool_access: ToolAccess = "own"
    """Which tools the agent has, as its suite says."""
    faults: FaultRules = FaultRules()
    """Whose fault a fault is, where the suite says so."""


class Drive:
    """Carries one run out."""

    def __init__(
        self,
        run: ServedRun,
        given: RunAgentInput,
        started: RunStarted,
        agent: Agent,
        limits: Limits,
        places: asyncio.Semaphore,
        means: Means,
        notes: Sequence[Note] = (),
    ) -> None:
        """`given` is what was asked for, with the messages that are new to the thread; `started` is what is stored.

        `notes` are on what had to be mended in it.
        """
        self.run = run
        self._given = given
        self._agent = agent
        self._limits = limits
        self._places = places
        self._means = means
        self._halted: asyncio.Future[Halt] = asyncio.get_running_loop().create_future()
        self._log = RunLog(run, started, means, on_fault=self.halt, on_terminal=self._expect_return)
        self._log.notes += notes
        self._said_before: list[Message] = []
        self._observed = ObservedCalls()
        self._started_at = means.clock.now_ms()
        self._begun = means.clock.monotonic_s()

    def halt(self, why: Halt) -> None:
        """Wait no longer for the agent. The first reason counts, and none when the agent has ended its run itself."""
        if not self._halted.done() and (why == "over" or self._log.terminal is None):
            self._halted.set_result(why)

    async def carry_out(self) -> None:
        """Run it to its end."""
        entered = await self._enter()
        reply: Reply | None = None
        async with asyncio.TaskGroup() as group:
            group.create_task(self._log.flush())
            try:
                if entered:
                    reply = await self._asked()
            finally:
                if entered:
                    self._places.release()
                self._log.close()
        if self._log.failure is None:
            await self._end(reply)
        else:
            await self._recover(self._log.failure)

    # Asking

    async def _enter(self) -> bool:
        """Wait for a place among the runs of the agent; False when there is no need for one any more."""
        entering = asyncio.ensure_future(self._places.acquire())
        try:
            await _first_of(entering, self._halted)
        except asyncio.CancelledError:
            _leave(entering, self._places)
            raise
        if self._halted.done():
            _leave(entering, self._places)
            return False
        return True

    async def _asked(self) -> Reply | None:
        """What the agent brings; None when it was not waited for, or could not be asked."""
        means = self._means
        self._started_at, self._begun = means.clock.now_ms(), means.clock.monotonic_s()
        try:
            means.store.mark_run(self.run.run_id, status="running")
            request = await asyncio.to_thread(self._request)
        except SeatrialError as error:
            self.halt(Fault("recording_failed", f"the thread could not be read: {error.message}"))
            return None
        except Exception as error:  # noqa: BLE001 (what was said in a thread must not keep its runs from ending)
            return Reply(fault=internal_fault(error, means.redaction))
        log("run_started", run_id=self.run.run_id, agent=self.run.agent)
        agent = asyncio.create_task(self._agent.run(request, self._log.emit))
        # Agents end by themselves at the deadline, and bring what there is; one that does not is cut off.
        limit_s = None if self._limits.deadline_s is None else self._limits.deadline_s + means.grace_s
        try:
            await _first_of(agent, self._halted, timeout_s=limit_s)
            if not agent.done():
                self.halt(Fault("deadline_exceeded", f"the run used up its deadline of {self._limits.deadline_s} s"))
                await self._let_go(agent)
        finally:
            if not agent.done():
                log("agent_left_behind", run_id=self.run.run_id, agent=self.run.agent)
                agent.cancel()
                means.left_behind.add(agent)
                agent.add_done_callback(means.left_behind.discard)
        if not agent.done() or agent.cancelled():
            return None
        raised = agent.exception()
        if raised is not None:
            return Reply(fault=internal_fault(raised, means.redaction))
        reply = agent.result()
        return await off_loop(len(reply.body or b""), lambda: means.redaction.reply(reply))

    async def _let_go(self, agent: asyncio.Task[Reply]) -> None:
        """Cancel an agent, and give it the time to clean up; once more, should that hang."""
        for _ in range(2):
            if not agent.done():
                agent.cancel()
                await asyncio.wait({agent}, timeout=self._means.grace_s)

    def _request(self) -> RunRequest:
        means, run = self._means, self.run
        history = means.histories.of(run.thread_id, means.store.thread_runs(run.thread_id))
        given = asking.with_history(self._given, history)
        case = asking.case_of(run.run_id, history.messages, given.state)
        self._said_before = given_messages(case)
        return RunRequest(
            run_id=run.run_id,
            experiment_id=means.server_id,
            case=case,
            trial=0,
            attempt=1,
            timeout_s=self._limits.deadline_s,
            run_input=given,
            observed=self._observed,
        )

    def _expect_return(self) -> None:
        """The agent's run is over: it has so long to return, and then is not waited for."""
        asyncio.get_running_loop().call_later(self._means.grace_s, self.halt, "over")

    # Ending

    async def _end(self, reply: Reply | None) -> None:
        """Store the end of a run whose events are with the store, or at hand."""
        size = 0 if reply is None else len(reply.body or b"")
        terminal, fault = await off_loop(size, lambda: self._conclusion(reply))
        self._limits.faults.apply(fault)
        pending, first = list(self._log.pending), self._log.stored
        events = self._log.end(terminal)
        if reply is None or (reply.reading is None and reply.streamed):
            reply = await self._read_back(pending)
        means = self._means
        record = Record(
            run=self.run,
            terminal=terminal,
            reply=reply,
            fault=fault,
            started_at=self._started_at,
            duration_ms=(means.clock.monotonic_s() - self._begun) * 1000,
            notes=self._log.notes,
            given=self._said_before,
            tool_access=self._limits.tool_access,
            observed=self._observed,
        )
        ending = await asyncio.to_thread(record.ending, events, first, means.clock.now_ms(), means.redaction)
        patience = Patience(self.run)
        while True:
            try:
                if not await store_end(means, self.run, ending):
                    self._lost("run_ended")
                return
            except SeatrialError as error:
                if error.code in LOST:
                    self._lost(error.code)
                    return
                await patience.bear(error)

    def _conclusion(self, reply: Reply | None) -> tuple[Terminal, Fault | None]:
        """The terminal event, and the fault that the run has with it."""
        why = self._halted.result() if self._halted.done() else None
        if why == "cancelled":
            return cancelled(self.run), None
        if isinstance(why, Fault):
            return run_error(why), why
        terminal = self._log.terminal
        fault = None if reply is None else reply.fault
        if isinstance(terminal, RunError):
            return terminal, fault or Fault("agent_reported_error", terminal.message)
        if terminal is not None and (fault is None or isinstance(terminal.outcome, CancelledOutcome)):
            return terminal, None
        if reply is None:
            fault = Fault("internal_error", "the agent was cancelled, but not by this server")
        if fault is not None:
            return run_error(fault), fault
        return self._unfolded(reply)

    def _unfolded(self, reply: Reply | None) -> tuple[Terminal, Fault | None]:
        """The end of a run whose agent did not say it, behind the events of what it answered."""
        thread_id, run_id = self.run.thread_id, self.run.run_id
        if reply is None or reply.reading is None or reply.streamed:
            return RunFinished(thread_id=thread_id, run_id=run_id), None
        transcript = reply.reading.transcript
        mark_given(transcript, self._said_before, reply.reading.notes)
        answer = msgspec.structs.replace(transcript, messages=transcript.done(), given=[])
        _, *events, terminal = unfold(answer, thread_id=thread_id, run_id=run_id)
        for event in events:
            self._log.add(event)
        if isinstance(terminal, RunError):
            return terminal, Fault("agent_reported_error", terminal.message)
        if not isinstance(terminal, RunFinished):
            raise TypeError(f"a run does not end with {terminal!r}")
        return terminal, None

    async def _read_back(self, pending: list[bytes]) -> Reply:
        """What the agent said, out of the log, when it did not come back to bring it."""
        try:
            stored = await asyncio.to_thread(read_log, self._means.store, self.run.run_id)
        except SeatrialError:
            return Reply(streamed=True)  # the events stay there, to be read when the store can be
        reader = EventReader()
        events = [*stored.events, *[reader.read(data, stored.following + at) for at, data in enumerate(pending)]]
        return await asyncio.to_thread(reply_of_log, events, [*stored.notes, *reader.notes])

    async def _recover(self, failure: SeatrialError) -> None:
        """End a run of which the store did not take everything, where its log stands once that can be read."""
        if failure.code in LOST:
            self._lost(failure.code)
            return
        fault = Fault("recording_failed", f"the run's events could not be stored: {failure.message}")
        patience = Patience(self.run)
        while True:
            try:
                await end_by_log(self._means, self.run, run_error(fault), fault)
                return
            except SeatrialError as error:
                if error.code in LOST:
                    self._lost(error.code)
                    return
                await patience.bear(error)

    def _lost(self, code: str) -> None:
        """Another server has ended the run, because it took this one for dead."""
        log("run_lost", run_id=self.run.run_id, agent=self.run.agent, code=code)
        self._means.feeds.wake(self.run.run_id)


async def _first_of(*futures: asyncio.Future[Any], timeout_s: float | None = None) -> None:
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


def _leave(entering: asyncio.Future[Literal[True]], places: asyncio.Semaphore) -> None:
    """Do not wait for a place; one that was given already is given back."""
    if not entering.cancel() and not entering.cancelled():
        places.release()
