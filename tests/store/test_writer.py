"""The one writer: groups, failures, patience."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.runs import RunKey
from seatrial.store import Receipt, Store, open_store
from seatrial.store.database import Operation, Transaction
from seatrial.store.sqlite import SQLite
from seatrial.store.writer import Writer

CUT_OFF_OTHERS = """
    SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Marked(Operation[int]):
    """Counts how often it was carried out, and waits until it may."""

    def __init__(self, gate: threading.Event | None = None, error: Exception | None = None) -> None:
        self.gate = gate
        self.error = error
        self.tries = 0

    def run(self, to: Transaction) -> int:
        self.tries += 1
        if self.gate is not None:
            self.gate.wait(60)
        if self.error is not None:
            raise self.error
        return self.tries


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty SQLite store."""
    open_store(tmp_path / "store.db").close()
    return tmp_path / "store.db"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process, as far as SQLite can tell, in the middle of a write."""
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
    other.close()


def test_what_queues_up_during_a_commit_is_committed_together(path: Path) -> None:
    begun: list[object] = []
    dialect = SQLite(path)
    sa.event.listen(dialect._writing, "begin", begun.append)
    writer = Writer(dialect)
    gate = threading.Event()
    first = writer.submit(Marked(gate))
    others = [writer.submit(Marked()) for _ in range(200)]
    gate.set()
    assert first.wait() == 1
    assert [receipt.wait() for receipt in others] == [1] * 200
    assert len(begun) <= 3
    writer.close()
    dialect.close()


@pytest.mark.parametrize(
    "error",
    [
        SeatrialError("not_found", "no such thing"),
        sqlite3.InterfaceError("no such thing"),
        OverflowError("no such thing"),
    ],
)
def test_an_operation_that_fails_fails_alone(path: Path, error: Exception) -> None:
    dialect = SQLite(path)
    writer = Writer(dialect)
    gate = threading.Event()
    receipts = [writer.submit(Marked(gate)), writer.submit(Marked())]
    bad = writer.submit(Marked(error=error))
    receipts.append(writer.submit(Marked()))
    gate.set()
    for receipt in receipts:
        receipt.wait()
    with pytest.raises(SeatrialError, match="no such thing"):
        bad.wait()
    writer.close()
    dialect.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_ours_leaves_nobody_waiting(path: Path) -> None:
    dialect = SQLite(path)
    writer = Writer(dialect)
    gate = threading.Event()
    receipts = [writer.submit(Marked(gate)), writer.submit(Marked(error=ZeroDivisionError("bug")))]
    receipts += [writer.submit(Marked()) for _ in range(300)]
    gate.set()
    with pytest.raises(SeatrialError, match="bug"):
        receipts[1].wait(60)
    with pytest.raises(SeatrialError, match="bug"):
        receipts[-1].wait(60)
    with pytest.raises(SeatrialError, match="bug"):
        writer.submit(Marked())
    writer.close()
    dialect.close()


def test_closing_writes_what_has_queued(filled: Store, where: str) -> None:
    receipts = [filled.record_run(records.run(case)) for case in range(5)]
    filled.close()
    assert all(receipt.done for receipt in receipts)
    with open_store(where) as again:
        assert len(again.done_keys("exp-1")) == 5


def test_a_closed_store_takes_nothing_more(filled: Store) -> None:
    filled.record_run(records.run()).wait()
    filled.close()
    filled.close()
    with pytest.raises(SeatrialError) as caught:
        filled.record_run(records.run(1))
    assert caught.value.code == "store_unavailable"


def test_what_is_submitted_while_the_writer_closes_is_written_or_refused(path: Path) -> None:
    for _ in range(8):
        dialect = SQLite(path)
        writer = Writer(dialect)
        writer.submit(Marked()).wait()
        begun = threading.Event()
        receipts: list[Receipt[int]] = []

        def submit(writer: Writer = writer, begun: threading.Event = begun, to: list[Receipt[int]] = receipts) -> None:
            with suppress(SeatrialError):
                while True:
                    to.append(writer.submit(Marked()))
                    begun.set()

        threads = [threading.Thread(target=submit) for _ in range(3)]
        for thread in threads:
            thread.start()
        begun.wait(60)
        writer.close()
        for thread in threads:
            thread.join()
        assert all(receipt.done for receipt in receipts)
        dialect.close()


def test_writes_can_be_awaited(filled: Store) -> None:
    async def record(case: int) -> bool:
        return await filled.record_run(records.run(case))

    async def main() -> list[bool]:
        return await asyncio.gather(*map(record, range(5)))

    assert asyncio.run(main()) == [True] * 5


def test_a_store_that_is_locked_for_a_while_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.store.sqlite.BUSY_S", 0.2)
    with open_store(path, patience_s=120) as store:
        store.create_experiment(records.experiment(), records.cases(3))
        with locked(path):
            receipts = [store.record_run(records.run(case)) for case in range(3)]
            assert len(store.runs("exp-1")) == 0, "readers do not wait for writers"
            time.sleep(1)  # longer than SQLite itself waits
            assert not any(receipt.done for receipt in receipts)
        assert all(receipt.wait() for receipt in receipts)


def test_a_store_that_stays_locked_is_reported_and_works_afterwards(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.store.sqlite.BUSY_S", 0.05)
    with open_store(path, patience_s=0.3) as store:
        store.create_experiment(records.experiment(), records.cases(3))
        with locked(path):
            receipts = [store.record_run(records.run(case)) for case in range(2)]
            for receipt in receipts:
                with pytest.raises(SeatrialError, match="locked") as caught:
                    receipt.wait()
                assert caught.value.code == "store_unavailable"
        assert store.record_run(records.run(2)).wait()
        assert len(store.done_keys("exp-1")) == 1


def test_a_lost_connection_is_made_anew_and_nothing_is_stored_twice(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store(postgres_url) as store, psycopg.connect(postgres_url, autocommit=True) as admin:
        store.create_experiment(records.experiment(), records.cases(20))
        for case in range(20):
            key = RunKey("crew", f"case-{case}", 1)
            store.begin_run("exp-1", key, f"run-{case}").wait()
            assert store.append_events(f"run-{case}", [b"0", b"1"]).wait() == 1
            admin.execute(CUT_OFF_OTHERS)
            assert store.append_events(f"run-{case}", [b"2"]).wait() == 2
            receipt = store.record_run(records.run(case, run_id=f"run-{case}"), events=[b"3"], first=3)
            admin.execute(CUT_OFF_OTHERS)
            assert receipt.wait()
            assert [event for _, event in store.events(f"run-{case}")] == [b"0", b"1", b"2", b"3"]
        assert len(store.done_keys("exp-1")) == 20
    assert not caplog.records
