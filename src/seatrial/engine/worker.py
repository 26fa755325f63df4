"""Running trials in this process: call the agent, grade, store."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

from seatrial.agents.agent import Agent, BatchAgent
from seatrial.driver import Driver, Redaction
from seatrial.driver.conclusion import set_fault
from seatrial.engine.batch import BatchRunner, Doubted, Failed
from seatrial.engine.budget import spent_by
from seatrial.engine.executor import AgentNotes, Assignment, RunEnd, WorkersEnd
from seatrial.engine.grading import grade, hold_to
from seatrial.engine.limit import AttemptGate
from seatrial.engine.outbox import MAX_UNCONFIRMED, Outbox
from seatrial.engine.stop import StopRequestedError
from seatrial.engine.trial import Finished, Trial, TrialRunner
from seatrial.errors import SeatrialError
from seatrial.graders import GradingPlan, Surroundings
from seatrial.runs import Case, RunKey
from seatrial.suites import Budget
from seatrial.trajectory.completeness import doubt

if TYPE_CHECKING:
    from seatrial.workspaces import Workspaces
    from seatrial.world.proxy import ToolProxy


class Worker:
    """The `Workers` of one process; its agents are entered already. The caller closes it."""

    def __init__(
        self,
        work: Assignment,
        agents: Mapping[str, Agent | BatchAgent],
        plan: GradingPlan,
        surroundings: Surroundings,
        *,
        proxy: ToolProxy | None = None,
        workspaces: Workspaces | None = None,
        confirms: bool = False,
        seed: int = 0,
    ) -> None:
        """With `confirms`, the caller waits for each run to be stored (`stored`)."""
        self.batches = frozenset(name for name, agent in agents.items() if isinstance(agent, BatchAgent))
        self._work = work
        self._suite = work.suite
        self._agents = agents
        self._plan = plan
        self._surroundings = surroundings
        self._redaction = Redaction(work.secrets)
        self._driver = Driver(work.clock, self._redaction, proxy=proxy, world=work.suite.compiled_world())
        self._outbox = Outbox(work.store)
        self._workspaces = workspaces
        self._confirms = confirms
        self._storing: dict[str, asyncio.Task[None]] = {}
        self._finished = False
        self._chance = random.Random(seed)  # noqa: S311 (jitter of waits, not a secret)
        self._runners: dict[str, TrialRunner] = {}
        self._limited = work.suite.budget != Budget()
        work.abandon.append(self._outbox.send)

    async def run(
        self, trial: Trial, gate: AttemptGate, answered: Callable[[], Awaitable[None]] | None = None
    ) -> RunEnd:
        """The same as of all `Workers`; `answered` is waited for before the run is graded."""
        runner = self._runners.get(trial.key.agent) or self._runner(trial.key.agent)
        finished = await runner.run(trial, gate)
        try:
            if answered is not None:
                await answered()
            return await self._settle(trial.case, finished)
        finally:
            await finished.close()

    async def run_batch(self, agent: str, trials: Iterator[Trial]) -> AsyncGenerator[RunEnd | AgentNotes, None]:
        batch = self._agents[agent]
        if not isinstance(batch, BatchAgent):
            raise TypeError(f"the agent {agent!r} takes one run at a time")
        work, suite = self._work, self._suite
        runner = BatchRunner(
            batch,
            suite.agents[agent].retry or suite.retry,
            self._driver,
            work.store,
            self._chance,
            faults=suite.fault_rules(agent),
            stop=work.stop,
        )
        stopped: StopRequestedError | None = None
        try:
            async with aclosing(runner.run(trials)) as ended:
                async for end in ended:
                    if isinstance(end, tuple):
                        yield await self._settle(*end)
                    elif (again := await self._revise(end)) is not None:
                        yield again
        except StopRequestedError as error:
            stopped = error
        if batch.notes:
            yield AgentNotes(agent, self._redaction.notes(batch.notes))
        if stopped is not None:
            raise stopped

    async def stored(self, run_id: str) -> None:
        """Wait until a run that has ended is stored. Raises `SeatrialError` when the store fails."""
        try:
            await asyncio.shield(self._storing[run_id])
        finally:
            if self._storing[run_id].done():
                del self._storing[run_id]

    async def finish(self) -> WorkersEnd:
        for storing in list(self._storing.values()):
            await storing
        # Agents that ignore their cancellation end with this process, at the latest.
        left_running = Counter(await self._driver.close())
        await self._outbox.empty()
        self._finished = True
        return WorkersEnd(self._outbox.elsewhere, dict(left_running))

    async def close(self) -> None:
        """Leave no task behind. After an error, too, what has run is stored where the store takes it."""
        if self._finished:
            return
        self._outbox.send()
        await asyncio.gather(*self._storing.values(), return_exceptions=True)
        await self._driver.close()

    async def _settle(self, case: Case, finished: Finished) -> RunEnd:
        """Grade a run and hand it to the store."""
        run = finished.kept
        given = await grade(
            finished.run,
            case,
            self._plan,
            self._surroundings,
            finished.redaction,
            kept=run,
            workspace=finished.workspace,
        )
        if not isinstance(run.key, RunKey):
            raise TypeError(f"not a run of an experiment: {run.key}")
        end = RunEnd(run.key, given.outcome, spent_by(run, self._suite.budget) if self._limited else None)
        if self._confirms:
            while len(self._storing) >= MAX_UNCONFIRMED:
                await asyncio.wait(self._storing.values(), return_when=asyncio.FIRST_COMPLETED)
            self._storing[run.run_id] = asyncio.create_task(self._outbox.put_through(finished))
        else:
            await self._outbox.put(finished)
        return end

    async def _revise(self, found: Doubted | Failed) -> RunEnd | None:
        """Grade a run again of whose calls less is known than when it ended, or that failed in the end; None when
        nothing is to be said of it."""
        store, run_id = self._work.store, found.run_id
        if run_id in self._storing:
            await asyncio.shield(self._storing[run_id])
        await self._outbox.empty()
        try:
            run = await asyncio.to_thread(store.run, run_id)
        except SeatrialError as error:
            if error.code != "not_found":
                raise
            return None  # another process recorded it first
        if run.reading is None or run.completeness is None or run.grade is None or not isinstance(run.key, RunKey):
            return None  # a run without an answer has no calls that could be known
        before, verdicts = run.grade.outcome, run.verdicts
        if isinstance(found, Failed):
            if run.status != "completed":
                return None  # it has a fault of its own
            set_fault(run, found.fault)
            given = await grade(run, found.case, self._plan, self._surroundings, self._redaction)
            await store.fail_run(run, given)
            return RunEnd(run.key, given.outcome, before=before)
        run.reading.notes.append(found.note)
        run.completeness = doubt(run.completeness, found.note)
        await grade(run, found.case, self._plan, self._surroundings, self._redaction)
        given = hold_to(run, verdicts)
        await store.doubt_run(run, found.note, given)
        return RunEnd(run.key, given.outcome, before=before)

    def _runner(self, name: str) -> TrialRunner:
        agent = self._agents[name]
        if isinstance(agent, BatchAgent):
            raise TypeError(f"the agent {name!r} takes all runs at once")
        work, suite = self._work, self._suite
        runner = self._runners[name] = TrialRunner(
            agent,
            suite.agents[name].retry or suite.retry,
            self._driver,
            work.store,
            self._chance,
            faults=suite.fault_rules(name),
            stop=work.stop,
            workspaces=self._workspaces,
        )
        return runner
