"""Receipts: waiting for writes in threads and in event loops."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from seatrial.errors import SeatrialError
from seatrial.store.writer import Receipt, keep


def test_a_receipt_gives_its_value_to_all_who_wait() -> None:
    receipt: Receipt[int] = Receipt()
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(receipt.wait(60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    keep([(receipt, 7)])
    for thread in threads:
        thread.join()
    assert got == [7, 7, 7]
    assert receipt.wait() == 7


def test_a_receipt_that_is_not_done_has_no_result() -> None:
    receipt: Receipt[int] = Receipt()
    with pytest.raises(RuntimeError):
        receipt.result()
    with pytest.raises(TimeoutError):
        receipt.wait(0.01)


def test_an_error_reaches_every_waiter() -> None:
    receipt: Receipt[int] = Receipt()
    keep([(receipt, SeatrialError("store_full", "no room"))])
    for _ in range(2):
        with pytest.raises(SeatrialError, match="no room"):
            receipt.wait()


def test_an_error_is_raised_where_it_is_awaited() -> None:
    async def main() -> None:
        receipt: Receipt[int] = Receipt()

        async def waiting() -> int:
            return await receipt

        tasks = [asyncio.ensure_future(waiting()) for _ in range(2)]
        await asyncio.sleep(0)
        keep([(receipt, SeatrialError("store_full", "no room"))])
        for task in tasks:
            with pytest.raises(SeatrialError, match="no room"):
                await task
        with pytest.raises(SeatrialError, match="no room"):
            await receipt

    asyncio.run(main())


def test_a_receipt_that_is_kept_while_somebody_begins_to_wait_is_not_missed() -> None:
    async def main() -> None:
        receipts: list[Receipt[int]] = [Receipt() for _ in range(3000)]

        def settle() -> None:
            for receipt in receipts:
                keep([(receipt, 1)])

        thread = threading.Thread(target=settle)
        thread.start()
        async with asyncio.timeout(90):
            assert sum([await receipt for receipt in receipts]) == 3000
        thread.join()

    asyncio.run(main())


def test_an_event_loop_is_woken_once_for_all_its_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        wakes: list[object] = []
        original = loop.call_soon_threadsafe

        def counted(*args: Any, **kwargs: Any) -> asyncio.Handle:
            wakes.append(args)
            return original(*args, **kwargs)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        receipts: list[Receipt[int]] = [Receipt() for _ in range(100)]

        async def waiting(receipt: Receipt[int]) -> int:
            return await receipt

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(waiting(receipt)) for receipt in receipts]
            await asyncio.sleep(0)
            thread = threading.Thread(target=keep, args=([(r, n) for n, r in enumerate(receipts)],))
            thread.start()
        thread.join()
        assert len(wakes) == 1
        return [task.result() for task in tasks]

    assert asyncio.run(main()) == list(range(100))


def test_a_cancelled_waiter_does_not_disturb_the_others() -> None:
    async def main() -> None:
        receipt: Receipt[str] = Receipt()

        async def waiting() -> str:
            return await receipt

        given_up, patient = asyncio.ensure_future(waiting()), asyncio.ensure_future(waiting())
        await asyncio.sleep(0)
        given_up.cancel()
        keep([(receipt, "kept")])
        assert await patient == "kept"
        assert await receipt == "kept"
        with pytest.raises(asyncio.CancelledError):
            await given_up

    asyncio.run(main())


def test_a_loop_that_was_closed_under_its_waiter_is_passed_over() -> None:
    receipt: Receipt[int] = Receipt()

    async def waiting() -> int:
        return await receipt

    loop = asyncio.new_event_loop()
    task = loop.create_task(waiting())
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
    keep([(receipt, 1)])
    assert receipt.wait() == 1


def test_waiting_takes_no_longer_than_the_write() -> None:
    receipt: Receipt[int] = Receipt()
    timer = threading.Timer(0.05, keep, args=([(receipt, 1)],))
    timer.start()
    started = time.monotonic()
    assert receipt.wait(60) == 1
    assert time.monotonic() - started < 30
    timer.join()
