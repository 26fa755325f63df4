"""Receipts: what a caller holds while its write is on the way to the disk."""

from __future__ import annotations

import asyncio
import threading
from asyncio import get_running_loop
from collections import defaultdict
from collections.abc import Generator, Iterable
from typing import Any, Generic, TypeVar, cast

import msgspec

from seatrial.errors import SeatrialError

T = TypeVar("T")


class Receipt(msgspec.Struct, Generic[T], eq=False):
    """Kept once the write has been committed. Wait for it with `await receipt` or `receipt.wait()`, or not at all.

    There is no lock: who waits joins the waiters and then looks once more, and who keeps the receipt says so and then
    looks for waiters. So one of the two always sees the other, whichever came first.
    """

    done: bool = False
    """Whether the write has been committed, or has failed for good."""
    _waiters: list[asyncio.Future[Any] | threading.Event] = []
    _outcome: Any = None
    """What it gave, or a `SeatrialError`."""

    def result(self) -> T:
        """What the write gave; raises what it failed with. Only for a receipt that is done."""
        if not self.done:
            raise RuntimeError("the receipt is not done: await it, or call wait()")
        if isinstance(self._outcome, SeatrialError):
            raise self._outcome
        return cast("T", self._outcome)

    def wait(self, timeout: float | None = None) -> T:
        """Block until it is done; `TimeoutError` after so many seconds, and the write goes on."""
        if not self.done:
            event = threading.Event()
            self._waiters.append(event)
            if not self.done and not event.wait(timeout):
                raise TimeoutError(f"the write was not committed within {timeout} s")
        return self.result()

    def __await__(self) -> Generator[Any, None, T]:
        # The future's own iterator is the quickest there is; so it is what carries the outcome, too.
        future: asyncio.Future[T] = get_running_loop().create_future()
        if not self.done:
            self._waiters.append(future)
        if self.done:
            _wake([(future, self._outcome)])
        return future.__await__()


def keep(receipts: Iterable[tuple[Receipt[Any], object]]) -> None:
    """Settle receipts, each with its value or its error; every event loop among the waiters is woken once."""
    sleeping: defaultdict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], object]]] = defaultdict(list)
    for receipt, outcome in receipts:
        receipt._outcome = outcome
        receipt.done = True
        for waiter in receipt._waiters:
            if isinstance(waiter, threading.Event):
                waiter.set()
            else:
                sleeping[waiter.get_loop()].append((waiter, outcome))
    for loop, futures in sleeping.items():
        try:
            loop.call_soon_threadsafe(_wake, futures)
        except RuntimeError:
            continue  # the loop was closed under its waiters: there is nobody to tell


def _wake(futures: list[tuple[asyncio.Future[Any], object]]) -> None:
    for future, outcome in futures:
        if not future.done():  # its task may have been cancelled meanwhile
            if isinstance(outcome, SeatrialError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
