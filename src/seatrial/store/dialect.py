"""What SQLite and PostgreSQL do each in their own way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.store.inserts import Insert
from seatrial.store.notices import Callback, Listener
from seatrial.store.phrases import Phrase
from seatrial.store.presence import Hold, Presence


class Failure(msgspec.Struct, frozen=True):
    """What a database error means to the writer."""

    kind: Literal["conflict", "busy", "lost", "refused"]
    """`conflict`: something is there already, or a parent is missing. `busy`: the same transaction may succeed later.
    `lost`: so it may, on a new connection, and it is not known whether the old one committed. `refused`: it cannot."""
    error: SeatrialError
    """What a caller is told when it comes to that."""


class Dialect(Protocol):
    """One database."""

    name: str
    """What error messages call this store; without the password."""
    errors: tuple[type[Exception], ...]
    """What its driver raises, and `failure` explains."""
    reading: sa.Engine

    def connect(self) -> sa.Connection:
        """A connection for the writer. Its transactions see each other's changes, never half of them.

        A transaction begins with the first statement, and ends with `commit` or a rollback by the driver.
        """

    def check_room(self) -> None:
        """Raise `store_full` when it can be told beforehand that there is no room."""

    def migrating(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that no other process migrates this store beside."""

    def is_foreign(self, connection: sa.Connection) -> bool:
        """Whether this database, which has no version of ours, holds somebody else's tables."""

    def run_numbers(self, connection: sa.Connection) -> Iterator[int]:
        """Integers for new runs, for the length of this transaction."""

    def insert(
        self, connection: sa.Connection, rows: Mapping[Insert, list[object]], texts: list[object]
    ) -> list[tuple[Any, ...]]:
        """Store rows, and index texts for search; after an error the transaction can only be rolled back.

        The lists are flat: the values of one row after those of another, and the integer of a run before its text.
        Gives what the inserts return that return anything.
        """

    def commit(
        self,
        connection: sa.Connection,
        rows: Mapping[Insert, list[object]],
        texts: list[object],
        changed: Iterable[str],
    ) -> None:
        """Do the same with the last rows and commit, in as few steps as there can be.

        Others are told which runs have changed, where the database can do that.
        """

    def create_index(self, connection: sa.Connection) -> None:
        """Make what `insert` puts the texts into."""

    def matching(self, phrases: list[Phrase]) -> sa.Select[tuple[int]]:
        """Selects the integers of the runs that contain all phrases, as column `run`."""

    def claim(self, server_id: str) -> Presence:
        """Say that a server is alive; `conflict` when another one is that there can be only one of."""

    def hold(self, number: int, experiment_id: str) -> Hold:
        """Take the right to run an experiment; `conflict` when another process has it."""

    def listen(self, callback: Callback) -> Listener:
        """Be told which runs other processes change."""

    def failure(self, error: Exception) -> Failure:
        """What one of `errors` means."""

    def close(self) -> None:
        """Close what is not in use."""


def opened_for_reading(name: str) -> SeatrialError:
    """The error of whoever writes to a store that was opened to be read."""
    return SeatrialError("store_unavailable", f"{name} was opened to be read only")
