"""What must not hurt a store: death at any moment, a full disk, another process at the same work."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from strategies import records
from strategies.databases import mounted_disk, small_database
from strategies.recorder import expected

from seatrial.errors import SeatrialError
from seatrial.store import Store, open_store

TESTS = Path(__file__).parent.parent


def recorder(where: str, process: str, first: int, last: int) -> subprocess.Popen[str]:
    """Another process that records these cases."""
    return subprocess.Popen(
        [sys.executable, "-m", "strategies.recorder", where, process, str(first), str(last)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        # It gets no further than a few hundred cases ahead of whoever is to read what it says.
        pipesize=4096,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> dict[int, str]:
    """What a recorder acknowledged, as far as it came."""
    lines = process.communicate()[0].splitlines(keepends=True)
    return {int(line.split(" ", 1)[0]): line.split(" ", 1)[1].strip() for line in lines if line.endswith("\n")}


def check_whole(store: Store) -> set[int]:
    """Every run that has ended is there with all its parts; the numbers of their cases."""
    found: set[int] = set()
    for stored in store.whole_runs("exp-1"):
        case = int(str(stored.case_id).removeprefix("case-"))
        run, events = expected(case, stored.run_id.split("-")[0])
        if stored.status == "running":
            assert [event for _, event in store.events(stored.run_id)] in ([], events[:3])
            continue
        if case % 40 < 2:  # one run that was begun before and one that was not
            assert [event for _, event in store.events(stored.run_id)] == events
            assert store.run(stored.run_id) == run
        run.body = None
        assert stored == run
        found.add(case)
    return found


OTHERS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def wait_until_its_server_saw(where: str) -> None:
    """Wait until nobody is connected: PostgreSQL may be at the last commit of a client that was killed."""
    if not where.startswith("postgresql:"):
        return  # SQLite ended with the process
    with psycopg.connect(where, autocommit=True) as connection:
        for _ in range(3000):
            if connection.execute(OTHERS).fetchone() is None:
                return
            time.sleep(0.02)
    pytest.fail("a killed process was still connected after a minute")


def test_a_killed_process_leaves_whole_runs_and_all_that_it_was_told_are_stored(where: str) -> None:
    count = 2500
    with open_store(where) as store:
        store.create_experiment(records.experiment(), records.cases(count))
    dice = random.Random(7)
    done: set[int] = set()
    for life in range(3):
        process = recorder(where, f"life{life}", len(done), count)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(dice.uniform(0, 0.15))
        process.kill()
        acknowledged = set(said(process))
        wait_until_its_server_saw(where)
        with open_store(where) as store:
            done = check_whole(store)
            assert acknowledged <= done
            assert done == set(range(len(done))), "in the order in which they were recorded"
    assert 0 < len(done) < count
    with open_store(where) as store:
        # Nothing is in the way of the rest, not even what was left half begun.
        for case in range(len(done), len(done) + 60):
            run, events = expected(case, "afterlife")
            assert store.record_run(run, events=events).wait()
        assert len(check_whole(store)) == len(done) + 60


def test_two_processes_record_into_one_store(where: str) -> None:
    with open_store(where) as store:
        store.create_experiment(records.experiment(), records.cases(600))
        processes = [recorder(where, "worker", 0, 300), recorder(where, "worker", 300, 600)]
        assert [set(said(process).values()) for process in processes] == [{"stored"}, {"stored"}]
        assert check_whole(store) == set(range(600))
        assert len(store.search('"answer 599"')) == 1


def test_two_processes_at_the_same_runs_store_each_once(where: str) -> None:
    with open_store(where) as store:
        store.create_experiment(records.experiment(), records.cases(300))
        first, second = recorder(where, "port", 0, 300), recorder(where, "starboard", 0, 300)
        port, starboard = said(first), said(second)
        assert (first.returncode, second.returncode) == (0, 0)
        assert len(port) == len(starboard) == 300
        assert len(store.done_keys("exp-1")) == 300
        assert check_whole(store) == set(range(300))
        for summary in store.runs("exp-1", limit=1000):
            case = int(summary.key.case_id.removeprefix("case-"))
            winner = summary.run_id.split("-")[0]
            assert {"port": port, "starboard": starboard}[winner][case] == "stored"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    with mounted_disk(tmp_path / "disk", 3) as disk:
        yield disk


def fill(store: Store, first: int) -> tuple[int, SeatrialError]:
    """Record runs until there is no more room: how many there were, and what was said then."""
    for case in range(first, 1000):
        try:
            assert store.record_run(records.run(case, body=random.Random(case).randbytes(50_000))).wait()
        except SeatrialError as error:
            return case, error
    pytest.fail("the disk was never full")


def test_a_full_disk_is_reported_and_the_store_goes_on_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_000_000)
    with open_store(small_disk / "store.db") as store:
        store.create_experiment(records.experiment(), records.cases(1000))
        count, error = fill(store, 0)
        assert error.code == "store_full"
        assert "full" in error.message
        assert len(store.done_keys("exp-1")) == count
        with pytest.raises(SeatrialError):
            store.record_run(records.run(count, body=random.Random(0).randbytes(200_000))).wait()
        ballast.unlink()
        assert store.record_run(records.run(count)).wait()
    with open_store(small_disk / "store.db") as store:
        assert len(store.done_keys("exp-1")) == count + 1
        assert store.run("run-crew-case-3-1").body == random.Random(3).randbytes(50_000)


def test_a_full_disk_of_a_database_server_is_reported_and_the_store_goes_on_when_there_is_room(
    postgres_server: str,
) -> None:
    with small_database(postgres_server, 24) as (url, disk):
        ballast = disk / "ballast"
        with open_store(url) as store:
            store.create_experiment(records.experiment(), records.cases(1000))
            # On a connection that is kept: after a vacuum, a new one has to write a file before it can read.
            assert store.done_keys("exp-1") == {}
            ballast.write_bytes(b"x" * 5_000_000)
            count, error = fill(store, 0)
            assert error.code == "store_full"
            assert "No space left" in error.message
            assert "free some space" in (error.hint or "")
            assert len(store.done_keys("exp-1")) == count
            ballast.unlink()
            assert store.record_run(records.run(count)).wait()
        with open_store(url) as store:
            assert len(store.done_keys("exp-1")) == count + 1
            assert store.run("run-crew-case-3-1").body == random.Random(3).randbytes(50_000)


def test_a_file_that_may_not_grow_is_reported_like_a_full_disk(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        store.create_experiment(records.experiment(), records.cases(1000))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, before[1]))
        try:
            count, error = fill(store, 0)
            assert len(store.done_keys("exp-1")) == count
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert error.code == "store_full"
        assert store.record_run(records.run(count)).wait()
        assert len(store.done_keys("exp-1")) == count + 1
