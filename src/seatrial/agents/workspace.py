"""Temporary directories for programs under test, removed also when this process is killed.

Each holds a locked file for as long as its owner lives. The lock goes with the owner, however it ends, and the next
workspace that is opened removes every directory whose lock can be had.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from seatrial.errors import SeatrialError

PREFIX = "seatrial-agent-"
_LOCK = "lock"


class Workspace:
    """A directory in which each run has one of its own."""

    def __init__(self) -> None:
        """Make the directory. Raises `SeatrialError` when that cannot be done."""
        self._made = 0
        try:
            root = Path(tempfile.gettempdir())
            remove_leftovers(root)
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
            self._lock = _locked(self.path)
        except OSError as error:
            raise SeatrialError("unwritable_file", f"there is no room for temporary files: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        remove(self.path)
        os.close(self._lock)

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[Path]:
        """An empty directory for one run. Raises `OSError` when it cannot be made."""
        self._made += 1
        path = self.path / str(self._made)
        path.mkdir(mode=0o700)
        try:
            yield path
        finally:
            await asyncio.to_thread(remove, path)


def _locked(path: Path) -> int:
    # Locked before it has its name: nobody finds it unlocked.
    unnamed = path / "new"
    lock = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(path / _LOCK)
    return lock


def remove(path: Path) -> None:
    """Remove a directory and all that a program left in it; what resists stays."""
    shutil.rmtree(path, onerror=_insist)


def remove_leftovers(root: Path) -> None:
    """Remove the directories of owners that are gone."""
    for path in root.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if path.lstat().st_uid != os.geteuid() or not stat.S_ISDIR(path.lstat().st_mode):
                continue
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
            finally:
                os.close(lock)


def _insist(function: Callable[[str], object], path: str, exc_info: object) -> None:
    # A program may have made a directory that nothing can be removed from.
    with suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        function(path)
