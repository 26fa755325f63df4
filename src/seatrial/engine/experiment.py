"""Carrying an experiment out: every case by every agent, graded, recorded, resumable."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import Counter, deque
from collections.abc import Awaitable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Protocol

import msgspec

from seatrial.agents.agent import Agent, BatchAgent, RunRequest
from seatrial.engine.budget import Spending
from seatrial.engine.clock import Clock, SystemClock
from seatrial.engine.limit import AdaptiveLimit
from seatrial.engine.redaction import Redaction
from seatrial.engine.trial import Finished, Trial, TrialRunner, finished_run, record_end, trial_recorder
from seatrial.graders import GradingPlan, Subject, Surroundings
from seatrial.runs import Attempt, Case, Run, RunKey
from seatrial.store import Receipt, Store, address
from seatrial.suites import Secrets, Suite

MAX_UNCONFIRMED = 256
"""Runs that may wait for their commit at once; bounds the memory, and what a kill can cost."""


class Observer(Protocol):
    """Who watches an experiment go."""

    def resumed(self, done: int) -> None:
        """So many runs were there already."""

    def finished(self, run: Run) -> None:
        """A run has ended and was graded."""

    def stopping(self, reason: str) -> None:
        """Nothing new starts; what runs is finished."""


class Tally(msgspec.Struct):
    """What one execution of an experiment did."""

    done_before: int
    """Runs that were there already, and were not run again."""
    outcomes: Counter[str]
    """Judgements of the runs of this execution."""
    stop_reason: str | None = None


class Stop:
    """Asks an experiment to stop: nothing new starts, what runs is finished."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def request(self, reason: str) -> None:
        """Stop; the first reason counts."""
        if self.reason is None:
            self.reason = reason


class ExperimentRunner:
    """One execution of an experiment: all of it, or what an earlier one left."""

    def __init__(
        self,
        experiment_id: str,
        suite: Suite,
        agents: Mapping[str, Agent | BatchAgent],
        plan: GradingPlan,
        surroundings: Surroundings,
        store: Store,
        *,
        selected: Mapping[str, Collection[str]] | None = None,
        secrets: Secrets | None = None,
        observer: Observer | None = None,
        stop: Stop | None = None,
        clock: Clock | None = None,
        seed: int = 0,
    ) -> None:
        self.experiment_id = experiment_id
        self.suite = suite
        self.agents = agents
        self.stop = Stop() if stop is None else stop
        self._selected = None if selected is None else {name: frozenset(cases) for name, cases in selected.items()}
        self._redaction = Redaction(secrets)
        self._plan = plan
        self._surroundings = surroundings
        self._store = store
        self._observer = observer
        self._clock = SystemClock() if clock is None else clock
        self._chance = random.Random(seed)  # noqa: S311 (jitter of waits, not a secret)
        self._spending = Spending(suite.budget)
        self._unconfirmed: deque[Receipt[bool]] = deque()
        self._outcomes: Counter[str] = Counter()
        self._begun = 0.0
        self._told_to_stop = False

    async def run(self) -> Tally:
        """Run what is missing, to the end or until asked to stop."""
        self._begun = self._clock.monotonic_s()
        done = self._store.done_keys(self.experiment_id)
        self._store.resume_experiment(self.experiment_id)
        if self._observer is not None:
            self._observer.resumed(len(done))
        async with AsyncExitStack() as stack:
            for agent in self.agents.values():
                await stack.enter_async_context(agent)
            async with asyncio.TaskGroup() as group:
                places = asyncio.Semaphore(self.suite.concurrency)
                for name, agent in self.agents.items():
                    missing = self._missing(name, frozenset(done))
                    if isinstance(agent, BatchAgent):
                        group.create_task(self._run_batch(agent, missing))
                    else:
                        self._start_workers(group, name, agent, missing, places)
            while self._unconfirmed:
                await self._confirm()
        await self._store.finish_experiment(
            self.experiment_id, finished_at=self._clock.now_ms(), stop_reason=self.stop.reason
        )
        return Tally(len(done), self._outcomes, self.stop.reason)

    def _missing(self, agent: str, done: Collection[RunKey]) -> Iterator[Trial]:
        """The trials of an agent that have no result yet: each case once before any case again."""
        config = self.suite.agents[agent]
        deadline_s = config.run_timeout_s or self.suite.timeouts.run_s
        chosen = None if self._selected is None else self._selected.get(agent, frozenset())
        for number in range(self.suite.trials):
            for case in self._store.cases(self.experiment_id):
                key = RunKey(agent, case.id, number)
                if key in done or (chosen is not None and case.id not in chosen):
                    continue
                if self._should_stop():
                    return
                yield Trial(
                    run_id=uuid.uuid4().hex,
                    experiment_id=self.experiment_id,
                    key=key,
                    case=case,
                    deadline_s=case.timeout_s or deadline_s,
                    suite_file=self.suite.file,
                )

    def _should_stop(self) -> bool:
        if self.stop.reason is None:
            exceeded = self._spending.exceeded(self._clock.monotonic_s() - self._begun)
            if exceeded is None:
                return False
            self.stop.request(exceeded)
        if self._observer is not None and not self._told_to_stop:
            self._told_to_stop = True
            self._observer.stopping(str(self.stop.reason))
        return True

    def _start_workers(
        self, group: asyncio.TaskGroup, name: str, agent: Agent, missing: Iterator[Trial], places: asyncio.Semaphore
    ) -> None:
        config = self.suite.agents[name]
        concurrency = config.concurrency or self.suite.concurrency
        runner = TrialRunner(
            agent,
            AdaptiveLimit(concurrency),
            config.retry or self.suite.retry,
            self._clock,
            self._store,
            self._chance,
            self._redaction,
        )
        for _ in range(concurrency):
            group.create_task(self._work(runner, missing, places))

    async def _work(self, runner: TrialRunner, missing: Iterator[Trial], places: asyncio.Semaphore) -> None:
        # All workers of an agent draw from one iterator: no case waits for a slow one, and none is held in memory.
        for trial in missing:
            async with places:
                await self._settle(trial.case, await runner.carry_out(trial))

    async def _run_batch(self, agent: BatchAgent, missing: Iterator[Trial]) -> None:
        trials: dict[str, Trial] = {}

        def requests() -> Iterator[RunRequest]:
            for trial in missing:
                trials[trial.run_id] = trial
                yield RunRequest(
                    run_id=trial.run_id,
                    experiment_id=trial.experiment_id,
                    case=trial.case,
                    trial=trial.key.trial,
                    attempt=1,
                    timeout_s=trial.deadline_s,
                    suite_file=trial.suite_file,
                )

        begun = self._clock.monotonic_s()
        started_at = self._clock.now_ms()
        async for request, reply in agent.run_batch(requests()):
            trial = trials.pop(request.run_id)
            reply = self._redaction.reply(reply)
            took_ms = (self._clock.monotonic_s() - begun) * 1000
            attempt = Attempt(number=1, started_at=started_at, duration_ms=took_ms, fault=reply.fault)
            if reply.body is not None:
                attempt.body_hash, attempt.body_bytes = address(reply.body), len(reply.body)
            recorder = trial_recorder(trial, self._clock, self._store, self._redaction)
            run = finished_run(trial, reply, [attempt])
            run.started_at = started_at
            record_end(recorder, reply)
            await self._settle(trial.case, Finished(run, recorder.close(), recorder.appended, []))

    async def _settle(self, case: Case, finished: Finished) -> None:
        """Grade a run and hand it to the store."""
        run = finished.run
        graded = self._plan.grade(Subject(run, case), self._surroundings)
        run.verdicts, run.grade = await graded if isinstance(graded, Awaitable) else graded
        self._spending.add(run)
        self._unconfirmed.append(
            self._store.record_run(
                run, events=finished.events, first=finished.first_event, bodies=finished.earlier_bodies
            )
        )
        if len(self._unconfirmed) > MAX_UNCONFIRMED:
            await self._confirm()
        self._outcomes[run.grade.judgement] += 1
        if self._observer is not None:
            self._observer.finished(run)

    async def _confirm(self) -> None:
        await self._unconfirmed.popleft()
