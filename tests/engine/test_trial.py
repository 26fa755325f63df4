from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from engine.setting import (
    LoopClock,
    Scripted,
    ScriptedBatch,
    TestClock,
    a_suite,
    event_kinds,
    only_run,
    refused,
    run_suite,
    runs_of,
    say_ok,
)
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.cli.program import PROCESSES_LEFT
from seatrial.agents.config import Retry
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.python.returned import read_returned
from seatrial.driver import conclude_run, exchange
from seatrial.events.types import CustomEvent, Event, RunError, RunStarted, TextMessageChunk, ToolCallEnd, ToolCallStart
from seatrial.events.verify import STREAM_TRUNCATED
from seatrial.formats import output_messages
from seatrial.formats.agui import reading_of
from seatrial.formats.chat.limits import LARGE_BYTES
from seatrial.runs import FAULT_CLASSES, MOVABLE, Blame, Case, Fault
from seatrial.store import Store
from seatrial.suites import Secrets, Timeouts
from seatrial.transcript import Note


def test_an_infrastructure_fault_is_tried_again_and_every_attempt_is_kept_with_its_body(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.attempt < 3:
            reply = refused(502 + request.attempt % 2)
            reply.body = f"go away, {request.attempt}".encode()
            return reply
        return read_returned("ok")

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert run.status == "completed"
    assert [attempt.number for attempt in run.attempts] == [1, 2, 3]
    assert [attempt.http_status for attempt in run.attempts] == [503, 502, None]
    assert [store.body(str(attempt.body_hash)) for attempt in run.attempts] == [b"go away, 1", b"go away, 2", b"ok"]
    assert run.body == b"ok"
    kinds = event_kinds(store, run)
    assert kinds[:4] == ["RUN_STARTED", "RUN_ERROR", "RUN_STARTED", "RUN_ERROR"]
    assert kinds[4] == "RUN_STARTED"
    assert kinds[-1] == "RUN_FINISHED"


@pytest.mark.parametrize("error_class", sorted(FAULT_CLASSES))
def test_only_what_may_pass_is_tried_again_and_only_the_agents_own_faults_fail_it(
    store: Store, error_class: str
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return Reply(fault=Fault(error_class, "no"))

    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    meaning = FAULT_CLASSES[error_class]
    agents = meaning.blame == "agent"
    assert len(run.attempts) == (3 if meaning.transient and not agents else 1)
    assert (run.status, run.errored) == ("failed", not agents)
    assert tally.outcomes == {"failed" if agents else "errored": 1}


@pytest.mark.parametrize("error_class", MOVABLE)
@pytest.mark.parametrize("where", ["suite", "agent"])
def test_a_suite_moves_a_class_of_faults_to_the_other_side(store: Store, error_class: str, where: str) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return Reply(fault=Fault(error_class, "no"))

    meaning = FAULT_CLASSES[error_class]
    other: Blame = "infrastructure" if meaning.blame == "agent" else "agent"
    suite = a_suite(1, faults={error_class: other if where == "suite" else meaning.blame})
    if where == "agent":
        suite.agents["crew"].faults = {error_class: other}
    experiment, _ = run_suite(store, suite, {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert (run.status, run.errored) == ("failed", other == "infrastructure")
    assert len(run.attempts) == (3 if other == "infrastructure" and meaning.transient else 1)
    assert run.fault == Fault(error_class, "no", moved_to=other)


def test_a_deadline_that_retries_have_used_up_is_not_held_against_the_agent(store: Store) -> None:
    clock = TestClock()

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        clock.passed_s += 10
        return refused(503) if request.attempt == 1 else Reply(fault=Fault("deadline_exceeded", "too late"))

    experiment, _ = run_suite(store, a_suite(1, timeouts=Timeouts(run_s=20)), {"crew": Scripted(answer)}, clock=clock)
    run = only_run(store, experiment)
    assert run.fault is not None
    assert (run.errored, run.fault.error_class) == (True, "deadline_in_retry")
    assert "attempt 2" in run.fault.message


def test_an_agent_kind_that_raises_errors_its_run_with_the_traceback_and_no_other(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-1":
            raise ZeroDivisionError("a bug of ours")
        return read_returned("ok")

    experiment, tally = run_suite(store, a_suite(3), {"crew": Scripted(answer)})
    runs = runs_of(store, experiment)
    assert [run.status for run in runs] == ["completed", "failed", "completed"]
    assert runs[1].errored
    fault = runs[1].fault
    assert fault is not None
    assert (fault.error_class, fault.message) == ("internal_error", "ZeroDivisionError: a bug of ours")
    assert "test_trial.py" in str(fault.detail)
    assert tally.outcomes == {"passed": 2, "errored": 1}


def test_a_cancellation_and_a_timeout_of_the_agents_own_are_bugs_too_and_no_deadline(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        raise asyncio.CancelledError if request.case.id == "case-0" else TimeoutError("within")

    experiment, _ = run_suite(store, a_suite(2), {"crew": Scripted(answer)})
    faults = [run.fault for run in runs_of(store, experiment)]
    assert [fault.error_class for fault in faults if fault is not None] == ["internal_error"] * 2


def test_what_cannot_be_made_a_run_of_errors_the_run_and_keeps_the_body(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        reply = read_returned("ok")
        assert reply.reading is not None
        reply.reading.transcript.messages.append("no message at all")  # type: ignore[arg-type]  # that is the point
        return reply

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert run.errored
    assert run.fault is not None
    assert run.fault.error_class == "internal_error"
    assert run.attempts[0].fault == run.fault
    assert run.body == b"ok"
    assert event_kinds(store, run)[-1] == "RUN_ERROR"


def test_an_agent_that_outlives_its_deadline_is_cut_off(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "GRACE_S", 0.01)

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await asyncio.sleep(60)
        return read_returned("ok")

    suite = a_suite(1, timeouts=Timeouts(run_s=0.05))
    experiment, _ = run_suite(store, suite, {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert run.status == "failed"
    assert run.fault == Fault("deadline_exceeded", "the run used up its deadline of 0.05 s")


def test_what_an_agent_brings_at_its_deadline_is_kept(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        assert request.timeout_s is not None
        await asyncio.sleep(request.timeout_s)
        return Reply(fault=Fault("deadline_exceeded", "too late"), body=b"half an ans")

    suite = a_suite(1, timeouts=Timeouts(run_s=0.02))
    experiment, _ = run_suite(store, suite, {"crew": Scripted(answer)})
    assert only_run(store, experiment).body == b"half an ans"


def test_the_deadline_of_a_case_counts_before_the_agents_and_that_before_the_suites(store: Store) -> None:
    agent = Scripted(say_ok)
    suite = a_suite(timeouts=Timeouts(run_s=50))
    suite.cases = [Case(id="own", instruction="", timeout_s=10), Case(id="other", instruction="")]
    suite.agents = {"crew": PythonConfig(target="a:b", run_timeout_s=30), "mate": PythonConfig(target="a:b")}
    run_suite(store, suite, {"crew": agent, "mate": agent})
    given = sorted(round(request.timeout_s or 0) for request in agent.asked)
    assert given == [10, 10, 30, 50]


def test_the_deadline_is_for_all_attempts_together(store: Store) -> None:
    clock = TestClock()

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        clock.passed_s += 10
        return refused()

    agent = Scripted(answer)
    suite = a_suite(1, timeouts=Timeouts(run_s=55), retry=Retry(attempts=50, first_wait_s=0.001, longest_wait_s=0.001))
    experiment, _ = run_suite(store, suite, {"crew": agent}, clock=clock)
    run = only_run(store, experiment)
    assert [round(request.timeout_s or 0) for request in agent.asked] == [55, 45, 35, 25, 15, 5]
    assert len(run.attempts) == 6
    assert run.fault is not None
    assert run.fault.error_class == "agent_unavailable", "why it never answered, and not that time ran out"


def test_waiting_for_a_place_is_not_taken_from_the_deadline(store: Store) -> None:
    clock = TestClock()

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await asyncio.sleep(0)
        clock.passed_s += 50
        return read_returned("ok")

    agent = Scripted(answer)
    suite = a_suite(4, agents=["crew", "mate"], concurrency=1)
    run_suite(store, suite, {"crew": agent, "mate": agent}, clock=clock)
    assert agent.most_active == 1
    assert [round(request.timeout_s or 0) for request in agent.asked] == [300] * 8


def test_an_agent_that_is_given_too_much_gets_less_at_once(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await asyncio.sleep(0.002)
        return refused(429) if agent.active > 2 else read_returned("ok")

    agent = Scripted(answer)
    suite = a_suite(60, concurrency=16, retry=Retry(attempts=20, first_wait_s=0.001, longest_wait_s=0.002))
    _, tally = run_suite(store, suite, {"crew": agent})
    assert tally.outcomes == {"passed": 60}
    assert len(agent.asked) < 150


def test_an_agent_that_asks_for_a_pause_is_left_alone_by_all_runs(store: Store) -> None:
    called: list[float] = []

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        called.append(time.monotonic())
        return refused(429, retry_after_s=0.2) if len(called) == 1 else read_returned("ok")

    suite = a_suite(5, concurrency=1)
    _, tally = run_suite(store, suite, {"crew": Scripted(answer)})
    assert tally.outcomes == {"passed": 5}
    assert called[1] - called[0] >= 0.19


def test_a_pause_that_another_run_was_asked_for_keeps_no_run_past_its_deadline(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-0":
            await asyncio.sleep(0.02)
            return refused(429, retry_after_s=60)
        await asyncio.sleep(0.1)
        return refused(502)

    suite, clock = a_suite(2, timeouts=Timeouts(run_s=5)), LoopClock()
    experiment, _ = run_suite(store, suite, {"crew": Scripted(answer)}, clock=clock)
    assert clock.latest_s < 5
    faults = [run.fault.http_status for run in runs_of(store, experiment) if run.fault is not None]
    assert faults == [429, 502]


def test_a_pause_that_comes_while_a_run_waits_ends_it_at_its_deadline(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-0":
            await asyncio.sleep(0.05)
            return refused(429, retry_after_s=60)
        return refused(502)

    suite, clock = a_suite(2, timeouts=Timeouts(run_s=1), retry=Retry(attempts=3, first_wait_s=0.2)), LoopClock()
    experiment, _ = run_suite(store, suite, {"crew": Scripted(answer)}, clock=clock)
    assert clock.latest_s < 5
    _, run = runs_of(store, experiment)
    assert run.fault is not None
    assert (run.errored, run.fault.error_class) == (True, "deadline_in_retry")
    assert [attempt.http_status for attempt in run.attempts] == [502], "those that were made, and no other"
    assert event_kinds(store, run) == ["RUN_STARTED", "RUN_ERROR"] * 2


def test_a_clock_that_goes_backwards_makes_no_duration_negative(store: Store) -> None:
    clock = TestClock(step_ms=-60_000)
    experiment, tally = run_suite(store, a_suite(3, trials=2), {"crew": Scripted(say_ok)}, clock=clock)
    runs = runs_of(store, experiment)
    assert tally.outcomes == {"passed": 6}
    assert all((run.duration_ms or -1) > 0 for run in runs)
    assert all(attempt.duration_ms > 0 for run in runs for attempt in run.attempts)
    finished = store.resolve_experiment(experiment.experiment_id)
    assert finished.status == "finished"
    assert (finished.finished_at or 0) < finished.created_at, "stamps are what the clock said"


def test_events_of_the_agent_are_stored_while_it_runs(store: Store) -> None:
    seen: list[int] = []

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await emit(TextMessageChunk(message_id="m", delta="o"))
        for _ in range(3000):
            await asyncio.sleep(0.02)
            seen[:] = [sequence for sequence, _ in store.events(request.run_id)] if _begun(store, request) else []
            if seen:
                break
        await emit(TextMessageChunk(message_id="m", delta="k"))
        reply = read_returned("ok")
        reply.streamed = True
        return reply

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    assert seen == [0, 1]
    run = only_run(store, experiment)
    assert event_kinds(store, run) == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]


def _begun(store: Store, request: RunRequest) -> bool:
    return any(row.run_id == request.run_id for row in store.runs(str(request.experiment_id)))


def test_an_attempt_that_the_agent_ended_with_an_error_is_ended_once(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await emit(RunStarted(thread_id="t", run_id="r"))
        await emit(RunError(message="no"))
        return Reply(fault=Fault("agent_reported_error", "no"), streamed=True)

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    assert event_kinds(store, only_run(store, experiment)) == ["RUN_STARTED", "RUN_ERROR"]


def _streamed(events: list[Event], fault: Fault | None = None) -> Reply:
    return Reply(reading=reading_of(events, [], "agui", None), fault=fault, streamed=True)


def test_calls_of_an_earlier_attempt_leave_the_calls_of_the_run_in_doubt(store: Store) -> None:
    called: list[Event] = [
        ToolCallStart(tool_call_id="c", tool_call_name="delete_account"),
        ToolCallEnd(tool_call_id="c"),
    ]
    said: list[Event] = [TextMessageChunk(message_id="m", delta="ok")]

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.attempt == 1:
            earlier = called if request.case.id == "case-0" else said
            return _streamed(earlier, Fault("infrastructure_error", "no network"))
        return _streamed(said)

    experiment, _ = run_suite(store, a_suite(2), {"crew": Scripted(answer)})
    guilty, innocent = runs_of(store, experiment)
    assert [attempt.called for attempt in guilty.attempts] == [["delete_account"], []]
    assert guilty.completeness is not None
    assert guilty.completeness.level == "partial"
    assert [note.message for note in guilty.completeness.reasons] == [
        "attempt 1 called 'delete_account' before it failed"
    ]
    assert [attempt.called for attempt in innocent.attempts] == [[], []]
    assert innocent.completeness is not None
    assert innocent.completeness.level == "complete"


def test_what_may_be_a_call_in_an_earlier_attempt_leaves_the_calls_of_the_run_in_doubt(store: Store) -> None:
    started = RunStarted(thread_id="t", run_id="r")
    custom = CustomEvent(name="tool_call", value={"name": "delete_account", "args": {}})
    said = TextMessageChunk(message_id="m", delta="Action: delete_account\nAction Input: {}")
    harmless = TextMessageChunk(message_id="m", delta="one moment")
    earlier: dict[str, list[Event]] = {
        "case-0": [started, custom],
        "case-1": [started, said],
        "case-2": [started, harmless],
    }
    cut = Note(STREAM_TRUNCATED, "", "the stream ends without RUN_FINISHED or RUN_ERROR")

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.attempt == 1:
            reading = reading_of(earlier[request.case.id], [cut], "agui", None)
            return Reply(reading=reading, fault=Fault("infrastructure_error", "no network"), streamed=True)
        return _streamed([TextMessageChunk(message_id="m", delta="ok")])

    experiment, _ = run_suite(store, a_suite(3), {"crew": Scripted(answer)})
    runs = runs_of(store, experiment)
    assert [run.attempts[0].called for run in runs] == [["?"], ["?"], []]
    known = [run.completeness for run in runs if run.completeness is not None]
    assert [each.level for each in known] == ["partial", "partial", "complete"]
    assert [note.message for note in known[0].reasons] == ["what attempt 1 called before it failed is unknown"]


@pytest.mark.parametrize(
    ("body", "cut", "called"),
    [
        (
            b'{"final_response": "x", "messages": [{"role": "assistant", "tool_calls": '
            b'[{"id": "c", "name": "delete_account", "arguments": {}}]}]}',
            False,
            ["delete_account"],
        ),
        (
            b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n'
            b'data: {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"delete_account"}\n\n',
            True,
            ["delete_account", "?"],
        ),
        (b'{"final_response": "x", "messages": [{"role": "assi', True, ["?"]),
        (None, True, ["?"]),
        (b'{"error": "busy"}', False, []),
        (b"<h1>busy</h1>", True, []),
        (None, False, []),
    ],
    ids=["a response", "events", "cut", "too large", "an error", "a page", "nothing"],
)
def test_what_came_with_a_failed_attempt_and_was_not_read_may_list_calls(
    store: Store, body: bytes | None, cut: bool, called: list[str]
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.attempt == 1:
            reply = refused(503)
            reply.body, reply.cut = body, cut
            return reply
        return _streamed([TextMessageChunk(message_id="m", delta="ok")])

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert run.attempts[0].called == called
    assert run.completeness is not None
    assert run.completeness.level == ("partial" if called else "complete")


@pytest.mark.parametrize(
    ("fault", "is_unknown"),
    [
        (Fault("infrastructure_error", "the database is down"), True),
        (Fault("connection_lost", "reset"), True),
        (Fault("agent_unavailable", "502", http_status=502), True),
        (Fault("agent_unavailable", "503", http_status=503), False),
        (Fault("rate_limited", "429", http_status=429), False),
        (Fault("agent_unreachable", "refused"), False),
    ],
    ids=lambda value: value.message if isinstance(value, Fault) else "",
)
def test_an_earlier_attempt_that_had_begun_and_lists_nothing_leaves_the_calls_of_the_run_unknown(
    store: Store, fault: Fault, is_unknown: bool
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.attempt == 1:
            return Reply(fault=fault)
        return _streamed([TextMessageChunk(message_id="m", delta="ok")])

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert run.attempts[0].called == (["?"] if is_unknown else [])
    assert run.completeness is not None
    assert run.completeness.level == ("partial" if is_unknown else "complete")


def test_an_earlier_attempt_of_an_agent_without_tools_called_none(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return Reply(fault=Fault("infrastructure_error", "down")) if request.attempt == 1 else read_returned("ok")

    suite = a_suite(1)
    suite.agents["crew"].tool_access = "none"
    experiment, _ = run_suite(store, suite, {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert (run.attempts[0].called, run.completeness and run.completeness.level) == ([], "complete")


def test_the_trace_file_that_an_answer_names_is_where_its_steps_come_from(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-0":
            return Reply(
                reading=output_messages.read(b'{"text": "ok", "trace_ref": "t.json"}'),
                trace_file=b'[{"type": "tool_call", "name": "dig", "input": {}}]',
            )
        return Reply(
            reading=output_messages.read(b'{"text": "ok", "trace_ref": "t.json"}'),
            trace_file=Note("trace_ref_not_read", "/trace_ref", "it is not there"),
        )

    experiment, _ = run_suite(store, a_suite(2), {"crew": Scripted(answer)})
    with_trace, without = runs_of(store, experiment)
    assert [step.name for step in with_trace.steps] == ["dig"]
    assert without.reading is not None
    assert "it is not there" in [note.message for note in without.reading.notes]


def test_what_the_reader_noted_stays_beside_what_the_extraction_noted(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        reply = read_returned("ok")
        assert reply.reading is not None
        reply.reading.notes.append(Note("bom_removed", "", "noted by the reader"))
        return reply

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert run.reading is not None
    assert "noted by the reader" in [note.message for note in run.reading.notes]


@pytest.mark.parametrize(
    ("returned", "status"),
    [
        ({"output_messages": [{"role": "assistant", "content": " "}]}, "failed"),
        ({"output_messages": [{"role": "assistant", "content": "<think>hm</think>"}]}, "failed"),
        ({"output_messages": [{"role": "assistant", "content": "Done."}]}, "completed"),
        ({"output_messages": [{"role": "assistant", "tool_calls": [{"id": "1", "name": "look"}]}]}, "completed"),
    ],
)
def test_an_agent_that_says_and_does_nothing_has_not_answered(store: Store, returned: Any, status: str) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return read_returned(returned)

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    run = only_run(store, experiment)
    assert run.status == status
    assert (run.fault.error_class if run.fault is not None else None) == (
        "agent_output_missing" if status == "failed" else None
    )


def test_an_agent_that_answers_with_an_image_alone_has_answered(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        part = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,eA=="}
        return read_returned([{"id": "1", "role": "assistant", "parts": [part]}])

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    assert only_run(store, experiment).status == "completed"


@pytest.mark.parametrize("answered", [True, False])
def test_what_attempts_left_behind_is_noted_whether_the_run_has_an_answer_or_not(store: Store, answered: bool) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        reply = read_returned("ok") if answered and request.attempt == 3 else refused(503)
        reply.notes = [Note(PROCESSES_LEFT, "", f"hunter2 left {request.attempt}")]
        return reply

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=Secrets({"KEY": "hunter2"}))
    run = only_run(store, experiment)
    assert (run.reading is not None) == answered
    left = [note.message for note in run.notes if note.code == PROCESSES_LEFT]
    assert left == [f"${{KEY}} left {number}" for number in range(1, len(run.attempts) + 1)]
    assert len(left) > 1
    (shown,) = store.run_notes([run.run_id], limit=10).values()
    assert {note.code for note in shown.notes} >= {PROCESSES_LEFT}
    assert shown.counts[PROCESSES_LEFT, "look"] == len(left)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("large", ["body", "trace_file"])
def test_a_run_that_brought_much_is_concluded_beside_the_event_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch, large: str, batch: bool
) -> None:
    concluded_in: list[threading.Thread] = []

    def conclude(*args: Any, **kwargs: Any) -> Any:
        concluded_in.append(threading.current_thread())
        return conclude_run(*args, **kwargs)

    monkeypatch.setattr(
        "seatrial.engine.batch.conclude_run" if batch else "seatrial.engine.trial.conclude_run", conclude
    )

    def bring(request: RunRequest) -> Reply:
        reply = read_returned("ok")
        setattr(reply, large, b'{"text": "ok"}' + b" " * LARGE_BYTES)
        return reply

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return bring(request)

    _, tally = run_suite(store, a_suite(1), {"crew": ScriptedBatch(bring) if batch else Scripted(answer)})
    assert tally.outcomes == {"passed": 1}
    assert [thread is threading.main_thread() for thread in concluded_in] == [False]
