"""One transaction of the writer: rows are gathered, and go to the database in as few statements as possible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol, TypeVar

import sqlalchemy as sa
from msgspec.structs import astuple

from seatrial.errors import SeatrialError
from seatrial.store.bodies import Packer
from seatrial.store.dialect import Dialect
from seatrial.store.inserts import ALL, CELL, EVENTS, TALLY, Insert
from seatrial.store.rollups import Changes, Counted

T = TypeVar("T", covariant=True)

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
        """Run id -> (its integer, its next event sequence), of runs that have not ended. Emptied on rollback."""
        self.changed: list[str] = []
        """Ids of the runs that have new events or another status, which other processes are told of."""
        self._dialect = dialect
        self._connection = connection
        self._numbers: Iterator[int] | None = None
        self.rows: dict[Insert, list[object]] = {insert: [] for insert in ALL}
        """What was gathered: the values of one row after those of another."""
        self.events = self.rows[EVENTS]
        """Of these there are the most, and they come one at a time."""
        self._texts: list[object] = []
        self._rollups: dict[int, Changes] = {}
        if len(live) > LIVE_RUNS:
            live.clear()

    def add(self, insert: Insert, *values: object) -> None:
        """Gather one row, its values in the order of the columns."""
        self.rows[insert].extend(values)

    def index(self, run: int, text: str) -> None:
        """Gather the words of a run for search."""
        self._texts += (run, text)

    def count(self, run: Counted, sign: Literal[1, -1] = 1) -> None:
        """Gather a run for the rollups of its experiment; with -1, one that counts no more."""
        changes = self._rollups.get(run.experiment)
        if changes is None:
            changes = self._rollups[run.experiment] = Changes()
        changes.add(run, sign)

    def new_run(self) -> int:
        """The integer of a run that is not in the store yet."""
        if self._numbers is None:
            self._numbers = self._dialect.run_numbers(self._connection)
        return next(self._numbers)

    def execute(self, statement: sa.Executable, **parameters: object) -> sa.CursorResult[Any]:
        """Run a statement after everything gathered so far."""
        self.flush()
        return self._connection.execute(statement, parameters)

    def flush(self) -> None:
        """Send what was gathered."""
        if any(self.rows.values()):
            self._dialect.insert(self._connection, self.rows, self._texts)
            for values in self.rows.values():
                values.clear()
            self._texts.clear()

    def commit(self) -> None:
        """Send the rest, and end."""
        # Rollups come last: other processes wait for these rows until this transaction has ended.
        if self._rollups:
            self._roll_up()
        self._dialect.commit(self._connection, self.rows, self._texts, self.changed)

    def _roll_up(self) -> None:
        cells = self.rows[CELL]
        for experiment, changes in self._rollups.items():
            for (case_id, agent), cell in changes.cells.items():
                sums = astuple(cell)
                if any(sums):
                    cells.extend((experiment, case_id, agent, *sums))
        returned = self._dialect.insert(self._connection, self.rows, self._texts)
        for values in self.rows.values():
            values.clear()
        self._texts.clear()
        for experiment, case_id, agent, runs, passed, failed in returned:
            # What the cell was before, it is now without what was added.
            changes = self._rollups[experiment]
            cell = changes.cells[case_id, agent]
            changes.move(agent, runs - cell.runs, passed - cell.passed, failed - cell.failed, -1)
            changes.move(agent, runs, passed, failed)
        tallies = self.rows[TALLY]
        for experiment, changes in self._rollups.items():
            for key, tally in changes.tallies.items():
                if tally.runs or tally.counted or tally.total:
                    tallies.extend((experiment, *key, *astuple(tally)))


class Operation(Protocol[T]):
    """Something to write. It may be carried out several times, and only the last one counts."""

    size: int = SMALL
    """Bytes that it brings, roughly."""
    ready: bool = False
    """Whether there is nothing to prepare."""
    unsure: bool = False
    """Whether a commit of it broke off, and may have gone through all the same; the writer says so."""

    def prepare(self, packer: Packer) -> None:
        """What can be done before the transaction; called once, by the writer, which then has the packer pack."""
        return

    def run(self, to: Transaction) -> T | SeatrialError:
        """Write, and say what the receipt will.

        An error that is returned is this operation's own, which has written nothing. One that is raised undoes all
        that is written together; then each operation is carried out alone.
        """
