"""A suite's agents, ready to be put to one case at a time, where the engine would run all of them at once."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Self

from seatrial.agents import AgentStart, build_agent
from seatrial.agents.agent import Agent, BatchAgent, Emit, EndedBadly, Reply, RunRequest
from seatrial.driver import Driver, Redaction, SystemClock
from seatrial.engine import grading_plan, surroundings
from seatrial.engine.grading import grade
from seatrial.engine.limit import AdaptiveLimit, AgentGate
from seatrial.engine.local import StoredRuns
from seatrial.engine.stop import Stop
from seatrial.engine.trial import Finished, TrialRunner, trial_of
from seatrial.graders import Surroundings
from seatrial.runs import Case, Fault, RunKey
from seatrial.store import Store
from seatrial.suites import AgentConfig, Suite
from seatrial.workspaces import Workspaces
from seatrial.world.proxy import ToolProxy


class Rig:
    """Runs single trials of a suite for an experiment, with the same steps as `seatrial run`.

    An agent is entered when it is first needed, and stays: one that cannot be started spoils no other's trials.
    """

    def __init__(
        self,
        suite: Suite,
        experiment_id: str,
        store: Store,
        variables: Mapping[str, str],
    ) -> None:
        self._suite = suite
        self._experiment_id = experiment_id
        self._store = store
        self._variables = variables
        self._plan = grading_plan(suite)
        self._stack = AsyncExitStack()
        self._entering = asyncio.Lock()
        self._runners: dict[str, tuple[TrialRunner, AgentGate]] = {}
        self._surroundings: Surroundings | None = None
        self._workspaces: Workspaces | None = None
        self._driver = Driver(SystemClock(), Redaction(suite.secrets(variables)))

    async def __aenter__(self) -> Self:
        self._surroundings = await surroundings(self._suite, self._variables, self._stack)
        self._workspaces = await self._stack.enter_async_context(Workspaces(self._suite.directory))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    async def run(self, agent: str, case: Case, trial: int) -> Finished:
        """Put an agent to a case, once; the run is graded and stored. Raises `SeatrialError` for an unusable agent."""
        if self._surroundings is None:
            raise RuntimeError("the rig was not entered")
        config = self._suite.agents[agent]
        async with self._entering:
            entered = self._runners.get(agent)
            if entered is None:
                limit = AdaptiveLimit(config.concurrency or self._suite.concurrency)
                entered = self._runners[agent] = (await self._runner(agent, config), AgentGate(limit, Stop()))
        runner, gate = entered
        key = RunKey(agent, case.id, trial)
        finished = await runner.run(trial_of(self._suite, self._experiment_id, uuid.uuid4().hex, key, case), gate)
        kept = finished.kept
        try:
            await grade(
                finished.run,
                case,
                self._plan,
                self._surroundings,
                finished.redaction,
                kept=kept,
                workspace=finished.workspace,
            )
        finally:
            await finished.close()
        # A test that is run again in the same session counts as it came out last.
        await self._store.record_run(
            kept, events=finished.events, first=finished.first_event, bodies=finished.earlier_bodies, replace=True
        )
        return finished

    async def _runner(self, name: str, config: AgentConfig) -> TrialRunner:
        agent = self._agent(name, config)
        single: Agent = _BatchOfOne(agent) if isinstance(agent, BatchAgent) else agent
        if single.uses_world and self._driver.proxy is None:
            self._driver.proxy = await self._stack.enter_async_context(ToolProxy())
        await self._stack.enter_async_context(single)
        return TrialRunner(
            single,
            config.retry or self._suite.retry,
            self._driver,
            self._store,
            random.Random(0),  # noqa: S311 (jitter of waits, not a secret)
            faults=self._suite.fault_rules(name),
            workspaces=self._workspaces,
        )

    def _agent(self, name: str, config: AgentConfig) -> Agent | BatchAgent:
        timeouts = self._suite.timeouts
        start = AgentStart(
            name=name,
            directory=self._suite.directory,
            connect_s=timeouts.connect_s,
            read_s=timeouts.read_s,
            stored_runs=StoredRuns(self._store),
        )
        return build_agent(config.resolved(self._variables), start)


class _BatchOfOne:
    """An agent that takes batches, asked for one run at a time."""

    uses_world = False

    def __init__(self, agent: BatchAgent) -> None:
        self._agent = agent

    async def __aenter__(self) -> Self:
        await self._agent.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._agent.__aexit__(*exc_info)

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        async with aclosing(self._agent.run_batch([request])) as replies:
            answer: Reply | None = None
            async for _, reply in replies:  # to the end: what comes after the answer may leave it in doubt
                if isinstance(reply, Reply):
                    answer = reply
                elif isinstance(reply, EndedBadly):
                    if answer is not None and answer.fault is None:
                        answer.fault = reply.fault
                elif answer is not None and answer.reading is not None:
                    answer.reading.notes.append(reply.note)
        return answer or Reply(fault=Fault("agent_output_missing", "the batch ended without an answer"))
