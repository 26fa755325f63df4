from __future__ import annotations

from engine.setting import Scripted, ScriptedBatch, a_suite, event_kinds, run_suite, runs_of, say_ok
from seatrial.agents.agent import Agent, BatchAgent, Reply, RunRequest
from seatrial.agents.returned import read_returned
from seatrial.runs import Fault
from seatrial.store import Store
from seatrial.suites import Secrets


def test_a_batch_is_run_graded_and_recorded_like_single_runs(store: Store) -> None:
    def answer(request: RunRequest) -> Reply:
        if request.case.id == "case-1":
            return Reply(fault=Fault("agent_bad_response", "no JSON"), body=b"<html>")
        return read_returned("ok" if request.case.id == "case-0" else "no")

    batch = ScriptedBatch(answer)
    experiment, tally = run_suite(store, a_suite(3), {"crew": batch})
    assert batch.batches == 1
    assert tally.outcomes == {"passed": 1, "failed": 2}
    first, second, _ = runs_of(store, experiment)
    assert first.attempts[0].started_at == first.started_at
    assert event_kinds(store, first)[0] == "RUN_STARTED"
    assert event_kinds(store, first)[-1] == "RUN_FINISHED"
    assert event_kinds(store, second) == ["RUN_STARTED", "RUN_ERROR"]
    assert store.run(second.run_id).body == b"<html>"


def test_a_batch_agent_that_raises_errors_what_it_did_not_answer_and_nothing_else(store: Store) -> None:
    def answer(request: RunRequest) -> Reply:
        if request.case.id == "case-2":
            raise ZeroDivisionError("a bug of ours")
        return read_returned("ok")

    agents: dict[str, Agent | BatchAgent] = {"crew": ScriptedBatch(answer), "mate": Scripted(say_ok)}
    experiment, tally = run_suite(store, a_suite(4, agents=["crew", "mate"]), agents)
    assert tally.outcomes == {"passed": 6, "errored": 2}
    faults = [run.fault for run in runs_of(store, experiment) if run.fault is not None]
    assert {fault.message for fault in faults} == {"ZeroDivisionError: a bug of ours"}
    assert "test_batch.py" in str(faults[0].detail)


def test_a_request_that_a_batch_agent_forgets_is_errored(store: Store) -> None:
    batch = ScriptedBatch(lambda request: None if request.case.id == "case-1" else read_returned("ok"))
    experiment, tally = run_suite(store, a_suite(3), {"crew": batch})
    assert tally.outcomes == {"passed": 2, "errored": 1}
    fault = runs_of(store, experiment)[1].fault
    assert fault == Fault("internal_error", "the agent ended without a reply to this request")


def test_secrets_that_a_batch_sends_back_are_not_stored(store: Store) -> None:
    batch = ScriptedBatch(lambda request: read_returned("ok, hunter2"))
    experiment, _ = run_suite(store, a_suite(1), {"crew": batch}, secrets=Secrets({"KEY": "hunter2"}))
    (run,) = runs_of(store, experiment)
    assert store.run(run.run_id).body == b"ok, ${KEY}"
    assert b"hunter2" not in b"".join(event for _, event in store.events(run.run_id))
