"""Work on large answers holds up neither the loop nor the store."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

from seatrial.agents.off_loop import READERS, off_loop
from seatrial.formats.chat.limits import LARGE_BYTES


def test_answers_that_take_long_to_read_leave_the_threads_of_others_free() -> None:
    release = threading.Event()
    at_work: set[int] = set()

    def read() -> None:
        at_work.add(threading.get_ident())
        release.wait()

    async def play() -> str:
        readings = [asyncio.create_task(off_loop(LARGE_BYTES, read)) for _ in range(50)]
        await asyncio.sleep(0)
        try:
            return await asyncio.to_thread(lambda: "stored")
        finally:
            release.set()
            await asyncio.gather(*readings)

    assert asyncio.run(play()) == "stored"
    assert 1 <= len(at_work) <= READERS
    assert threading.get_ident() not in at_work


def test_small_work_is_done_at_once_and_large_work_knows_its_context() -> None:
    place: ContextVar[str] = ContextVar("place")

    async def play() -> tuple[int, int, str]:
        place.set("here")
        small = await off_loop(LARGE_BYTES - 1, threading.get_ident)
        return small, await off_loop(LARGE_BYTES, threading.get_ident), await off_loop(LARGE_BYTES, place.get)

    small, large, context = asyncio.run(play())
    assert small == threading.get_ident() != large
    assert context == "here"
