"""Agent kinds that Seatrial does not ship: whatever they return, one run ends, and its verdict is honest."""

from __future__ import annotations

from typing import Any

import pytest
from engine.setting import Scripted, a_suite, only_run, run_suite, runs_of, say_ok

from seatrial._support import wire
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.events.types import RunError, RunStarted, ToolCallEnd, ToolCallStart
from seatrial.formats import agent_response
from seatrial.store import Store

MESSAGES = [{"role": "user", "content": "Task 0"}, {"role": "assistant", "content": "ok"}]
ANSWER = wire.encode({"final_response": "ok", "messages": MESSAGES})
NEVER = {"kind": "tool_trajectory", "mode": "any_order", "maximums": {"delete_account": 0}}


@pytest.mark.parametrize("returned", ["ok", None, 3, {"final_response": "ok"}])
def test_what_is_not_a_reply_errors_its_run_and_no_other(store: Store, returned: Any) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        if request.case.id == "case-0":
            return returned  # type: ignore[no-any-return]  # that is the point
        return await say_ok(request, emit)

    experiment, tally = run_suite(store, a_suite(2), {"crew": Scripted(answer)})
    assert tally.outcomes == {"errored": 1, "passed": 1}
    assert [run.fault is None or run.fault.error_class for run in runs_of(store, experiment)] == [
        "internal_error",
        True,
    ]


def test_calls_that_were_sent_as_events_count_beside_an_answer_without_them(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await emit(RunStarted(thread_id="t", run_id="r"))
        await emit(ToolCallStart(tool_call_id="c", tool_call_name="delete_account"))
        await emit(ToolCallEnd(tool_call_id="c"))
        return Reply(body=ANSWER, reading=agent_response.read(ANSWER))

    experiment, tally = run_suite(store, a_suite(1, graders=[NEVER]), {"crew": Scripted(answer)})
    assert tally.outcomes == {"errored": 1}
    completeness = only_run(store, experiment).completeness
    assert completeness is not None
    assert "calls_beside_answer" in [reason.code for reason in completeness.reasons]


def test_an_error_that_was_sent_as_an_event_fails_a_run_with_an_answer(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        await emit(RunStarted(thread_id="t", run_id="r"))
        await emit(RunError(message="boom"))
        return Reply(body=ANSWER, reading=agent_response.read(ANSWER))

    experiment, tally = run_suite(store, a_suite(1), {"crew": Scripted(answer)})
    assert tally.outcomes == {"failed": 1}
    fault = only_run(store, experiment).fault
    assert fault is not None
    assert (fault.error_class, fault.message) == ("agent_reported_error", "boom")


@pytest.mark.parametrize("reply", [Reply(), Reply(body=b"ok"), Reply(streamed=True)])
def test_a_run_without_an_answer_to_read_does_not_pass(store: Store, reply: Reply) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return reply

    experiment, tally = run_suite(
        store, a_suite(1, graders=[{"kind": "latency", "max_ms": 60_000}]), {"crew": Scripted(answer)}
    )
    assert tally.outcomes == {"failed": 1}
    fault = only_run(store, experiment).fault
    assert fault is not None
    assert fault.error_class == "agent_output_missing"
