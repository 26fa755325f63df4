"""Time limits on one timer: the same as with `asyncio.timeout`."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from strategies.unhurried import run_unhurried

from seatrial.agents.shared_timer import SharedTimer


def test_what_is_late_is_cut_off() -> None:
    async def scene() -> float:
        timer = SharedTimer()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with pytest.raises(TimeoutError), timer.timeout(0.05) as timeout:
            await asyncio.sleep(60)
        assert timeout.expired
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        await asyncio.sleep(0)  # nothing of the cancelling is left
        return loop.time() - begun

    assert 0.05 <= run_unhurried(scene()) < 1


def test_each_has_its_own_end() -> None:
    async def wait(timer: SharedTimer, end_s: float | None, wait_s: float) -> str:
        try:
            with timer.timeout(end_s):
                await asyncio.sleep(wait_s)
        except TimeoutError:
            return "cut off"
        return "done"

    async def scene() -> list[str]:
        timer = SharedTimer()
        ends: list[tuple[float | None, float]] = [(60, 0.1), (0.2, 60), (0.1, 60), (None, 0.3), (0.1, 0.05), (0, 60)]
        together = await asyncio.gather(*[wait(timer, end_s, wait_s) for end_s, wait_s in ends])
        return [*together, await wait(timer, 0.1, 60)]

    assert run_unhurried(scene()) == ["done", "cut off", "cut off", "done", "done", "cut off", "cut off"]


def test_one_timer_is_enough_for_many() -> None:
    async def scene() -> int:
        timer = SharedTimer()
        loop = asyncio.get_running_loop()
        timers = 0
        call_at = loop.call_at

        def counted(*given: Any, **named: Any) -> asyncio.TimerHandle:
            nonlocal timers
            timers += 1
            return call_at(*given, **named)

        loop.call_at = counted  # type: ignore[method-assign, assignment]

        async def work() -> None:
            with timer.timeout(60):
                await asyncio.sleep(0)

        await asyncio.gather(*[work() for _ in range(100)])
        return timers

    assert run_unhurried(scene()) == 1


def test_it_goes_on_in_another_loop() -> None:
    timer = SharedTimer()

    async def scene(end_s: float) -> bool:
        with suppress(TimeoutError), timer.timeout(end_s) as timeout:
            await asyncio.sleep(0.1)
        return timeout.expired

    assert not run_unhurried(scene(5))
    assert run_unhurried(scene(0.05))
    assert run_unhurried(scene(0.05))


def test_a_task_that_somebody_else_cancels_is_cancelled() -> None:
    async def scene() -> None:
        timer = SharedTimer()

        async def work(end_s: float) -> None:
            with timer.timeout(end_s):
                await asyncio.sleep(60)

        task = asyncio.create_task(work(60))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Also when both do in the same moment.
        task = asyncio.create_task(work(60))
        await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        timer._look(loop, loop.time() + 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_unhurried(scene())


def test_who_does_not_heed_it_goes_on_and_is_marked() -> None:
    async def scene() -> None:
        timer = SharedTimer()
        with timer.timeout(0.01) as timeout:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(60)
            await asyncio.sleep(0.1)  # it is cancelled once
        assert timeout.expired
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    run_unhurried(scene())


def test_an_error_of_its_own_stays_what_it_is() -> None:
    async def scene() -> None:
        timer = SharedTimer()
        with pytest.raises(ValueError, match="mine"), timer.timeout(60):
            raise ValueError("mine")

    run_unhurried(scene())
