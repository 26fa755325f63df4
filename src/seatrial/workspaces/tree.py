"""What a folder holds, whatever an agent made of it: read by descriptors, without following a link or waiting for
anything, and within bounds."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from hashlib import blake2b
from pathlib import Path
from typing import IO, Literal, NamedTuple, Self

from seatrial._support.path_pattern import PathPatterns

MAX_TEXT = 1024 * 1024
"""Bytes of the longest file whose text is kept."""
MAX_DEPTH = 100
"""Folders in each other."""
REPOSITORY = ".git"
"""The entry at the top that is left out: the repository that the agent commits to."""
_CHUNK = 1024 * 1024
_DIGEST = 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: between two looks, a file may become a FIFO.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LookBounds(NamedTuple):
    """How much of a folder is looked at."""

    files: int
    size: int
    """Bytes that are read."""
    until: float
    """By the monotonic clock."""


class Entry(NamedTuple):
    """A file, a link or something else in a folder."""

    kind: Literal["file", "link", "other"]
    executable: bool = False
    size: int = 0
    digest: bytes | None = None
    """Of the content; None when it was not read."""
    place: int | None = None
    """Where the snapshot keeps its text; None when it has none, or it is too long."""
    unreadable: bool = False


class FolderSnapshot:
    """The entries of a folder by their paths, and their texts: in a file without a name, which no agent finds."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.problem = ""
        """Why there may be more than these; empty when there is not."""
        self._texts: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the texts go."""
        self._texts.close()

    def text(self, path: str) -> bytes | None:
        """The text of a file, or the target of a link; None when it is not kept."""
        entry = self.entries[path]
        if entry.place is None:
            return None
        data = os.pread(self._texts.fileno(), entry.size, entry.place)
        return data if len(data) == entry.size else None

    def keep(self, data: bytes) -> int:
        """Keep a text; gives its place."""
        place = self._end
        written = 0
        while written < len(data):
            written += os.pwrite(self._texts.fileno(), data[written:], place + written)
        self._end += len(data)
        return place


def snapshot(
    folder: Path, ignored: PathPatterns, bounds: LookBounds, before: FolderSnapshot | None = None
) -> FolderSnapshot:
    """What a folder holds now. Raises `OSError` when there is no such folder, or no room to keep the texts.

    With `before`, only what may have changed since then is read and kept.
    """
    taken = FolderSnapshot()
    try:
        walk = _Walk(taken, ignored, bounds, before)
        top = os.open(folder, _FOLDER)
        try:
            walk.folder(top, "", 0)
        except _StoppedError as stopped:
            taken.problem = str(stopped)
        finally:
            os.close(top)
    except BaseException:
        taken.close()
        raise
    return taken


class _StoppedError(Exception):
    """A bound is reached."""


class _Walk:
    """One look at a folder."""

    def __init__(
        self, taken: FolderSnapshot, ignored: PathPatterns, bounds: LookBounds, before: FolderSnapshot | None
    ) -> None:
        self._taken = taken
        self._ignored = ignored
        self._bounds = bounds
        self._before = None if before is None else before.entries
        self._seen = 0
        self._read = 0

    def folder(self, folder: int, prefix: str, depth: int) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                self._check_time()
                path = prefix + entry.name
                if path == REPOSITORY or self._ignored.fitting(path) is not None:
                    continue
                self._seen += 1
                if self._seen > self._bounds.files:
                    raise _StoppedError(f"it has more than {self._bounds.files:,} files and folders (`max_files`)")
                try:
                    self._entry(folder, entry.name, path, depth)
                except FileNotFoundError:
                    self._miss(f"{shown(path)} went away while it was looked at")

    def _entry(self, folder: int, name: str, path: str, depth: int) -> None:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            self._inner(folder, name, path, depth)
        elif stat.S_ISLNK(status.st_mode):
            target = os.fsencode(os.readlink(name, dir_fd=folder))
            digest = blake2b(target, digest_size=_DIGEST).digest()
            place = self._taken.keep(target) if is_text(target) else None
            self._taken.entries[path] = Entry("link", False, len(target), digest, place)
        elif stat.S_ISREG(status.st_mode):
            self._taken.entries[path] = self._file(folder, name, path, status)
        else:
            self._taken.entries[path] = Entry("other")

    def _inner(self, folder: int, name: str, path: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            self._miss(f"{shown(path)} is more than {MAX_DEPTH} folders deep")
            return
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            self._miss(f"the folder {shown(path)} cannot be read: {error.strerror}")
            return
        try:
            self.folder(inner, f"{path}/", depth + 1)
        except PermissionError as error:  # it can be listed, and not entered
            self._miss(f"the folder {shown(path)} cannot be read: {error.strerror}")
        finally:
            os.close(inner)

    def _file(self, folder: int, name: str, path: str, status: os.stat_result) -> Entry:
        size, executable = status.st_size, bool(status.st_mode & 0o111)
        was = None if self._before is None else self._before.get(path)
        # What is new, or has another size, has changed: it is read for its text alone.
        decided = self._before is not None and (was is None or was.kind != "file" or was.size != size)
        if decided and size > MAX_TEXT:
            return Entry("file", executable, size)
        if self._read + size > self._bounds.size:
            if not decided:
                self._miss(f"its files are larger than {self._bounds.size:,} bytes (`max_bytes`)")
            return Entry("file", executable, size)
        try:
            descriptor = os.open(name, _FILE, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError:
            return Entry("file", executable, size, unreadable=True)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Entry("other")
            entry, text = self._content(descriptor, executable)
        except OSError:
            return Entry("file", executable, size, unreadable=True)
        finally:
            os.close(descriptor)
        if text is None or (was is not None and was.digest == entry.digest) or not is_text(text):
            return entry
        return entry._replace(place=self._taken.keep(text))

    def _content(self, descriptor: int, executable: bool) -> tuple[Entry, bytes | None]:
        """What a file holds, with its bytes where they are few enough for a text."""
        digest, size, text = blake2b(digest_size=_DIGEST), 0, bytearray()
        while chunk := os.read(descriptor, _CHUNK):
            self._check_time()
            size += len(chunk)
            self._read += len(chunk)
            if self._read > self._bounds.size:  # it grows while it is read
                self._miss(f"its files are larger than {self._bounds.size:,} bytes (`max_bytes`)")
                return Entry("file", executable, size), None
            digest.update(chunk)
            if size <= MAX_TEXT:
                text += chunk
        return Entry("file", executable, size, digest.digest()), bytes(text) if size <= MAX_TEXT else None

    def _check_time(self) -> None:
        if time.monotonic() > self._bounds.until:
            raise _StoppedError("looking at it took too long")

    def _miss(self, problem: str) -> None:
        self._taken.problem = self._taken.problem or problem


def is_text(data: bytes) -> bool:
    """Whether a file is text that can be shown."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def shown(path: str) -> str:
    """A path as text that every encoding has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
