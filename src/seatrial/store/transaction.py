"""One transaction of the writer: rows are gathered, and go to the database in as few statements as possible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from seatrial.store.dialect import Dialect
from seatrial.store.inserts import ALL, Insert

T = TypeVar("T")

SMALL = 256
"""Bytes of an operation that brings no documents, roughly."""
LIVE_RUNS = 10_000
"""Runs whose place in their event log is remembered between transactions."""


class Transaction:
    """What an operation writes to."""

    def __init__(
        self, dialect: Dialect, connection: sa.Connection, live: dict[str, tuple[int, int]], careful: bool
    ) -> None:
        self.careful = careful
        """Whether to look before writing: a first try collided with something that is there already."""
        self.live = live
        """Run id -> (its integer, its next event sequence), of runs that are going on. Emptied on rollback."""
        self._dialect = dialect
        self._connection = connection
        self._numbers: Iterator[int] | None = None
        self._rows: dict[Insert, list[object]] = {insert: [] for insert in ALL}
        self._texts: list[object] = []
        if len(live) > LIVE_RUNS:
            live.clear()

    def add(self, insert: Insert, *values: object) -> None:
        """Gather one row, its values in the order of the columns."""
        self._rows[insert].extend(values)

    def index(self, run: int, text: str) -> None:
        """Gather the words of a run for search."""
        self._texts += (run, text)

    def new_run(self) -> int:
        """The integer of a run that is not in the store yet."""
        if self._numbers is None:
            self._numbers = self._dialect.run_numbers(self._connection)
        return next(self._numbers)

    def execute(self, statement: sa.Executable) -> sa.CursorResult[Any]:
        """Run a statement after everything gathered so far."""
        self.flush()
        return self._connection.execute(statement)

    def flush(self) -> None:
        """Send what was gathered."""
        if any(self._rows.values()):
            self._dialect.insert(self._connection, self._rows, self._texts)
            for values in self._rows.values():
                values.clear()
            self._texts.clear()


class Operation(ABC, Generic[T]):
    """Something to write. It may be carried out several times, and only the last one counts."""

    size = SMALL
    """Bytes that it brings, roughly."""

    def prepare(self) -> None:
        """What can be done before the transaction, such as compressing; called once, by the writer."""

    @abstractmethod
    def run(self, to: Transaction) -> T:
        """Write, and say what the receipt will."""
