"""Which servers are alive: each holds a lock that is gone the moment it is, whatever it died of."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from seatrial.errors import SeatrialError


class Presence(Protocol):
    """A server's claim to be alive. Every method may block, and be called from any thread."""

    @property
    def lost(self) -> bool:
        """Whether the claim is known to be gone while its server lives: others may take it for dead."""

    def renew(self) -> None:
        """Claim again after a loss; `store_unavailable` while that cannot be done."""

    def dead(self, server_ids: Iterable[str]) -> set[str]:
        """Those of these servers that are surely gone. None, as long as the own claim is lost."""

    def close(self) -> None:
        """Give the claim up."""


class FileClaim:
    """The claim of the one server that a SQLite file can have: a lock on a file beside it."""

    lost = False

    def __init__(self, store: Path, server_id: str) -> None:
        store = store.resolve()  # whatever name it was opened by
        path = store.with_name(f"{store.name}-serve")
        self._server_id = server_id
        try:
            # Not inherited by the programs that a server starts, so that none of them holds it longer.
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise SeatrialError("store_unavailable", f"{path}: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            if not isinstance(error, BlockingIOError):
                raise SeatrialError("store_unavailable", f"{path}: {error.strerror}") from None
            hint = "a SQLite file has one server at a time; stop that one, or keep the store in PostgreSQL"
            raise SeatrialError("conflict", f"another server has {store} open", hint=hint) from None

    def renew(self) -> None:
        """Nothing can take it away."""

    def dead(self, server_ids: Iterable[str]) -> set[str]:
        return set(server_ids) - {self._server_id}

    def close(self) -> None:
        # The file stays: another server may be about to lock it.
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
