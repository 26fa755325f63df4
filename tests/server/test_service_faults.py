"""Exactly one end for every run, whatever happens to its agent, its server and its store."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.databases import database
from strategies.events import as_json, events, events_of, legal_runs

from seatrial.driver import recorder
from seatrial.errors import SeatrialError
from seatrial.events import types as t
from seatrial.server import service as service_module
from seatrial.server.context import ServiceContext
from seatrial.server.driving import Limits
from seatrial.server.service import RunService
from seatrial.store import Store, open_store, sqlite
from server.running import Followers, ask, ended, running, types_of, until, whole_log

OPEN = [
    {"type": "STEP_STARTED", "stepName": "plan"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "half a sen"},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "find", "delta": "{"},
]
CLOSED = ["STEP_FINISHED", "TEXT_MESSAGE_END"]


async def endless(prompt: str) -> AsyncIterator[Any]:
    for event in OPEN:
        yield event
    await asyncio.sleep(600)


async def says_all(service: RunService, store: Store, run_id: str) -> None:
    """Wait until all that `endless` says is with the store."""
    await until(service, run_id, lambda run: store.run_head(run_id).following == 1 + len(OPEN))


# Stopping


def test_a_server_that_stops_lets_running_runs_finish_and_takes_no_new_ones(store: Store) -> None:
    door = asyncio.Event()

    async def agent(prompt: str) -> str:
        await door.wait()
        return "done"

    async def while_it_stops(service: RunService, run_id: str) -> None:
        while service.ready:
            await asyncio.sleep(0.01)
        with pytest.raises(SeatrialError) as error:
            await ask(service)
        assert error.value.code == "shutting_down"
        assert (await service.run(run_id)).status == "running"
        door.set()

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ask(service)
            await until(service, run.run_id, lambda run: run.status == "running")
            beside = asyncio.create_task(while_it_stops(service, run.run_id))
        await beside
        assert store.served_run(run.run_id).status == "completed"

    asyncio.run(scenario())


def test_a_run_that_does_not_finish_in_time_is_ended_as_server_stopped(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, {"agent": endless}, drain_s=0.1) as service:
            run = await ask(service)
            await says_all(service, store, run.run_id)
            pushed = await ask(service, None, agent="outside", push=True)
        run = store.served_run(run.run_id)
        assert (run.status, run.error_code) == ("failed", "server_stopped")
        assert types_of(whole_log(store, run.run_id))[-3:] == [*CLOSED, "RUN_ERROR"]
        assert store.served_run(pushed.run_id).status == "running"

    asyncio.run(scenario())


def test_a_file_has_one_server_at_a_time(store: Store) -> None:
    async def scenario() -> None:
        async with running(store):
            with pytest.raises(SeatrialError) as error:
                async with running(store):
                    pass
            assert error.value.code == "conflict"
        async with running(store):
            pass

    asyncio.run(scenario())


# Dying

SERVER = """
import asyncio, sys
from server.running import ask, running
from server.test_service_faults import endless, says_all
from seatrial.store import open_store

async def main():
    with open_store(sys.argv[1]) as store:
        async with running(store, {"agent": endless}) as service:
            run = await ask(service, thread_id="t")
            await says_all(service, store, run.run_id)
            pushed = await ask(service, None, agent="outside", push=True)
            print(run.run_id, pushed.run_id, flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


def killed_server(where: str) -> tuple[str, str]:
    """A server that was killed in the middle of a run; the ids of that run and of a pushed one."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, where], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdout is not None
        run_id, pushed_id = process.stdout.readline().split()
        process.send_signal(signal.SIGKILL)
    return run_id, pushed_id


def assert_restarted(store: Store, run_id: str, pushed_id: str) -> None:
    run = store.served_run(run_id)
    assert (run.status, run.error_code) == ("failed", "server_restarted")
    assert types_of(whole_log(store, run_id))[-3:] == [*CLOSED, "RUN_ERROR"]
    record = store.run(run_id)
    assert record.errored
    assert record.reading is not None
    assert "half a sen" in str(record.reading.transcript.messages)
    assert store.served_run(pushed_id).status == "running"


def test_a_server_ends_the_runs_of_one_that_was_killed_before_it_is_ready(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    run_id, pushed_id = killed_server(where)

    async def scenario() -> None:
        with open_store(where) as store:
            assert store.served_run(run_id).status == "running"
            async with running(store, {"agent": lambda prompt: "ok"}) as service:
                assert_restarted(store, run_id, pushed_id)
                # Its thread is free.
                again = await ask(service, thread_id="t")
                assert (await ended(service, again.run_id)).status == "completed"

    asyncio.run(scenario())


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    with database(postgres_server) as url:
        yield url


def test_a_server_ends_the_runs_of_another_one_that_is_killed_while_it_serves(postgres: str) -> None:
    async def scenario() -> None:
        with open_store(postgres) as store:
            async with running(store) as service:
                run_id, pushed_id = await asyncio.to_thread(killed_server, postgres)
                await ended(service, run_id)
                assert_restarted(store, run_id, pushed_id)

    asyncio.run(scenario())


def test_runs_of_a_server_that_lives_are_left_alone_and_can_be_cancelled_by_another(postgres: str) -> None:
    async def scenario() -> None:
        with open_store(postgres) as here, open_store(postgres) as there:
            async with running(here, {"agent": endless}) as one, running(there) as two:
                run = await ask(one)
                await says_all(two, there, run.run_id)
                await asyncio.sleep(0.3)  # in which the other one looks several times
                assert (await two.run(run.run_id)).status == "running"
                await two.cancel(run.run_id)
                assert (await ended(two, run.run_id)).status == "cancelled"
            whole_log(here, run.run_id)

    asyncio.run(scenario())


def test_a_server_that_is_taken_for_dead_gives_its_run_up(postgres: str) -> None:
    more = asyncio.Event()

    async def agent(prompt: str) -> AsyncIterator[Any]:
        for event in OPEN:
            yield event
        await more.wait()
        yield "I am not dead."

    async def scenario() -> None:
        with open_store(postgres) as here, open_store(postgres) as there:
            # It looks too seldom to notice that its lock is gone.
            async with running(here, {"agent": agent}, sweep_every_s=60) as one:
                run = await ask(one)
                await says_all(one, here, run.run_id)
                with psycopg.connect(postgres, autocommit=True) as admin:
                    held = admin.execute("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted").fetchall()
                    for (pid,) in held:
                        admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
                async with running(there) as two:
                    assert (await ended(two, run.run_id)).error_code == "server_restarted"
                    more.set()
                    async with asyncio.timeout(60):
                        while one.active:
                            await asyncio.sleep(0.01)
            assert types_of(whole_log(here, run.run_id))[-3:] == [*CLOSED, "RUN_ERROR"]

    asyncio.run(scenario())


# The store


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store that says soon that it is locked."""
    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)
    with open_store(tmp_path / "store.db", patience_s=0.2) as store:
        yield store


@contextmanager
def locked(tmp_path: Path) -> Iterator[None]:
    """Nobody can write to the store."""
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as intruder:
        intruder.execute("BEGIN IMMEDIATE")
        yield


def test_a_run_whose_events_cannot_be_stored_ends_once_the_store_is_back(impatient: Store, tmp_path: Path) -> None:
    cleaned_up = asyncio.Event()
    go_on = asyncio.Event()

    async def agent(prompt: str) -> AsyncIterator[Any]:
        for event in OPEN:
            yield event
        await go_on.wait()
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "tence"}
        try:
            await asyncio.sleep(600)
        finally:
            cleaned_up.set()

    async def scenario() -> None:
        feeds = Followers(impatient)
        async with running(impatient, {"agent": agent}, feeds=feeds, sweep_every_s=60) as service:
            run = await ask(service)
            await says_all(service, impatient, run.run_id)
            with locked(tmp_path):
                go_on.set()
                async with asyncio.timeout(60):
                    await cleaned_up.wait()
                await asyncio.sleep(0.5)  # in which its end is tried
                assert (await service.run(run.run_id)).status == "running"
            run = await ended(service, run.run_id)
        assert (run.status, run.error_code) == ("failed", "recording_failed")
        assert types_of(whole_log(impatient, run.run_id))[-3:] == [*CLOSED, "RUN_ERROR"]
        assert feeds.over == [run.run_id]

    asyncio.run(scenario())


def test_an_end_that_cannot_be_stored_is_stored_once_the_store_is_back(impatient: Store, tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def agent(prompt: str) -> str:
        await go_on.wait()
        return "the answer"

    async def scenario() -> None:
        async with running(impatient, {"agent": agent}, sweep_every_s=60) as service:
            run = await ask(service, thread_id="t")
            await until(service, run.run_id, lambda run: run.status == "running")
            with locked(tmp_path):
                go_on.set()
                await asyncio.sleep(1.0)
                assert (await service.run(run.run_id)).status == "running"
            run = await ended(service, run.run_id)
            assert run.status == "completed"
            assert (await service.thread("t")).messages[-1]["content"] == "the answer"
        whole_log(impatient, run.run_id)

    asyncio.run(scenario())


def test_a_server_that_stops_while_its_store_is_away_leaves_its_runs_to_the_next(
    impatient: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "ENDING_S", 0.3)

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            service = await stack.enter_async_context(
                running(impatient, {"agent": endless}, drain_s=0, grace_s=0.1, sweep_every_s=60)
            )
            run = await ask(service)
            await says_all(service, impatient, run.run_id)
            with locked(tmp_path):
                await stack.aclose()
        async with running(impatient):
            # What the first one had handed over may be written as soon as the store is back; or else never.
            assert impatient.served_run(run.run_id).error_code in ("server_restarted", "server_stopped")
        whole_log(impatient, run.run_id)

    asyncio.run(scenario())


def test_an_agent_that_ignores_its_cancellation_is_cancelled_once_more_when_the_server_stops(store: Store) -> None:
    async def stubborn(prompt: str) -> str:
        for _ in range(2):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(600)
        await asyncio.sleep(600)
        return "unreachable"

    async def scenario() -> None:
        async with running(store, {"agent": stubborn}, drain_s=0, grace_s=0.1) as service:
            run = await ask(service)
            await until(service, run.run_id, lambda run: run.status == "running")
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert store.served_run(run.run_id).error_code == "server_stopped"

    asyncio.run(scenario())


def test_a_server_whose_stop_is_cancelled_leaves_no_task_behind(store: Store) -> None:
    served, cancelled = asyncio.Event(), asyncio.Event()

    async def stubborn(prompt: str) -> str:
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()
            await asyncio.sleep(600)
        return "unreachable"

    async def serve() -> None:
        async with running(store, {"agent": stubborn}, drain_s=0, grace_s=60) as service:
            run = await ask(service)
            await until(service, run.run_id, lambda run: run.status == "running")
            served.set()
            await asyncio.sleep(600)

    async def scenario() -> None:
        serving = asyncio.create_task(serve())
        await served.wait()
        serving.cancel()
        await cancelled.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_a_run_that_its_server_has_lost_is_ended(store: Store) -> None:
    async def scenario() -> None:
        async with running(store, {"agent": endless}) as service:
            run = await ask(service)
            await says_all(service, store, run.run_id)
            for task in [task for task in service._tasks if "_driven" in repr(task)]:
                task.cancel()
            run = await ended(service, run.run_id)
        assert (run.status, run.error_code) == ("failed", "internal_error")
        assert types_of(whole_log(store, run.run_id))[-3:] == [*CLOSED, "RUN_ERROR"]

    asyncio.run(scenario())


def test_an_agent_that_is_faster_than_the_store_waits_for_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_BUFFER_BYTES", 10_000)
    behind = 0
    append = ServiceContext.append

    async def counted(self: ServiceContext, run_id: str, events: Sequence[bytes], first: int) -> None:
        nonlocal behind
        behind = max(behind, sum(map(len, events)))
        await append(self, run_id, events, first)

    monkeypatch.setattr(ServiceContext, "append", counted)

    async def agent(prompt: str) -> AsyncIterator[Any]:
        for _ in range(1000):  # without ever letting go of the loop
            yield {"type": "CUSTOM", "name": "noise", "value": "x" * 1000}
        yield {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "result": "done"}

    async def scenario() -> None:
        async with running(store, {"agent": agent}) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert run.status == "completed"
        assert len(whole_log(store, run.run_id)) == 1002
        assert behind < 20_000

    asyncio.run(scenario())


@pytest.mark.parametrize("depth", [100, 400, 480, 500, 900, 980])
def test_what_is_nested_too_deeply_to_be_recorded_does_not_keep_a_run_from_ending(store: Store, depth: int) -> None:
    async def agent(prompt: str) -> AsyncIterator[Any]:
        deep = b"[" * depth + b"]" * depth
        yield b'{"type":"STATE_SNAPSHOT","snapshot":%b}\n' % deep
        yield {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": deep.decode()}

    async def scenario() -> None:
        async with running(store, {"agent": agent}, sweep_every_s=60) as service:
            run = await ended(service, (await ask(service, thread_id="t")).run_id)
            assert run.status == "completed"
            await service.thread("t")
            assert (await ended(service, (await ask(service, thread_id="t")).run_id)).ended_at is not None
        whole_log(store, run.run_id)

    asyncio.run(scenario())


def test_a_clock_that_is_set_back_breaks_nothing(store: Store) -> None:
    class Clock:
        now = 2_000_000_000_000

        def now_ms(self) -> int:
            self.now -= 1_000_000
            return self.now

        def monotonic_s(self) -> float:
            return time.monotonic()

    async def scenario() -> None:
        async with running(store, {"agent": lambda prompt: "ok"}, clock=Clock()) as service:
            run = await ended(service, (await ask(service)).run_id)
        assert run.status == "completed"
        duration = store.run(run.run_id).duration_ms
        assert duration is not None
        assert duration >= 0
        whole_log(store, run.run_id)

    asyncio.run(scenario())


# Anything


happenings = (
    st.lists(
        st.one_of(
            events(),
            *[events_of(kind) for kind in (t.TextMessageChunk, t.ToolCallChunk, t.TextMessageStart, t.StepStarted)],
        ),
        max_size=20,
    )
    | legal_runs()
)
stops = st.sampled_from(["never", "cancel", "deadline", "exception", "exit", "stop", "end", "crash"])


@settings(max_examples=60)
@given(said=happenings, stop=stops, at=st.integers(0, 20), chunked=st.booleans())
def test_whatever_an_agent_says_and_whenever_it_is_stopped_the_log_is_legal_and_has_one_end(
    said: list[t.Event], stop: str, at: int, chunked: bool, shared: Store
) -> None:
    reached: asyncio.Event

    async def agent(prompt: str) -> AsyncIterator[Any]:
        for index, event in enumerate([*said, None]):
            if index == min(at, len(said)) and stop != "never":
                reached.set()
                if stop == "exception":
                    raise ValueError("on purpose")
                if stop == "exit":
                    raise SystemExit(3)
                if stop == "end":
                    return
                await asyncio.sleep(600)
            if event is not None:
                yield as_json(event)
                if chunked:
                    await asyncio.sleep(0)

    async def scenario() -> None:
        nonlocal reached
        reached = asyncio.Event()
        limits = {"agent": Limits(deadline_s=0.02 if stop == "deadline" else 600)}
        drain_s = 0.0 if stop == "stop" else 5.0
        feeds = Followers(shared)
        async with running(
            shared, {"agent": agent}, limits=limits, drain_s=drain_s, feeds=feeds, sweep_every_s=60, grace_s=0.2
        ) as service:
            run = await ask(service)
            if stop in ("cancel", "stop", "crash"):
                waiting = asyncio.create_task(reached.wait())
                # It may have ended its run before it gets there.
                while not waiting.done() and (await service.run(run.run_id)).ended_at is None:
                    await asyncio.sleep(0.001)
                waiting.cancel()
            if stop == "cancel":
                await service.cancel(run.run_id)
            if stop == "crash":
                # Nothing is left of a server that dies but what was committed.
                for task in service._tasks:
                    task.cancel()
            elif stop != "stop":
                await ended(service, run.run_id)
        if stop == "crash":
            async with running(shared):
                pass
        ended_run = shared.served_run(run.run_id)
        assert ended_run.ended_at is not None
        log = whole_log(shared, run.run_id)
        if stop != "crash":
            assert feeds.published[run.run_id] == [data for _, data in shared.events(run.run_id)]
        assert (ended_run.status == "failed") == isinstance(log[-1], t.RunError)

    asyncio.run(scenario())
