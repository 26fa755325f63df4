"""Temporary directories for programs under test, removed also when this process is killed.

Each is locked for as long as its owner lives. The lock goes with the owner, however it ends, and the next one that is
opened removes those whose lock can be had. A mark in each says that it is ours: its own inode, so that a copy is not.
What a program does to its directory, also if it removes or replaces it, never leads us to another one.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import msgspec

from seatrial.agents.cli import removal
from seatrial.errors import SeatrialError, lacking

PREFIX = "seatrial-agent-"
RUN_LIMIT_S = 2.0
"""How long a run waits for its files to be removed; what is left then goes with the scratch directory."""
CLOSE_LIMIT_S = 20.0
"""How long the end of an experiment waits for it; what is left then is removed at the next start."""
LEFTOVERS_LIMIT_S = 10.0
"""How long a start waits for what others left."""

_MARK = ".seatrial"
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger("seatrial.agents")


class Folder(msgspec.Struct):
    """An empty directory for one run."""

    path: Path
    left: str | None = None
    """After the run: why not all of it could be removed."""


class Scratch:
    """A directory in which each run has one of its own. Opening and closing it blocks."""

    def __init__(self) -> None:
        """Make the directory. Raises `SeatrialError` when that cannot be done."""
        self._made = 0
        try:
            root = os.path.realpath(tempfile.gettempdir())
            remove_leftovers(root)
            self._directories = [_Directory(root)]
        except OSError as error:
            files = lacking(error) == "open files"
            raise SeatrialError(
                "unwritable_file",
                f"there is no space for temporary files: {error.strerror}",
                hint="raise the limit of open files (`ulimit -n`), or run fewer at once (`--concurrency`)"
                if files
                else "free some space in the temporary directory, or name another one in TMPDIR",
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for directory in self._directories:
            left = directory.remove(CLOSE_LIMIT_S)
            directory.close()
            if left is not None:
                _log.warning(
                    "warning: files of an agent are left in %s: %s; the next start tries again", directory.path, left
                )

    @property
    def path(self) -> Path:
        """Where the directories of the runs are."""
        return self._directories[-1].path

    @asynccontextmanager
    async def folder(self) -> AsyncIterator[Folder]:
        """An empty directory for one run. Raises `OSError` when it cannot be made."""
        directory = self._directories[-1]
        if not directory.in_place:
            # A program removed it, and all that the runs beside it had.
            directory = _Directory(str(directory.path.parent))
            self._directories.append(directory)
        self._made += 1
        name = str(self._made)
        folder = Folder(directory.path / name)
        os.mkdir(name, 0o700, dir_fd=directory.descriptor)
        try:
            yield folder
        finally:
            folder.left = await asyncio.to_thread(removal.remove, directory.descriptor, name, limit_s=RUN_LIMIT_S)


class _Directory:
    """A directory that we made, by its descriptor: whatever stands under its name later, this is the one."""

    def __init__(self, root: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.descriptor = os.open(self.path.name, _OPEN_DIRECTORY, dir_fd=self._root)
            try:
                # Marked after it is locked: nobody finds it marked and unlocked while we live.
                fcntl.flock(self.descriptor, fcntl.LOCK_EX)
                _mark(self.descriptor)
            except OSError:
                os.close(self.descriptor)
                raise
        except OSError:
            os.close(self._root)
            raise

    @property
    def in_place(self) -> bool:
        """Whether it is still what its name stands for."""
        return _is_entry(self._root, self.path.name, self.descriptor)

    def remove(self, limit_s: float) -> str | None:
        """Remove it with all that is in it; why that could not be done, if it could not."""
        return _remove(self._root, self.path.name, self.descriptor, limit_s)

    def close(self) -> None:
        """Give up the lock."""
        os.close(self.descriptor)
        os.close(self._root)


def remove_leftovers(root: str | Path) -> None:
    """Remove the directories of owners that are gone."""
    deadline = time.monotonic() + LEFTOVERS_LIMIT_S
    parent = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in os.listdir(parent):
            if name.startswith(PREFIX) and (left_s := deadline - time.monotonic()) > 0:
                # Not a directory, not ours, locked, or removed by another: not our business.
                with suppress(OSError):
                    _remove_leftover(parent, name, left_s)
    finally:
        os.close(parent)


def _remove_leftover(parent: int, name: str, limit_s: float) -> None:
    directory = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
    try:
        if os.fstat(directory).st_uid == os.geteuid() and _is_marked(directory):
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(parent, name, directory, limit_s)
    finally:
        os.close(directory)


def _remove(parent: int, name: str, directory: int, limit_s: float) -> str | None:
    # The mark goes last, so that what is left is known as ours.
    left = removal.empty(directory, keep=_MARK, limit_s=limit_s)
    if left is None and _is_entry(parent, name, directory):
        try:
            with suppress(FileNotFoundError):
                os.unlink(_MARK, dir_fd=directory)
            os.rmdir(name, dir_fd=parent)
        except OSError as error:
            left = error.strerror
    return left


def _is_entry(parent: int, name: str, directory: int) -> bool:
    try:
        return os.path.samestat(os.stat(name, dir_fd=parent, follow_symlinks=False), os.fstat(directory))
    except OSError:
        return False


def _mark(directory: int) -> None:
    mark = os.open(_MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        os.write(mark, b"%d\n" % os.fstat(directory).st_ino)
    finally:
        os.close(mark)


def _is_marked(directory: int) -> bool:
    mark = os.open(_MARK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        return os.read(mark, 32) == b"%d\n" % os.fstat(directory).st_ino
    finally:
        os.close(mark)
