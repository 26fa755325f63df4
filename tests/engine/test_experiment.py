from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest

from engine.setting import (
    Crew,
    Scripted,
    ScriptedBatch,
    TestClock,
    a_suite,
    only_run,
    refused,
    run_suite,
    runs_of,
    say_ok,
)
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.config import Retry
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.python.returned import read_returned
from seatrial.engine.executor import RunEnd
from seatrial.engine.experiment import ExperimentRunner, _run_ids
from seatrial.engine.launch import create_experiment
from seatrial.engine.stop import Stop
from seatrial.errors import SeatrialError
from seatrial.graders import GradingPlan
from seatrial.runs import RunKey
from seatrial.store import Store
from seatrial.suites import Budget, Secrets
from seatrial.transcript import Note


class Watching:
    """Keeps what an observer is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def resumed(self, done: int) -> None:
        self.told.append(done)

    def finished(self, end: RunEnd) -> None:
        self.told.append(end.key)

    def stopping(self, reason: str) -> None:
        self.told.append(reason)

    def noted(self, agent: str, notes: Sequence[Note]) -> None:
        self.told.append((agent, notes))

    def warned(self, message: str) -> None:
        self.told.append(message)


def test_every_case_is_run_by_every_agent_as_often_as_asked(store: Store) -> None:
    crew, mate = Scripted(say_ok), Scripted(say_ok)
    suite = a_suite(3, agents=["crew", "mate"], trials=2)
    experiment, tally = run_suite(store, suite, {"crew": crew, "mate": mate})
    assert tally.outcomes == {"passed": 12}
    assert [run.key for run in runs_of(store, experiment)] == [
        RunKey(agent, f"case-{case}", trial) for case in range(3) for agent in ("crew", "mate") for trial in (1, 2)
    ]
    assert [request.trial for request in crew.asked] == [1, 1, 1, 2, 2, 2], "each case once before any case again"
    assert (crew.entered, crew.left) == (1, 1)
    assert store.resolve_experiment(experiment.experiment_id).status == "finished"


def test_ids_of_runs_are_in_order_within_an_execution_and_never_those_of_another() -> None:
    executions = [list(islice(_run_ids(), 70_000)) for _ in range(3)]
    for ids in executions:
        assert ids == sorted(ids)
        assert {len(run_id) for run_id in ids} == {32}
    assert len(set().union(*executions)) == 210_000
    assert len({ids[0][:20] for ids in executions}) == 3


def test_runs_get_their_ids_in_the_order_in_which_they_start(store: Store) -> None:
    crew = Scripted(say_ok)
    run_suite(store, a_suite(20, concurrency=4, trials=2), {"crew": crew})
    ids = [request.run_id for request in crew.asked]
    assert ids == sorted(set(ids))


def test_results_come_in_the_same_order_however_the_runs_end(store: Store) -> None:
    def answering(seed: int) -> Scripted:
        dice = random.Random(seed)

        async def answer(request: RunRequest, emit: Emit) -> Reply:
            await asyncio.sleep(dice.uniform(0, 0.004))
            return read_returned("ok" if request.case.id < "case-3" else "no")

        return Scripted(answer)

    orders = []
    for seed in (1, 2):
        suite = a_suite(8, agents=["crew", "mate"], trials=2)
        experiment, _ = run_suite(store, suite, {"crew": answering(seed), "mate": answering(seed + 7)})
        orders.append([(row.key, row.outcome) for row in store.runs(experiment.experiment_id)])
    assert orders[0] == orders[1]
    assert len(orders[0]) == 32


def test_no_more_runs_go_on_at_once_than_the_suite_and_the_agent_allow(store: Store) -> None:
    active = most = 0

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(0.001)
        active -= 1
        return read_returned("ok")

    crew, mate = Scripted(answer), Scripted(answer)
    suite = a_suite(20, concurrency=5)
    suite.agents = {"crew": PythonConfig(target="a:b", concurrency=2), "mate": PythonConfig(target="a:b")}
    run_suite(store, suite, {"crew": crew, "mate": mate})
    assert crew.most_active == 2
    assert most == 5


def test_an_agent_that_is_alone_has_no_more_runs_at_once_than_the_suite_allows(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await asyncio.sleep(0.001)
        return read_returned("ok")

    crew = Scripted(answer)
    suite = a_suite(20, concurrency=3)
    suite.agents = {"crew": PythonConfig(target="a:b", concurrency=9)}
    run_suite(store, suite, {"crew": crew})
    assert crew.most_active == 3


def test_going_on_runs_only_what_is_missing_and_nothing_twice(store: Store) -> None:
    stop = Stop()

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-4":
            stop.request("interrupted")
        return read_returned("ok")

    suite = a_suite(20, concurrency=1)
    watching = Watching()
    experiment, tally = run_suite(store, suite, {"crew": Scripted(answer)}, stop=stop, observer=watching)
    assert tally.stop_reason == "interrupted"
    assert watching.told == [0, *(RunKey("crew", f"case-{number}", 1) for number in range(5)), "interrupted"]
    stopped = store.resolve_experiment(experiment.experiment_id)
    assert (stopped.status, stopped.stop_reason) == ("stopped", "interrupted")
    before = {run.run_id for run in runs_of(store, experiment)}
    assert len(before) == 5

    again = Scripted(say_ok)
    _, tally = run_suite(store, suite, {"crew": again}, experiment=experiment)
    assert (tally.done_before, tally.stop_reason) == (5, None)
    assert [request.case.id for request in again.asked] == [f"case-{number}" for number in range(5, 20)]
    runs = runs_of(store, experiment)
    assert before < {run.run_id for run in runs}
    assert len({run.key for run in runs}) == len(runs) == 20
    assert store.resolve_experiment(experiment.experiment_id).status == "finished"


def test_an_experiment_with_nothing_left_to_do_starts_no_agent_and_changes_nothing(store: Store) -> None:
    suite = a_suite(3, agents=["crew", "batch"])
    batch = ScriptedBatch(lambda request: read_returned("ok"))
    experiment, _ = run_suite(store, suite, {"crew": Scripted(say_ok), "batch": batch})
    before = store.resolve_experiment(experiment.experiment_id)
    crew = Scripted(say_ok)
    _, tally = run_suite(store, suite, {"crew": crew, "batch": batch}, experiment=experiment)
    assert (tally.done_before, tally.outcomes) == (6, {})
    assert (crew.entered, batch.batches) == (0, 1)
    assert store.resolve_experiment(experiment.experiment_id) == before


def test_a_stop_that_comes_when_all_is_run_leaves_a_finished_experiment(store: Store) -> None:
    stop = Stop()

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        stop.request("interrupted")
        return read_returned("ok")

    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, stop=stop)
    assert tally.stop_reason is None
    assert store.resolve_experiment(experiment.experiment_id).status == "finished"


def test_a_stop_does_not_wait_for_runs_that_wait(store: Store) -> None:
    stop = Stop()

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-0":
            asyncio.get_running_loop().call_later(0.02, stop.request, "interrupted")
            return refused(429, retry_after_s=100)
        return read_returned("ok")

    suite = a_suite(5, concurrency=2, retry=Retry(attempts=3, first_wait_s=100, longest_wait_s=100))

    async def in_time() -> None:
        await asyncio.wait_for(asyncio.to_thread(scene), 90)

    def scene() -> None:
        experiment, tally = run_suite(store, suite, {"crew": Scripted(answer)}, stop=stop)
        assert tally.stop_reason == "interrupted"
        done = store.done_keys(experiment.experiment_id)
        assert RunKey("crew", "case-0", 1) not in done, "a run between two attempts is left for the next time"
        _, tally = run_suite(store, suite, {"crew": Scripted(say_ok)}, experiment=experiment)
        assert len(store.done_keys(experiment.experiment_id)) == 5

    asyncio.run(in_time())


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(cost_usd=0.1), "cost budget reached: 0.1200 of 0.1000 USD"),
        (Budget(tokens=100), "token budget reached: 120 of 100"),
        (Budget(wall_time_s=0.02), "time budget reached"),
    ],
)
def test_a_budget_that_is_used_up_stops_the_experiment_cleanly(store: Store, budget: Budget, reason: str) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        reply = read_returned({"text": "ok", "cost_usd": 0.04, "token_usage": {"input": 30, "output": 10}})
        assert reply.reading is not None
        assert reply.reading.transcript.usage is not None
        return reply

    suite = a_suite(10, concurrency=1, budget=budget)
    experiment, tally = run_suite(store, suite, {"crew": Scripted(answer)}, clock=TestClock())
    assert tally.stop_reason is not None
    assert reason in tally.stop_reason
    runs = runs_of(store, experiment)
    assert 0 < len(runs) < 10
    assert all(run.grade is not None for run in runs)
    assert store.resolve_experiment(experiment.experiment_id).stop_reason == tally.stop_reason
    while len(runs_of(store, experiment)) < 10:  # a resumed experiment has the whole budget again
        before = len(runs_of(store, experiment))
        run_suite(store, suite, {"crew": Scripted(answer)}, experiment=experiment, clock=TestClock())
        assert len(runs_of(store, experiment)) > before


def test_only_the_selected_cases_are_run_by_each_agent(store: Store) -> None:
    suite = a_suite(4, agents=["crew", "mate"])
    agents = {"crew": Scripted(say_ok), "mate": Scripted(say_ok)}
    experiment, _ = run_suite(store, suite, agents, selected={"crew": ["case-1", "case-3"], "mate": ["case-0"]})
    assert [(run.agent, run.case_id) for run in runs_of(store, experiment)] == [
        ("mate", "case-0"),
        ("crew", "case-1"),
        ("crew", "case-3"),
    ]


def test_a_store_that_fails_stops_the_experiment_with_one_clear_error(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if len(crew.asked) == 20:
            store.close()
        await asyncio.sleep(0.001)
        return read_returned("ok")

    crew = Scripted(answer)
    with pytest.raises(SeatrialError) as raised:
        run_suite(store, a_suite(500), {"crew": crew})
    assert raised.value.code == "store_unavailable"
    assert len(crew.asked) < 60, "the others were cancelled"
    assert (crew.active, crew.left) == (0, 1)


def test_an_agent_that_cannot_be_started_stops_the_experiment_and_the_others_are_let_go(store: Store) -> None:
    class Ill(Scripted):
        async def __aenter__(self) -> Ill:
            raise SeatrialError("agent_unhealthy", "it does not feel well")

    crew = Scripted(say_ok)
    with pytest.raises(SeatrialError, match="feel well"):
        run_suite(store, a_suite(2, agents=["crew", "ill"]), {"crew": crew, "ill": Ill(say_ok)})
    assert (crew.entered, crew.left, crew.asked) == (1, 1, [])


def test_a_fault_in_grading_errors_the_case_and_keeps_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(GradingPlan, "grade", broken)
    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(say_ok)})
    run = only_run(store, experiment)
    assert tally.outcomes == {"errored": 1}
    assert run.body == b"ok"
    assert run.grade is not None
    assert run.grade.reasons == ["could not be graded: ZeroDivisionError: a bug of ours"]


def test_cancelling_an_experiment_leaves_whole_runs_only(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await asyncio.sleep(0 if request.case.id < "case-3" else 60)
        return read_returned("ok")

    crew = Scripted(answer)
    suite = a_suite(8, concurrency=4)

    experiment = create_experiment(store, suite, variables={})
    runner = ExperimentRunner(experiment, suite, Crew(agents={"crew": crew}), store, variables={})

    async def cancelled() -> None:
        running = asyncio.create_task(runner.run())
        while len(crew.asked) < 7:
            await asyncio.sleep(0.001)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert (crew.active, crew.left) == (0, 1)
    run_suite(store, suite, {"crew": Scripted(say_ok)}, experiment=experiment)
    runs = runs_of(store, experiment)
    assert len({run.key for run in runs}) == len(runs) == 8


def test_what_a_batch_says_that_belongs_to_no_run_is_told_without_secrets(store: Store) -> None:
    batch = ScriptedBatch(lambda request: read_returned("ok"))
    batch.notes.append(Note("batch_id_unknown", "/3", "the id is 'hunter2'"))
    watching = Watching()
    experiment, tally = run_suite(
        store, a_suite(1), {"crew": batch}, secrets=Secrets({"KEY": "hunter2"}), observer=watching
    )
    notes = [Note("batch_id_unknown", "/3", "the id is '${KEY}'")]
    assert tally.notes == {"crew": notes}
    assert store.resolve_experiment(experiment.experiment_id).notes == {"crew": notes}
    assert watching.told[-1] == ("crew", notes)


def test_an_experiment_that_lacks_runs_is_not_finished(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-0":
            (worker,) = [task for task in asyncio.all_tasks() if "_work" in str(task.get_coro())]
            worker.cancel()  # for whatever reason: the worker is gone
        return await say_ok(request, emit)

    suite = a_suite(2, concurrency=1)
    _, tally = run_suite(store, suite, {"crew": Scripted(answer)})
    assert tally.stop_reason is not None
    assert "without a record" in tally.stop_reason
