"""Opening a store: places, versions, migrations."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.store import open_store, schema
from seatrial.store.database import Database
from seatrial.store.open import _dialect, migrate


@contextmanager
def migrating(where: str) -> Iterator[tuple[sa.Connection, Database]]:
    """A transaction in which a store can be made into anything."""
    dialect = _dialect(where, create=True)
    with dialect.migrating() as connection:
        yield connection, dialect
    dialect.close()


@pytest.mark.parametrize("prefix", ["", "sqlite:///"])
def test_a_path_and_a_url_mean_the_same_file(tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "deep" / "er" / "store.db"
    open_store(f"{prefix}{path}").close()
    assert path.is_file()
    open_store(path, create=False).close()


def test_a_store_is_made_once_and_found_again(nowhere: str) -> None:
    with open_store(nowhere) as store:
        store.create_experiment(records.experiment(), records.cases(2))
    with open_store(nowhere) as store:
        assert len(list(store.cases("exp-1"))) == 2


def test_a_store_that_must_be_there_is_not_made(nowhere: str, tmp_path: Path) -> None:
    with pytest.raises(SeatrialError) as caught:
        open_store(nowhere, create=False)
    assert caught.value.code == "not_found"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "where", ["mysql://x/y", "://", "sqlite://", "sqlite:///:memory:", ":memory:", "redis://h", "."]
)
def test_what_is_no_address_is_refused(where: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        open_store(where)
    assert caught.value.code == "invalid_config"


def test_passwords_are_not_repeated() -> None:
    for where in (
        "postgresql://user:s3cret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=user&password=s3cret&sslpassword=s3cret",
        "postgresq://user:s3cret@h/db",
        "mysql://u:s3cret@h/d",
    ):
        with pytest.raises(SeatrialError) as caught:
            open_store(where)
        assert "s3cret" not in str(caught.value)
    assert caught.value.code == "invalid_config"


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(SeatrialError, match="onnection") as caught:
        open_store("postgresql://user@127.0.0.1:1/db")
    assert caught.value.code == "store_unavailable"


def test_a_directory_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SeatrialError) as caught:
        open_store(tmp_path / "file" / "store.db")
    assert caught.value.code == "store_unavailable"


@pytest.mark.parametrize("content", [b"just some text, long enough to be taken for a header " * 50, b"\x00" * 8192])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(SeatrialError) as caught:
        open_store(path)
    assert caught.value.code == "not_a_store"
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_left_alone(nowhere: str) -> None:
    with migrating(nowhere) as (connection, _):
        connection.exec_driver_sql("CREATE TABLE runs (id integer, name text)")
    with pytest.raises(SeatrialError) as caught:
        open_store(nowhere)
    assert caught.value.code == "not_a_store"
    with migrating(nowhere) as (connection, _):
        assert not sa.inspect(connection).has_table("experiments")


def test_a_store_of_a_newer_version_is_refused_and_left_alone(nowhere: str) -> None:
    open_store(nowhere).close()
    with migrating(nowhere) as (connection, _):
        connection.exec_driver_sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0999'")
    with pytest.raises(SeatrialError, match="version 0999") as caught:
        open_store(nowhere)
    assert caught.value.code == "store_too_new"
    assert caught.value.hint is not None
    with migrating(nowhere) as (connection, _):
        version = connection.exec_driver_sql(f"SELECT version_num FROM {schema.VERSION_TABLE}").scalar()
    assert version == "0999"


def test_a_migration_that_breaks_off_leaves_the_store_as_it_was(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise sa.exc.OperationalError("CREATE INDEX", None, sqlite3.OperationalError("no room"))

    with monkeypatch.context() as patched:
        patched.setattr("seatrial.store.sqlite.SQLite.create_index", broken)
        patched.setattr("seatrial.store.postgres.Postgres.create_index", broken)
        with pytest.raises(SeatrialError, match="no room"):
            open_store(nowhere)
    with migrating(nowhere) as (connection, _):
        assert not sa.inspect(connection).get_table_names()
    open_store(nowhere).close()


def test_processes_that_open_a_new_store_at_once_do_not_collide(nowhere: str) -> None:
    program = "import sys; from seatrial.store import open_store; open_store(sys.argv[1]).close()"
    processes = [subprocess.Popen([sys.executable, "-c", program, nowhere], stderr=subprocess.PIPE) for _ in range(3)]
    failures = [process.communicate()[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, failures
    open_store(nowhere, create=False).close()


@pytest.mark.parametrize("way", ["new", "migrated"])
def test_a_new_store_and_a_migrated_one_have_the_tables_that_the_code_works_with(nowhere: str, way: str) -> None:
    if way == "new":
        open_store(nowhere).close()
    else:
        with migrating(nowhere) as (connection, dialect):
            migrate(connection, dialect)
    with migrating(nowhere) as (connection, _):
        assert connection.execute(sa.text(f"SELECT version_num FROM {schema.VERSION_TABLE}")).scalars().all() == [
            schema.REVISIONS[-1]
        ]
        context = MigrationContext.configure(
            connection,
            opts={
                "include_name": lambda name, kind, _: not (kind == "table" and name.startswith(("words", "seatrial")))
            },
        )
        assert compare_metadata(context, schema.metadata) == []


def test_the_listed_versions_are_those_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", "seatrial.store:migrations")
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(revisions)) == schema.REVISIONS


def test_a_store_in_memory_is_gone_when_it_is_closed_and_no_other_store_sees_it(tmp_path: Path) -> None:
    with open_store("memory:") as store, open_store("memory:") as other:
        store.create_experiment(records.experiment(), records.cases(1))
        assert store.record_run(records.run()).wait()
        assert len(store.experiments()) == 1
        assert other.experiments() == []
    with open_store("memory:") as store:
        assert store.experiments() == []
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(SeatrialError) as caught:
            open_store("memory:", **options)
        assert caught.value.code == "not_found"
    assert list(tmp_path.iterdir()) == []


def test_importing_the_store_changes_nothing_for_other_users_of_its_libraries() -> None:
    program = (
        "import logging, sqlite3, sys, threading, warnings, sqlalchemy, alembic, msgspec\n"
        "def state():\n"
        "    return (dict(sqlite3.adapters), dict(sqlite3.converters), list(warnings.filters),\n"
        "        list(logging.root.handlers), logging.root.level, threading.active_count(), sys.getrecursionlimit(),\n"
        "        sys.getswitchinterval())\n"
        "before = state()\n"
        "import seatrial.store.sqlite, seatrial.store.postgres\n"
        "from seatrial.store import open_store\n"
        "with open_store('memory:') as store:\n"
        "    store.keyring.add('key', ['read'], now=0)\n"
        "    store.experiments()\n"
        "assert state() == before, (before, state())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
