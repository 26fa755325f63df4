"""What keeps a program to its workspace: the seam, and bubblewrap, in which it sees the system read-only."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

PROGRAM = "bwrap"
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session")
_PERSONAL = ("/home", "/root", "/tmp", "/var/tmp", "/run/user", "/mnt", "/media", "/srv")  # noqa: S108
"""What is empty in a sandbox, besides our home, the suite's directory and where temporary files are."""


class SandboxedCommand(msgspec.Struct, frozen=True):
    """How a command is started in a sandbox."""

    argv: list[str]
    environment: dict[str, str]
    """That of `argv`, from which the command gets its own."""
    afterwards: list[str] = []
    """A command that ends the sandbox when `argv` has ended, however it ended: with 0 when nothing is left."""


class Sandbox(Protocol):
    """Where programs of one agent run."""

    has_programs: bool
    """Whether it has programs of its own, instead of those of this machine."""

    def wrap(
        self, argv: list[str], folder: str, writable: Iterable[str], environment: Mapping[str, str]
    ) -> SandboxedCommand:
        """The command that runs this one in a folder, to which it can write, as it can to the others."""

    def failed(self, code: int, log: str) -> bool:
        """Whether this is the end of a sandbox that could not be made, rather than of the command in it."""


class Bubblewrap:
    """Namespaces of Linux. The network is that of the machine: agents ask their models over it."""

    has_programs = False

    def __init__(self, directory: Path, readable: Iterable[str] = ()) -> None:
        """`directory` is the suite's; `readable` is what can be read besides the system."""
        self._directory = os.path.realpath(directory)
        self._readable = real_paths(directory, readable)

    def wrap(
        self, argv: list[str], folder: str, writable: Iterable[str], environment: Mapping[str, str]
    ) -> SandboxedCommand:
        hidden = {os.path.realpath(path) for path in (*_PERSONAL, os.path.expanduser("~"), tempfile.gettempdir())}
        hidden.add(self._directory)
        options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for path in sorted(hidden):
            if path != "/" and os.path.isdir(path):
                options += ["--tmpfs", path]
        for path in readable_files(self._readable, self._directory, argv):
            options += ["--ro-bind", path, path]
        for path in (folder, *writable):
            options += ["--bind", path, path]
        return SandboxedCommand([PROGRAM, *options, *_NAMESPACES, "--chdir", folder, "--", *argv], dict(environment))

    def failed(self, code: int, log: str) -> bool:
        return code != 0 and log.startswith(f"{PROGRAM}: ")


def has_bubblewrap() -> bool:
    """Whether there is such a program on this machine."""
    return shutil.which(PROGRAM) is not None


def real_paths(directory: Path, paths: Iterable[str]) -> list[str]:
    """Paths of a suite, without links."""
    return [os.path.realpath(directory / os.path.expanduser(path)) for path in paths]


def readable_files(readable: Iterable[str], directory: str, argv: Iterable[str]) -> list[str]:
    """What a command can read besides the system: what the suite names for it, and what the command itself names of the
    suite's directory, which is a program of the agent's, or a file for it."""
    named = [argument for argument in argv if argument.startswith(f"{directory}{os.sep}")]
    return [path for path in dict.fromkeys((*readable, *named)) if os.path.exists(path)]
