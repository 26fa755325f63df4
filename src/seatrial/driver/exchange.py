"""One request to an agent, and its reply: within a deadline, and with an end that no agent can put off."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from seatrial._support.excerpt import exception_excerpt
from seatrial.agents.agent import Agent, Reply, RunRequest
from seatrial.driver.clock import Clock
from seatrial.driver.recorder import Recorder
from seatrial.driver.redaction import Redaction
from seatrial.ledger.record import WorldRecord
from seatrial.runs import Fault
from seatrial.transcript import note_code

if TYPE_CHECKING:
    # Brings an HTTP server with it, which most agents have no use for.
    from seatrial.world.compiled import CompiledWorld
    from seatrial.world.proxy import ToolProxy
    from seatrial.world.session import WorldSession

GRACE_S = 10.0
"""How long an agent that does not end at its deadline is waited for, and how long it may take to clean up."""

AGENT_LEFT_RUNNING = note_code(
    "agent_left_running",
    "The agent ignored that its run was over. It was left running, and what it does from then on is not recorded.",
    "look",
)


CALL_LIMIT = note_code(
    "call_limit",
    "The agent called the tools of its world more often than one run may; calls beyond were refused.",
    "look",
)


class ExchangeEnd(msgspec.Struct):
    """How one try at an exchange ended."""

    reply: Reply | None
    """None when the agent was stopped before it replied."""
    stopped: bool = False
    """Whether it was stopped: by the caller, or because it was still running long after its deadline."""
    left_running: bool = False
    """Whether it ignored that, and is running still."""
    world: WorldRecord | None = None
    """What its calls did to the world, if there is one."""
    world_fault: Fault | None = None
    """Set when the world broke: whatever the agent did, it says nothing of the agent."""


class Driver:
    """Asks agents, with what all runs of an experiment or a server have in common."""

    def __init__(
        self,
        clock: Clock,
        redaction: Redaction,
        *,
        proxy: ToolProxy | None = None,
        world: CompiledWorld | None = None,
        grace_s: float | None = None,
    ) -> None:
        """Agents end by themselves at their deadline, and bring what there is. One that does not is stopped `grace_s`
        later, and has as long again to clean up. Each try at a run has a world of its own."""
        self.clock = clock
        self.redaction = redaction
        self.proxy = proxy
        self.world = world
        self.grace_s = GRACE_S if grace_s is None else grace_s
        self._left: dict[asyncio.Task[Reply], str] = {}

    @property
    def left_running(self) -> list[str]:
        """The agents that ignore that they were cancelled, once for each run."""
        return list(self._left.values())

    async def ask(
        self,
        agent: Agent,
        name: str,
        request: RunRequest,
        recorder: Recorder,
        *,
        halted: asyncio.Future[Any] | None = None,
    ) -> ExchangeEnd:
        """What the agent of this name replies, as it said it; only a fault, which others are shown, is without secrets.
        It is stopped once `halted` is done.

        Never raises for anything that the agent, its kind or the network does.
        """
        proxy = self.proxy if agent.uses_world else None
        session = None
        if proxy is not None:
            session = self._session(request, recorder)
            request.grant = proxy.open_run(request.run_id, recorder.emit, request.observed, session)
            recorder.hide_token(request.grant.token)
        end = await self._asked(agent, name, request, recorder, proxy, halted)
        if session is not None:
            end.world = session.close()
            if session.fault is not None:
                broken = session.fault
                fault = Fault("handler_fault", broken.message, detail=broken.detail)
                end.world_fault = recorder.redaction.fault(fault)
            if session.limit_reached:
                recorder.note(CALL_LIMIT, "the agent called more often than the `limits` of its world allow")
        return end

    def _session(self, request: RunRequest, recorder: Recorder) -> WorldSession | None:
        if self.world is None:
            return None
        from seatrial.world.session import WorldSession  # which few suites have a use for

        start = self.world.start_of(request.case)
        return WorldSession(self.world, start, case_id=request.case.id, trial=request.trial, emit=recorder.emit)

    async def _asked(
        self,
        agent: Agent,
        name: str,
        request: RunRequest,
        recorder: Recorder,
        proxy: ToolProxy | None,
        halted: asyncio.Future[Any] | None,
    ) -> ExchangeEnd:
        running = asyncio.create_task(agent.run(request, recorder.emit))
        running.add_done_callback(_look_at)
        limit_s = None if request.timeout_s is None else request.timeout_s + self.grace_s
        stopped = False
        try:
            await asyncio.wait(
                (running,) if halted is None else (running, halted),
                timeout=limit_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            try:
                if not running.done():
                    stopped = True
                    await self._stop(running, name, recorder)
            finally:
                if proxy is not None:
                    await proxy.close_run(request.run_id)
        if not running.done() or (stopped and running.cancelled()):
            return ExchangeEnd(None, stopped, not running.done())
        if running.cancelled():
            fault = Fault("internal_error", "the agent was cancelled, but not by Seatrial")
            return ExchangeEnd(Reply(fault=fault), stopped)
        error = running.exception()
        if error is not None:
            # A fault of ours in one run must not end the others.
            return ExchangeEnd(Reply(fault=internal_fault(error, recorder.redaction)), stopped)
        reply: Any = running.result()
        if not isinstance(reply, Reply):
            # From a third-party agent kind.
            fault = Fault("internal_error", f"the agent kind returned a {type(reply).__name__}, and not a Reply")
            return ExchangeEnd(Reply(fault=fault), stopped)
        try:
            recorder.notes += reply.notes
            if reply.fault is not None:
                reply.fault = recorder.redaction.fault(reply.fault)
            if reply.cut and reply.body is not None:
                reply.body = recorder.redaction.cut_off(reply.body)
        except Exception as broken:  # noqa: BLE001 (what is in a reply must not end the other runs)
            return ExchangeEnd(Reply(fault=internal_fault(broken, recorder.redaction)), stopped)
        return ExchangeEnd(reply, stopped)

    async def close(self) -> list[str]:
        """Cancel once more what was left running; gives what still does not end."""
        if self._left:
            for task in self._left:
                task.cancel()
            await asyncio.wait(list(self._left), timeout=self.grace_s)
        return self.left_running

    async def _stop(self, running: asyncio.Task[Reply], name: str, recorder: Recorder) -> None:
        """Cancel an agent, and give it the time to clean up; once more, should that hang."""
        try:
            for _ in range(2):
                running.cancel()
                await asyncio.wait((running,), timeout=self.grace_s)
                if running.done():
                    return
        finally:
            if not running.done():
                recorder.note(AGENT_LEFT_RUNNING, f"the agent was still running {2 * self.grace_s:g} s after its end")
                self._left[running] = name
                running.add_done_callback(self._gone)

    def _gone(self, task: asyncio.Task[Reply]) -> None:
        del self._left[task]


def _look_at(task: asyncio.Task[Reply]) -> None:
    """Let asyncio not complain of an exception that nobody waits for, because the run was given up meanwhile."""
    if not task.cancelled():
        task.exception()


def internal_fault(error: BaseException, redaction: Redaction) -> Fault:
    """A fault of ours, with what is needed to fix it."""
    head, detail = exception_excerpt(error, error.__traceback__)
    return redaction.fault(Fault("internal_error", head, detail=detail))
