"""Removing what a program left in a directory of ours, whatever it left there.

Everything is done relative to the descriptor of a directory that we made: no path is looked up, no link is followed,
and nothing outside is ever changed. A directory in the way is first moved to the top, next to the others: so a chain
of a hundred thousand directories takes no more descriptors and memory than one, and a mount, which cannot be moved,
is left alone.
"""

from __future__ import annotations

import os
import secrets
import stat
import time

_ROUNDS = 3
"""Times that a directory is looked through: something may still be writing to it."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def remove(parent: int, name: str, *, limit_s: float) -> str | None:
    """Remove an entry of a directory that we made, and all that is in it; why that could not be done, if it could not.

    What resists stays. Blocks for about `limit_s` at most.
    """
    removal = _Removal(time.monotonic() + limit_s)
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            os.unlink(name, dir_fd=parent)
            return None
        removal.take(parent, name)
    except FileNotFoundError:
        return None
    except OSError as error:
        removal.failed(name, error)
    except _OutOfTimeError:
        return f"removing them took longer than {limit_s:g} s"
    return removal.problem


def empty(directory: int, *, keep: str, limit_s: float) -> str | None:
    """The same for everything in a directory that we made, but for the entry `keep`."""
    removal = _Removal(time.monotonic() + limit_s)
    try:
        _permit(directory)
        removal.empty(directory, keep)
    except OSError as error:
        removal.failed(".", error)
    except _OutOfTimeError:
        return f"removing them took longer than {limit_s:g} s"
    return removal.problem


class _OutOfTimeError(Exception):
    """The deadline has come."""


class _Removal:
    """One removal, its deadline, and the first thing that resisted it."""

    def __init__(self, deadline: float) -> None:
        self.problem: str | None = None
        self._deadline = deadline
        # Not to be guessed by what is removed.
        self._moved = f".moved-{secrets.token_hex(8)}-"

    def failed(self, name: str, error: OSError) -> None:
        if self.problem is None:
            self.problem = f"{name[:80]!r}: {error.strerror}"

    def take(self, parent: int, name: str) -> None:
        """Remove a directory."""
        moved = f"{self._moved}top"
        _move(parent, name, parent, moved)
        directory = _open(parent, moved)
        try:
            self.empty(directory)
        finally:
            os.close(directory)
        os.rmdir(moved, dir_fd=parent)

    def empty(self, top: int, keep: str | None = None) -> None:
        """Remove all that is in a directory."""
        made = done = 0
        for _ in range(_ROUNDS):
            made = self._clear(top, top, made, keep)
            if made == done:
                return
            while done < made:
                name = f"{self._moved}{done}"
                done += 1
                try:
                    directory = _open(top, name)
                except OSError as error:
                    self.failed(name, error)
                    continue
                try:
                    made = self._clear(top, directory, made, None)
                    os.rmdir(name, dir_fd=top)
                except OSError as error:
                    self.failed(name, error)
                finally:
                    os.close(directory)

    def _clear(self, top: int, directory: int, made: int, keep: str | None) -> int:
        """Remove what is in a directory, and move the directories in it to the top, under the next numbers."""
        with os.scandir(directory) as entries:
            for entry in entries:
                if time.monotonic() > self._deadline:
                    raise _OutOfTimeError
                if directory == top and (entry.name == keep or entry.name.startswith(self._moved)):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        _move(directory, entry.name, top, f"{self._moved}{made}")
                        made += 1
                    else:
                        os.unlink(entry.name, dir_fd=directory)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self.failed(entry.name, error)
        return made


def _move(source: int, name: str, target: int, new_name: str) -> None:
    try:
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:
        # Moving a directory needs the right to write to it.
        _permit_entry(source, name)
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)


def _open(parent: int, name: str) -> int:
    """A directory that can be read and written."""
    try:
        directory = os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        _permit_entry(parent, name)
        directory = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        _permit(directory)
    except OSError:
        os.close(directory)
        raise
    return directory


def _permit(directory: int) -> None:
    if os.fstat(directory).st_mode & 0o700 != 0o700:
        os.fchmod(directory, 0o700)


def _permit_entry(parent: int, name: str) -> None:
    """Let us into a directory that cannot be opened; a link in its place is not followed."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return
    entry = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{entry}", 0o700)
    finally:
        os.close(entry)
