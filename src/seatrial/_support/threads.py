"""Threads for functions that block.

Not the threads of an executor: those are waited for when the process ends, and a function of others may never return.
"""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from types import FrameType
from typing import Any, TypeAlias, TypeVar, cast

T = TypeVar("T")

_Job: TypeAlias = tuple["_Call", "asyncio.Future[Any]"]


CALL = "call-of-"
"""What the names of the threads begin with."""


class InterruptedCallError(SystemExit):
    """Raised inside a function that nobody waits for any more. Not an `Exception`, which functions catch and ignore."""


def interrupt(thread_id: int) -> None:
    """Raise `InterruptedCallError` in a thread, as soon as it runs Python code: not while it is in a call to C."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(InterruptedCallError))


_RECURSION_LIMIT = sys.getrecursionlimit()


def restore_recursion_limit() -> bool:
    """Undo it when a function has lowered the limit, which counts for the whole process; whether it had."""
    lowered = sys.getrecursionlimit() < _RECURSION_LIMIT
    if lowered:
        sys.setrecursionlimit(_RECURSION_LIMIT)
    return lowered


def taken_elsewhere(number: int, frame: FrameType | None) -> None:
    """The handler of a signal that a thread or another process takes. It raises nothing."""


def ends_us(error: BaseException, *, ran_here: bool) -> bool:
    """Whether what came out of a function of others was not raised by it, but is there to end what called it: it was
    cancelled, its coroutine was closed, or somebody pressed Ctrl-C. `ran_here` is whether the function ran in this
    thread."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        # What we waited for was closed before us, and by itself; a function's own comes through frames of its own.
        return error.__traceback__ is None or error.__traceback__.tb_next is None
    if isinstance(error, KeyboardInterrupt):
        # Python raises it in the main thread, and only where the handler does.
        is_main = threading.current_thread() is threading.main_thread()
        return ran_here and is_main and signal.getsignal(signal.SIGINT) is not taken_elsewhere
    return False


class _Call:
    """A function, and the thread that runs it while it does."""

    __slots__ = ("_function", "_given_up", "_lock", "_thread_id")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._thread_id: int | None = None
        self._given_up = False

    def __call__(self) -> Any:
        with self._lock:
            if self._given_up:  # while the thread was starting, which takes a while on a busy machine
                raise InterruptedCallError
            self._thread_id = threading.get_ident()
        try:
            return self._function()
        finally:
            restore_recursion_limit()
            with self._lock:
                self._thread_id = None

    def interrupt(self) -> None:
        with self._lock:
            self._given_up = True
            if self._thread_id is not None:
                interrupt(self._thread_id)


class Threads:
    """As many threads as there are calls at once. A call that nobody waits for any more keeps its thread to itself."""

    def __init__(self, name: str = "seatrial") -> None:
        """`name` says whose calls they are, where a thread does not end."""
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._idle = 0
        self._started = 0

    async def call(self, function: Callable[[], T], *, interrupts: bool = False) -> T:
        """What the function returns, or raises. With `interrupts`, it is ended when nobody waits for it any more, not
        in a call to C; this must then be the only call."""
        future: asyncio.Future[tuple[T, None] | tuple[None, BaseException]] = self._loop.create_future()
        if self._idle:
            self._idle -= 1
        else:
            self._started += 1
            threading.Thread(target=self._work, name=f"{CALL}{self._name}-{self._started}", daemon=True).start()
        context = copy_context()
        call = _Call(lambda: context.run(function))
        self._jobs.put((call, future))
        try:
            value, error = await future
        except asyncio.CancelledError:
            if interrupts:
                call.interrupt()
            raise
        if error is not None:
            # A coroutine cannot raise it as it is.
            if isinstance(error, StopIteration):
                raise RuntimeError(f"the function raised StopIteration: {error}")
            raise error
        return cast("T", value)

    def close(self) -> None:
        """Let the threads go that have nothing to do, and the others when they are done."""
        for _ in range(self._started):
            self._jobs.put(None)

    def _work(self) -> None:
        with suppress(InterruptedCallError):  # of a function that had just ended
            self._work_off()

    def _work_off(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = function(), None
            except BaseException as error:  # noqa: BLE001 - it is handed to the waiter, whatever it is
                outcome = None, error
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._done, future, outcome)

    def _done(self, future: asyncio.Future[Any], outcome: tuple[Any, BaseException | None]) -> None:
        self._idle += 1
        if not future.done():
            # Not as its exception: a GeneratorExit of a future closes every coroutine that waits for it.
            future.set_result(outcome)
