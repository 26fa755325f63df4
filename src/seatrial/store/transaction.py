"""One transaction of the writer: rows are gathered, and go to the database in as few statements as possible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Protocol, TypeVar

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.store.dialect import Dialect
from seatrial.store.documents import Packer
from seatrial.store.rollups import Changes, Counted
from seatrial.store.rows import ADD_TO_CELL, ADD_TO_TALLY, INSERT_EVENTS, INSERTS, EventsRow, Insert
from seatrial.store.schema import VERSION_TABLE

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T", covariant=True)

SMALL = 256
"""Bytes of an operation that brings no documents, roughly."""
LIVE_RUNS = 10_000
"""Runs whose place in their event log is remembered between transactions."""

_PROBE = sa.text(f"UPDATE {VERSION_TABLE} SET version_num = version_num")  # noqa: S608 (our name)


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
        self._rows: dict[Insert[Any], list[Any]] = {insert: [] for insert in INSERTS}
        self.events: list[EventsRow] = self._rows[INSERT_EVENTS]
        """Of these there are the most, and they come one at a time."""
        self._texts: list[tuple[int, str]] = []
        self._counted: defaultdict[tuple[int, Literal[1, -1]], list[Counted]] = defaultdict(list)
        if len(live) > LIVE_RUNS:
            live.clear()

    def add(self, insert: Insert[R], rows: Iterable[R]) -> None:
        """Gather rows of one table."""
        self._rows[insert] += rows

    def index(self, run: int, text: str) -> None:
        """Gather the words of a run for search."""
        self._texts.append((run, text))

    def count(self, experiment: int, run: Counted, sign: Literal[1, -1] = 1) -> None:
        """Gather a run for the rollups of its experiment; with -1, one that counts no more."""
        self._counted[experiment, sign].append(run)

    def new_run(self) -> int:
        """The integer of a run that is not in the store yet."""
        if self._numbers is None:
            self._numbers = self._dialect.run_numbers(self._connection)
        return next(self._numbers)

    def execute(self, statement: sa.Executable, **parameters: object) -> sa.CursorResult[Any]:
        """Run a statement after everything gathered so far."""
        if any(self._rows.values()):
            self._insert()
        return self._connection.execute(statement, parameters)

    def commit(self) -> None:
        """Send the rest, and end."""
        # Rollups come last: other processes wait for these rows until this transaction has ended.
        if self._counted:
            self._roll_up()
        self._dialect.commit(self._connection, self._rows, self._texts, self.changed)

    def _insert(self) -> list[tuple[Any, ...]]:
        """Send what was gathered."""
        returned = self._dialect.insert(self._connection, self._rows, self._texts)
        for rows in self._rows.values():
            rows.clear()
        self._texts.clear()
        return returned

    def _roll_up(self) -> None:
        rollups: dict[int, Changes] = {}
        for (experiment, sign), runs in self._counted.items():
            rollups.setdefault(experiment, Changes(experiment)).add(runs, sign)
        for changes in rollups.values():
            self.add(ADD_TO_CELL, changes.cells.values())
        for experiment, case_id, agent, runs, passed, failed in self._insert():
            # What the cell was before, it is now without what was added.
            changes = rollups[experiment]
            cell = changes.cells[case_id, agent]
            changes.move(agent, runs - cell.runs, passed - cell.passed, failed - cell.failed, -1)
            changes.move(agent, runs, passed, failed)
        for changes in rollups.values():
            self.add(ADD_TO_TALLY, changes.tallies.values())


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


class Probe(Operation[None]):
    """Write what is there already: whether that can be done is all that is of interest."""

    ready = True

    def run(self, to: Transaction) -> None:
        to.execute(_PROBE)
