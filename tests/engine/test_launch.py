from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from strategies.unhurried import run_unhurried

from engine.setting import LoopClock, Scripted, a_suite, run_suite, runs_of, say_ok
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.config import Retry
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.python.returned import read_returned
from seatrial.agents.replay.config import ReplayConfig
from seatrial.engine.launch import cases_that, create_experiment, launch, resumable, total_runs
from seatrial.errors import SeatrialError
from seatrial.runs import Fault
from seatrial.store import Store
from seatrial.suites import Budget, Suite, Timeouts, load_suite

EVERY_KIND = """
agents:
  a: {kind: http, endpoint_url: "http://localhost:1/", timeout_s: 30, sub_agents: [x, {actor_id: y}], agent_id: 7}
  b: {kind: cli, command: cat -, env: {API_KEY: "${API_KEY:-none}"}, retry: {attempts: 2, first_wait_s: 1}}
  c: {kind: cli, command: [cat, "-"], batch: true}
  d: {kind: stream, url: "http://localhost:1/", headers: {X-Colour: blue}}
  e: {kind: replay, path: runs.jsonl}
cases:
  - {id: one, instruction: Sail.}
"""


def test_an_experiment_without_cases_is_refused_and_leaves_nothing_behind(store: Store) -> None:
    with pytest.raises(SeatrialError, match="no cases"):
        create_experiment(store, a_suite(0), variables={})
    with pytest.raises(SeatrialError, match="no cases"):
        create_experiment(store, a_suite(3), selected={"crew": ["other"]}, variables={})
    assert store.experiments() == []


def test_an_experiment_is_resumed_with_the_agents_and_trials_it_was_started_with(store: Store) -> None:
    whole = a_suite(2, agents=["crew", "mate"])
    started = msgspec.structs.replace(whole, agents={"mate": whole.agents["mate"]}, trials=4)
    experiment = create_experiment(store, started, variables={})
    found, suite = resumable(store, "latest", whole, {})
    assert found.experiment_id == experiment.experiment_id
    assert (list(suite.agents), suite.trials) == (["mate"], 4)


def test_a_budget_or_a_concurrency_may_change_between_executions_and_nothing_that_is_measured(store: Store) -> None:
    suite = a_suite(2)
    create_experiment(store, suite, variables={})
    easier = msgspec.structs.replace(suite, budget=Budget(cost_usd=1), concurrency=3)
    assert resumable(store, "latest", easier, {})[1].concurrency == 3
    for changed in (
        msgspec.structs.replace(suite, graders=[{"kind": "contains", "value": "yes"}]),
        msgspec.structs.replace(suite, timeouts=Timeouts(run_s=1)),
        msgspec.structs.replace(suite, agents={"crew": PythonConfig(target="crew:other")}),
        msgspec.structs.replace(suite, agents={"mate": suite.agents["crew"]}),
        a_suite(3),
    ):
        with pytest.raises(SeatrialError, match="has changed") as raised:
            resumable(store, "latest", changed, {})
        assert raised.value.code == "conflict"


def test_experiments_of_one_suite_are_comparable_whoever_was_put_to_it_and_however_often(store: Store) -> None:
    whole = a_suite(2, agents=["crew", "mate"])
    other = msgspec.structs.replace(whole, agents={"crew": PythonConfig(target="crew:better")}, trials=5)
    harder = msgspec.structs.replace(whole, threshold=0.9)
    first, second, third = (create_experiment(store, suite, variables={}) for suite in (whole, other, harder))
    assert first.suite_hash == second.suite_hash != third.suite_hash


def test_an_experiment_of_agents_of_every_kind_is_resumed_with_the_same_file(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "harbour.suite.yaml"
    file.write_text(EVERY_KIND)
    (tmp_path / "runs.jsonl").touch()
    create_experiment(store, load_suite(file), variables={})
    assert list(resumable(store, "latest", load_suite(file), {})[1].agents) == ["a", "b", "c", "d", "e"]


def test_the_cases_that_came_out_so_are_found_for_each_agent(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        match request.case.id:
            case "case-0":
                return Reply(fault=Fault("auth_failed", "no"))
            case "case-1":
                return read_returned("no")
            case _:
                return read_returned("ok")

    suite = a_suite(3, agents=["crew", "mate"])
    experiment, _ = run_suite(store, suite, {"crew": Scripted(answer), "mate": Scripted(say_ok)})
    assert cases_that(store, experiment.experiment_id, "failed") == {"crew": {"case-1"}}
    assert cases_that(store, experiment.experiment_id, "errored") == {"crew": {"case-0"}}


def test_how_many_runs_there_are_to_be_is_known_before_any(store: Store) -> None:
    suite = a_suite(3, agents=["crew", "mate"], trials=2)
    assert total_runs(store, create_experiment(store, suite, variables={})) == 12
    chosen = create_experiment(store, suite, selected={"crew": ["case-1"], "mate": []}, variables={})
    assert total_runs(store, chosen) == 2


def test_cases_are_stored_once_and_the_selection_is_not_a_part_of_the_suite(store: Store) -> None:
    suite = a_suite(3, agents=["crew", "mate"])
    made = create_experiment(store, suite, selected={"crew": ["case-1", "case-0", "case-1"], "mate": []}, variables={})
    found = store.resolve_experiment(made.experiment_id)
    assert found.selected == {"crew": ["case-0", "case-1"]}
    assert "selected" not in found.suite
    assert "cases" not in found.suite
    assert [case.id for case in store.cases(made.experiment_id)] == ["case-0", "case-1"]
    assert total_runs(store, found) == 2
    assert resumable(store, made.experiment_id, suite, {})[0] == found


def test_launching_a_finished_experiment_starts_nothing(store: Store) -> None:
    suite = a_suite(2)
    experiment, _ = run_suite(store, suite, {"crew": Scripted(say_ok)})
    finished = store.resolve_experiment(experiment.experiment_id)
    # The target of the suite's agent cannot even be loaded.
    tally = asyncio.run(launch(finished, suite, store, variables={}))
    assert (tally.done_before, tally.outcomes, tally.stop_reason) == (2, {}, None)
    unfinished = create_experiment(store, suite, variables={})
    with pytest.raises(SeatrialError):
        asyncio.run(launch(unfinished, suite, store, variables={}))


def carry_out(store: Store, suite: Suite, variables: dict[str, str] | None = None) -> list[str]:
    """The error classes, or the outcomes, of the runs in order."""
    experiment = create_experiment(store, suite, variables=variables or {})
    run_unhurried(launch(experiment, suite, store, variables=variables or {}, clock=LoopClock()))
    runs = runs_of(store, experiment)
    return [run.fault.error_class if run.fault else run.grade.outcome for run in runs if run.grade]


HANGS = "import sys, time; time.sleep(30)"


def test_the_deadline_of_a_run_and_the_timeout_of_an_agent_are_told_apart(store: Store) -> None:
    hangs = ["python3", "-c", HANGS]
    suite = a_suite(1, retry=Retry(attempts=1), timeouts=Timeouts(run_s=0.6))
    suite.agents = {"deadline": CliConfig(command=hangs), "timeout": CliConfig(command=hangs, timeout_s=0.2)}
    assert carry_out(store, suite) == ["deadline_exceeded", "agent_timeout"]


def test_a_connection_that_cannot_be_made_is_told_apart_too(store: Store) -> None:
    suite = a_suite(1, retry=Retry(attempts=1))
    suite.agents = {"gone": HttpConfig(endpoint_url="http://127.0.0.1:9/")}
    assert carry_out(store, suite) == ["agent_unreachable"]


def test_runs_of_an_earlier_experiment_are_replayed_and_graded(store: Store, tmp_path: Path) -> None:
    earlier, _ = run_suite(store, a_suite(2), {"crew": Scripted(say_ok)})
    suite = a_suite(3)
    suite.agents = {"again": ReplayConfig(experiment=earlier.experiment_id)}
    assert carry_out(store, suite)[:2] == ["passed", "passed"]


def test_a_replayed_run_knows_no_more_of_calls_than_it_did(store: Store, tmp_path: Path) -> None:
    earlier, _ = run_suite(store, a_suite(1), {"crew": Scripted(say_ok)})
    suite = a_suite(1)
    suite.graders = [{"kind": "steps", "max": 0}, {"kind": "latency", "max_ms": 1e9}]
    suite.agents = {"again": ReplayConfig(experiment=earlier.experiment_id)}
    assert carry_out(store, suite) == ["errored"]
    (row,) = store.runs(store.resolve_experiment("latest").experiment_id)
    assert [verdict.outcome for verdict in store.run(row.run_id).verdicts] == ["errored", "errored"]


def test_variables_reach_the_agent_and_never_the_store(store: Store, tmp_path: Path) -> None:
    suite = a_suite(1)
    echo = "import os; print('ok ' + os.environ['TOKEN'])"
    suite.agents = {"echo": CliConfig(command=["python3", "-c", echo], env={"TOKEN": "${SECRET_TOKEN}"})}
    assert carry_out(store, suite, {"SECRET_TOKEN": "hunter2"}) == ["passed"]
    (row,) = store.runs(store.resolve_experiment("latest").experiment_id)
    assert store.run(row.run_id).body == b"ok ${SECRET_TOKEN}\n"
    assert b"hunter2" not in b"".join(event for _, event in store.events(row.run_id))
