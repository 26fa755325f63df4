"""A worker leaves nothing running behind its block."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from engine.setting import Answer, Scripted, a_suite, say_ok
from seatrial.driver.clock import SystemClock
from seatrial.engine.executor import Assignment
from seatrial.engine.launch import create_experiment
from seatrial.engine.local import opened_worker
from seatrial.engine.stop import Stop
from seatrial.engine.trial import trial_of
from seatrial.runs import Case, RunKey
from seatrial.store import Store
from seatrial.suites import Secrets


class OpenGate:
    """Lets every attempt begin."""

    async def enter(self) -> int:
        return 0

    def leave(self, ticket: int, *, refused: bool = False, retry_after_s: float | None = None) -> None:
        pass

    def pause_s(self) -> float:
        return 0.0


class _BrokenOffError(Exception):
    pass


async def break_off(store: Store, answer: Answer) -> set[asyncio.Task[object]]:
    """The tasks that are left when a worker's block is left by an error, right after its one run has ended."""
    suite = a_suite(1)
    experiment = create_experiment(store, suite, variables={})
    work = Assignment(
        experiment=experiment,
        suite=suite,
        agents=["crew"],
        store=store,
        variables={},
        secrets=Secrets({}),
        stop=Stop(),
        clock=SystemClock(),
    )
    case = Case(id="case-0", instruction="Task 0")  # the one of the suite
    key = RunKey(case_id=case.id, agent="crew", trial=1)
    before = asyncio.all_tasks()
    with suppress(_BrokenOffError):
        async with opened_worker(work, {"crew": Scripted(answer)}, confirms=True) as worker:
            await worker.run(trial_of(suite, experiment.experiment_id, "run-1", key, case), OpenGate())
            raise _BrokenOffError
    return asyncio.all_tasks() - before


def test_no_run_is_on_its_way_to_the_store_behind_a_block_that_was_left_by_an_error(store: Store) -> None:
    assert asyncio.run(break_off(store, say_ok)) == set()
    assert store.run("run-1").status == "completed"
