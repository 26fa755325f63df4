"""Agents that do what a test says, and experiments with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, TypeAlias

from strategies.unhurried import run_unhurried

from seatrial.agents.agent import Agent, AnsweredAgain, BatchAgent, Emit, EndedBadly, Reply, RunRequest
from seatrial.agents.config import Retry
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.python.returned import read_returned
from seatrial.driver.clock import Clock, SystemClock
from seatrial.engine.executor import Assignment
from seatrial.engine.experiment import ExperimentRunner, ExperimentTally
from seatrial.engine.launch import create_experiment
from seatrial.engine.local import LocalExecutor, opened_worker
from seatrial.engine.stop import Stop
from seatrial.engine.worker import Worker
from seatrial.runs import Case, Experiment, Fault, Run, class_of_status
from seatrial.store import Store
from seatrial.suites import Secrets, Suite
from seatrial.transcript import Note

Answer: TypeAlias = Callable[[RunRequest, Emit], Awaitable[Reply]]

NO_WAIT = Retry(attempts=3, first_wait_s=0)


class Scripted:
    """An agent whose every reply is made by a function."""

    uses_world = False

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[RunRequest] = []
        self.active = 0
        self.most_active = 0
        self.entered = 0
        self.left = 0

    async def __aenter__(self) -> Self:
        self.entered += 1
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.left += 1

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        self.asked.append(request)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            return await self.answer(request, emit)
        finally:
            self.active -= 1


class ScriptedBatch:
    """A batch agent whose replies are made by a function; None for a request that it forgets."""

    def __init__(self, answer: Callable[[RunRequest], Reply | None]) -> None:
        self.answer = answer
        self.batches = 0
        self.notes: list[Note] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        pass

    async def run_batch(
        self, requests: Iterable[RunRequest]
    ) -> AsyncGenerator[tuple[RunRequest, Reply | AnsweredAgain | EndedBadly], None]:
        self.batches += 1
        for request in list(requests):
            reply = self.answer(request)
            if reply is not None:
                yield request, reply


class TestClock:
    """Clocks that go as a test says."""

    __test__ = False

    def __init__(self, now_ms: int = 1_790_000_000_000, step_ms: int = 0) -> None:
        self.wall_ms = now_ms
        self.step_ms = step_ms
        """What the wall clock does each time somebody looks at it."""
        self.passed_s = 0.0

    def now_ms(self) -> int:
        self.wall_ms += self.step_ms
        return self.wall_ms

    def monotonic_s(self) -> float:
        self.passed_s += 0.001
        return self.passed_s


class LoopClock(SystemClock):
    """Durations by the clock of the event loop, on which a busy machine loses no time."""

    def __init__(self) -> None:
        self.latest_s = 0.0
        """When somebody looked at it last."""

    def monotonic_s(self) -> float:
        with suppress(RuntimeError):  # no loop runs yet
            self.latest_s = asyncio.get_running_loop().time()
        return self.latest_s


async def say_ok(request: RunRequest, emit: Emit) -> Reply:
    """The answer of an agent that has nothing to hide."""
    return read_returned("ok")


def refused(status: int = 503, **fields: Any) -> Reply:
    """What an agent says that cannot be had."""
    error_class = class_of_status(status)
    assert error_class is not None
    fault = Fault(error_class, f"the agent answered {status}", http_status=status, **fields)
    return Reply(fault=fault, body=b"go away", http_status=status)


def a_suite(cases: int = 3, *, agents: Iterable[str] = ("crew",), **fields: Any) -> Suite:
    """A suite of cases `case-0`, `case-1`, ... that are passed with the word `ok`."""
    given: dict[str, Any] = {
        "name": "harbour",
        "agents": {name: PythonConfig(target="nobody_on_board:answer") for name in agents},
        "cases": [Case(id=f"case-{number}", instruction=f"Task {number}") for number in range(cases)],
        "graders": [{"kind": "contains", "value": "ok"}],
        "retry": NO_WAIT,
    }
    return Suite(**{**given, **fields})


def run_suite(
    store: Store,
    suite: Suite,
    agents: Mapping[str, Agent | BatchAgent],
    *,
    experiment: Experiment | None = None,
    selected: Mapping[str, Collection[str]] | None = None,
    secrets: Secrets | None = None,
    stop: Stop | None = None,
    clock: Clock | None = None,
    observer: Any = None,
) -> tuple[Experiment, ExperimentTally]:
    """Carry an experiment out, or go on with one."""
    if experiment is None:
        experiment = create_experiment(store, suite, selected=selected, variables={}, clock=clock)
    else:
        experiment = store.resolve_experiment(experiment.experiment_id)

    runner = ExperimentRunner(
        experiment,
        suite,
        Crew(agents=agents),
        store,
        variables={},
        selected=selected,
        secrets=secrets,
        stop=stop,
        clock=clock,
        observer=observer,
    )
    return experiment, run_unhurried(runner.run())


class Crew(LocalExecutor):
    """The executor `local` with agents that are there already."""

    agents: Any

    @asynccontextmanager
    async def open(self, work: Assignment) -> AsyncIterator[Worker]:
        async with opened_worker(work, self.agents) as worker:
            yield worker


def runs_of(store: Store, experiment: Experiment) -> list[Run]:
    """All runs, in the store's order."""
    return list(store.whole_runs(experiment.experiment_id))


def only_run(store: Store, experiment: Experiment) -> Run:
    """The one run of an experiment, with its body."""
    (run,) = runs_of(store, experiment)
    return store.run(run.run_id)


def event_kinds(store: Store, run: Run) -> list[str]:
    """The types of a run's events, in order."""
    return [event.split(b'"type":"')[1].split(b'"')[0].decode() for _, event in store.events(run.run_id)]
