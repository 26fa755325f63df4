"""The seam between what is written and the database that it is written to.

A `Dialect` is what SQLite and PostgreSQL do each in their own way. In a `Transaction` of the writer, an `Operation` has
its rows gathered, so that they go to the database in as few statements as possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.store.counts import recount
from seatrial.store.documents import Packer
from seatrial.store.presence import Hold, Presence
from seatrial.store.rollups import Changes, Counted
from seatrial.store.rows import ADD_TO_CELL, ADD_TO_TALLY, INSERT_EVENTS, INSERTS, EventsRow, Insert
from seatrial.store.schema import VERSION_TABLE, tallies
from seatrial.store.search import Phrase

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T", covariant=True)

SMALL = 256
"""Bytes of an operation that brings no documents, roughly."""
LIVE_RUNS = 10_000
"""Runs whose place in their event log is remembered between transactions."""

_PROBE = sa.text(f"UPDATE {VERSION_TABLE} SET version_num = version_num")  # noqa: S608 (our name)
_SECRETS = ("password", "sslpassword")
"""Parameters of PostgreSQL's that may stand behind the `?`."""

GatheredRows: TypeAlias = Mapping[Insert[Any], Sequence[msgspec.Struct]]
"""Rows to be stored, by how they go into their tables."""
IndexedTexts: TypeAlias = Sequence[tuple[int, str]]
"""Integers of runs, each with the text that search finds it by."""

Callback: TypeAlias = Callable[[str], None]
"""Takes the id of a run that another process has changed; called in the listener's thread, so it must be quick."""


class DatabaseFailure(msgspec.Struct, frozen=True):
    """What a database error means to the writer."""

    kind: Literal["conflict", "busy", "lost", "refused"]
    """`conflict`: something is there already, or a parent is missing. `busy`: the same transaction may succeed later.
    `lost`: so it may, on a new connection, and it is not known whether the old one committed. `refused`: it cannot."""
    error: SeatrialError
    """What a caller gets if it is not tried again."""


class Listener(Protocol):
    """Calls back until it is closed. Notices that come while it is not live are missed."""

    @property
    def live(self) -> bool:
        """Whether notices come in now; otherwise the store has to be asked."""

    def close(self) -> None:
        """No call begins after this has returned."""


class Database(Protocol):
    """One database."""

    name: str
    """What error messages call this store; without the password."""
    url: sa.URL | None
    """By which other processes, also on other machines, open it; None when they cannot."""
    errors: tuple[type[Exception], ...]
    """What its driver raises, and `failure` explains."""
    reading: sa.Engine

    def connect(self) -> sa.Connection:
        """A connection for the writer. Its transactions see each other's changes, never half of them.

        A transaction begins with the first statement, and ends with `commit` or a rollback by the driver.
        """

    def check_room(self) -> None:
        """Raise `store_full` when it is clear beforehand that there is no room."""

    def migrating(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that no other process migrates this store beside."""

    def is_foreign(self, connection: sa.Connection) -> bool:
        """Whether this database, which has no version of ours, has tables of another program."""

    def run_numbers(self, connection: sa.Connection) -> Iterator[int]:
        """Integers for new runs, for the length of this transaction."""

    def insert(
        self,
        connection: sa.Connection,
        rows: GatheredRows,
        texts: IndexedTexts,
    ) -> list[tuple[Any, ...]]:
        """Store rows, and index texts for search; after an error the transaction can only be rolled back.

        Gives what the inserts return that return anything.
        """

    def commit(
        self,
        connection: sa.Connection,
        rows: GatheredRows,
        texts: IndexedTexts,
        changed: Iterable[str],
    ) -> None:
        """Do the same with the last rows and commit, in as few steps as there can be.

        Other processes are notified of the runs that have changed, where the database can do that.
        """

    def lock_tallies(self, connection: sa.Connection) -> None:
        """Let nobody else change tallies until this transaction has ended; waits for those who do."""

    def create_index(self, connection: sa.Connection) -> None:
        """Make what `insert` puts the texts into."""

    def matching(self, phrases: list[Phrase]) -> sa.Select[tuple[int]]:
        """Selects the integers of the runs that contain all phrases, as column `run`."""

    def claim(self, server_id: str) -> Presence:
        """Say that a server is alive; `conflict` when another one is that there can be only one of."""

    def note_address(self, address: str) -> None:
        """Say where the server is that was claimed, for `served_at`."""

    def served_at(self) -> str | None:
        """Where the server of the store is, if there is just one, and it said so."""

    def hold(self, number: int, experiment_id: str) -> Hold:
        """Take the right to run an experiment; `conflict` when another process has it."""

    def listen(self, callback: Callback) -> Listener:
        """Listen for runs that other processes change."""

    def failure(self, error: Exception) -> DatabaseFailure:
        """What one of `errors` means."""

    def close(self) -> None:
        """Close what is not in use."""


def opened_for_reading(name: str) -> SeatrialError:
    """The error of a write to a store that was opened to be read."""
    return SeatrialError("store_unavailable", f"{name} was opened to be read only")


def shown(url: sa.URL) -> str:
    """The URL of a database as it may stand in a message or a log: without passwords."""
    return url.difference_update_query(_SECRETS).render_as_string(hide_password=True)


def without_passwords(url: sa.URL) -> str:
    """The URL of a database as it is, but without passwords: for processes that have the password from elsewhere."""
    return url.difference_update_query(_SECRETS)._replace(password=None).render_as_string(hide_password=False)


class Transaction:
    """What an operation writes to."""

    def __init__(
        self, dialect: Database, connection: sa.Connection, live: dict[str, tuple[int, int]], careful: bool
    ) -> None:
        self.careful = careful
        """Whether to look before writing: a first try collided with something that is there already."""
        self.live = live
        """Run id -> (its integer, its next event sequence), of runs that have not ended. Emptied on rollback."""
        self.changed: list[str] = []
        """Ids of the runs that have new events or another status, of which other processes are notified."""
        self._dialect = dialect
        self._connection = connection
        self._numbers: Iterator[int] | None = None
        self._rows: dict[Insert[Any], list[Any]] = {insert: [] for insert in INSERTS}
        self.events: list[EventsRow] = self._rows[INSERT_EVENTS]
        """Of these there are the most, and they come one at a time."""
        self._texts: list[tuple[int, str]] = []
        self._counted: defaultdict[tuple[int, Literal[1, -1]], list[Counted]] = defaultdict(list)
        self._miscounted: set[int] = set()
        """Experiments whose tallies have verdicts that are lost: nobody knows what to take away from them."""
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
        if sign == -1 and not run.has_all_verdicts:
            self._miscounted.add(experiment)

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
        for experiment in sorted(self._miscounted):
            self._recount_graders(rollups[experiment], experiment)
        for changes in rollups.values():
            self.add(ADD_TO_TALLY, changes.tallies.values())

    def _recount_graders(self, changes: Changes, experiment: int) -> None:
        """Count what graders said anew, from what is stored now, in place of what was to be added."""
        self._dialect.lock_tallies(self._connection)
        kept = (tallies.c.experiment == experiment) & (tallies.c.kind == "grader")
        self._connection.execute(sa.delete(tallies).where(kept))
        counted = recount(self._connection, experiment, kept_only=True).tallies
        others = {key: tally for key, tally in changes.tallies.items() if key[0] != "grader"}
        changes.tallies = others | {key: tally for key, tally in counted.items() if key[0] == "grader"}


class Operation(Protocol[T]):
    """Something to write. It may be run several times, and only the last time counts."""

    size: int = SMALL
    """Bytes that it brings, roughly."""
    ready: bool = False
    """Whether there is nothing to prepare."""
    unsure: bool = False
    """Whether a commit of it broke off, and may have gone through nevertheless; set by the writer."""

    def prepare(self, packer: Packer) -> None:
        """What can be done before the transaction; called once, by the writer, which then has the packer pack."""
        return

    def run(self, to: Transaction) -> T | SeatrialError:
        """Write, and say what the receipt will.

        An error that is returned is this operation's own, which has written nothing. One that is raised undoes all
        that is written together; then each operation is run alone.
        """


class WriteProbe(Operation[None]):
    """Write what is there already: whether that can be done is all that is of interest."""

    ready = True

    def run(self, to: Transaction) -> None:
        to.execute(_PROBE)
