"""What was said in a thread, folded from the logs of its runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from seatrial.api import RunInput
from seatrial.events import agui_messages as agui
from seatrial.server.conversation import Histories, History
from seatrial.store import Store
from server.running import ask, ended, running


async def counting(prompt: str, input: dict[str, Any]) -> AsyncIterator[Any]:
    """Counts in its state, and says how far it is."""
    count = input.get("count", 0) + 1
    yield {"type": "STATE_SNAPSHOT", "snapshot": {"count": count}}
    yield f"{count}"


def talk(store: Store, *given: RunInput) -> None:
    """A thread of one run for each input."""

    async def scenario() -> None:
        async with running(store, {"agent": counting}) as service:
            for each in given:
                await ended(service, (await ask(service, input=each, thread_id="t")).run_id)

    asyncio.run(scenario())


def says(text: str) -> RunInput:
    return RunInput(messages=[{"role": "user", "content": text}])


def contents(history: History) -> list[Any]:
    return [message.content for message in history.messages]


def test_runs_add_up_in_their_order(store: Store) -> None:
    talk(store, says("a"), says("b"))
    history = Histories(store).of("t", store.thread_runs("t"))
    assert contents(history) == ["a", "1", "b", "2"]
    assert history.state == {"count": 2}


def test_the_state_that_a_client_sends_takes_the_place_of_the_threads(store: Store) -> None:
    talk(store, says("a"), RunInput(messages=[{"role": "user", "content": "b"}], state={"count": 10}))
    assert Histories(store).of("t", store.thread_runs("t")).state == {"count": 11}


def test_each_log_is_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(store, says("a"), says("b"), says("c"))
    runs = store.thread_runs("t")
    histories = Histories(store)
    expected = [contents(Histories(store).of("t", runs[:count])) for count in (1, 2, 3)]
    read: list[str] = []
    events = store.events

    def counted(run_id: str, *, after: int = -1, limit: int = 1000) -> list[tuple[int, bytes]]:
        if after == -1:
            read.append(run_id)
        return events(run_id, after=after, limit=limit)

    monkeypatch.setattr(store, "events", counted)
    for count in (1, 2, 2, 3, 3):
        assert contents(histories.of("t", runs[:count])) == expected[count - 1]
    assert read == [run.run_id for run in runs]
    # Fewer than are known are folded anew, and spoil nothing.
    assert contents(histories.of("t", runs[:1])) == expected[0]
    assert contents(histories.of("t", runs)) == expected[2]


def test_what_is_folded_on_does_not_change_what_is_remembered(store: Store) -> None:
    talk(store, says("a"), says("b"))
    runs = store.thread_runs("t")
    histories = Histories(store)
    first = histories.of("t", runs[:1])
    histories.of("t", runs)
    assert isinstance(first.messages[1], agui.AssistantMessage)
    assert first.messages[1].content == "1"


def test_conversations_are_forgotten_when_there_are_too_many_or_they_are_too_long(store: Store) -> None:
    talk(store, says("a" * 1000))
    runs = store.thread_runs("t")
    few = Histories(store, threads=2)
    for name in ("x", "y", "z"):
        few.of(name, runs)
    assert list(few._known) == ["y", "z"]
    small = Histories(store, max_bytes=1500)
    small.of("x", runs)
    small.of("y", runs)
    assert list(small._known) == ["y"]
    assert small._bytes == len(small._known["y"].data)
    assert Histories(store, max_bytes=10).of("x", runs).messages


def test_events_that_are_not_kept_any_more_say_nothing(store: Store) -> None:
    talk(store, says("a"), says("b"))
    runs = store.thread_runs("t")
    store.forget_events(runs[0].run_id, store.run_head(runs[0].run_id).following).wait()
    assert "b" in contents(Histories(store).of("t", runs))


def test_a_run_that_continues_a_thread_without_all_of_its_history_says_so(store: Store) -> None:
    talk(store, says("my name is Ada"), says("b"))
    first, second = store.thread_runs("t")
    for run in (first, second):
        store.forget_events(run.run_id, store.run_head(run.run_id).following).wait()
    history = Histories(store).of("t", store.thread_runs("t"))
    assert history.expired == sum(store.events(run.run_id)[0][0] > 0 for run in (first, second)) > 0
    talk(store, says("what is my name?"))
    stored = store.run(store.thread_runs("t")[-1].run_id)
    assert stored.reading is not None
    assert "history_expired" in [note.code for note in stored.reading.notes]
    assert "history_expired" not in [note.code for note in (store.run(first.run_id).reading or stored.reading).notes]
