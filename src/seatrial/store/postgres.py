"""A store in a PostgreSQL database.

Rows go in as one array per column, all tables of a group in one pipeline: one round trip, whatever the size of the
group, and the same statement for one row as for a thousand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from msgspec.structs import astuple
from sqlalchemy.dialects import postgresql

from seatrial.errors import SeatrialError
from seatrial.store import schema
from seatrial.store.database import (
    Callback,
    DatabaseFailure,
    GatheredRows,
    IndexedTexts,
    Listener,
    opened_for_reading,
    shown,
)
from seatrial.store.postgres_sessions import CHANNEL, SessionClaim, SessionHold, SessionListener, notices_of
from seatrial.store.presence import Hold, Presence
from seatrial.store.rows import INSERTS, Insert
from seatrial.store.search import MAX_WORD, WORD, Phrase

NUMBERS_AT_ONCE = 64
"""Integers of runs that are taken from the sequence together; those left over at the end are never used."""

_MIGRATION_LOCK = 0x5EA7121A1
_words = sa.table("words", sa.column("run", sa.BigInteger), sa.column("words", postgresql.TSVECTOR))
_INDEX = """
    INSERT INTO words (run, words)
    SELECT run, to_tsvector('simple', text) FROM unnest(%b::bigint[], %b::text[]) AS given (run, text)
"""

_NOTIFY = "SELECT pg_notify(%b, %b)"
# A session that waits must notice when its other end is gone.
_KEEPALIVES = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

for _index, _condition in schema.partial_indexes():
    _index.dialect_kwargs["postgresql_where"] = _condition

_BUSY = {"40001", "40P01", "55P03", "53300"}  # serialisation, deadlock, lock, too many connections


def matching(phrases: list[Phrase]) -> sa.Select[tuple[int]]:
    """The integers of the runs that have all of these phrases."""
    # Words are letters and digits only: there is nothing in them to quote.
    query = " & ".join(
        " <-> ".join(f"'{word}'" for word in phrase.words) + (":*" if phrase.prefix else "") for phrase in phrases
    )
    return sa.select(_words.c.run).where(_words.c.words.op("@@")(sa.func.to_tsquery("simple", query)))


class Postgres:
    """The dialect of a database."""

    errors: tuple[type[Exception], ...] = (psycopg.Error, sa.exc.DBAPIError, sa.exc.TimeoutError, UnicodeEncodeError)
    reading: sa.Engine

    def __init__(self, url: sa.URL, read_only: bool = False) -> None:
        self.name = shown(url)
        self.url: sa.URL | None = url
        self._read_only = read_only
        self._engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
        # What is read in several queries is read as of one moment.
        self.reading = self._engine.execution_options(isolation_level="REPEATABLE READ")
        # The driver would wait for an answer after it has sent BEGIN, and again before it sends COMMIT.
        self._writing = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        sa.event.listen(self._writing, "begin", lambda connection: _begin(_driver(connection)))
        self._numbers: deque[int] = deque()
        self._writer_process: int | None = None
        self._statements = {insert: _statement(insert) for insert in INSERTS}

    def connect(self) -> sa.Connection:
        if self._read_only:
            raise opened_for_reading(self.name)
        connection = self._writing.connect()
        self._writer_process = _driver(connection).info.backend_pid
        return connection

    def check_room(self) -> None:
        """Only the server knows, and says so when it is written to."""

    @contextmanager
    def migrating(self) -> Iterator[sa.Connection]:
        with self._engine.begin() as connection:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            yield connection

    def is_foreign(self, connection: sa.Connection) -> bool:
        return any(sa.inspect(connection).has_table(table.name) for table in schema.metadata.sorted_tables)

    def run_numbers(self, connection: sa.Connection) -> Iterator[int]:
        # A sequence takes no part in transactions: what was taken stays ours after a rollback, and for the next group.
        raw = _driver(connection)
        while True:
            if not self._numbers:
                taken = raw.execute("SELECT nextval('runs_id_seq') FROM generate_series(1, %s)", (NUMBERS_AT_ONCE,))
                self._numbers.extend(number for (number,) in taken)
            yield self._numbers.popleft()

    def insert(
        self,
        connection: sa.Connection,
        rows: GatheredRows,
        texts: IndexedTexts,
    ) -> list[tuple[Any, ...]]:
        with _pipeline(_driver(connection)) as raw:
            sent = self._send(raw, rows, texts)
        return [row for cursor in sent for row in cursor.fetchall()]

    def commit(
        self,
        connection: sa.Connection,
        rows: GatheredRows,
        texts: IndexedTexts,
        changed: Iterable[str],
    ) -> None:
        with _pipeline(_driver(connection)) as raw:
            self._send(raw, rows, texts)
            for notice in notices_of(changed):
                raw.execute(_NOTIFY, (CHANNEL, notice))
            raw.execute("COMMIT")

    def _send(
        self,
        raw: psycopg.Connection[Any],
        rows: GatheredRows,
        texts: IndexedTexts,
    ) -> list[psycopg.Cursor[Any]]:
        """Gives the cursors of the inserts that return something."""
        _begin(raw)
        returning = []
        for insert, some in rows.items():
            if some:
                columns = [list(values) for values in zip(*map(astuple, some), strict=True)]
                cursor = raw.execute(self._statements[insert], columns)
                if insert.returning:
                    returning.append(cursor)
        if texts:
            raw.execute(_INDEX, [[run for run, _ in texts], [_separated(text) for _, text in texts]])
        return returning

    def lock_tallies(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("LOCK TABLE tallies IN SHARE ROW EXCLUSIVE MODE")

    def create_index(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(
            "CREATE TABLE words ("
            "run bigint PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE, words tsvector NOT NULL)"
        )
        connection.exec_driver_sql("CREATE INDEX words_words ON words USING gin (words)")

    def matching(self, phrases: list[Phrase]) -> sa.Select[tuple[int]]:
        return matching(phrases)

    def claim(self, server_id: str) -> Presence:
        return SessionClaim(self._session, lambda error: self.failure(error).error, server_id)

    def note_address(self, address: str) -> None:
        """It can have many servers."""

    def served_at(self) -> str | None:
        return None

    def hold(self, number: int, experiment_id: str) -> Hold:
        return SessionHold(self._session, lambda error: self.failure(error).error, experiment_id)

    def listen(self, callback: Callback) -> Listener:
        return SessionListener(self._session, lambda: self._writer_process, callback)

    def failure(self, error: Exception) -> DatabaseFailure:
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        state = getattr(cause, "sqlstate", None) or ""
        said = f"{self.name}: {str(cause).strip()}"
        if state.startswith("23") or state == "21000":
            return DatabaseFailure("conflict", SeatrialError("conflict", said))
        if state in _BUSY:
            return DatabaseFailure("busy", SeatrialError("store_unavailable", said))
        if state == "25006":
            hint = "reports can be made of it; to store anything, the database must take transactions that write"
            return DatabaseFailure("refused", SeatrialError("store_unavailable", said, hint=hint))
        if state == "53100":
            hint = "free some space on the server's disk; what was acknowledged is safe"
            return DatabaseFailure("refused", SeatrialError("store_full", said, hint=hint))
        if state.startswith(("22", "54")) or isinstance(cause, (UnicodeEncodeError, psycopg.DataError)):
            return DatabaseFailure("refused", SeatrialError("unstorable", said))
        if state.startswith(("08", "57P")) or (not state and isinstance(cause, psycopg.OperationalError)):
            return DatabaseFailure("lost", SeatrialError("store_unavailable", said))
        return DatabaseFailure("refused", SeatrialError("store_unavailable", said))

    def close(self) -> None:
        self._engine.dispose()

    def _session(self) -> psycopg.Connection[Any]:
        """A connection of its own, for what lasts as long as a session does."""
        arguments, options = self._engine.dialect.create_connect_args(self._engine.url)
        return psycopg.connect(*arguments, **{**_KEEPALIVES, **options, "autocommit": True})


def _statement(insert: Insert[Any]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves its constructors untyped
    # An array type has no collation.
    types = [type_.compile(dialect).partition(" COLLATE")[0] for type_ in insert.types]
    columns, values, source = ", ".join(insert.columns), "given.*", ""
    into = columns
    if insert.finds_position:
        into, values = f"{columns}, position", "given.*, cases.position"
        source = "LEFT JOIN cases ON cases.experiment = given.experiment AND cases.case_id = given.case_id"
    # In one order, so that two writers with the same rows never wait for each other in a circle.
    order = ", ".join(str(place + 1) for place in insert.key)
    return (
        f"INSERT INTO {insert.table} ({into}) "  # noqa: S608 (our names)
        f"SELECT {values} FROM unnest({', '.join(f'%b::{type_}[]' for type_ in types)}) "
        f"AS given ({columns}) {source} ORDER BY {order} {insert.on_conflict} {insert.returning}"
    )


@contextmanager
def _pipeline(raw: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    """Sends what is executed inside together, and raises the first error of it."""
    first: psycopg.Error | None = None
    try:
        with raw.pipeline():
            try:
                yield raw
            except psycopg.Error as error:
                first = error  # leaving the block with it would make psycopg log what follows from it
    except psycopg.Error as error:
        first = first or error
    if first is not None:
        raise first


def _begin(raw: psycopg.Connection[Any]) -> None:
    if raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        raw.execute("BEGIN")


def _driver(connection: sa.Connection) -> psycopg.Connection[Any]:
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        raise TypeError(f"not a connection of psycopg: {raw!r}")
    return raw


def _separated(text: str) -> str:
    """Only the words, so that the server's parser, which knows of URLs, paths and numbers, finds the same ones."""
    return " ".join([word[:MAX_WORD] for word in WORD.findall(text)])
