"""The loop that agents run in while tests go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from seatrial._support.portal import Portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    yield portal
    portal.close()


async def where() -> tuple[asyncio.AbstractEventLoop, int]:
    return asyncio.get_running_loop(), threading.get_ident()


def test_all_work_is_done_in_one_loop_of_another_thread(portal: Portal) -> None:
    loop, thread = portal.run(where())
    assert portal.run(where()) == (loop, thread)
    assert thread != threading.get_ident()


def test_work_can_be_waited_for_inside_another_loop(portal: Portal) -> None:
    async def test() -> bool:
        return (await asyncio.wrap_future(portal.submit(where())))[0] is not asyncio.get_running_loop()

    assert asyncio.run(test())


def test_what_the_work_raises_reaches_the_waiting_test(portal: Portal) -> None:
    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        portal.run(fails())


def test_closing_cancels_what_still_runs() -> None:
    portal = Portal()
    ended = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    future = portal.submit(forever())
    portal.run(where())
    portal.close()
    assert ended.is_set()
    assert future.cancelled()
