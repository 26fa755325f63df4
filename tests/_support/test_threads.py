"""Threads for functions that block, and that may never return."""

from __future__ import annotations

import asyncio
import threading

import pytest

from seatrial._support.threads import Threads


def test_results_and_exceptions_come_back() -> None:
    async def play() -> None:
        threads = Threads()
        assert await threads.call(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await threads.call(lambda: 1 // 0)
        threads.close()

    asyncio.run(play())


def test_threads_are_used_again() -> None:
    async def play() -> set[str]:
        threads = Threads()
        names = {await threads.call(lambda: threading.current_thread().name) for _ in range(50)}
        threads.close()
        return names

    assert len(asyncio.run(play())) == 1


def test_as_many_calls_go_on_at_once_as_are_made() -> None:
    async def play() -> None:
        threads = Threads()
        barrier = threading.Barrier(40)
        await asyncio.gather(*[threads.call(lambda: barrier.wait(60)) for _ in range(40)])
        threads.close()

    asyncio.run(play())


def test_a_call_that_nobody_waits_for_any_more_does_not_block_others() -> None:
    async def play() -> None:
        threads = Threads()
        release = threading.Event()
        hanging = asyncio.ensure_future(threads.call(lambda: release.wait(60)))
        await asyncio.sleep(0.05)
        hanging.cancel()
        assert await threads.call(lambda: "free") == "free"
        release.set()
        await asyncio.sleep(0.05)
        assert await threads.call(lambda: "again") == "again"
        threads.close()

    asyncio.run(play())


def test_a_call_that_is_given_up_before_its_thread_gets_going_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    made = []

    class Late(threading.Thread):
        def run(self) -> None:
            go_on.wait(60)
            super().run()

    monkeypatch.setattr("seatrial._support.threads.threading.Thread", Late)

    async def play() -> None:
        threads = Threads()
        calling = asyncio.ensure_future(threads.call(lambda: made.append("called"), interrupts=True))
        await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        threads.close()

    before = set(threading.enumerate())
    asyncio.run(play())
    (late,) = set(threading.enumerate()) - before
    go_on.set()
    late.join(60)
    assert not late.is_alive()
    assert made == []


def test_a_call_that_ends_after_the_loop_is_closed_harms_nobody() -> None:
    before = set(threading.enumerate())
    release = threading.Event()

    async def play() -> None:
        threads = Threads()
        hanging = asyncio.ensure_future(threads.call(lambda: release.wait(60)))
        await asyncio.sleep(0.05)
        hanging.cancel()
        threads.close()

    asyncio.run(play())
    (left,) = set(threading.enumerate()) - before
    release.set()
    left.join(60)
    assert not left.is_alive()
