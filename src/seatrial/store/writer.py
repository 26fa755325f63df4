"""The one writer of a process: a thread that commits together whatever has queued up.

An operation is acknowledged after its commit: then its receipt is kept. While one group is being committed the next
one gathers, so the more there is to write the larger the groups are, and nobody waits for a timer.

A group fails as a whole, so after a collision its operations are done again one at a time: each learns its own
result, and one that cannot be stored takes no other with it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio import get_running_loop
from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError, lacking
from seatrial.store.database import Database, Operation, Transaction
from seatrial.store.documents import Packer

T = TypeVar("T")

MAX_GROUP = 256
"""Operations in one transaction."""
MAX_GROUP_BYTES = 8 << 20
"""Bytes after which a group takes no further operation."""
PATIENCE_S = 30.0
"""How long a store may be locked or away before writes fail."""
MAX_COLLISIONS = 5
"""Times that another process may get in between looking and writing before an operation fails."""


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
        """Block until it is done; `TimeoutError` after so many seconds, and the write continues."""
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
            continue  # the loop was closed under its waiters


def _wake(futures: list[tuple[asyncio.Future[Any], object]]) -> None:
    for future, outcome in futures:
        if not future.done():  # its task may have been cancelled meanwhile
            if isinstance(outcome, SeatrialError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


class _OutOfPatienceError(Exception):
    """The store was locked or away for too long, for everything that waits."""

    def __init__(self, error: SeatrialError) -> None:
        super().__init__(str(error))
        self.error = error


class Writer:
    """The thread, its queue and its connection."""

    def __init__(self, dialect: Database, patience_s: float = PATIENCE_S) -> None:
        self._dialect = dialect
        self._patience_s = patience_s
        self._queue: deque[tuple[Operation[Any], Receipt[Any]]] = deque()
        self._lock = threading.Lock()
        self._idle = True
        """Whether the thread waits to be woken, or to be started."""
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread: threading.Thread | None = None
        self._closed: SeatrialError | None = None
        self._connection: sa.Connection | None = None
        self._live: dict[str, tuple[int, int]] = {}
        self._packer = Packer()

    def submit(self, operation: Operation[T]) -> Receipt[T]:
        """Queue an operation. Operations of one thread are written in the order in which it submitted them."""
        receipt: Receipt[T] = Receipt()
        # Without a lock, which would cost more than all the rest: what each side writes before it looks, the other
        # side looks at after it has written.
        closed = self._closed
        if closed is not None:
            raise closed
        self._queue.append((operation, receipt))
        if self._idle:
            self._rouse()
        if self._closed is not None:
            # Closed meanwhile: whether the thread has seen the operation is known when it has ended.
            self.close()
            if not receipt.done:
                raise self._closed
        return receipt

    def close(self) -> None:
        """Write what has queued, and end. Later operations are refused."""
        with self._lock:
            if self._closed is None:
                self._closed = SeatrialError("store_unavailable", "the store is closed")
        if self._thread is not None:
            self._rouse()
            self._thread.join()

    def _rouse(self) -> None:
        """Start the thread, or wake it; once for each time that it is idle."""
        with self._lock:
            if not self._idle:
                return
            self._idle = False
            if self._thread is not None:
                self._wake.release()
                return
            # A daemon: a program that ends without closing its store gives up what was not acknowledged yet.
            thread = threading.Thread(target=self._work, name="seatrial-writer", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self._idle = True  # a machine without memory for a thread: there is none to wait for
                raise
            self._thread = thread

    def _work(self) -> None:
        group: list[tuple[Operation[Any], Receipt[Any]]] = []
        try:
            while self._gather(group):
                self._settle(group)
                group.clear()
        except BaseException as error:
            self._give_up(group, error)
            if lacking(error) is None:
                raise  # a fault of ours, to be seen where it happened
        finally:
            self._disconnect()

    def _gather(self, group: list[tuple[Operation[Any], Receipt[Any]]]) -> bool:
        """Wait for an operation, and take it and those behind it; False when there will be none."""
        waiting = self._queue
        while not waiting:
            if self._closed is not None and not waiting:
                return False
            self._idle = True
            if waiting or self._closed is not None:
                self._rouse()  # by ourselves, unless somebody was quicker
            self._wake.acquire()
        size = 0
        while waiting and len(group) < MAX_GROUP and size < MAX_GROUP_BYTES:
            entry = waiting.popleft()
            group.append(entry)
            size += entry[0].size
        return True

    def _settle(self, group: list[tuple[Operation[Any], Receipt[Any]]]) -> None:
        operations = [operation for operation, _ in group]
        for operation in operations:
            if not operation.ready:
                operation.prepare(self._packer)
        self._packer.pack()
        values: list[object] = []
        try:
            try:
                values = self._written(operations)
            except SeatrialError:
                for operation in operations:
                    values.append(self._written_alone(operation))
        except _OutOfPatienceError as given_up:
            values += [given_up.error] * (len(group) - len(values))
        keep(zip([receipt for _, receipt in group], values, strict=True))

    def _written_alone(self, operation: Operation[Any]) -> object:
        try:
            return self._written([operation], careful=True)[0]
        except SeatrialError as error:
            return error

    def _written(self, operations: list[Operation[Any]], careful: bool = False) -> list[object]:
        """Commit these together, and again while the store is busy or away."""
        deadline = time.monotonic() + self._patience_s
        pause = 0.01
        collisions = 0
        while True:
            try:
                return self._committed(operations, careful)
            except self._dialect.errors as error:
                failure = self._dialect.failure(error)
            if failure.kind == "refused":
                raise failure.error
            if failure.kind == "conflict":
                # After looking, only another process that wrote in between can be in the way.
                collisions += 1
                if not careful or collisions == MAX_COLLISIONS:
                    raise failure.error
                continue
            if failure.kind == "lost":
                self._disconnect(lost=True)
                careful = True  # the commit may have gone through before the connection broke
                for operation in operations:
                    operation.unsure = True
            if time.monotonic() + pause > deadline:
                raise _OutOfPatienceError(failure.error)
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _committed(self, operations: list[Operation[Any]], careful: bool) -> list[object]:
        committed = False
        try:
            if self._connection is None:
                self._connection = self._dialect.connect()
            to = Transaction(self._dialect, self._connection, self._live, careful)
            values: list[object] = [operation.run(to) for operation in operations]
            to.commit()
            committed = True
        finally:
            if not committed:
                self._live.clear()
            self._end(committed)
        return values

    def _end(self, committed: bool) -> None:
        """Roll back what was not committed, and let SQLAlchemy, which sees only some statements, know of the end."""
        connection = self._connection
        if connection is None or connection.invalidated:
            return
        with suppress(*self._dialect.errors):
            if not committed:
                connection.connection.rollback()
            if connection.in_transaction():
                connection.rollback()

    def _disconnect(self, lost: bool = False) -> None:
        if self._connection is not None:
            if lost:
                self._connection.invalidate()
            self._connection.close()
            self._connection = None

    def _give_up(self, group: list[tuple[Operation[Any], Receipt[Any]]], error: BaseException) -> None:
        """The thread is about to die of a fault of ours: nobody may wait for it."""
        failure = SeatrialError("store_unavailable", f"the writer of the store broke: {error!r}")
        if (what := lacking(error)) is not None:
            hint = "raise the limit, or run fewer at once (`--concurrency`)"
            failure = SeatrialError(
                "store_unavailable", f"nothing can be stored any more: no {what} is left", hint=hint
            )
        with self._lock:
            self._closed = failure
        group.extend(self._queue)
        self._queue.clear()
        keep((receipt, failure) for _, receipt in group if not receipt.done)
