"""Carrying an experiment out: every case by every agent, graded, recorded, resumable."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import chain, count
from typing import Protocol

import msgspec

from seatrial.agents.replay.agent import unused_records
from seatrial.agents.replay.config import ReplayConfig
from seatrial.driver import Clock, SystemClock
from seatrial.driver.exchange import AGENT_LEFT_RUNNING
from seatrial.engine.budget import Spending
from seatrial.engine.executor import Assignment, Executor, RunEnd, Workers
from seatrial.engine.interrupted import interrupted_attempt
from seatrial.engine.limit import AdaptiveLimit, AgentGate, AttemptGate
from seatrial.engine.stop import Stop, StopRequestedError
from seatrial.engine.trial import Trial, trial_of
from seatrial.errors import SeatrialError, first_error
from seatrial.runs import Experiment, RunKey
from seatrial.store import Store
from seatrial.suites import Secrets, Suite
from seatrial.transcript import Note


class Observer(Protocol):
    """Who watches an experiment go."""

    def resumed(self, done: int) -> None:
        """So many runs were there already."""

    def finished(self, end: RunEnd) -> None:
        """A run has ended and was graded."""

    def stopping(self, reason: str) -> None:
        """Nothing new starts; what runs is finished."""

    def noted(self, agent: str, notes: Sequence[Note]) -> None:
        """An agent said something that belongs to no run."""

    def warned(self, message: str) -> None:
        """Something went wrong that costs time and nothing else."""


class ExperimentTally(msgspec.Struct):
    """What one execution of an experiment did."""

    done_before: int
    """Runs that were there already, and were not run again."""
    outcomes: Counter[str]
    """Outcomes of the runs of this execution."""
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
        executor: Executor,
        store: Store,
        *,
        variables: Mapping[str, str],
        secrets: Secrets | None = None,
        selected: Mapping[str, Collection[str]] | None = None,
        observer: Observer | None = None,
        stop: Stop | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`selected` are the cases that each agent runs, where that is not all; `secrets` those of the suite unless
        given."""
        self.experiment = experiment
        self.suite = suite
        self.stop = Stop() if stop is None else stop
        self._executor = executor
        self._selected = None if selected is None else {name: frozenset(cases) for name, cases in selected.items()}
        self._clock = SystemClock() if clock is None else clock
        self._store = store
        self._work = Assignment(
            experiment=experiment,
            suite=suite,
            agents=(),
            store=store,
            variables=variables,
            secrets=suite.secrets(variables) if secrets is None else secrets,
            stop=self.stop,
            clock=self._clock,
        )
        if observer is not None:
            self._work.warn = observer.warned
        self._observer = observer
        self._spending = Spending(suite.budget)
        self._run_ids = _run_ids()
        self._unfinished: dict[RunKey, str] = {}
        """Runs that an earlier execution began, and did not end."""
        self._outcomes: Counter[str] = Counter()
        self._elsewhere = 0
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
        self._unfinished = self._store.unfinished_runs(experiment_id)
        if self._observer is not None:
            self._observer.resumed(len(done))
        # An agent with nothing left to do is not even started.
        missing: dict[str, Iterator[Trial]] = {}
        for name in self.suite.agents:
            trials = self._missing(name, done)
            if (first := next(trials, None)) is not None:
                missing[name] = chain([first], trials)
        if missing:
            self._store.resume_experiment(experiment_id)
            self.stop.abandon = self._abandon
            try:
                await self._run_missing(missing)
            except asyncio.CancelledError:
                self._abandon(self.stop.reason or "cancelled")
                raise
            finally:
                self.stop.abandon = None
            for name, notes in self._spending.notes().items():
                self._notes.setdefault(name, []).extend(notes)
                await self._store.add_notes(experiment_id, name, notes)
        reason = self.stop.reason if self._left_out else self._damaged
        if reason is None and self._ended_runs < self._begun_runs:
            # Whatever it was: an experiment that lacks runs is not a finished one.
            reason = f"{self._begun_runs - self._ended_runs} of {self._begun_runs} runs ended without a record"
        if missing or self.experiment.status != "finished":
            await self._store.finish_experiment(experiment_id, finished_at=self._clock.now_ms(), stop_reason=reason)
        return ExperimentTally(len(done), self._outcomes, reason, self._elsewhere, self._notes)

    async def _run_missing(self, missing: Mapping[str, Iterator[Trial]]) -> None:
        # An agent that is alone has its own limit, and needs no other.
        places = asyncio.Semaphore(self.suite.concurrency) if len(missing) > 1 else None
        self._work.agents = list(missing)
        try:
            async with self._executor.open(self._work) as workers:
                async with asyncio.TaskGroup() as group:
                    for name, trials in missing.items():
                        if name in workers.batches:
                            group.create_task(self._work_in_batch(name, workers, trials))
                        else:
                            self._start(group, name, workers, trials, places)
                end = await workers.finish()
                self._elsewhere = end.elsewhere
                self._correct(end.replaced)
                for name, runs in end.left_running.items():
                    note = Note(AGENT_LEFT_RUNNING, "", f"{runs:,} runs of the agent were over, and did not end")
                    await self._add_notes(name, [note])
                for name in missing:
                    if unused := await asyncio.to_thread(self._unused_records, name):
                        await self._add_notes(name, unused)
        except StopRequestedError:
            self._leave_out()  # before there was any worker
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors

    async def _add_notes(self, agent: str, notes: list[Note]) -> None:
        """Keep what was noted on an agent, and on no run."""
        self._notes.setdefault(agent, []).extend(notes)
        await self._store.add_notes(self.experiment.experiment_id, agent, notes)
        if self._observer is not None:
            self._observer.noted(agent, notes)

    def _unused_records(self, agent: str) -> list[Note]:
        """Notes on what an agent replays that belongs to no case."""
        config = self.suite.agents[agent]
        if self._selected is not None or not isinstance(config, ReplayConfig) or config.path is None:
            return []
        path = self.suite.directory / str(config.resolved(self._work.variables).path)
        cases = self._store.cases(self.experiment.experiment_id, damaged=[])
        try:
            return unused_records(path, {case.id for case in cases})
        except SeatrialError:
            return []  # gone since; its runs say so

    def _abandon(self, reason: str) -> None:
        """Hand what has finished to the store, and say that the rest was left out. Waits for nothing: the store writes
        it at the latest when it is closed."""
        for save in self._work.abandon:
            save()
        self._store.finish_experiment(
            self.experiment.experiment_id, finished_at=self._clock.now_ms(), stop_reason=reason
        )

    def _missing(self, agent: str, done: Collection[RunKey]) -> Iterator[Trial]:
        """The trials of an agent that have no result yet: each case once before any case again."""
        chosen = None if self._selected is None else self._selected.get(agent, frozenset())
        for number in range(1, self.suite.trials + 1):
            damaged: list[SeatrialError] = []
            for case in self._store.cases(self.experiment.experiment_id, damaged=damaged):
                key = RunKey(agent, case.id, number)
                if key in done or (chosen is not None and case.id not in chosen):
                    continue
                if self._should_stop():
                    return
                self._begun_runs += 1
                trial = trial_of(self.suite, self.experiment.experiment_id, next(self._run_ids), key, case)
                if (lost := self._unfinished.get(key)) is not None:
                    now_ms = self._clock.now_ms()
                    trial.interrupted = [interrupted_attempt(self._store, lost, case, trial.tool_access, now_ms=now_ms)]
                yield trial
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

    def _start(
        self,
        group: asyncio.TaskGroup,
        name: str,
        workers: Workers,
        trials: Iterator[Trial],
        places: asyncio.Semaphore | None,
    ) -> None:
        concurrency = min(self.suite.agents[name].concurrency or self.suite.concurrency, self.suite.concurrency)
        gate = AgentGate(AdaptiveLimit(concurrency), self.stop, places)
        for _ in range(concurrency):
            group.create_task(self._work_through(workers, gate, trials))

    async def _work_through(self, workers: Workers, gate: AttemptGate, trials: Iterator[Trial]) -> None:
        # All tasks of an agent draw from one iterator: no case waits for a slow one, and none is held in memory.
        for trial in trials:
            try:
                end = await workers.run(trial, gate)
            except StopRequestedError:
                self._leave_out()
                return
            self._count(end)

    async def _work_in_batch(self, name: str, workers: Workers, trials: Iterator[Trial]) -> None:
        # Single runs end by themselves, and the budget is looked at before the next; a batch may say nothing for long.
        time_s = self.suite.budget.wall_time_s
        timer = None if time_s is None else asyncio.get_running_loop().call_later(time_s, self._check_budget)
        try:
            async with aclosing(workers.run_batch(name, trials)) as ended:
                async for end in ended:
                    if isinstance(end, RunEnd):
                        self._count(end)
                        self._check_budget()
                    else:
                        await self._add_notes(end.agent, end.notes)
        except StopRequestedError:
            self._leave_out()
        finally:
            if timer is not None:
                timer.cancel()

    def _count(self, end: RunEnd) -> None:
        """Count a run that has ended."""
        if end.before is not None:
            self._outcomes[end.before] -= 1
            self._outcomes[end.outcome] += 1
            self._outcomes = +self._outcomes
            return
        self._ended_runs += 1
        self._outcomes[end.outcome] += 1
        news = [] if end.spent is None else self._spending.add(end.key.agent, end.spent)
        if self._observer is not None:
            if news:
                self._observer.noted(end.key.agent, news)
            self._observer.finished(end)

    def _correct(self, replaced: Iterable[tuple[RunEnd, RunEnd | None]]) -> None:
        """Count runs that were lost after they had ended as they ended in the end. What they used up is used up."""
        for before, after in replaced:
            self._outcomes[before.outcome] -= 1
            self._ended_runs -= 1
            if after is None:
                self._leave_out()
                continue
            self._outcomes[after.outcome] += 1
            self._ended_runs += 1
            if after.spent is not None:
                self._spending.add(after.key.agent, after.spent)
        self._outcomes = +self._outcomes


def _run_ids() -> Iterator[str]:
    """Ids for new runs: random for this execution, then counted, because an index takes those in order for less."""
    execution = uuid.uuid4().hex[:20]
    return (f"{execution}{number:012x}" for number in count())
