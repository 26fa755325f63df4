from __future__ import annotations

import asyncio

import pytest

from seatrial.engine.limit import MAX_PAUSE_S, RECOVER_AFTER, AdaptiveLimit


async def held(limit: AdaptiveLimit, count: int) -> list[int]:
    return [await limit.acquire() for _ in range(count)]


def test_a_refusal_halves_the_limit_and_quiet_answers_raise_it_by_one() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(16)
        limit.release(await limit.acquire(), refused=True)
        assert limit.allowed == 8
        for _ in range(RECOVER_AFTER):
            limit.release(await limit.acquire())
        assert limit.allowed == 9

    asyncio.run(scene())


def test_runs_that_were_under_way_when_the_limit_was_cut_do_not_cut_it_again() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(16)
        for ticket in await held(limit, 16):
            limit.release(ticket, refused=True)
        assert limit.allowed == 8
        limit.release(await limit.acquire(), refused=True)
        assert limit.allowed == 4

    asyncio.run(scene())


def test_the_limit_never_falls_below_one_nor_rises_above_what_was_asked_for() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(2)
        for _ in range(5):
            limit.release(await limit.acquire(), refused=True)
        assert limit.allowed == 1
        for _ in range(5 * RECOVER_AFTER):
            limit.release(await limit.acquire())
        assert limit.allowed == 2

    asyncio.run(scene())


def test_places_go_to_those_who_waited_longest_and_never_to_more_than_are_allowed() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(2)
        order: list[int] = []
        most = 0

        async def work(number: int) -> None:
            nonlocal most
            ticket = await limit.acquire()
            order.append(number)
            most = max(most, limit.active)
            await asyncio.sleep(0)
            limit.release(ticket)

        async with asyncio.TaskGroup() as group:
            for number in range(10):
                group.create_task(work(number))
        assert order == list(range(10))
        assert most == 2
        assert limit.active == 0

    asyncio.run(scene())


@pytest.mark.parametrize("given_first", [True, False])
def test_the_place_of_one_who_was_cancelled_while_waiting_goes_to_the_next(given_first: bool) -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(1)
        ticket = await limit.acquire()
        first, second = asyncio.create_task(limit.acquire()), asyncio.create_task(limit.acquire())
        await asyncio.sleep(0)
        if given_first:
            limit.release(ticket)
            first.cancel()
        else:
            first.cancel()
            limit.release(ticket)
        await asyncio.wait_for(second, 60)
        assert limit.active == 1

    asyncio.run(scene())


def test_an_agent_that_asks_for_a_while_gets_it_up_to_a_limit() -> None:
    async def scene() -> None:
        limit = AdaptiveLimit(4)
        assert limit.pause_s() == 0
        limit.release(await limit.acquire(), refused=True, retry_after_s=7)
        assert 6 < limit.pause_s() <= 7
        limit.release(await limit.acquire(), refused=True, retry_after_s=86_400)
        assert MAX_PAUSE_S - 1 < limit.pause_s() <= MAX_PAUSE_S

    asyncio.run(scene())
