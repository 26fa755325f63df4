from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from agents.test_process import wait_until_dead
from strategies.unhurried import run_unhurried

from engine.setting import (
    NO_WAIT,
    LoopClock,
    Scripted,
    ScriptedBatch,
    a_suite,
    event_kinds,
    only_run,
    refused,
    run_suite,
    runs_of,
    say_ok,
)
from seatrial.agents.agent import Agent, AnsweredAgain, BatchAgent, EndedBadly, Reply, RunRequest
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.config import Retry
from seatrial.agents.python.returned import read_returned
from seatrial.engine.experiment import ExperimentTally
from seatrial.engine.launch import create_experiment, launch
from seatrial.engine.stop import Stop
from seatrial.runs import Experiment, Fault
from seatrial.store import Store
from seatrial.suites import Budget, Secrets, Suite
from seatrial.transcript import Note

# Answers line by line; `begun` and `answered` tell the test how far it is.
PROGRAM = """
import json, os, pathlib, sys, time
begun, attempt = pathlib.Path(sys.argv[1]), int(sys.argv[2])
cases = [json.loads(line) for line in sys.stdin]
with begun.open("a") as file:
    print(os.getpid(), *[case["id"] for case in cases], file=file)
def answer(case, **fields):
    print(json.dumps({"id": case["id"], "text": "ok", **fields}), flush=True)
"""


class Batch:
    """A suite whose agent is a program that takes a batch."""

    def __init__(self, folder: Path, script: str, cases: int = 4, **fields: Any) -> None:
        self.begun = folder / "begun"
        (folder / "agent.py").write_text(PROGRAM + script)
        command = [sys.executable, "-I", "-S", str(folder / "agent.py"), str(self.begun), "{ATTEMPT}"]
        self.suite: Suite = a_suite(cases, **fields)
        self.suite.agents = {"crew": CliConfig(command=command, batch=True)}

    def carry_out(
        self,
        store: Store,
        experiment: Experiment | None = None,
        stop: Stop | None = None,
        begun: Callable[[], bool] | None = None,
    ) -> ExperimentTally:
        if experiment is None:
            experiment = create_experiment(store, self.suite, variables={})
        launched = launch(experiment, self.suite, store, variables={}, stop=stop, clock=LoopClock())
        return run_unhurried(launched, begun)

    def starts(self) -> list[list[str]]:
        """The cases that each process was given."""
        return [line.split()[1:] for line in self.begun.read_text().splitlines()]

    def wait_until_all_are_dead(self) -> None:
        for line in self.begun.read_text().splitlines():
            wait_until_dead(int(line.split()[0]))


def answered(store: Store) -> list[str]:
    experiment = store.resolve_experiment("latest")
    return [row.key.case_id for row in store.runs(experiment.experiment_id)]


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


def test_only_what_met_a_fault_that_may_pass_is_tried_again_and_every_attempt_is_kept(store: Store) -> None:
    asked: list[tuple[int, str]] = []

    def answer(request: RunRequest) -> Reply:
        asked.append((request.attempt, request.case.id))
        if request.case.id == "case-1" and request.attempt < 3:
            return refused(503)
        if request.case.id == "case-2":
            return Reply(fault=Fault("agent_bad_response", "no JSON"))
        return read_returned("ok")

    batch = ScriptedBatch(answer)
    experiment, tally = run_suite(store, a_suite(3), {"crew": batch})
    assert asked == [(1, "case-0"), (1, "case-1"), (1, "case-2"), (2, "case-1"), (3, "case-1")]
    assert tally.outcomes == {"passed": 2, "failed": 1}
    first, second, third = runs_of(store, experiment)
    assert (len(first.attempts), len(third.attempts)) == (1, 1)
    assert [(attempt.number, attempt.fault is None) for attempt in second.attempts] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    assert store.body(second.attempts[0].body_hash or "") == b"go away"
    assert second.started_at == second.attempts[0].started_at
    assert event_kinds(store, second)[:5] == ["RUN_STARTED", "RUN_ERROR", "RUN_STARTED", "RUN_ERROR", "RUN_STARTED"]
    assert event_kinds(store, second)[-1] == "RUN_FINISHED"


def test_what_does_not_pass_is_errored_after_as_many_batches_as_the_suite_says(store: Store) -> None:
    batch = ScriptedBatch(lambda request: refused(503))
    experiment, tally = run_suite(store, a_suite(2, retry=Retry(attempts=2, first_wait_s=0)), {"crew": batch})
    assert (batch.batches, tally.outcomes) == (2, {"errored": 2})
    for run in runs_of(store, experiment):
        assert [attempt.number for attempt in run.attempts] == [1, 2]
        assert event_kinds(store, run) == ["RUN_STARTED", "RUN_ERROR"] * 2


SOMETIMES_DIES = """
for number, case in enumerate(cases):
    if attempt < 3 and number == 1:
        print("out of memory", file=sys.stderr)
        sys.exit(9)
    answer(case)
"""


def test_a_program_that_dies_fails_all_its_cases_and_is_not_started_again(store: Store, tmp_path: Path) -> None:
    batch = Batch(tmp_path, SOMETIMES_DIES)
    assert batch.carry_out(store).outcomes == {"failed": 4}
    assert len(batch.starts()) == 1


def test_a_program_that_dies_is_started_again_with_the_cases_it_left_if_the_suite_calls_it_infrastructure(
    store: Store, tmp_path: Path
) -> None:
    batch = Batch(tmp_path, SOMETIMES_DIES, faults={"agent_exit": "infrastructure"})
    assert batch.carry_out(store).outcomes == {"passed": 2, "errored": 2}, "two were answered by a program that died"
    cases = [f"case-{number}" for number in range(4)]
    assert batch.starts() == [cases, cases[1:], cases[2:]]
    runs = runs_of(store, store.resolve_experiment("latest"))
    assert [len(run.attempts) for run in runs] == [1, 2, 3, 3]
    fault = runs[3].attempts[1].fault
    assert fault is not None
    assert (fault.error_class, fault.detail) == ("agent_exit", "out of memory")


def test_calls_of_an_earlier_start_of_a_program_leave_the_calls_in_doubt(store: Store) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "delete_account", "arguments": "{}"}}
    guilty = [{"role": "assistant", "content": None, "tool_calls": [call]}]

    def answer(request: RunRequest) -> Reply:
        if request.attempt == 1:
            reply = read_returned(guilty)
            reply.fault = Fault("agent_unreachable", "try again")
            return reply
        return read_returned([{"role": "user", "content": "Task 0"}, {"role": "assistant", "content": "ok"}])

    never = {"kind": "tool_trajectory", "mode": "any_order", "maximums": {"delete_account": 0}}
    experiment, tally = run_suite(store, a_suite(1, graders=[never]), {"crew": ScriptedBatch(answer)})
    assert tally.outcomes == {"errored": 1}
    (run,) = runs_of(store, experiment)
    assert run.attempts[0].called == ["delete_account"]


def test_a_record_that_a_program_leaves_out_is_not_tried_again(store: Store, tmp_path: Path) -> None:
    batch = Batch(tmp_path, "answer(cases[0])", cases=2)
    assert batch.carry_out(store).outcomes == {"passed": 1, "failed": 1}
    assert len(batch.starts()) == 1


def test_a_stop_ends_a_batch_keeps_what_came_and_leaves_the_rest_to_be_resumed(store: Store, tmp_path: Path) -> None:
    script = """
answer(cases[0])
answer(cases[1])
if len(cases) > 2:
    time.sleep(3600)
"""
    batch = Batch(tmp_path, script)
    stop = Stop()
    experiment = create_experiment(store, batch.suite, variables={})

    async def play() -> ExperimentTally:
        running = asyncio.create_task(launch(experiment, batch.suite, store, variables={}, stop=stop))
        while len(await asyncio.to_thread(answered, store)) < 2:
            await asyncio.sleep(0.01)
        stop.request("interrupted")
        return await running

    began = time.monotonic()
    tally = asyncio.run(play())
    assert time.monotonic() - began < 600
    batch.wait_until_all_are_dead()
    assert (tally.outcomes, tally.stop_reason) == ({"passed": 2}, "interrupted")
    stopped = store.resolve_experiment("latest")
    assert (stopped.status, stopped.stop_reason) == ("stopped", "interrupted")

    assert batch.carry_out(store, stopped).outcomes == {"passed": 2}
    assert batch.starts()[1] == ["case-2", "case-3"]
    assert store.resolve_experiment("latest").status == "finished"
    assert answered(store) == [f"case-{number}" for number in range(4)]


@pytest.mark.parametrize(
    ("budget", "reason"), [(Budget(wall_time_s=0.5), "time budget"), (Budget(cost_usd=0.2), "cost budget")]
)
def test_a_budget_ends_a_batch_that_says_nothing_more(
    store: Store, tmp_path: Path, budget: Budget, reason: str
) -> None:
    batch = Batch(tmp_path, "answer(cases[0], cost_usd=0.3)\ntime.sleep(3600)", budget=budget)
    tally = batch.carry_out(store, begun=lambda: bool(answered(store)))
    assert tally.outcomes == {"passed": 1}
    assert str(tally.stop_reason).startswith(reason)
    batch.wait_until_all_are_dead()


def test_a_stop_that_comes_when_all_is_answered_leaves_a_finished_experiment(store: Store) -> None:
    stop = Stop()

    def answer(request: RunRequest) -> Reply:
        if request.case.id == "case-2":
            stop.request("interrupted")
        return read_returned("ok")

    experiment, tally = run_suite(store, a_suite(3), {"crew": ScriptedBatch(answer)}, stop=stop)
    assert (tally.outcomes, tally.stop_reason) == ({"passed": 3}, None)
    assert store.resolve_experiment(experiment.experiment_id).status == "finished"


def test_a_stop_does_not_wait_for_the_next_batch(store: Store) -> None:
    stop = Stop()

    def answer(request: RunRequest) -> Reply:
        asyncio.get_running_loop().call_later(0.05, stop.request, "interrupted")
        return refused(503) if request.case.id == "case-1" else read_returned("ok")

    batch = ScriptedBatch(answer)
    suite = a_suite(2, retry=Retry(attempts=3, first_wait_s=100, longest_wait_s=100))
    experiment, tally = run_suite(store, suite, {"crew": batch}, stop=stop)
    assert (tally.outcomes, tally.stop_reason) == ({"passed": 1}, "interrupted")
    assert answered(store) == ["case-0"]

    again = ScriptedBatch(lambda request: read_returned("ok"))
    _, tally = run_suite(store, a_suite(2, retry=NO_WAIT), {"crew": again}, experiment=experiment)
    assert tally.outcomes == {"passed": 1}


def test_a_program_that_exits_badly_after_its_answers_fails_them_in_the_store_and_in_what_is_counted(
    store: Store, tmp_path: Path
) -> None:
    batch = Batch(tmp_path, "for case in cases: answer(case)\nprint('lost it', file=sys.stderr); sys.exit(3)", cases=2)
    assert batch.carry_out(store).outcomes == {"failed": 2}
    experiment = store.resolve_experiment("latest")
    for run in runs_of(store, experiment):
        assert (run.status, run.errored) == ("failed", False)
        assert run.fault is not None
        assert (run.fault.error_class, run.fault.detail) == ("agent_exit", "lost it")
        assert run.attempts[-1].fault == run.fault
        assert run.reading is not None, "what it answered is kept"
        assert [verdict.outcome for verdict in run.verdicts] == ["failed"]
    rows = list(store.runs(experiment.experiment_id))
    assert [(row.status, row.outcome, row.error_class) for row in rows] == [("failed", "failed", "agent_exit")] * 2
    [totals] = store.totals(experiment.experiment_id).agents
    assert totals.outcomes == {"failed": 2}


def test_answers_of_a_program_that_exits_badly_are_errored_if_the_suite_calls_it_infrastructure(
    store: Store, tmp_path: Path
) -> None:
    batch = Batch(tmp_path, "answer(cases[0]); sys.exit(3)", cases=1, faults={"agent_exit": "infrastructure"})
    assert batch.carry_out(store).outcomes == {"errored": 1}
    assert only_run(store, store.resolve_experiment("latest")).errored


def test_a_program_that_dies_after_its_last_answer_is_noted(store: Store, tmp_path: Path) -> None:
    batch = Batch(tmp_path, "answer(cases[0]); sys.stdout.flush(); os.kill(os.getpid(), 11)", cases=1)
    assert batch.carry_out(store).outcomes == {"failed": 1}
    note = Note("batch_ended_badly", "", "the program was ended by SIGSEGV")
    assert store.resolve_experiment("latest").notes == {"crew": [note]}


def test_what_belongs_to_no_run_is_kept_with_the_experiment(store: Store, tmp_path: Path) -> None:
    batch = Batch(tmp_path, "answer(cases[0]); answer({'id': 'nobody'})", cases=1)
    batch.carry_out(store)
    note = Note("batch_id_unknown", "/2", "the id is 'nobody'")
    assert store.resolve_experiment("latest").notes == {"crew": [note]}
    assert "agent_notes" not in store.resolve_experiment("latest").suite
    assert only_run(store, store.resolve_experiment("latest")).fault is None


class AnsweringAgain(ScriptedBatch):
    """A batch agent that answers one case again, when all others have been answered."""

    def __init__(self, answer: Callable[[RunRequest], Reply | None], case_id: str) -> None:
        super().__init__(answer)
        self.case_id = case_id

    async def run_batch(
        self, requests: Iterable[RunRequest]
    ) -> AsyncGenerator[tuple[RunRequest, Reply | AnsweredAgain | EndedBadly], None]:
        asked = list(requests)
        async for answered in super().run_batch(asked):
            yield answered
        for request in asked:
            if request.case.id == self.case_id:
                yield request, AnsweredAgain(Note("batch_id_repeated", "", "line 9 answers it again: hunter2"))


LOOKED: list[dict[str, Any]] = [
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "look", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "1", "content": "done"},
    {"role": "assistant", "content": "ok"},
]
FORBIDS = {"kind": "tool_trajectory", "mode": "any_order", "minimums": {"look": 1}, "forbidden": [{"tool": "delete_*"}]}


def test_a_run_that_is_answered_again_after_it_was_stored_does_not_stay_passed(store: Store) -> None:
    batch = AnsweringAgain(lambda request: read_returned(LOOKED), "case-1")
    suite = a_suite(3, graders=[FORBIDS, {"kind": "contains", "value": "ok"}])
    experiment, tally = run_suite(store, suite, {"crew": batch}, secrets=Secrets({"KEY": "hunter2"}))
    assert tally.outcomes == {"passed": 2, "errored": 1}
    _, run, _ = runs_of(store, experiment)
    assert run.completeness is not None
    assert run.completeness.level == "partial"
    assert [reason.message for reason in run.completeness.reasons] == ["line 9 answers it again: ${KEY}"]
    assert [verdict.outcome for verdict in run.verdicts] == ["errored", "passed"], "on the calls, and on the answer"
    assert run.reading is not None
    assert [note.code for note in run.reading.notes] == ["batch_id_repeated"]
    assert event_kinds(store, run)[-1] == "RUN_FINISHED"


@pytest.mark.parametrize(
    ("config", "outcome"),
    [
        (
            {"mode": "superset", "expected": [{"tool": "send", "args": {"token": {"$not": {"$regex": "hunter"}}}}]},
            "failed",
        ),
        ({"mode": "superset", "expected": [{"tool": "send", "args": {"token": "hunter2"}}]}, "errored"),
        (
            {
                "mode": "any_order",
                "minimums": {"send": 1},
                "forbidden": [{"tool": "send", "args": {"token": "hunter2"}}],
            },
            "failed",
        ),
        ({"mode": "any_order", "minimums": {"send": 1}, "forbidden": [{"tool": "delete_*"}]}, "errored"),
    ],
)
def test_a_run_with_a_secret_that_is_answered_again_passes_nothing_new_and_stays_failed(
    store: Store, config: dict[str, Any], outcome: str
) -> None:
    sent = [
        {"role": "assistant", "tool_calls": [{"id": "1", "name": "send", "arguments": {"token": "hunter2"}}]},
        *LOOKED[1:],
    ]
    batch = AnsweringAgain(lambda request: read_returned(sent), "case-1")
    suite = a_suite(2, graders=[{"kind": "tool_trajectory", **config}])
    experiment, tally = run_suite(store, suite, {"crew": batch}, secrets=Secrets({"KEY": "hunter2"}))
    other, run = runs_of(store, experiment)
    assert other.grade is not None
    assert other.grade.outcome == ("passed" if outcome == "errored" else "failed")
    assert run.grade is not None
    assert run.grade.outcome == outcome
    assert sum(tally.outcomes.values()) == 2
    assert tally.outcomes[outcome] >= 1


def test_what_a_run_with_a_secret_in_its_answer_failed_by_stays_failed_when_it_is_answered_again(store: Store) -> None:
    batch = AnsweringAgain(
        lambda request: read_returned([*LOOKED[:2], {"role": "assistant", "content": "hunter2"}]), "case-0"
    )
    suite = a_suite(1, graders=[{"kind": "contains", "value": "hunter2", "negate": True}])
    experiment, tally = run_suite(store, suite, {"crew": batch}, secrets=Secrets({"KEY": "hunter2"}))
    assert tally.outcomes == {"failed": 1}
    (verdict,) = only_run(store, experiment).verdicts
    assert verdict.outcome == "failed"


def test_what_is_counted_of_a_run_that_was_answered_again_is_what_is_stored_of_it(store: Store) -> None:
    batch = AnsweringAgain(lambda request: read_returned(LOOKED), "case-1")
    experiment, _ = run_suite(store, a_suite(3, graders=[FORBIDS]), {"crew": batch})
    [row] = [row for row in store.runs(experiment.experiment_id) if row.key.case_id == "case-1"]
    assert (row.outcome, row.calls) == ("errored", "partial")
    [totals] = store.totals(experiment.experiment_id).agents
    assert (totals.outcomes, totals.calls) == ({"passed": 2, "errored": 1}, {"complete": 2, "partial": 1})
    counts = store.note_totals(experiment.experiment_id).counts
    assert [(count.code, count.notes) for count in counts] == [("batch_id_repeated", 1)]


def test_a_run_that_is_answered_again_before_it_is_tried_again_is_in_doubt_when_it_ends(store: Store) -> None:
    def answer(request: RunRequest) -> Reply:
        if request.attempt == 1 and request.case.id == "case-1":
            return refused()
        return read_returned(LOOKED)

    class OnlyAtFirst(AnsweringAgain):
        async def run_batch(
            self, requests: Iterable[RunRequest]
        ) -> AsyncGenerator[tuple[RunRequest, Reply | AnsweredAgain | EndedBadly], None]:
            first = self.batches == 0
            async for request, reply in super().run_batch(requests):
                if isinstance(reply, Reply) or first:
                    yield request, reply

    experiment, tally = run_suite(store, a_suite(2, graders=[FORBIDS]), {"crew": OnlyAtFirst(answer, "case-1")})
    assert tally.outcomes == {"passed": 1, "errored": 1}
    _, run = runs_of(store, experiment)
    assert len(run.attempts) == 2
    assert run.completeness is not None
    assert "batch_id_repeated" in [reason.code for reason in run.completeness.reasons]


def test_a_program_that_answers_a_case_twice_does_not_pass_a_check_on_its_calls(tmp_path: Path, store: Store) -> None:
    script = f"""
answer(cases[0], output_messages={LOOKED!r})
answer(cases[1], output_messages={LOOKED!r})
answer(cases[0], text="again")
"""
    batch = Batch(tmp_path, script, cases=2, graders=[FORBIDS])
    assert batch.carry_out(store).outcomes == {"passed": 1, "errored": 1}


@pytest.mark.parametrize(
    ("stray", "code"),
    [
        ("answer({'id': 'A'}, output_messages=LOOKED)", "batch_id_unknown"),
        ("print(json.dumps({'output_messages': LOOKED}), flush=True)", "batch_line_unusable"),
        (
            "print(json.dumps({'output_messages': LOOKED, 'id': cases[0]['id']})[:-3], flush=True)",
            "batch_line_unusable",
        ),
    ],
)
def test_a_line_that_may_be_of_any_run_lets_none_pass_a_check_on_its_calls(
    tmp_path: Path, store: Store, stray: str, code: str
) -> None:
    script = f"""
LOOKED = {LOOKED!r}
answer(cases[0], output_messages=LOOKED)
{stray}
answer(cases[1], output_messages=LOOKED)
"""
    batch = Batch(tmp_path, script, cases=2, graders=[FORBIDS])
    assert batch.carry_out(store).outcomes == {"errored": 2}
    for run in runs_of(store, store.resolve_experiment("latest")):
        assert run.completeness is not None
        assert run.completeness.level == "partial"
        assert [reason.code for reason in run.completeness.reasons] == [code]


def test_plain_text_between_the_lines_of_a_batch_leaves_no_call_unknown(tmp_path: Path, store: Store) -> None:
    script = f"print('loading', flush=True); answer(cases[0], output_messages={LOOKED!r})"
    assert Batch(tmp_path, script, cases=1, graders=[FORBIDS]).carry_out(store).outcomes == {"passed": 1}


def test_a_doubt_of_an_attempt_stays_with_the_run_that_is_tried_again(store: Store) -> None:
    def answer(request: RunRequest) -> Reply:
        if request.attempt == 1:
            reply = refused()
            reply.doubts = [Note("batch_id_unknown", "", "line 1 may be of this run")]
            return reply
        return read_returned(LOOKED)

    experiment, tally = run_suite(store, a_suite(1, graders=[FORBIDS]), {"crew": ScriptedBatch(answer)})
    assert tally.outcomes == {"errored": 1}
    run = only_run(store, experiment)
    assert run.completeness is not None
    assert [reason.code for reason in run.completeness.reasons] == ["batch_id_unknown"]
