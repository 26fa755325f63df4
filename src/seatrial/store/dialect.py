"""What SQLite and PostgreSQL do each in their own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.store.presence import Hold, Presence
from seatrial.store.rows import Insert
from seatrial.store.search import Phrase

_SECRETS = ("password", "sslpassword")
"""Parameters of PostgreSQL's that may stand behind the `?`."""

GatheredRows: TypeAlias = Mapping[Insert[Any], Sequence[msgspec.Struct]]
"""Rows to be stored, by how they go into their tables."""
IndexedTexts: TypeAlias = Sequence[tuple[int, str]]
"""Integers of runs, each with the text that search finds it by."""

Callback: TypeAlias = Callable[[str], None]
"""Takes the id of a run that another process has changed; called in the listener's thread, so it must be quick."""


class Failure(msgspec.Struct, frozen=True):
    """What a database error means to the writer."""

    kind: Literal["conflict", "busy", "lost", "refused"]
    """`conflict`: something is there already, or a parent is missing. `busy`: the same transaction may succeed later.
    `lost`: so it may, on a new connection, and it is not known whether the old one committed. `refused`: it cannot."""
    error: SeatrialError
    """What a caller is told when it comes to that."""


class Listener(Protocol):
    """Calls back until it is closed. Notices that come while it is not live are missed."""

    @property
    def live(self) -> bool:
        """Whether notices come in now; otherwise the store has to be asked."""

    def close(self) -> None:
        """No call begins after this has returned."""


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


def shown(url: sa.URL) -> str:
    """The URL of a database as it may stand in a message or a log: without passwords."""
    return url.difference_update_query(_SECRETS).render_as_string(hide_password=True)
