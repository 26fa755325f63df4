"""Cutting off what goes on after its time: as `asyncio.timeout` does, only not to the millisecond."""

from __future__ import annotations

import asyncio

import pytest
from strategies.unhurried import run_unhurried

from seatrial.engine.watch import LOOK_S, Watch


def test_what_is_late_is_cut_off_soon_after_its_end() -> None:
    async def scene() -> float:
        watch = Watch()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with pytest.raises(TimeoutError), watch.after(0.05) as overtime:
            await asyncio.sleep(60)
        assert overtime.expired
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        await asyncio.sleep(0)  # nothing of the cancelling is left
        return loop.time() - begun

    assert 0.05 <= run_unhurried(scene()) <= 0.05 + 2 * LOOK_S


def test_each_has_its_own_end() -> None:
    async def wait(watch: Watch, end_s: float | None, wait_s: float) -> str:
        try:
            with watch.after(end_s):
                await asyncio.sleep(wait_s)
        except TimeoutError:
            return "cut off"
        return "done"

    async def scene() -> list[str]:
        watch = Watch()
        first = await asyncio.gather(wait(watch, 0.1, 60), wait(watch, 60, 0.1), wait(watch, None, 1.5))
        await asyncio.sleep(2 * LOOK_S)  # by now it has stopped looking
        return [*first, await wait(watch, 0.1, 60)]

    assert run_unhurried(scene()) == ["cut off", "done", "done", "cut off"]


def test_a_task_that_somebody_else_cancels_is_cancelled() -> None:
    async def scene() -> None:
        watch = Watch()

        async def work(end_s: float) -> None:
            with watch.after(end_s):
                await asyncio.sleep(60)

        task = asyncio.create_task(work(60))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Also when both do in the same moment.
        task = asyncio.create_task(work(0.01))
        await asyncio.sleep(0.02)
        watch._look(asyncio.get_running_loop())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_unhurried(scene())


def test_who_does_not_heed_it_goes_on_and_is_marked() -> None:
    async def scene() -> None:
        watch = Watch()
        with watch.after(0.01) as overtime:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(60)
            await asyncio.sleep(2 * LOOK_S)  # it is cancelled once
        assert overtime.expired
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    run_unhurried(scene())


def test_an_error_of_its_own_stays_what_it_is() -> None:
    async def scene() -> None:
        watch = Watch()
        with pytest.raises(ValueError, match="mine"), watch.after(60):
            raise ValueError("mine")

    run_unhurried(scene())
