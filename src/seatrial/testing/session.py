"""What the tests of one process share: the store, the loop that agents run in, and the experiments of suite files."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec

from seatrial._support.portal import Portal
from seatrial.driver.clock import SystemClock
from seatrial.engine import create_experiment
from seatrial.engine.trial import Finished
from seatrial.errors import SeatrialError
from seatrial.runs import Case
from seatrial.store import Store, open_store
from seatrial.suites import Suite
from seatrial.testing.asked import Asked
from seatrial.testing.rig import Rig
from seatrial.testing.run_result import RunResult

PATIENCE_S = 60.0
"""How long a process waits for the experiment that another one is to create."""


class Plan(msgspec.Struct, frozen=True):
    """The tests of one suite file, which make up one experiment together."""

    suite: Suite
    experiment_id: str
    selected: dict[str, list[str]]
    """For each agent, the cases that are to be run."""
    size: int
    """How many runs that are, with all trials."""


class Session:
    """Opened when a test first needs it, closed after the last one."""

    def __init__(self, where: str | Path, *, creates: bool = True) -> None:
        """`creates`: this process stores the experiments of suite files, and does not wait for another one to."""
        self._creates = creates
        self._closing = ExitStack()
        self._store: Store = self._closing.enter_context(open_store(where))
        self._portal = Portal()
        self._closing.callback(self._portal.close)
        self._rigs: dict[str, Rig] = {}

    def close(self) -> None:
        """Let go of agents, loop and store."""
        self._closing.close()

    def run(self, asked: Asked, *, trials: int = 1, concurrency: int = 1) -> list[RunResult]:
        """Run a case that a test asks for, as an experiment that is named after the test: a result for each trial."""
        return self._portal.run(self._results(asked, trials, concurrency))

    async def run_async(self, asked: Asked, *, trials: int = 1, concurrency: int = 1) -> list[RunResult]:
        """The same, for a test that is async itself."""
        return await asyncio.wrap_future(self._portal.submit(self._results(asked, trials, concurrency)))

    def create(self, plan: Plan) -> None:
        """Store the experiment of a suite file."""
        create_experiment(
            self._store, plan.suite, selected=plan.selected, variables=os.environ, experiment_id=plan.experiment_id
        )

    def run_planned(self, plan: Plan, agent: str, case: Case, trial: int) -> RunResult:
        """Carry out one trial of a suite file."""
        rig = self._rigs.get(plan.experiment_id)
        if rig is None:
            rig = self._rigs[plan.experiment_id] = self._opened(plan)
        return _result(self._portal.run(rig.run(agent, case, trial)), case)

    async def _results(self, asked: Asked, trials: int, concurrency: int) -> list[RunResult]:
        suite, case = msgspec.structs.replace(asked.suite, trials=trials), asked.case
        experiment = create_experiment(self._store, suite, selected={asked.agent: [case.id]}, variables=os.environ)
        places = asyncio.Semaphore(concurrency)

        async def run(rig: Rig, trial: int) -> RunResult:
            async with places:
                return _result(await rig.run(asked.agent, case, trial), case)

        try:
            async with Rig(suite, experiment.experiment_id, self._store, os.environ) as rig:
                # All of them to their end, then the first error: a group of errors would hide what each one says.
                runs = [run(rig, trial) for trial in range(1, trials + 1)]
                ended = await asyncio.gather(*runs, return_exceptions=True)
                for each in ended:
                    if isinstance(each, BaseException):
                        raise each
                return [each for each in ended if isinstance(each, RunResult)]
        finally:
            self._store.finish_experiment(experiment.experiment_id, finished_at=SystemClock().now_ms())

    def _opened(self, plan: Plan) -> Rig:
        self._await_experiment(plan.experiment_id)
        rig = self._portal.run(Rig(plan.suite, plan.experiment_id, self._store, os.environ).__aenter__())
        self._closing.callback(self._finish, plan)
        self._closing.callback(lambda: self._portal.run(rig.__aexit__(None, None, None)))
        return rig

    def _await_experiment(self, experiment_id: str) -> None:
        end = time.monotonic() + (0.0 if self._creates else PATIENCE_S)
        while True:
            try:
                self._store.resolve_experiment(experiment_id)
            except SeatrialError as error:
                if error.code != "not_found" or time.monotonic() >= end:
                    raise
                time.sleep(0.05)
            else:
                return

    def _finish(self, plan: Plan) -> None:
        # Processes end in any order, and each writes what it saw: so look again after writing, until nothing came in
        # between. The last word is then had by one that saw all.
        seen = -1
        while (done := len(self._store.done_keys(plan.experiment_id))) != seen:
            seen = done
            missing = plan.size - done
            self._store.finish_experiment(
                plan.experiment_id,
                finished_at=SystemClock().now_ms(),
                stop_reason=f"{missing} of {plan.size} tests were not run" if missing > 0 else None,
            ).wait()


def _result(finished: Finished, case: Case) -> RunResult:
    return RunResult(finished.run, case, finished.kept, finished.redaction.quoting)
