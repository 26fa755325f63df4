"""Which servers are alive, and who runs an experiment: locks that are gone the moment their owner is."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from seatrial.errors import SeatrialError

MAX_ADDRESS = 200


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
        path = _serving(store)
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
            raise SeatrialError("conflict", f"another server has {store.resolve()} open", hint=hint) from None
        with suppress(OSError):
            os.ftruncate(self._file, 0)  # the address of a server before

    def renew(self) -> None:
        """Nothing can take it away."""

    def dead(self, server_ids: Iterable[str]) -> set[str]:
        return set(server_ids) - {self._server_id}

    def close(self) -> None:
        # The file stays: another server may be about to lock it.
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def note_address(store: Path, address: str) -> None:
    """Say at which address the server of a SQLite file is reached. Nobody needs it: where it cannot be written, it is
    not there."""
    with suppress(OSError):
        _serving(store).write_text(address, encoding="utf-8")


def noted_address(store: Path) -> str | None:
    """The address of the server that a SQLite file has; None where it has none, or it said nothing."""
    try:
        with _serving(store).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read(MAX_ADDRESS).decode("utf-8", "replace").strip() or None
    except OSError:
        pass
    return None  # the server that wrote it is gone


def _serving(store: Path) -> Path:
    store = store.resolve()  # whatever name it was opened by
    return store.with_name(f"{store.name}-serve")


class MemoryLocks:
    """Locks of a store in memory, which only its own process can open: the first caller holds it until it is closed."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def take(self, name: str) -> bool:
        """Whether nobody had it."""
        with self._lock:
            taken = name not in self._held
            self._held.add(name)
        return taken

    def give_up(self, name: str) -> None:
        """Let others have it."""
        with self._lock:
            self._held.discard(name)


class MemoryClaim:
    """The claim of the one server that a store in memory can have."""

    lost = False

    def __init__(self, locks: MemoryLocks, server_id: str) -> None:
        self._locks: MemoryLocks | None = locks
        self._server_id = server_id
        if not locks.take("server"):
            raise SeatrialError("conflict", "another server has this store in memory open")

    def renew(self) -> None:
        """Nothing can take it away."""

    def dead(self, server_ids: Iterable[str]) -> set[str]:
        return set(server_ids) - {self._server_id}

    def close(self) -> None:
        if self._locks is not None:
            self._locks.give_up("server")
            self._locks = None


class MemoryHold:
    """The right to run an experiment of a store in memory."""

    def __init__(self, locks: MemoryLocks, experiment_id: str) -> None:
        self._locks: MemoryLocks | None = locks
        self._name = f"experiment {experiment_id}"
        if not locks.take(self._name):
            raise being_run(experiment_id, this_process())

    def check(self) -> None:
        """Nothing can take it away."""

    def close(self) -> None:
        if self._locks is not None:
            self._locks.give_up(self._name)
            self._locks = None


class Hold(Protocol):
    """The right to run an experiment, which one process has at a time."""

    def check(self) -> None:
        """Take it again if it was lost; `conflict` when another process was quicker. Blocks."""

    def close(self) -> None:
        """Give it up."""


class FileHold:
    """The right to run an experiment of a SQLite file: a lock on a file beside it, which is removed afterwards."""

    def __init__(self, store: Path, number: int, experiment_id: str) -> None:
        store = store.resolve()
        self._path = store.with_name(f"{store.name}-run-{number}")
        try:
            self._file = self._locked(experiment_id)
        except OSError as error:
            raise SeatrialError("store_unavailable", f"{self._path}: {error.strerror}") from None

    def check(self) -> None:
        """Nothing can take it away."""

    def close(self) -> None:
        if self._file >= 0:
            # While it is locked: a process that has opened it meanwhile finds out that it is not the one of this name.
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def _locked(self, experiment_id: str) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._path.exists() and os.path.samestat(os.fstat(file), self._path.stat()):
                    os.ftruncate(file, 0)
                    os.write(file, this_process().encode())
                    return file
            except BlockingIOError:
                holder = os.read(file, 200).decode("utf-8", "replace")
                os.close(file)
                raise being_run(experiment_id, holder) from None
            except OSError:
                os.close(file)
                raise
            os.close(file)


def this_process() -> str:
    """What others can read of the holder of a lock."""
    return f"process {os.getpid()} on {socket.gethostname()[:40]}"


def being_run(experiment_id: str, holder: str | None) -> SeatrialError:
    """The error for an experiment that another process runs."""
    return SeatrialError(
        "conflict",
        f"the experiment {experiment_id} is being run by {holder or 'another process'}",
        hint="wait until that has ended, or stop it; what it has run by then is not run again",
    )
