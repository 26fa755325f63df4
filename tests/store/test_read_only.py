"""A store that cannot be written can be read, and one that cannot be read as it is says what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from strategies import records
from strategies.databases import database, mounted_disk

from seatrial.cli import main
from seatrial.errors import SeatrialError
from seatrial.reports import stored_report
from seatrial.store import Store, open_store
from seatrial.store.open import _dialect, migrate

REPORT = """
import os, sys
from seatrial.cli import main
import seatrial.cli.commands.report, seatrial.store.sqlite
# While this Python can be read: as another user it may not be.
from seatrial.reports import *
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
raise SystemExit(main(["report", "latest", "--json", "--store", sys.argv[1]]))
"""


def fill(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(2))
    for case in range(2):
        store.record_run(records.run(case)).wait()


def passed(where: str | Path) -> int:
    with open_store(where, read_only=True) as store:
        return stored_report(store, "latest").summary.passed


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "disk", 20) as mounted:
        yield mounted


def forbid_writing(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def test_a_file_on_a_disk_that_is_read_only_is_reported_on_and_nothing_is_stored(disk: Path) -> None:
    with open_store(disk / "store.db") as store:
        fill(store)
    forbid_writing(disk)
    assert passed(disk / "store.db") == 2
    with open_store(disk / "store.db", read_only=True) as store, pytest.raises(SeatrialError) as caught:
        store.create_experiment(records.experiment("other"), [])
    assert caught.value.code == "store_unavailable"
    with pytest.raises(SeatrialError) as caught, open_store(disk / "store.db") as store:
        store.create_experiment(records.experiment("other"), [])
    assert caught.value.code == "store_unavailable"


def test_a_file_whose_log_is_not_merged_is_read_as_it_is_or_says_what_to_do(disk: Path, tmp_path: Path) -> None:
    with open_store(disk / "store.db") as store:
        fill(store)
        copies = [shutil.copy(path, tmp_path) for path in disk.iterdir() if not path.name.endswith("-shm")]
        assert any(path.endswith("-wal") for path in map(str, copies))
    for copy in copies:
        shutil.copy(copy, disk)
    assert passed(tmp_path / "store.db") == 2
    forbid_writing(disk)
    with pytest.raises(SeatrialError, match=r"store\.db-wal") as caught:
        passed(disk / "store.db")
    assert caught.value.hint is not None
    assert "copy both files" in caught.value.hint


@pytest.mark.parametrize("directory", [0o755, 0o555])
def test_a_file_of_somebody_else_is_reported_on(directory: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="seatrial-test-"))
    try:
        with open_store(folder / "store.db") as store:
            fill(store)
        (folder / "store.db").chmod(0o444)
        folder.chmod(directory)
        done = subprocess.run(
            [sys.executable, "-c", REPORT, str(folder / "store.db")], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["summary"]["passed"] == 2
        assert [path.name for path in folder.iterdir()] == ["store.db"], "nothing was made beside it"
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_database_that_takes_no_writes_is_reported_on(postgres_server: str) -> None:
    with database(postgres_server) as url:
        with open_store(url) as store:
            fill(store)
        with psycopg.connect(url, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        assert passed(url) == 2
        with open_store(url) as store, pytest.raises(SeatrialError) as caught:
            store.create_experiment(records.experiment("other"), [])
        assert caught.value.code == "store_unavailable"
        assert "read-only" in caught.value.message
        assert caught.value.hint is not None


def of_version(where: str, version: str) -> None:
    dialect = _dialect(where, create=True)
    with dialect.migrating() as connection:
        migrate(connection, dialect, version)
    dialect.close()


def test_a_store_of_an_older_version_that_can_be_read_is_not_changed(
    nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.store.open.READABLE_FROM", "0001")
    of_version(nowhere, "0001")
    with open_store(nowhere, read_only=True) as store:
        assert store.experiments() == []
    dialect = _dialect(nowhere, create=True)
    with dialect.reading.connect() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM seatrial_version").scalar() == "0001"
    dialect.close()


def test_a_store_that_is_too_old_to_be_read_as_it_is_needs_a_migration(nowhere: str) -> None:
    of_version(nowhere, "0004")
    with pytest.raises(SeatrialError, match="needs a migration") as caught:
        open_store(nowhere, read_only=True)
    assert caught.value.code == "store_outdated"
    open_store(nowhere).close()
    open_store(nowhere, read_only=True).close()


def test_a_report_brings_an_old_store_up_to_date_or_says_that_it_cannot(
    disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = str(disk / "store.db")
    of_version(where, "0004")
    forbid_writing(disk)
    assert main(["report", "latest", "--store", where]) == 3
    assert "needs a migration" in capsys.readouterr().err
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert main(["report", "latest", "--store", where]) == 2
    assert "no experiment" in capsys.readouterr().err


def test_to_read_makes_no_store(nowhere: str, tmp_path: Path) -> None:
    with pytest.raises(SeatrialError) as caught:
        open_store(nowhere, read_only=True)
    assert caught.value.code == "not_found"
    assert list(tmp_path.iterdir()) == []
    if "://" not in nowhere:
        Path(nowhere).write_bytes(b"no database at all" * 100)
        with pytest.raises(SeatrialError) as caught:
            open_store(nowhere, read_only=True)
        assert caught.value.code == "not_a_store"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a directory that this user cannot look into")
def test_a_directory_that_cannot_be_looked_into_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REPORT, str(tmp_path / "store.db")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "Permission denied" in done.stderr
    assert "Traceback" not in done.stderr
