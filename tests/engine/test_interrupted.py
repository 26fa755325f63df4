"""A run that was begun and did not end is run again, and what it had called is not forgotten."""

from __future__ import annotations

import asyncio

import pytest

from engine.setting import Crew, Scripted, a_suite, event_kinds, only_run, refused, run_suite, runs_of
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.python.returned import read_returned
from seatrial.engine import interrupted
from seatrial.engine.experiment import ExperimentRunner
from seatrial.engine.interrupted import interrupted_attempt
from seatrial.engine.launch import create_experiment
from seatrial.events import Event
from seatrial.events import types as t
from seatrial.runs import Attempt, Case, Exchange, Experiment, Fault, Run, RunKey
from seatrial.runs.conclusion import conclude
from seatrial.store import Store
from seatrial.suites import Suite
from seatrial.trajectory.observed import ObservedCalls

FORBIDS = {"kind": "tool_trajectory", "mode": "any_order", "minimums": {"look": 1}, "forbidden": [{"tool": "delete_*"}]}
LOOKED = [
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "look", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "1", "content": "done"},
    {"role": "assistant", "content": "ok"},
]


def a_call(name: str) -> list[Event]:
    return [
        t.ToolCallStart(tool_call_id=name, tool_call_name=name),
        t.ToolCallArgs(tool_call_id=name, delta="{}"),
        t.ToolCallEnd(tool_call_id=name),
        t.ToolCallResult(tool_call_id=name, message_id=f"result of {name}", content="gone"),
    ]


SAID: list[Event] = [
    t.TextMessageStart(message_id="m", role="assistant"),
    t.TextMessageContent(message_id="m", delta="I am looking"),
]


async def look(request: RunRequest, emit: Emit) -> Reply:
    return read_returned(LOOKED)


def interrupt(store: Store, suite: Suite, experiment: Experiment, events: list[Event]) -> None:
    """Let the agent send these events, and end everything once they are stored."""

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await emit(t.RunStarted(thread_id="t", run_id="r"))
        for event in events:
            await emit(event)
        await asyncio.sleep(3600)
        return read_returned("never")

    agent = Scripted(answer)
    runner = ExperimentRunner(experiment, suite, Crew(agents={"crew": agent}), store, variables={})

    async def play() -> None:
        running = asyncio.create_task(runner.run())
        while not agent.asked or agent.asked[0].run_id not in store.unfinished_runs(experiment.experiment_id).values():
            await asyncio.sleep(0.01)
        while len(store.events(agent.asked[0].run_id)) < len(events) + 1:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(play())


@pytest.mark.parametrize("events", [a_call("delete_all"), a_call("delete_all")[:1], [*SAID, *a_call("delete_all")[:2]]])
def test_what_a_run_called_before_its_process_ended_lets_the_run_in_its_place_not_pass(
    store: Store, events: list[Event]
) -> None:
    suite = a_suite(2, graders=[FORBIDS], concurrency=1)
    experiment = create_experiment(store, suite, variables={})
    interrupt(store, suite, experiment, events)
    again = Scripted(look)
    _, tally = run_suite(store, suite, {"crew": again}, experiment=experiment)
    assert tally.outcomes == {"errored": 1, "passed": 1}
    assert [request.attempt for request in again.asked] == [1, 1]
    run, other = runs_of(store, experiment)
    first, second = run.attempts
    assert (first.number, second.number) == (1, 2)
    assert first.fault is not None
    assert (first.fault.error_class, first.called[0], second.fault) == ("interrupted", "delete_all", None)
    assert run.completeness is not None
    assert run.completeness.level == "partial"
    assert [reason.code for reason in run.completeness.reasons] == ["calls_in_earlier_attempt"]
    assert len(other.attempts) == 1
    assert event_kinds(store, run)[:4] == ["RUN_STARTED", "CUSTOM", "RUN_ERROR", "RUN_STARTED"]
    assert event_kinds(store, run)[-1] == "RUN_FINISHED"


def test_a_run_that_was_interrupted_before_it_called_anything_may_pass(store: Store) -> None:
    suite = a_suite(1, graders=[FORBIDS])
    experiment = create_experiment(store, suite, variables={})
    interrupt(store, suite, experiment, SAID)
    _, tally = run_suite(store, suite, {"crew": Scripted(look)}, experiment=experiment)
    assert tally.outcomes == {"passed": 1}
    run = only_run(store, experiment)
    assert [attempt.called for attempt in run.attempts] == [[], []]
    assert run.completeness is not None
    assert run.completeness.level == "complete"


def test_what_was_called_is_not_forgotten_when_the_run_is_interrupted_again(store: Store) -> None:
    suite = a_suite(1, graders=[FORBIDS])
    experiment = create_experiment(store, suite, variables={})
    interrupt(store, suite, experiment, a_call("delete_all"))
    interrupt(store, suite, experiment, a_call("stow"))
    interrupt(store, suite, experiment, SAID)
    _, tally = run_suite(store, suite, {"crew": Scripted(look)}, experiment=experiment)
    assert tally.outcomes == {"errored": 1}
    assert [attempt.called for attempt in only_run(store, experiment).attempts] == [["delete_all", "stow"], []]


def test_attempts_that_were_interrupted_are_none_of_those_that_a_suite_allows(store: Store) -> None:
    suite = a_suite(1)
    experiment = create_experiment(store, suite, variables={})
    interrupt(store, suite, experiment, SAID)

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return refused() if request.attempt < 3 else read_returned("ok")

    _, tally = run_suite(store, suite, {"crew": Scripted(answer)}, experiment=experiment)
    assert tally.outcomes == {"passed": 1}
    assert [attempt.number for attempt in only_run(store, experiment).attempts] == [1, 2, 3, 4]


@pytest.mark.parametrize("limit", ["MAX_EVENTS", "MAX_BYTES"])
def test_what_is_beyond_the_events_that_are_read_is_unknown(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    suite = a_suite(1)
    experiment = create_experiment(store, suite, variables={})
    interrupt(store, suite, experiment, [*a_call("look"), *a_call("delete_all")])
    [run_id] = store.unfinished_runs(experiment.experiment_id).values()
    monkeypatch.setattr(interrupted, "_PAGE", 2)
    sizes = [len(event) for _, event in store.events(run_id)]
    monkeypatch.setattr(interrupted, limit, 5 if limit == "MAX_EVENTS" else sum(sizes[:5]))
    attempt = interrupted_attempt(store, run_id, Case(id="case-0", instruction="look"), "own", now_ms=0)
    assert attempt.called == ["look", "?"]


def test_what_cannot_be_read_may_be_a_call_and_what_is_not_there_is_none(store: Store) -> None:
    suite = a_suite(1)
    experiment = create_experiment(store, suite, variables={})
    store.begin_run(experiment.experiment_id, RunKey("crew", "case-0", 1), "run-1")
    store.append_events("run-1", [b'{"type": "TOOL_CALL_ST'])
    store.probe().wait()
    assert interrupted_attempt(store, "run-1", Case(id="case-0", instruction="look"), "own", now_ms=5).called == ["?"]
    nothing = interrupted_attempt(store, "run-2", Case(id="case-0", instruction="look"), "own", now_ms=5)
    assert (nothing.called, nothing.started_at) == ([], 5)


@pytest.mark.parametrize(
    ("error_class", "called", "level"),
    [
        ("interrupted", ["delete_all"], "partial"),
        ("agent_unavailable", ["delete_all"], "partial"),
        ("interrupted", ["?"], "partial"),
        ("agent_unavailable", ["?"], "complete"),
    ],
)
def test_of_an_agent_that_has_only_the_world_what_was_observed_is_gone_with_the_process(
    error_class: str, called: list[str], level: str
) -> None:
    lost = Attempt(number=1, started_at=0, duration_ms=0, fault=Fault(error_class, "gone"), called=called)
    last = Attempt(number=2, started_at=0, duration_ms=0)
    run = Run(run_id="r", key=RunKey("crew", "case-0", 1), status="completed")
    run.exchanges = [Exchange(number=1, attempts=[lost, last])]
    conclude(run, read_returned("ok").reading, observed=ObservedCalls(steps=[]), tool_access="world")
    assert run.completeness is not None
    assert run.completeness.level == level
