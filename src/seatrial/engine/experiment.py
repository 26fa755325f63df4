"""Carrying an experiment out: every case by every agent, graded, recorded, resumable."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from itertools import chain, count
from typing import TYPE_CHECKING, Protocol

import msgspec

from seatrial.agents.agent import Agent, BatchAgent
from seatrial.driver import Clock, Driver, Redaction, SystemClock
from seatrial.driver.exchange import AGENT_LEFT_RUNNING
from seatrial.engine.batch import BatchRunner
from seatrial.engine.budget import Spending
from seatrial.engine.grading import grade
from seatrial.engine.limit import AdaptiveLimit
from seatrial.engine.outbox import Outbox
from seatrial.engine.stop import Stop, StopRequestedError
from seatrial.engine.trial import Finished, Trial, TrialRunner
from seatrial.errors import SeatrialError, first_error
from seatrial.graders import GradingPlan, Surroundings
from seatrial.runs import Case, Experiment, Run, RunKey
from seatrial.store import Store
from seatrial.suites import Secrets, Suite
from seatrial.transcript import Note

if TYPE_CHECKING:
    from seatrial.world.proxy import ToolProxy


class Observer(Protocol):
    """Who watches an experiment go."""

    def resumed(self, done: int) -> None:
        """So many runs were there already."""

    def finished(self, run: Run) -> None:
        """A run has ended and was graded."""

    def stopping(self, reason: str) -> None:
        """Nothing new starts; what runs is finished."""

    def noted(self, agent: str, notes: Sequence[Note]) -> None:
        """An agent said something that belongs to no run."""


class ExperimentTally(msgspec.Struct):
    """What one execution of an experiment did."""

    done_before: int
    """Runs that were there already, and were not run again."""
    outcomes: Counter[str]
    """Judgements of the runs of this execution."""
    stop_reason: str | None = None
    """Why it ended before all was run; None when nothing is left to run."""
    elsewhere: int = 0
    """Runs of this execution that another process recorded first: its results count."""
    notes: dict[str, list[Note]] = {}
    """What an agent said that belongs to no run, by the agent."""


class ExperimentRunner:
    """One execution of an experiment: all of it, or what an earlier one left."""

    def __init__(
        self,
        experiment: Experiment,
        suite: Suite,
        agents: Mapping[str, Agent | BatchAgent],
        plan: GradingPlan,
        surroundings: Surroundings,
        store: Store,
        *,
        selected: Mapping[str, Collection[str]] | None = None,
        secrets: Secrets | None = None,
        world: ToolProxy | None = None,
        observer: Observer | None = None,
        stop: Stop | None = None,
        clock: Clock | None = None,
        seed: int = 0,
    ) -> None:
        """`selected` are the cases that each agent runs, where that is not all; `world` is for agents that use it."""
        self.experiment = experiment
        self.suite = suite
        self.agents = agents
        self.stop = Stop() if stop is None else stop
        self._selected = None if selected is None else {name: frozenset(cases) for name, cases in selected.items()}
        self._clock = SystemClock() if clock is None else clock
        self._redaction = Redaction(secrets)
        self._driver = Driver(self._clock, self._redaction, world=world)
        self._plan = plan
        self._surroundings = surroundings
        self._store = store
        self._observer = observer
        self._chance = random.Random(seed)  # noqa: S311 (jitter of waits, not a secret)
        self._spending = Spending(suite.budget)
        self._outbox = Outbox(store)
        self._run_ids = _run_ids()
        self._outcomes: Counter[str] = Counter()
        self._notes: dict[str, list[Note]] = {}
        self._damaged: str | None = None
        """Why a case could not be run: the store cannot give it any more."""
        self._begun = 0.0
        self._left_out = False
        """Whether something was not run, because of a stop."""
        self._begun_runs = self._ended_runs = 0

    async def run(self) -> ExperimentTally:
        """Run what is missing, to the end or until asked to stop. Raises `SeatrialError` when the store fails."""
        self._begun = self._clock.monotonic_s()
        experiment_id = self.experiment.experiment_id
        done = self._store.done_keys(experiment_id)
        if self._observer is not None:
            self._observer.resumed(len(done))
        # An agent with nothing left to do is not even started.
        missing: dict[str, Iterator[Trial]] = {}
        for name in self.agents:
            trials = self._missing(name, done)
            if (first := next(trials, None)) is not None:
                missing[name] = chain([first], trials)
        if missing:
            self._store.resume_experiment(experiment_id)
            self.stop.abandon = self._abandon
            try:
                await self._carry_out(missing)
            except asyncio.CancelledError:
                self._abandon(self.stop.reason or "cancelled")
                raise
            finally:
                self.stop.abandon = None
            for name, told in self._spending.notes().items():
                self._notes.setdefault(name, []).extend(told)
                await self._store.add_notes(experiment_id, name, told)
        reason = self.stop.reason if self._left_out else self._damaged
        if reason is None and self._ended_runs < self._begun_runs:
            # Whatever it was: an experiment that lacks runs is not a finished one.
            reason = f"{self._begun_runs - self._ended_runs} of {self._begun_runs} runs ended without a record"
        if missing or self.experiment.status != "finished":
            await self._store.finish_experiment(experiment_id, finished_at=self._clock.now_ms(), stop_reason=reason)
        return ExperimentTally(len(done), self._outcomes, reason, self._outbox.elsewhere, self._notes)

    async def _carry_out(self, missing: Mapping[str, Iterator[Trial]]) -> None:
        # An agent that is alone has its own limit, and needs no other.
        places = asyncio.Semaphore(self.suite.concurrency) if len(missing) > 1 else None
        try:
            async with AsyncExitStack() as stack:
                for name in missing:
                    await stack.enter_async_context(self.agents[name])
                async with asyncio.TaskGroup() as group:
                    for name, trials in missing.items():
                        agent = self.agents[name]
                        if isinstance(agent, BatchAgent):
                            group.create_task(self._work_in_batch(name, agent, trials))
                        else:
                            self._start_workers(group, name, agent, trials, places)
                await self._report_left_running()
                await self._outbox.empty()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors

    async def _report_left_running(self) -> None:
        """Name the agents that ignore their cancellation: they end with this process, at the latest."""
        for name, runs in Counter(await self._driver.close()).items():
            note = Note(AGENT_LEFT_RUNNING, "", f"{runs:,} runs of the agent were over, and did not end")
            self._notes.setdefault(name, []).append(note)
            await self._store.add_notes(self.experiment.experiment_id, name, [note])
            if self._observer is not None:
                self._observer.noted(name, [note])

    def _abandon(self, reason: str) -> None:
        """Hand what has finished to the store, and say that the rest was left out. Waits for nothing: the store writes
        it at the latest when it is closed."""
        self._outbox.send()
        self._store.finish_experiment(
            self.experiment.experiment_id, finished_at=self._clock.now_ms(), stop_reason=reason
        )

    def _missing(self, agent: str, done: Collection[RunKey]) -> Iterator[Trial]:
        """The trials of an agent that have no result yet: each case once before any case again."""
        config = self.suite.agents[agent]
        deadline_s = config.run_timeout_s or self.suite.timeouts.run_s
        chosen = None if self._selected is None else self._selected.get(agent, frozenset())
        for number in range(self.suite.trials):
            damaged: list[SeatrialError] = []
            for case in self._store.cases(self.experiment.experiment_id, damaged=damaged):
                key = RunKey(agent, case.id, number)
                if key in done or (chosen is not None and case.id not in chosen):
                    continue
                if self._should_stop():
                    return
                self._begun_runs += 1
                yield Trial(
                    run_id=next(self._run_ids),
                    experiment_id=self.experiment.experiment_id,
                    key=key,
                    tool_access=config.tool_access,
                    case=case,
                    deadline_s=case.timeout_s or deadline_s,
                    suite_file=self.suite.file,
                )
            self._damaged = self._damaged or (damaged[0].message if damaged else None)

    def _should_stop(self) -> bool:
        """Whether a trial that is about to start had better not."""
        self._check_budget()
        if self.stop.reason is None:
            return False
        self._leave_out()
        return True

    def _check_budget(self) -> None:
        """Ask for a stop when the budget is used up."""
        if self._spending.limited and self.stop.reason is None:
            exceeded = self._spending.exceeded(self._clock.monotonic_s() - self._begun)
            if exceeded is not None:
                self.stop.request(exceeded)

    def _leave_out(self) -> None:
        if self._observer is not None and not self._left_out:
            self._observer.stopping(str(self.stop.reason))
        self._left_out = True

    def _start_workers(
        self,
        group: asyncio.TaskGroup,
        name: str,
        agent: Agent,
        trials: Iterator[Trial],
        places: asyncio.Semaphore | None,
    ) -> None:
        config = self.suite.agents[name]
        concurrency = min(config.concurrency or self.suite.concurrency, self.suite.concurrency)
        runner = TrialRunner(
            agent,
            AdaptiveLimit(concurrency),
            config.retry or self.suite.retry,
            self._driver,
            self._store,
            self._chance,
            faults=self.suite.fault_rules(name),
            places=places,
            stop=self.stop,
        )
        for _ in range(concurrency):
            group.create_task(self._work(runner, trials))

    async def _work(self, runner: TrialRunner, trials: Iterator[Trial]) -> None:
        # All workers of an agent draw from one iterator: no case waits for a slow one, and none is held in memory.
        for trial in trials:
            try:
                finished = await runner.carry_out(trial)
            except StopRequestedError:
                self._leave_out()
                return
            await self._settle(trial.case, finished)

    async def _work_in_batch(self, name: str, agent: BatchAgent, trials: Iterator[Trial]) -> None:
        retry = self.suite.agents[name].retry or self.suite.retry
        runner = BatchRunner(
            agent,
            retry,
            self._driver,
            self._store,
            self._chance,
            faults=self.suite.fault_rules(name),
            stop=self.stop,
        )
        # Single runs end by themselves, and the budget is looked at before the next; a batch may say nothing for long.
        time_s = self.suite.budget.wall_time_s
        timer = None if time_s is None else asyncio.get_running_loop().call_later(time_s, self._check_budget)
        try:
            async with aclosing(runner.carry_out(trials)) as ended:
                async for case, finished in ended:
                    await self._settle(case, finished)
                    self._check_budget()
        except StopRequestedError:
            self._leave_out()
        finally:
            if timer is not None:
                timer.cancel()
        if agent.notes:
            told = [msgspec.structs.replace(note, message=self._redaction.text(note.message)) for note in agent.notes]
            self._notes[name] = told
            await self._store.add_notes(self.experiment.experiment_id, name, told)
            if self._observer is not None:
                self._observer.noted(name, told)

    async def _settle(self, case: Case, finished: Finished) -> None:
        """Grade a run and hand it to the store."""
        run = finished.run
        given = await grade(run, case, self._plan, self._surroundings, self._redaction)
        self._ended_runs += 1
        news = self._spending.add(run)
        if news and self._observer is not None:
            self._observer.noted(run.key.agent, news)
        self._outcomes[given.judgement] += 1
        await self._outbox.put(finished)
        if self._observer is not None:
            self._observer.finished(run)


def _run_ids() -> Iterator[str]:
    """Ids for new runs: random for this execution, then counted, because an index takes those in order for less."""
    execution = uuid.uuid4().hex[:20]
    return (f"{execution}{number:012x}" for number in count())
