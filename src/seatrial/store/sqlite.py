"""A store in one SQLite file, or in a SQLite database in memory.

Write-ahead logging, so that readers and the writer do not wait for each other. `synchronous=NORMAL`: what was
acknowledged survives the death of the process, however sudden; when the whole machine loses power the last
transactions may be missing, but the file is whole and a run is in it with all its parts or not at all.

Rows go in by statements of many rows. Python gives up its lock for every step of a statement and may wait for a busy
main thread before it has it back, so under load the number of statements matters more than the number of rows.
`OR FAIL` and foreign keys that are checked at the end spare SQLite a copy of every page it touches, which it would
keep to undo one statement alone; we only ever undo whole transactions.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec.structs import astuple

from seatrial.errors import SeatrialError
from seatrial.store.database import Callback, DatabaseFailure, GatheredRows, IndexedTexts, Listener, opened_for_reading
from seatrial.store.presence import (
    FileClaim,
    FileHold,
    Hold,
    MemoryClaim,
    MemoryHold,
    MemoryLocks,
    Presence,
    note_address,
    noted_address,
)
from seatrial.store.rows import Insert
from seatrial.store.search import Phrase

BUSY_S = 5.0
"""How long SQLite itself waits for a lock; the writer's patience is longer."""

MIN_ROOM = 1 << 20
"""Bytes that must be left on the disk for a store to be ready for more."""

_STATEMENTS = 512
"""Kept for use again."""
_ROWS_AT_ONCE = (256, 128, 64, 32, 16, 8, 4, 2, 1)
_words = sa.Table("words", sa.MetaData(), sa.Column("rowid", sa.Integer, primary_key=True), sa.Column("text", sa.Text))


class _WordsRow(msgspec.Struct):
    rowid: int
    text: str


_WORDS = Insert(_words, _WordsRow)

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
# The latter two are what a write past a limit or a quota comes back as.
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}


def matching(phrases: list[Phrase]) -> sa.Select[tuple[int]]:
    """The integers of the runs that have all of these phrases."""
    # Words are letters and digits only: there is nothing in them to quote.
    query = " AND ".join(f'"{" ".join(phrase.words)}"{"*" if phrase.prefix else ""}' for phrase in phrases)
    return sa.select(_words.c.rowid.label("run")).where(sa.literal_column("words").op("MATCH")(query))


class SQLite:
    """The dialect of a file."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error, sa.exc.DBAPIError, UnicodeEncodeError, OverflowError)

    def __init__(self, path: Path | None, read_only: bool = False) -> None:
        """Of the file at this path; without one, of a database in memory, which is gone when this is closed."""
        self.name = "memory:" if path is None else str(path)
        self.url: sa.URL | None = None
        self._path = path
        self._read_only = read_only
        self._url = _url(path, read_only)
        self.reading = self._engine(writes=False)
        self._writing = self._engine(writes=True)
        self._locks = MemoryLocks()
        # A database in memory is there as long as somebody is connected.
        self._anchor = self._writing.connect() if path is None else None

    def connect(self) -> sa.Connection:
        if self._read_only:
            raise opened_for_reading(self.name)
        return self._writing.connect()

    def check_room(self) -> None:
        if self._path is None:
            return
        try:
            room = os.statvfs(self._path.resolve().parent)
        except OSError as error:
            raise SeatrialError("store_unavailable", f"{self.name}: {error.strerror}") from None
        if room.f_bavail * room.f_frsize < MIN_ROOM:
            raise SeatrialError("store_full", f"{self.name}: the disk is full", hint="free some disk space")

    @contextmanager
    def migrating(self) -> Iterator[sa.Connection]:
        with self._writing.begin() as connection:
            yield connection

    def is_foreign(self, connection: sa.Connection) -> bool:
        return connection.exec_driver_sql("SELECT 1 FROM sqlite_schema LIMIT 1").first() is not None

    def run_numbers(self, connection: sa.Connection) -> Iterator[int]:
        # The transaction has the write lock, so the counter is ours until it ends.
        raw = _begun(connection)
        last = raw.execute("SELECT seq FROM sqlite_sequence WHERE name = 'runs'").fetchone()
        return itertools.count(last[0] + 1 if last else 1)

    def insert(
        self,
        connection: sa.Connection,
        rows: GatheredRows,
        texts: IndexedTexts,
    ) -> list[tuple[Any, ...]]:
        raw = _begun(connection)
        returned: list[tuple[Any, ...]] = []
        for insert, some in rows.items():
            if some:
                returned += self._insert(raw, insert, map(astuple, some))
        if texts:
            self._insert(raw, _WORDS, texts)
        return returned

    def commit(
        self,
        connection: sa.Connection,
        rows: GatheredRows,
        texts: IndexedTexts,
        changed: Iterable[str],
    ) -> None:
        self.insert(connection, rows, texts)
        _driver(connection).execute("COMMIT")

    def lock_tallies(self, connection: sa.Connection) -> None:
        """There is one writer at a time."""

    def create_index(self, connection: sa.Connection) -> None:
        # Without its own copy of the text, and without the sizes that only ranking would need.
        connection.exec_driver_sql(
            "CREATE VIRTUAL TABLE words USING fts5("
            "text, content='', columnsize=0, tokenize='unicode61 remove_diacritics 0')"
        )

    def matching(self, phrases: list[Phrase]) -> sa.Select[tuple[int]]:
        return matching(phrases)

    def claim(self, server_id: str) -> Presence:
        return MemoryClaim(self._locks, server_id) if self._path is None else FileClaim(self._path, server_id)

    def note_address(self, address: str) -> None:
        if self._path is not None:
            note_address(self._path, address)

    def served_at(self) -> str | None:
        return None if self._path is None else noted_address(self._path)

    def hold(self, number: int, experiment_id: str) -> Hold:
        if self._path is None:
            return MemoryHold(self._locks, experiment_id)
        return FileHold(self._path, number, experiment_id)

    def listen(self, callback: Callback) -> Listener:
        return _Silence()

    def failure(self, error: Exception) -> DatabaseFailure:
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        primary = code & 0xFF
        if primary == sqlite3.SQLITE_CONSTRAINT:
            return DatabaseFailure("conflict", SeatrialError("conflict", f"{self.name}: {cause}"))
        if primary in _BUSY:
            hint = "another process is writing to it; try again when that has finished"
            return DatabaseFailure("busy", SeatrialError("store_unavailable", f"{self.name}: {cause}", hint=hint))
        if code in _FULL:
            hint = "free some disk space; what was acknowledged is safe"
            return DatabaseFailure("refused", SeatrialError("store_full", f"{self.name}: {cause}", hint=hint))
        if primary == sqlite3.SQLITE_READONLY:
            hint = "reports can be made of it; to store anything, the file and its directory must be writable"
            return DatabaseFailure("refused", SeatrialError("store_unavailable", f"{self.name}: {cause}", hint=hint))
        if primary == sqlite3.SQLITE_CORRUPT:
            hint = "take a copy of it, or what `sqlite3 FILE .recover` still finds in it"
            return DatabaseFailure("refused", SeatrialError("damaged", f"{self.name}: {cause}", hint=hint))
        if primary == sqlite3.SQLITE_NOTADB:
            return DatabaseFailure("refused", SeatrialError("not_a_store", f"{self.name}: {cause}"))
        if isinstance(cause, (UnicodeEncodeError, OverflowError)) or primary == sqlite3.SQLITE_TOOBIG:
            return DatabaseFailure("refused", SeatrialError("unstorable", f"{self.name}: {cause}"))
        return DatabaseFailure("refused", SeatrialError("store_unavailable", f"{self.name}: {cause}"))

    def close(self) -> None:
        if self._anchor is not None:
            self._anchor.close()
        self.reading.dispose()
        self._writing.dispose()

    def _insert(
        self, raw: sqlite3.Connection, insert: Insert[Any], rows: Iterable[tuple[Any, ...]]
    ) -> list[tuple[Any, ...]]:
        # Of a number, a text or a bytearray sqlite3 knows how to store it. Of None and bytes it asks every adapter that
        # there may be, which takes longer: so columns that are empty in all rows are left out, and bytes are copied.
        columns: list[str] = []
        kept: list[Sequence[Any]] = []
        for name, values in zip(insert.columns, zip(*rows, strict=True), strict=True):
            if values[0] is not None or values.count(None) < len(values):
                columns.append(name)
                kept.append([value and bytearray(value) for value in values] if name in insert.binary else values)
        flat = list(chain.from_iterable(zip(*kept, strict=True)))
        returned: list[tuple[Any, ...]] = []
        width = len(columns)
        done, left = 0, len(flat) // width
        for at_once in _ROWS_AT_ONCE:
            while left >= at_once:
                end = done + at_once * width
                result = raw.execute(_statement(insert, tuple(columns), at_once), flat[done:end])
                if insert.returning:
                    returned += result.fetchall()
                done, left = end, left - at_once
        return returned

    def _engine(self, writes: bool) -> sa.Engine:
        engine = sa.create_engine(
            self._url,
            # Transactions begin where we say so, not where the driver thinks.
            connect_args={"isolation_level": None, "timeout": BUSY_S, "cached_statements": _STATEMENTS},
            **({"poolclass": sa.NullPool} if writes else {"max_overflow": -1}),
        )
        sa.event.listen(engine, "connect", _configure_writing if writes else _configure_reading)
        sa.event.listen(engine, "begin", _begun if writes else _begin_reading)
        return engine


class _Silence:
    """The listener of a store that gives no notices."""

    live = False

    def close(self) -> None:
        """There is nothing to end."""


def _url(path: Path | None, read_only: bool) -> sa.URL:
    if path is None:
        # Of all connections of this process that name it, and nobody else's.
        name = f"file:/seatrial-{uuid.uuid4().hex}"
        return sa.URL.create("sqlite", database=name, query={"vfs": "memdb", "uri": "true"})
    return _read_only_url(path) if read_only else sa.URL.create("sqlite", database=str(path))


def _read_only_url(path: Path) -> sa.URL:
    """A file to be read as it is. Also where nothing can be written, as far as SQLite can."""
    address = path.absolute().as_uri()
    query = {"mode": "ro", "uri": "true"}
    try:
        connection = sqlite3.connect(f"{address}?mode=ro", uri=True)
        try:
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1")
        finally:
            connection.close()
    except sqlite3.Error as error:
        # Readers of a write-ahead log share memory through a file beside it. Without a log, and where nobody can
        # write, there is nothing to share.
        log = path.with_name(f"{path.name}-wal")
        unshared = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        if unshared and os.access(path, os.R_OK):
            if log.exists() and log.stat().st_size:
                raise SeatrialError(
                    "store_unavailable",
                    f"{path}: a part of it is in {log.name}, which can be read only where files can be made beside it",
                    hint="copy both files to a directory that can be written, and name the copy",
                ) from None
            query["immutable"] = "1"
    return sa.URL.create("sqlite", database=address, query=query)


@lru_cache(_STATEMENTS)
def _statement(insert: Insert[Any], columns: tuple[str, ...], rows: int) -> str:
    values = ", ".join([f"({', '.join('?' * len(columns))})"] * rows)
    source = f"VALUES {values}"
    if insert.finds_position:
        # One join for all rows: a query in each of them would take as long as storing it.
        experiment, case_id = (f"given.column{columns.index(name) + 1}" for name in ("experiment", "case_id"))
        source = (
            f"SELECT given.*, cases.position FROM (VALUES {values}) AS given "  # noqa: S608 (our names)
            f"LEFT JOIN cases ON cases.experiment = {experiment} AND cases.case_id = {case_id} WHERE true"
        )
        columns = (*columns, "position")
    into = f"{insert.table} ({', '.join(columns)})"
    return f"INSERT OR FAIL INTO {into} {source} {insert.on_conflict} {insert.returning}"


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        raise TypeError(f"not a connection of sqlite3: {raw!r}")
    return raw


def _begun(connection: sa.Connection) -> sqlite3.Connection:
    """The driver's connection, in a transaction that writes."""
    raw = _driver(connection)
    if not raw.in_transaction:
        raw.execute("BEGIN IMMEDIATE")
    return raw


def _begin_reading(connection: sa.Connection) -> None:
    _driver(connection).execute("BEGIN")


def _configure_writing(raw: sqlite3.Connection, _: object) -> None:
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = NORMAL")
    raw.execute("PRAGMA foreign_keys = ON")
    raw.execute("PRAGMA cache_size = -16000")
    # Pages are written again and again while a store grows; a longer log saves most of that.
    raw.execute("PRAGMA wal_autocheckpoint = 4000")
    # Some builds overwrite deleted content with zeros, which the search index would pay for at every merge.
    raw.execute("PRAGMA secure_delete = OFF")
    # What RETURNING gathers would be a file.
    raw.execute("PRAGMA temp_store = MEMORY")


def _configure_reading(raw: sqlite3.Connection, _: object) -> None:
    raw.execute("PRAGMA query_only = ON")
