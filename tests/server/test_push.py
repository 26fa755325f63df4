"""Runs whose agent posts its events itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.databases import database
from strategies.events import as_json, events, events_of

from seatrial._support import wire
from seatrial.api import PushEvents, PushResult
from seatrial.driver import recording
from seatrial.driver.clock import SystemClock
from seatrial.errors import SeatrialError
from seatrial.events import types as t
from seatrial.runs import ServedRun
from seatrial.server.push import Pushes
from seatrial.server.service import RunService
from seatrial.store import Store, open_store
from seatrial.suites import Secrets
from server.running import Followers, ask, ended, log_of, running, types_of, whole_log

START = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
CONTENT = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hi"}
END = {"type": "TEXT_MESSAGE_END", "messageId": "m"}


async def begin(service: RunService) -> ServedRun:
    return await ask(service, None, agent="outside", push=True)


def finished(run: ServedRun, **fields: Any) -> dict[str, Any]:
    return {"type": "RUN_FINISHED", "threadId": run.thread_id, "runId": run.run_id, **fields}


async def push(service: RunService, run: ServedRun, *events: dict[str, Any], **fields: Any) -> PushResult:
    return await service.push(run.run_id, PushEvents(events=list(events), **fields))


async def refusal(service: RunService, run: ServedRun, *events: dict[str, Any], **fields: Any) -> SeatrialError:
    with pytest.raises(SeatrialError) as error:
        await push(service, run, *events, **fields)
    return error.value


def test_pushed_events_are_stored_published_and_end_the_run(store: Store) -> None:
    async def scenario() -> None:
        feeds = Followers(store)
        async with running(store, feeds=feeds) as service:
            run = await begin(service)
            assert (run.status, run.server_id) == ("running", None)
            assert (await push(service, run, START, CONTENT)).sequences == [1, 2]
            result = await push(service, run, END, finished(run))
            assert (result.sequences, result.head, result.notes) == ([3, 4], 4, [])
            run = await service.run(run.run_id)
        assert run.status == "completed"
        whole_log(store, run.run_id)
        assert feeds.published[run.run_id] == [data for _, data in store.events(run.run_id)]
        assert feeds.over == [run.run_id]
        reading = store.run(run.run_id).reading
        assert reading is not None
        assert "hi" in str(reading.transcript.messages)

    asyncio.run(scenario())


def test_events_are_stored_as_they_were_pushed(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            await push(service, run, {**START, "eventId": "e1", "createdAt": "2026-01-01T00:00:00Z"})
        assert wire.decode(store.events(run.run_id)[1][1]) == {
            **START,
            "eventId": "e1",
            "createdAt": "2026-01-01T00:00:00Z",
        }

    asyncio.run(scenario())


def test_an_event_with_a_known_id_is_not_stored_again(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            batch = [{**START, "eventId": "a"}, {**CONTENT, "eventId": "b"}]
            assert (await push(service, run, *batch, first=1)).sequences == [1, 2]
            assert (await push(service, run, *batch, first=1)).sequences == [1, 2], "the answer was lost"
            more = await push(service, run, *batch, {**CONTENT, "eventId": "c"}, {**CONTENT, "eventId": "c"})
            assert more.sequences == [1, 2, 3, 3]
            error = await refusal(service, run, {**END, "eventId": "b"})
            assert (error.code, error.pointer, error.details) == ("idempotency_conflict", "/events/0", {"index": 0})
        # A server that never saw the run knows the ids from its log.
        async with running(store) as service:
            assert (await push(service, run, *batch)).sequences == [1, 2]
        assert len(log_of(store, run.run_id)) == 4

    asyncio.run(scenario())


def test_a_batch_with_one_event_that_may_not_come_is_refused_as_a_whole(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            error = await refusal(service, run, START, CONTENT, {**END, "messageId": "other"})
            assert (error.code, error.pointer) == ("event_refused", "/events/2")
            assert error.details == {"index": 2, "rule": "not_open"}
            assert len(log_of(store, run.run_id)) == 1
            assert (await push(service, run, START)).sequences == [1], "nothing of it is remembered"
            error = await refusal(service, run, finished(run))
            assert error.details == {"index": 0, "rule": "left_open"}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("event", "at"),
    [
        ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a", "timestamp": "noon"}, "/events/1/timestamp"),
        ({"type": "TEXT_MESSAGE_CONTENT", "delta": "a"}, "/events/1/messageId"),
        ({"type": "TOOL_CALL_START", "toolCallId": "c"}, "/events/1/toolCallName"),
        ({"type": "STATE_DELTA", "delta": 5}, "/events/1/delta"),
        ({"type": 5}, "/events/1"),
        ({"messageId": "m"}, "/events/1"),
        ({**CONTENT, "eventId": ""}, "/events/1/eventId"),
        ({**CONTENT, "eventId": "x" * 257}, "/events/1/eventId"),
        ({"type": "RUN_FINISHED", "threadId": "another", "runId": "another"}, "/events/1"),
    ],
)
def test_an_event_with_a_malformed_field_is_refused_and_the_pointer_says_where(
    store: Store, event: dict[str, Any], at: str
) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            error = await refusal(service, run, START, event)
        assert (error.code, error.pointer) == ("event_refused", at)
        assert len(log_of(store, run.run_id)) == 1

    asyncio.run(scenario())


def test_what_can_be_repaired_is_repaired_with_a_note(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            result = await push(
                service,
                run,
                {"type": "RUN_STARTED", "threadId": run.thread_id, "runId": run.run_id},
                {**START, "rawEvent": None},
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "content": "generic"},
                {"type": "FROM_THE_FUTURE", "eventId": "f1", "value": 1},
                {"type": "THINKING_START", "title": "hm"},
            )
            again = await push(service, run, {"type": "FROM_THE_FUTURE", "eventId": "f1", "value": 1})
        assert result.sequences == [None, 1, 2, 3, 4]
        assert again.sequences == [3]
        assert [(note.code, note.pointer) for note in result.notes] == [
            ("run_started_dropped", "/events/0"),
            ("event_field_dropped", "/events/1/rawEvent"),
            ("event_field_mapped", "/events/2/delta"),
            ("unknown_event_type", "/events/3"),
            ("legacy_event", "/events/4/type"),
            ("event_field_dropped", "/events/4/title"),
        ]
        assert types_of(log_of(store, run.run_id))[3:] == ["RAW", "REASONING_START"]
        stored = [wire.decode(data) for _, data in store.events(run.run_id, limit=10)]
        assert stored[2] == {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "content": "generic"}
        assert stored[3] == {"type": "FROM_THE_FUTURE", "eventId": "f1", "value": 1}

    asyncio.run(scenario())


def test_what_was_pushed_comes_back_as_it_was_sent(store: Store) -> None:
    sent: list[dict[str, Any]] = [
        {**START, "colour": {"r": 255}, "sequence": 7},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a", "name": "seed", "confidence": 0.5},
        {**END, "artifactId": "x", "tags": ["a"]},
        {
            "type": "RUN_FINISHED",
            "usage": [{"inputTokens": 1, "region": "eu"}],
            "outcome": {"type": "success", "by": "me"},
        },
    ]

    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            sent[-1] |= {"threadId": run.thread_id, "runId": run.run_id}
            result = await push(service, run, *sent)
            assert {note.code for note in result.notes} == {"event_property_unknown", "event_field_dropped"}
            page = await service.events(run.run_id, None, 100)
            shown = [wire.decode(bytes(envelope))["event"] for envelope in page.events]
            assert shown[1:4] == sent[:3]
            assert shown[4].items() >= sent[3].items()

    asyncio.run(scenario())


def test_the_first_sequence_must_be_the_one_that_was_expected(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            for first in (0, 2):
                error = await refusal(service, run, START, first=first)
                assert (error.code, error.details) == ("sequence_conflict", {"head": 0})
            assert (await push(service, run, START, first=1)).head == 1

    asyncio.run(scenario())


def test_a_run_that_has_ended_takes_nothing_but_what_it_has(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            last = {**finished(run), "eventId": "end"}
            result = await push(service, run, last, finished(run))
            assert result.sequences == [1, None]
            assert [note.code for note in result.notes] == ["second_terminal"]
            assert (await push(service, run, last)).sequences == [1]
            late = await push(service, run, {"type": "RUN_ERROR", "message": "no"})
            assert (late.sequences, late.head) == ([None], 1)
            assert (await refusal(service, run, START)).code == "run_ended"
            error = await refusal(service, await begin(service), finished(run), START)
            assert error.code == "event_refused"
        whole_log(store, run.run_id)

    asyncio.run(scenario())


def test_nothing_may_come_behind_the_end_in_the_same_batch(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            error = await refusal(service, run, finished(run), START)
            assert (error.code, error.details) == ("event_refused", {"index": 1, "rule": "run_already_finished"})
            assert (await service.run(run.run_id)).status == "running"

    asyncio.run(scenario())


@pytest.mark.parametrize("ends_with", ["RUN_FINISHED", "RUN_ERROR"])
def test_an_event_of_an_unknown_type_behind_the_end_is_refused_and_the_run_can_still_end(
    store: Store, ends_with: str
) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            end = {"RUN_FINISHED": finished(run), "RUN_ERROR": {"type": "RUN_ERROR", "message": "no"}}[ends_with]
            error = await refusal(service, run, START, END, end, {"type": "FROM_THE_FUTURE"})
            assert (error.code, error.pointer) == ("event_refused", "/events/3")
            assert error.details == {"index": 3, "rule": "run_ended"}
            assert (await service.run(run.run_id)).status == "running"
            assert (await push(service, run, START, END, {"type": "FROM_THE_FUTURE"}, end)).sequences == [1, 2, 3, 4]
            assert (await service.run(run.run_id)).ended_at is not None
        assert types_of(whole_log(store, run.run_id)).count(ends_with) == 1

    asyncio.run(scenario())


def test_a_pushed_interrupt_and_a_pushed_error_set_the_status(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            asks = await begin(service)
            interrupt = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "confirmation"}]}
            await push(service, asks, finished(asks, outcome=interrupt))
            fails = await begin(service)
            await push(service, fails, START, {"type": "RUN_ERROR", "message": "no", "code": "quota"})
            asks, fails = await service.run(asks.run_id), await service.run(fails.run_id)
        assert (asks.status, [interrupt.id for interrupt in asks.interrupts]) == ("input_required", ["i"])
        assert (fails.status, fails.error_code) == ("failed", "quota")

    asyncio.run(scenario())


@pytest.mark.parametrize("outcome", [{"type": "odd"}, "odd", {}, [], 3, {"kind": "success"}])
def test_an_end_whose_outcome_cannot_be_read_is_refused(store: Store, outcome: Any) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            error = await refusal(service, run, START, END, finished(run, outcome=outcome))
            assert (error.code, error.pointer) == ("event_refused", "/events/2/outcome")
            assert error.details == {"index": 2, "rule": "event_field_dropped"}
            assert (await service.run(run.run_id)).status == "running"
            # What can be read of how a run ended counts, whatever else is there.
            asks = finished(run, outcome={"type": "interrupt", "interrupts": 5})
            assert (await push(service, run, asks)).sequences == [1]
            assert (await service.run(run.run_id)).status == "input_required"

    asyncio.run(scenario())


@pytest.mark.parametrize("outcome", [{"type": "failed"}, {"type": "error"}, {"type": "failure"}, "error"])
def test_an_end_whose_outcome_is_a_failure_completes_no_run(store: Store, outcome: Any) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            with suppress(SeatrialError):
                await push(service, run, finished(run, outcome=outcome))
            await push(service, run, ERROR)
            run = await service.run(run.run_id)
        assert run.status == "failed"
        assert types_of(whole_log(store, run.run_id))[1:] == ["RUN_ERROR"]

    asyncio.run(scenario())


def test_what_is_open_when_an_error_is_pushed_is_closed_before_it(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            last = {"type": "RUN_ERROR", "message": "no", "eventId": "end"}
            result = await push(service, run, START, last)
            assert (result.sequences, result.head) == ([1, 3], 3)
            assert (await push(service, run, last)).sequences == [3]
        assert types_of(whole_log(store, run.run_id))[1:] == ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_ERROR"]

    asyncio.run(scenario())


def test_a_pushed_run_is_concluded_as_one_that_the_server_drives(store: Store) -> None:
    call: list[dict[str, Any]] = [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "FROM_THE_FUTURE", "value": 1},
    ]

    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            await push(service, run, *call)
            await push(service, run, {"type": "RUN_STARTED"}, finished(run), finished(run))
        record = store.run(run.run_id)
        assert [step.name for step in record.steps] == ["look"]
        assert record.completeness is not None
        assert record.completeness.level == "partial"
        assert record.reading is not None
        noted = [(note.code, note.pointer) for note in record.reading.notes]
        assert ("unknown_event_type", "/4") in noted
        assert ("second_terminal", "") in noted

    asyncio.run(scenario())


def test_a_secret_that_is_pushed_in_pieces_is_not_completed_in_the_store(store: Store) -> None:
    secrets = Secrets({"KEY": "hunter2"})
    whole, begun, rest = [{**CONTENT, "delta": text} for text in ("my key is hunter2", "it is hun", "ter2, yes")]

    async def scenario() -> None:
        async with running(store, secrets=secrets) as service:
            run = await begin(service)
            await push(service, run, START, whole, begun)
            error = await refusal(service, run, rest)
            assert (error.code, error.details) == ("event_refused", {"index": 0, "rule": "secret_in_pieces"})
        # A server that never saw the run knows from its log how the text ended.
        async with running(store, secrets=secrets) as service:
            assert (await refusal(service, run, rest)).details == {"index": 0, "rule": "secret_in_pieces"}
            assert (await push(service, run, {**CONTENT, "delta": "ter"}, END, finished(run))).head == 6
        log = b"".join(data for _, data in store.events(run.run_id))
        assert b"hunter2" not in log
        assert b"${KEY}" in log

    asyncio.run(scenario())


SECRET = "sk/live-" + "0123456789" * 10


@pytest.mark.parametrize(
    "event",
    [{"type": SECRET}, {**START, SECRET: 1}, {**START, SECRET: {"a": 1}}],
    ids=["type", "property", "property with an object"],
)
def test_the_answer_to_a_push_quotes_no_secret(store: Store, event: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with running(store, secrets=Secrets({"KEY": SECRET})) as service:
            run = await begin(service)
            answer = wire.encode(await push(service, run, event)).decode()
        assert "${KEY}" in answer
        assert "live-0123" not in answer

    asyncio.run(scenario())


ERROR = {"type": "RUN_ERROR", "message": "no", "code": "quota"}
CANCELLED = {"outcome": {"type": "cancelled"}}


@pytest.mark.parametrize(
    ("ends", "kept", "status"),
    [
        (["finished", "error"], 1, "failed"),
        (["error", "finished"], 0, "failed"),
        (["finished", "cancelled"], 1, "cancelled"),
        (["cancelled", "finished", "error"], 2, "failed"),
        (["finished", "finished"], 0, "completed"),
        (["error", "error"], 0, "failed"),
    ],
)
def test_of_the_ends_that_are_pushed_at_once_the_worst_counts(
    store: Store, ends: list[str], kept: int, status: str
) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            known = {"finished": finished(run), "cancelled": finished(run, **CANCELLED), "error": ERROR}
            batch = [START, CONTENT, END, *({**known[end], "eventId": f"e{at}"} for at, end in enumerate(ends))]
            result = await push(service, run, *batch)
            assert result.sequences == [1, 2, 3, *(4 if at == kept else None for at in range(len(ends)))]
            assert [note.code for note in result.notes] == ["second_terminal"] * (len(ends) - 1)
            # Pushed again, it is the same run.
            assert (await push(service, run, *batch[3:])).sequences == result.sequences[3:]
            run = await service.run(run.run_id)
        assert run.status == status
        assert store.run(run.run_id).status == status
        assert types_of(whole_log(store, run.run_id))[-1] == {"failed": "RUN_ERROR"}.get(status, "RUN_FINISHED")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("result", "status", "level"),
    [
        ({"status": "failed", "error": "no"}, "failed", None),
        ({"status": "timeout", "error": {"message": "no"}}, "failed", None),
        ({"status": "error", "exception": "no"}, "failed", None),
        ({"outcome": "failed", "error": "no"}, "failed", None),
        ({"status": "failed"}, "completed", "partial"),
        ({"outcome": "failed"}, "completed", "partial"),
        ({"success": False}, "completed", "partial"),
        ({"error": "no"}, "completed", "partial"),
        ({"status": "completed", "error": None}, "completed", "complete"),
        ({"answer": 42}, "completed", "complete"),
        ("failed", "completed", "complete"),
    ],
    ids=str,
)
def test_a_pushed_end_whose_result_says_that_the_run_failed_does_not_complete_it(
    store: Store, result: Any, status: str, level: str | None
) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            for ends in ([{"result": result}], [{}, {"result": result}], [{"result": result}, {}]):
                run = await begin(service)
                await push(service, run, START, CONTENT, END, *[finished(run, **end) for end in ends])
                run = await service.run(run.run_id)
                record = store.run(run.run_id)
                assert (run.status, record.status) == (status, status)
                assert (record.fault is None) == (status == "completed")
                assert run.error_code == (None if status == "completed" else "agent_reported_error")
                if level is not None:
                    assert record.completeness is not None
                    assert record.completeness.level == level

    asyncio.run(scenario())


def test_what_is_pushed_between_two_ends_is_refused(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            error = await refusal(service, run, finished(run), START, ERROR)
            assert (error.code, error.details) == ("event_refused", {"index": 1, "rule": "run_ended"})
            assert (await push(service, run, START, END, finished(run))).sequences == [1, 2, 3]

    asyncio.run(scenario())


def test_the_record_of_a_pushed_run_says_that_a_secret_was_removed(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, secrets=Secrets({"KEY": "hunter2"})) as service:
            run = await begin(service)
            await push(service, run, START, {**CONTENT, "delta": "it is hunter2"}, END)
            await push(service, run, finished(run))
        kept = store.run(run.run_id)
        assert kept.reading is not None
        assert [(note.code, note.pointer) for note in kept.reading.notes] == [("secret_removed", "/answer")]
        assert kept.reading.transcript.final_text() == "it is ${KEY}"

    asyncio.run(scenario())


def test_a_pushed_run_is_cancelled_by_whoever_is_asked(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            await push(service, run, START)
            run = await service.cancel(run.run_id)
            assert run.status == "cancelled"
            assert (await refusal(service, run, CONTENT)).code == "run_ended"
        assert types_of(whole_log(store, run.run_id))[-2:] == ["TEXT_MESSAGE_END", "RUN_FINISHED"]

    asyncio.run(scenario())


def test_a_pushed_run_that_goes_silent_is_ended_and_one_that_does_not_is_not(store: Store) -> None:
    class Clock(SystemClock):
        """Goes on when it is told to, and counts who looks at it: those who look for silent runs."""

        def __init__(self) -> None:
            self.passed_s = 0.0
            self.looks = 0

        def monotonic_s(self) -> float:
            self.looks += 1
            return self.passed_s

    async def scenario() -> None:
        clock = Clock()
        async with running(store, push_idle_s=40, clock=clock) as service:
            silent, lively = await begin(service), await begin(service)
            await push(service, silent, START)
            await push(service, lively, START)
            async with asyncio.timeout(60):
                while (await service.run(silent.run_id)).ended_at is None:
                    await push(service, lively, CONTENT)
                    clock.passed_s += 10
                    looks = clock.looks
                    while clock.looks < looks + 4:  # two for a time that they look, so that one of them is a whole one
                        await asyncio.sleep(0.01)
            assert clock.passed_s >= 40
            assert (await service.run(lively.run_id)).status == "running"
            silent = await service.run(silent.run_id)
        assert (silent.status, silent.error_code) == ("failed", "push_timeout")
        assert types_of(whole_log(store, silent.run_id))[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]

    asyncio.run(scenario())


def test_pushed_runs_outlive_their_server(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            await push(service, run, START)
        async with running(store) as service:
            assert (await push(service, run, END, finished(run), first=2)).sequences == [2, 3]
        whole_log(store, run.run_id)

    asyncio.run(scenario())


def test_events_of_a_run_that_a_server_drives_cannot_be_pushed(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, {"agent": lambda prompt: "ok"}) as service:
            run = await ask(service)
            assert (await refusal(service, run, START)).code == "conflict"
            await ended(service, run.run_id)
            with pytest.raises(SeatrialError) as error:
                await service.push("nobody", PushEvents(events=[START]))
        assert error.value.code == "not_found"

    asyncio.run(scenario())


def test_pushes_at_the_same_time_all_have_their_place(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            custom = {"type": "CUSTOM", "name": "n", "value": 0}
            results = await asyncio.gather(*[push(service, run, custom, custom) for _ in range(20)])
        assert sorted(sequence or 0 for result in results for sequence in result.sequences) == list(range(1, 41))

    asyncio.run(scenario())


def test_what_is_forgotten_of_a_run_is_read_again(store: Store) -> None:
    async def scenario() -> None:
        async with running(store) as service:
            service._pushes = Pushes(service._context, runs=2, event_ids=3)
            runs = [await begin(service) for _ in range(4)]
            for number in range(3):
                for run in runs:
                    event = {"type": "CUSTOM", "name": "n", "value": 0, "eventId": f"e{number}"}
                    for _ in range(2):
                        assert (await push(service, run, event)).sequences == [number + 1]
            assert len(service._pushes._known) <= 2

    asyncio.run(scenario())


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    with database(postgres_server) as url:
        yield url


def test_two_servers_take_events_of_one_run(postgres: str) -> None:
    async def scenario() -> None:
        with open_store(postgres) as here, open_store(postgres) as there:
            async with running(here) as one, running(there) as two:
                run = await begin(one)
                for number in range(10):
                    event = {"type": "CUSTOM", "name": "n", "value": number, "eventId": f"e{number}"}
                    results = await asyncio.gather(push(one, run, event), push(two, run, event))
                    assert [result.sequences for result in results] == [[number + 1], [number + 1]]
                await asyncio.gather(
                    *[push(server, run, {"type": "CUSTOM", "name": "x", "value": 0}) for server in (one, two) * 3]
                )
                assert (await push(two, run, finished(run))).sequences == [17]
                assert (await refusal(one, run, START)).code == "run_ended"
            whole_log(here, run.run_id)

    asyncio.run(scenario())


batches = st.lists(
    st.lists(
        st.one_of(events(), events_of(t.TextMessageChunk), events_of(t.TextMessageStart), events_of(t.TextMessageEnd)),
        min_size=1,
        max_size=6,
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(batches=batches)
def test_whatever_is_pushed_the_log_is_legal_and_without_gaps(batches: list[list[t.Event]], shared: Store) -> None:
    async def scenario() -> None:
        async with running(shared) as service:
            run = await begin(service)
            for batch in batches:
                bodies = [as_json(event) for event in batch]
                for body in bodies:
                    if body["type"] == "RUN_FINISHED":
                        body.update(threadId=run.thread_id, runId=run.run_id)
                before = len(log_of(shared, run.run_id))
                refused: SeatrialError | None = None
                result = None
                try:
                    result = await push(service, run, *bodies)
                except SeatrialError as error:
                    refused = error
                after = len(log_of(shared, run.run_id))
                if result is not None:
                    assert result.head == after - 1
                if refused is not None:
                    assert refused.code in ("event_refused", "run_ended", "idempotency_conflict")
                    assert after == before
            await service.cancel(run.run_id)
        whole_log(shared, run.run_id)

    asyncio.run(scenario())


@pytest.mark.parametrize(("size", "beside"), [(1_000, False), (1_000_000, True)])
def test_a_large_event_is_looked_at_beside_the_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch, size: int, beside: bool
) -> None:
    threads: list[threading.Thread] = []

    def recordable(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return recording.recordable(*arguments)

    monkeypatch.setattr("seatrial.server.push.recordable", recordable)

    async def scenario() -> None:
        async with running(store) as service:
            run = await begin(service)
            event = {"type": "CUSTOM", "name": "a", "value": "x" * size}
            await service.push(run.run_id, PushEvents(events=[event]), size)

    asyncio.run(scenario())
    assert [thread is not threading.current_thread() for thread in threads] == [beside]
