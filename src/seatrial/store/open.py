"""Opening a store: where it is, which version it has, and bringing it up to date."""

from __future__ import annotations

import time
from pathlib import Path

import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.store.database import Database
from seatrial.store.schema import READABLE_FROM, REVISIONS, VERSION_TABLE, metadata
from seatrial.store.store import Store
from seatrial.store.writer import PATIENCE_S

MEMORY = "memory:"
"""The address of a store that is gone when it is closed."""
_PAUSE_S = 0.05


def open_store(
    where: str | Path, *, create: bool = True, read_only: bool = False, patience_s: float = PATIENCE_S
) -> Store:
    """Open the store at a path, a `sqlite:///` or a `postgresql://` URL; `memory:` is one for tests, gone when closed.

    A store of an older version is brought up to date, its runs in the background; one of a newer version is refused
    (`store_too_new`), and so is a database that is something else (`not_a_store`). A store that is not there yet is
    made, unless `create` is False. With `read_only`, nothing is written and nothing is made: it may be where nothing
    can be written.
    `patience_s` is how long writers wait for a store that is locked or away.
    """
    create = create and not read_only
    dialect = _dialect(where, create, read_only)
    deadline = time.monotonic() + patience_s
    ready = False
    try:
        while not ready:
            try:
                _check_version(dialect) if read_only else _bring_up_to_date(dialect, create)
                ready = True
            except dialect.errors as error:
                failure = dialect.failure(error)
                if failure.kind != "busy" or time.monotonic() > deadline:
                    raise failure.error from error
                time.sleep(_PAUSE_S)
    finally:
        if not ready:
            dialect.close()
    store = Store(dialect, patience_s)
    if not read_only:
        store.convert()
    return store


def _dialect(where: str | Path, create: bool, read_only: bool = False) -> Database:
    if where == MEMORY:
        from seatrial.store.sqlite import SQLite

        if not create:
            raise SeatrialError("not_found", "a store in memory is new whenever it is opened", hint="name a file")
        return SQLite(None)
    if isinstance(where, Path) or "://" not in where:
        return _sqlite(Path(where), create, read_only)
    try:
        url = sa.make_url(where)
    except sa.exc.ArgumentError:
        raise _no_address() from None
    backend = url.drivername.partition("+")[0]
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return _sqlite(Path(url.database), create, read_only)
    if backend in ("postgresql", "postgres"):
        try:
            from seatrial.store.postgres import Postgres
        except ImportError as error:
            hint = "in the folder of Seatrial: pip install '.[postgres]'"
            raise SeatrialError("store_unavailable", f"no driver for PostgreSQL: {error}", hint=hint) from None
        return Postgres(url, read_only)
    raise _no_address()


def _sqlite(path: Path, create: bool, read_only: bool) -> Database:
    from seatrial.store.sqlite import SQLite

    try:
        if path.is_dir() or path.name == ":memory:":
            raise _no_address()
        if not path.exists():
            if not create:
                raise SeatrialError("not_found", f"there is no store at {path}")
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SeatrialError("store_unavailable", f"{path}: {error.strerror}") from None
    return SQLite(path, read_only)


def _check_version(dialect: Database) -> None:
    """Refuse a store that cannot be read as it is."""
    with dialect.reading.connect() as connection:
        version = _version(connection)
        if version is None or version not in REVISIONS:
            raise _unusable(version, dialect, connection)
    if REVISIONS.index(version) < REVISIONS.index(READABLE_FROM):
        raise SeatrialError(
            "store_outdated",
            f"{dialect.name} has version {version} of the schema, and needs a migration to be read",
            hint="report on it once where it can be written, or on a copy",
        )


def _unusable(version: str | None, dialect: Database, connection: sa.Connection) -> SeatrialError:
    """Why a database without a version of ours, or with one that we do not know, is none to work with."""
    if version is not None:
        return SeatrialError(
            "store_too_new",
            f"{dialect.name} has version {version} of the schema; this Seatrial knows up to {REVISIONS[-1]}",
            hint="open it with the Seatrial that wrote it, or a later one",
        )
    if dialect.is_foreign(connection):
        hint = "name another file or database; Seatrial makes its own"
        return SeatrialError("not_a_store", f"{dialect.name} is not a store of Seatrial", hint=hint)
    return SeatrialError("not_found", f"there is no store at {dialect.name}")


def _bring_up_to_date(dialect: Database, create: bool) -> None:
    with dialect.reading.connect() as connection:
        if _version(connection) == REVISIONS[-1]:
            return
    with dialect.migrating() as connection:
        # Looked at again: another process may have been quicker.
        version = _version(connection)
        if version == REVISIONS[-1]:
            return
        # An empty database becomes a store.
        new = version is None and create and not dialect.is_foreign(connection)
        if version not in REVISIONS and not new:
            raise _unusable(version, dialect, connection)
        if new:
            _create(connection, dialect)
        else:
            migrate(connection, dialect)


def _create(connection: sa.Connection, dialect: Database) -> None:
    """Make a store of the newest version, in the transaction of this connection: what the migrations would make of
    nothing, without loading them, which takes longer than most commands."""
    metadata.create_all(connection)
    dialect.create_index(connection)
    version = sa.Table(VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))
    version.create(connection)
    connection.execute(version.insert(), {"version_num": REVISIONS[-1]})


def migrate(connection: sa.Connection, dialect: Database, to: str = "head") -> None:
    """Run the migrations that a store lacks, in the transaction of this connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "seatrial.store:migrations")
    config.attributes.update(connection=connection, dialect=dialect)
    command.upgrade(config, to)


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 (our name)


def _no_address() -> SeatrialError:
    # The address is not repeated: it may hold a password.
    return SeatrialError(
        "invalid_config",
        "that is not the address of a store",
        hint="a file such as seatrial.db, sqlite:///seatrial.db, or postgresql://user@host/database",
    )
