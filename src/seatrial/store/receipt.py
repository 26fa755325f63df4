"""Receipts: what a caller holds while its write is on the way to the disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterable
from typing import Any, Generic, TypeVar, cast

from seatrial.errors import SeatrialError

T = TypeVar("T")

# Taken for a few instructions only: when somebody starts to wait, and once for each committed group.
_lock = threading.Lock()


class Receipt(Generic[T]):
    """Kept once the write has been committed. Wait for it with `await receipt` or `receipt.wait()`, or not at all."""

    __slots__ = ("_error", "_value", "_waiters", "done")

    def __init__(self) -> None:
        self.done = False
        """Whether the write has been committed, or has failed for good."""
        self._value: T | None = None
        self._error: SeatrialError | None = None
        self._waiters: list[asyncio.Future[None] | threading.Event] = []

    def result(self) -> T:
        """What the write gave; raises what it failed with. Only for a receipt that is done."""
        if not self.done:
            raise RuntimeError("the receipt is not done: await it, or call wait()")
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def wait(self, timeout: float | None = None) -> T:
        """Block until it is done; `TimeoutError` after so many seconds, and the write goes on."""
        if not self.done:
            event = threading.Event()
            if self._joined(event) and not event.wait(timeout):
                raise TimeoutError(f"the write was not committed within {timeout} s")
        return self.result()

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done:
            future = asyncio.get_running_loop().create_future()
            if self._joined(future):
                yield from future
        return self.result()

    def _joined(self, waiter: asyncio.Future[None] | threading.Event) -> bool:
        with _lock:
            if not self.done:
                self._waiters.append(waiter)
                return True
            return False

    def _keep(self, value: T | SeatrialError) -> list[asyncio.Future[None] | threading.Event]:
        if isinstance(value, SeatrialError):
            self._error = value
        else:
            self._value = value
        self.done = True
        return self._waiters


def keep(receipts: Iterable[tuple[Receipt[Any], object]]) -> None:
    """Settle receipts, each with its value or its error; every event loop among the waiters is woken once."""
    sleeping: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    with _lock:
        waiters = [waiter for receipt, value in receipts for waiter in receipt._keep(value)]
    for waiter in waiters:
        if isinstance(waiter, threading.Event):
            waiter.set()
        else:
            sleeping.setdefault(waiter.get_loop(), []).append(waiter)
    for loop, futures in sleeping.items():
        try:
            loop.call_soon_threadsafe(_wake, futures)
        except RuntimeError:
            continue  # the loop was closed under its waiters: there is nobody to tell


def _wake(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():  # its task may have been cancelled meanwhile
            future.set_result(None)
