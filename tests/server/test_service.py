"""Runs from their admission to their end, by real agents on a real store."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from agents.setting import serving
from aiohttp import web
from strategies.unhurried import run_unhurried

from seatrial._support import wire
from seatrial.agents.stream.agent import StreamAgent
from seatrial.agents.stream.config import StreamConfig
from seatrial.api import CreateRun, RunInput
from seatrial.errors import SeatrialError
from seatrial.events import types as t
from seatrial.events.run_input import ResumeEntry
from seatrial.runs import ServedKey, ServedRun
from seatrial.server.driving import Limits
from seatrial.server.feed import Feeds, Subscription
from seatrial.server.logs import start_logging
from seatrial.server.service import RunService
from seatrial.store import Store
from seatrial.suites import Secrets
from server.running import Followers, ask, ended, log_of, running, types_of, until, whole_log

FINISHED: dict[str, Any] = {"type": "RUN_FINISHED", "threadId": "", "runId": ""}


def said(text: str, message_id: str = "m") -> list[dict[str, Any]]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": message_id},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": text},
        {"type": "TEXT_MESSAGE_END", "messageId": message_id},
    ]


def code_of(error: pytest.ExceptionInfo[SeatrialError]) -> str:
    return error.value.code


# How runs go


def test_a_run_of_a_streaming_function_is_stored_published_and_recorded(store: Store) -> None:
    async def agent(instruction: str) -> AsyncIterator[Any]:
        for event in said(f"You said: {instruction}"):
            yield event

    async def scenario() -> None:
        feeds = Followers(store)
        async with running(store, {"agent": agent}, feeds=feeds) as service:
            run = await ask(service, "Hello.")
            assert run.status == "pending"
            run = await ended(service, run.run_id)
        assert run.status == "completed"
        events = whole_log(store, run.run_id)
        assert types_of(events) == [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
        assert isinstance(events[-1], t.RunFinished)
        assert (events[-1].thread_id, events[-1].run_id) == (run.thread_id, run.run_id)
        assert all(isinstance(event.timestamp, int) for event in events)
        assert feeds.published[run.run_id] == [data for _, data in store.events(run.run_id)]
        assert feeds.over == [run.run_id]
        record = store.run(run.run_id)
        assert (record.experiment_id, record.key) == (None, ServedKey("agent", run.thread_id))
        assert record.status == "completed"
        assert record.reading is not None
        assert "You said: Hello." in str(record.reading.transcript.messages)
        assert [attempt.number for attempt in record.attempts] == [1]

    asyncio.run(scenario())


def test_what_a_function_returns_becomes_events_without_what_it_was_told(store: Store) -> None:
    def agent(instruction: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        told = [*messages, {"role": "user", "content": instruction}]
        return [*told, {"role": "assistant", "content": "It is four."}]

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            first = await ask(service, "What is two and two?", thread_id="t")
            await ended(service, first.run_id)
            second = await ask(service, "Are you sure?", thread_id="t")
            await ended(service, second.run_id)
            thread = await service.thread("t")
        events = whole_log(store, second.run_id)
        assert types_of(events)[1:-1] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
        assert [message["content"] for message in thread.messages] == [
            *("What is two and two?", "It is four.", "Are you sure?", "It is four."),
        ]

    asyncio.run(scenario())


def test_a_run_is_pending_until_its_agent_has_a_place_for_it(store: Store) -> None:
    going = 0
    most = 0
    doors = [asyncio.Event() for _ in range(3)]

    async def agent(instruction: str) -> str:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await doors[int(instruction)].wait()
        going -= 1
        return "done"

    async def scenario() -> None:
        async with running(store, {"agent": agent}, limits={"agent": Limits(concurrency=2)}) as service:
            runs = [await ask(service, str(number)) for number in range(3)]
            await until(service, runs[1].run_id, lambda run: run.status == "running")
            assert (await service.run(runs[2].run_id)).status == "pending"
            while going < 2:  # a run is `running` a moment before its agent is called
                await asyncio.sleep(0.01)
            doors[0].set()
            await until(service, runs[2].run_id, lambda run: run.status == "running")
            for door in doors:
                door.set()
            for run in runs:
                assert (await ended(service, run.run_id)).status == "completed"
        assert most == 2

    asyncio.run(scenario())


def test_an_agent_that_too_many_runs_wait_for_takes_no_more_until_some_have_ended(store: Store) -> None:
    door = asyncio.Event()

    async def agent(instruction: str) -> str:
        await door.wait()
        return "done"

    async def scenario() -> None:
        limits = {"agent": Limits(concurrency=1, waiting=2)}
        async with running(store, {"agent": agent, "other": lambda prompt: "hello"}, limits=limits) as service:
            runs = [await ask(service, run_id=f"r{number}", idempotency_key=f"k{number}") for number in range(2)]
            # What makes no run takes no place.
            for _ in range(5):
                assert (await ask(service, run_id="r0", idempotency_key="k0")).run_id == "r0"
                with pytest.raises(SeatrialError, check=lambda error: error.code == "conflict"):
                    await ask(service, run_id="r1", idempotency_key="other")
            runs.append(await ask(service))
            with pytest.raises(SeatrialError, check=lambda error: error.code == "agent_busy"):
                await ask(service)
            assert (await ended(service, (await ask(service, agent="other")).run_id)).status == "completed"
            door.set()
            for run in runs:
                assert (await ended(service, run.run_id)).status == "completed"
            again = [await ask(service) for _ in range(3)]
            for run in again:
                assert (await ended(service, run.run_id)).status == "completed"

    asyncio.run(scenario())


def test_a_run_goes_on_when_whoever_asked_for_it_leaves_while_it_is_admitted(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, {"agent": lambda prompt: "hello"}) as service:
            asking = asyncio.create_task(ask(service, run_id="r"))
            await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            run: ServedRun | None = None
            async with asyncio.timeout(60):
                while run is None:
                    await asyncio.sleep(0.005)
                    with suppress(SeatrialError):  # it is not there yet
                        run = await service.run("r")
            assert (await ended(service, "r")).status == "completed"

    asyncio.run(scenario())


# Two terminals, none, and what comes where it may not


def test_what_an_agent_sends_after_its_end_is_noted_and_kept_as_raw_and_an_error_counts(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        yield {"type": "RUN_STARTED", "threadId": "its", "runId": "own"}
        yield FINISHED
        yield {"type": "CUSTOM", "name": "late", "value": 1}
        yield {"type": "RUN_ERROR", "message": "after all"}

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert (run.status, run.error_code) == ("failed", "agent_reported_error")
        assert types_of(whole_log(store, run.run_id)) == ["RUN_STARTED", "RAW", "RAW", "RUN_ERROR"]
        reading = store.run(run.run_id).reading
        assert reading is not None
        assert [note.code for note in reading.notes if note.code in ("event_after_end", "second_terminal")] == [
            *("event_after_end", "second_terminal"),
        ]

    asyncio.run(scenario())


def test_an_event_that_may_not_come_is_kept_as_raw_with_a_note(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "nobody", "delta": "x"}
        yield "hello"

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert run.status == "completed"
        assert types_of(whole_log(store, run.run_id))[1:-1] == ["RAW", "TEXT_MESSAGE_CHUNK"]
        reading = store.run(run.run_id).reading
        assert reading is not None
        kept = [note for note in reading.notes if note.code == "event_out_of_order"]
        assert [note.pointer for note in kept] == ["/1"]

    asyncio.run(scenario())


def test_what_an_agent_leaves_open_is_closed_before_its_end(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        yield {"type": "STEP_STARTED", "stepName": "plan"}
        yield {"type": "TEXT_MESSAGE_START", "messageId": "m"}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi"}
        yield {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "helper"}
        yield FINISHED

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert run.status == "completed"
        ends = types_of(whole_log(store, run.run_id))[5:]
        assert ends == ["STEP_FINISHED", "TEXT_MESSAGE_END", "SUBAGENT_FINISHED", "RUN_FINISHED"]

    asyncio.run(scenario())


def test_an_exception_ends_the_run_with_run_error_behind_what_was_open(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        yield said("half a sen")[0]
        yield said("half a sen")[1]
        raise ValueError("no more ink")

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert (run.status, run.error_code) == ("failed", "agent_exception")
        assert run.error_message == "ValueError: no more ink"
        events = whole_log(store, run.run_id)
        assert types_of(events)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
        record = store.run(run.run_id)
        assert record.status == "failed"
        assert record.fault is not None
        assert record.fault.error_class == "agent_exception"

    asyncio.run(scenario())


@pytest.mark.usefixtures("logs_as_before")
def test_what_an_agent_writes_for_a_code_is_not_logged(store: Store) -> None:
    async def agent(instruction: str) -> AsyncIterator[Any]:
        yield {"type": "RUN_ERROR", "message": "no", "code": f"I was asked: {instruction}"}

    async def scenario() -> ServedRun:
        async with running(store, {"agent": agent}) as service:
            return await ended(service, (await ask(service, "Hello.")).run_id)

    lines = io.StringIO()
    start_logging("text", lines)
    assert asyncio.run(scenario()).error_code == "I was asked: Hello."
    assert "Hello" not in lines.getvalue()
    assert "status=failed code=agent_reported_error" in lines.getvalue()


def test_the_agents_own_error_keeps_its_code(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        yield {"type": "RUN_ERROR", "message": "out of tokens", "code": "quota"}

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert (run.status, run.error_code, run.error_message) == ("failed", "quota", "out of tokens")
        assert store.run(run.run_id).status == "failed"

    asyncio.run(scenario())


def test_the_deadline_ends_a_run_with_timeout(store: Store) -> None:
    has_spoken = False

    async def agent(prompt: str) -> AsyncIterator[Any]:
        nonlocal has_spoken
        yield said("")[0]
        has_spoken = True
        await asyncio.sleep(3600)

    async def scenario() -> None:
        async with running(store, {"agent": agent}, limits={"agent": Limits(deadline_s=0.1)}) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert (run.status, run.error_code) == ("failed", "timeout")
        assert types_of(whole_log(store, run.run_id))[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
        assert store.run(run.run_id).status == "failed"

    run_unhurried(scenario(), begun=lambda: has_spoken)


def test_an_agent_that_does_not_return_after_its_end_is_not_waited_for_long(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        for event in said("done"):
            yield event
        yield FINISHED
        await asyncio.sleep(3600)

    async def scenario() -> None:
        async with running(store, {"agent": agent}, grace_s=0.1) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert run.status == "completed"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (FINISHED, "agent_output_missing"),
        ({**FINISHED, "result": {"status": "failed", "error": "no"}}, "agent_reported_error"),
    ],
)
def test_what_is_read_from_the_log_of_an_agent_that_does_not_return_is_judged_as_its_reply_would_be(
    store: Store, last: dict[str, Any], code: str
) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        yield last
        await asyncio.sleep(3600)

    async def scenario() -> None:
        async with running(store, {"agent": agent}, grace_s=0.1) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert (run.status, run.error_code) == ("failed", code)
        fault = store.run(run.run_id).fault
        assert fault is not None
        assert fault.error_class == code

    asyncio.run(scenario())


# Cancelling


def test_cancelling_ends_a_run_as_cancelled_and_lets_its_agent_clean_up(store: Store) -> None:
    cleaned_up = False

    async def agent(prompt: str) -> AsyncIterator[Any]:
        nonlocal cleaned_up
        try:
            for event in said("a beginning")[:2]:
                yield event
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            cleaned_up = True

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ask(service)
            await until(service, run.run_id, lambda run: store.run_head(run.run_id).following == 3)
            assert (await service.cancel(run.run_id)).cancel_requested
            run = await ended(service, run.run_id)
            again = await service.cancel(run.run_id)
        assert run.status == again.status == "cancelled"
        events = whole_log(store, run.run_id)
        assert types_of(events)[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]
        assert isinstance(events[-1], t.RunFinished)
        assert isinstance(events[-1].outcome, t.CancelledOutcome)
        assert cleaned_up
        record = store.run(run.run_id)
        assert record.status == "cancelled"
        assert record.reading is not None
        assert "a beginning" in str(record.reading.transcript.messages)

    asyncio.run(scenario())


def test_a_run_that_waits_for_its_turn_is_cancelled_without_its_agent_being_asked(store: Store) -> None:
    asked: list[str] = []

    async def agent(instruction: str) -> str:
        asked.append(instruction)
        await asyncio.sleep(3600)
        return ""

    async def scenario() -> None:
        async with running(store, {"agent": agent}, limits={"agent": Limits(concurrency=1)}, drain_s=0) as service:
            first = await ask(service, "first")
            await until(service, first.run_id, lambda run: run.status == "running")
            second = await ask(service, "second")
            await service.cancel(second.run_id)
            assert (await ended(service, second.run_id)).status == "cancelled"
        assert asked == ["first"]
        whole_log(store, second.run_id)

    asyncio.run(scenario())


def test_an_agent_that_will_not_be_cancelled_is_left_behind(store: Store) -> None:
    held = asyncio.Event()

    async def agent(prompt: str) -> str:
        while not held.is_set():
            try:
                await held.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    async def scenario() -> None:
        async with running(store, {"agent": agent}, grace_s=0.05) as service:
            run = await ask(service)
            await until(service, run.run_id, lambda run: run.status == "running")
            await service.cancel(run.run_id)
            assert (await ended(service, run.run_id)).status == "cancelled"
            held.set()
        whole_log(store, run.run_id)

    asyncio.run(scenario())


def test_cancelling_a_run_that_does_not_exist_is_an_error(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            with pytest.raises(SeatrialError) as error:
                await service.cancel("nobody")
        assert code_of(error) == "not_found"

    asyncio.run(scenario())


# Threads


def test_a_thread_has_one_run_at_a_time_and_the_error_names_it(store: Store) -> None:
    door = asyncio.Event()

    async def agent(prompt: str) -> str:
        await door.wait()
        return "done"

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            first = await ask(service, thread_id="t")
            with pytest.raises(SeatrialError) as error:
                await ask(service, thread_id="t")
            assert code_of(error) == "thread_busy"
            assert error.value.details == {"runId": first.run_id}
            assert (await service.thread("t")).active_run_id == first.run_id
            door.set()
            await ended(service, first.run_id)
            second = await ask(service, thread_id="t")
            await ended(service, second.run_id)
            thread = await service.thread("t")
        assert [run.run_id for run in thread.runs] == [first.run_id, second.run_id]
        assert thread.active_run_id is None

    asyncio.run(scenario())


def test_an_agent_is_told_the_conversation_and_the_state_of_its_thread(store: Store) -> None:
    told: list[Any] = []

    async def agent(instruction: str, messages: Any, input: Any, thread_id: str, run_input: Any) -> AsyncIterator[Any]:
        told.append((instruction, messages, input, thread_id, [message["id"] for message in run_input["messages"]]))
        yield {"type": "STATE_SNAPSHOT", "snapshot": {"count": len(told)}}
        yield {"type": "TOOL_CALL_START", "toolCallId": f"c{len(told)}", "toolCallName": "find"}
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": f"c{len(told)}", "delta": "{}"}
        yield {"type": "TOOL_CALL_END", "toolCallId": f"c{len(told)}"}
        yield {"type": "TOOL_CALL_RESULT", "toolCallId": f"c{len(told)}", "messageId": f"r{len(told)}", "content": "x"}
        for event in said("Here.", f"a{len(told)}"):
            yield event

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            opening = {"id": "u1", "role": "user", "content": "One."}
            first = await ask(service, input=RunInput(messages=[opening], state={"count": 0}), thread_id="t")
            await ended(service, first.run_id)
            # Clients send the whole conversation: what the thread has already is not repeated.
            parts = [{"type": "text", "text": "Two."}]
            messages: list[dict[str, Any]] = [opening, {"id": "u2", "role": "user", "content": parts}]
            second = await ask(service, input=RunInput(messages=messages), thread_id="t")
            await ended(service, second.run_id)
        calls = [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]
        assert told == [
            ("One.", [], {"count": 0}, "t", ["u1"]),
            (
                "Two.",
                [
                    {"role": "user", "content": "One."},
                    {"role": "assistant", "content": None, "tool_calls": calls},
                    {"role": "tool", "tool_call_id": "c1", "content": "x"},
                    {"role": "assistant", "content": "Here."},
                ],
                {"count": 1},
                "t",
                ["u1", "c1", "r1", "a1", "u2"],
            ),
        ]
        started = log_of(store, second.run_id)[0]
        assert isinstance(started, t.RunStarted)
        assert [message["id"] for message in started.input["messages"]] == ["u2"]

    asyncio.run(scenario())


def test_messages_without_an_id_are_told_apart_in_every_run(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, {"agent": lambda prompt: "ok"}) as service:
            for _ in range(2):
                await ended(service, (await ask(service, "yes", thread_id="t")).run_id)
            thread = await service.thread("t")
        assert [message["content"] for message in thread.messages] == ["yes", "ok", "yes", "ok"]
        assert len({message["id"] for message in thread.messages}) == 4

    asyncio.run(scenario())


def test_a_thread_shows_what_an_active_run_has_said_so_far(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        for event in said("half a sen")[:2]:
            yield event
        await asyncio.sleep(3600)

    async def scenario() -> None:
        async with running(store, {"agent": agent}, drain_s=0) as service:
            run = await ask(service, thread_id="t")
            async with asyncio.timeout(60):
                while len((await service.thread("t")).messages) < 2:
                    await asyncio.sleep(0.01)
            thread = await service.thread("t")
            assert thread.messages[1]["content"] == "half a sen"
            assert thread.active_run_id == run.run_id

    asyncio.run(scenario())


def test_a_message_that_agui_does_not_know_is_refused(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, {"agent": lambda prompt: "ok"}) as service:
            with pytest.raises(SeatrialError) as error:
                await ask(service, input=RunInput(messages=[{"role": "user", "content": "a"}, {"role": "pirate"}]))
        assert code_of(error) == "invalid_request"
        assert error.value.pointer == "/input/messages/1"

    asyncio.run(scenario())


# Interrupts


def interrupting() -> Any:
    interrupts = [{"id": "i1", "reason": "confirmation"}, {"id": "i2", "reason": "confirmation"}]

    async def agent(prompt: str, resume: Any) -> AsyncIterator[Any]:
        if resume is None:
            yield {**FINISHED, "outcome": {"type": "interrupt", "interrupts": interrupts}}
        else:
            yield f"answered: {[entry['status'] for entry in resume]}"

    return agent


def test_an_interrupt_needs_an_answer_to_everything_before_the_thread_goes_on(store: Store) -> None:
    yes, no = ResumeEntry("i1", "resolved", {"ok": True}), ResumeEntry("i2", "cancelled")

    async def scenario() -> None:
        async with running(store, {"agent": interrupting()}) as service:
            first = await ended(service, (await ask(service, thread_id="t")).run_id)
            assert first.status == "input_required"
            assert [interrupt.id for interrupt in first.interrupts] == ["i1", "i2"]
            whole_log(store, first.run_id)
            for resume in (None, [], [yes], [yes, no, ResumeEntry("i3", "cancelled")]):
                with pytest.raises(SeatrialError) as error:
                    await ask(service, None, thread_id="t", resume=resume)
                assert code_of(error) == "resume_refused"
            second = await ask(service, None, thread_id="t", resume=[yes, no])
            again = await service.create(CreateRun(agent="agent", thread_id="t", resume=[no, yes]))
            assert (again.run.run_id, again.created) == (second.run_id, False)
            second = await ended(service, second.run_id)
            assert second.status == "completed"
            assert (await service.run(first.run_id)).status == "completed"
            thread = await service.thread("t")
        assert thread.messages[-1]["content"] == "answered: ['resolved', 'cancelled']"

    asyncio.run(scenario())


# Idempotency, and what cannot be asked for


def test_the_same_key_gives_the_same_run_and_another_request_with_it_is_refused(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, {"agent": lambda prompt: "ok"}) as service:
            request = CreateRun(
                agent="agent",
                idempotency_key="k",
                input=RunInput(messages=[{"id": "u", "role": "user", "content": "a"}]),
            )
            first = await service.create(request)
            await ended(service, first.run.run_id)
            second = await service.create(request)
            assert (second.run.run_id, second.created) == (first.run.run_id, False)
            with pytest.raises(SeatrialError) as error:
                await service.create(CreateRun(agent="agent", idempotency_key="k"))
            assert code_of(error) == "idempotency_conflict"
            with pytest.raises(SeatrialError) as error:
                await service.create(CreateRun(agent="agent", run_id=first.run.run_id))
            assert code_of(error) == "conflict"
            with pytest.raises(SeatrialError) as error:
                await service.create(CreateRun(agent="nobody"))
            assert code_of(error) == "not_found"

    asyncio.run(scenario())


def test_pages_of_runs_and_of_events(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, {"agent": lambda prompt: "ok"}) as service:
            runs = [await ask(service, thread_id=f"t{number}") for number in range(3)]
            for run in runs:
                await ended(service, run.run_id)
            page = await service.runs(limit=2)
            rest = await service.runs(limit=2, before=page.next)
            assert [run.run_id for run in [*page.runs, *rest.runs]] == [run.run_id for run in reversed(runs)]
            assert rest.next is None
            events = await service.events(runs[0].run_id, limit=2)
            assert (len(events.events), events.next, events.closed) == (2, 1, False)
            behind = await service.events(runs[0].run_id, events.next)
            assert (len(behind.events), behind.next, behind.closed) == (3, None, True)
            with pytest.raises(SeatrialError) as error:
                await service.events(runs[0].run_id, 5)
            assert (code_of(error), error.value.details) == ("cursor_ahead", {"head": 4})

    asyncio.run(scenario())


def test_the_page_of_events_is_the_native_view(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        yield {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "helper"}
        yield {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ended(service, (await ask(service)).run_id)
            page = await service.events(run.run_id)
        event = wire.decode(bytes(page.events[1]))["event"]
        assert (event["type"], event["name"]) == ("CUSTOM", "SUBAGENT_STARTED")
        assert isinstance(log_of(store, run.run_id)[1], t.SubagentStarted)

    asyncio.run(scenario())


# Secrets


def test_a_secret_that_an_agent_streams_in_pieces_is_not_stored(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "it is hun"}
        yield {"type": "TEXT_MESSAGE_CHUNK", "delta": "ter2!"}
        yield {"type": "CUSTOM", "name": "leak", "value": {"key": "hunter2"}}

    async def scenario() -> None:
        feeds = Followers(store)
        secrets = Secrets({"PASSWORD": "hunter2"})
        async with running(store, {"agent": agent}, secrets=secrets, feeds=feeds) as service:
            run = await ended(service, (await ask(service, thread_id="t")).run_id)
            thread = await service.thread("t")
        whole_log(store, run.run_id)
        assert thread.messages[-1]["content"] == "it is ${PASSWORD}!"
        stored = b"".join(data for _, data in store.events(run.run_id)) + b"".join(feeds.published[run.run_id])
        assert b"hunter2" not in stored
        assert store.run(run.run_id).body is None

    asyncio.run(scenario())


# A stream agent over loopback


def test_a_stream_agent_is_posted_the_whole_input_and_its_events_are_the_log(store: Store) -> None:
    posted: list[Any] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        posted.append(await request.json())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        start = {"type": "RUN_STARTED", "threadId": posted[-1]["threadId"], "runId": posted[-1]["runId"]}
        for event in [start, *said("Hello back.", f"m{len(posted)}"), {**start, "type": "RUN_FINISHED"}]:
            await response.write(b"data: %b\n\n" % wire.encode(event))
        return response

    async def scenario() -> None:
        async with serving(handle) as url:
            agent = StreamAgent(StreamConfig(url=url), connect_s=60, read_s=None)
            async with RunService(store, Followers(store), {"chat": agent}) as service:
                first = await ask(service, "Hello.", "chat", thread_id="t")
                assert (await ended(service, first.run_id)).status == "completed"
                second = await ask(service, "And again.", "chat", thread_id="t")
                assert (await ended(service, second.run_id)).status == "completed"
        assert types_of(whole_log(store, first.run_id)) == [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
        assert [(given["threadId"], given["runId"]) for given in posted] == [("t", first.run_id), ("t", second.run_id)]
        assert [message["content"] for message in posted[1]["messages"]] == ["Hello.", "Hello back.", "And again."]
        assert posted[0]["state"] == posted[0]["forwardedProps"] == {}
        assert posted[0]["tools"] == posted[0]["context"] == []

    asyncio.run(scenario())


def test_a_stream_that_is_cut_ends_the_run_as_failed(store: Store) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n')
        await response.write(b'data: {"type":"TEXT_MESSAGE_START","messageId":"m"}\n\n')
        return response

    async def scenario() -> None:
        async with serving(handle) as url:
            agent = StreamAgent(StreamConfig(url=url), connect_s=60, read_s=None)
            async with RunService(store, Followers(store), {"agent": agent}) as service:
                run = await ended(service, (await ask(service)).run_id)
        assert (run.status, run.error_code) == ("failed", "stream_truncated")
        assert types_of(whole_log(store, run.run_id))[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]

    asyncio.run(scenario())


# Those who follow


def test_who_follows_a_run_sees_all_of_it_and_then_the_end(store: Store) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        for number in range(50):
            yield f"{number} "
            await asyncio.sleep(0)

    async def scenario() -> None:
        feeds = Feeds(store)
        async with running(store, {"agent": agent}, feeds=feeds) as service:
            run = await ask(service)
            followers = [await feeds.open(run.run_id, after=None) for _ in range(3)]

            async def follow(follower: Subscription) -> list[tuple[int, bytes]]:
                seen: list[tuple[int, bytes]] = []
                while (events := await follower.next(5.0)) is not None:
                    seen += events
                assert follower.status == "completed"
                return seen

            async with asyncio.timeout(90):
                seen = await asyncio.gather(*[follow(follower) for follower in followers])
            await feeds.close()
        assert seen == [store.events(run.run_id)] * 3
        assert len(whole_log(store, run.run_id)) == 52

    asyncio.run(scenario())
