"""Tasks beside a block of code."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.errors import SeatrialError
from seatrial.server.listener import alongside


def test_the_work_ends_with_the_block() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("work")

    async def scenario() -> None:
        async with alongside(work(), work()):
            await asyncio.sleep(0)
        assert ended == ["work", "work"]

    asyncio.run(scenario())


def test_an_error_of_the_block_is_raised_as_itself() -> None:
    async def scenario() -> None:
        async with alongside(asyncio.sleep(3600)):
            raise SeatrialError("conflict", "another server has the store")

    with pytest.raises(SeatrialError, match="another server"):
        asyncio.run(scenario())


def test_a_failure_of_the_work_ends_the_block_and_is_raised_as_itself() -> None:
    async def fails() -> None:
        raise SeatrialError("internal_error", "it broke")

    async def scenario() -> None:
        async with alongside(fails()):
            await asyncio.sleep(3600)

    with pytest.raises(SeatrialError, match="it broke"):
        asyncio.run(scenario())


def test_the_end_of_the_task_around_it_is_no_failure() -> None:
    async def scenario() -> None:
        async def block() -> None:
            async with alongside(asyncio.sleep(3600)):
                await asyncio.sleep(3600)

        task = asyncio.create_task(block())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
