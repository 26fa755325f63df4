"""A program in bubblewrap: it sees the system read-only, and of everything personal only its own workspace."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

PROGRAM = "bwrap"
_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session")
_PERSONAL = ("/home", "/root", "/tmp", "/var/tmp", "/run/user", "/mnt", "/media", "/srv")  # noqa: S108
"""What is empty in a sandbox, besides our home, the suite's directory and where temporary files are."""


class Bubblewrap:
    """Command lines for programs of one agent. The network is that of the machine: agents ask their models over it."""

    def __init__(self, directory: Path, readable: Iterable[str] = ()) -> None:
        """`directory` is the suite's; `readable` is what can be read besides the system."""
        self._directory = os.path.realpath(directory)
        self._readable = [os.path.realpath(directory / os.path.expanduser(path)) for path in readable]

    def wrap(self, argv: list[str], folder: str, writable: Iterable[str] = ()) -> list[str]:
        """The command that runs this one in a folder, to which it can write, as it can to the others."""
        hidden = {os.path.realpath(path) for path in (*_PERSONAL, os.path.expanduser("~"), tempfile.gettempdir())}
        hidden.add(self._directory)
        options = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for path in sorted(hidden):
            if path != "/" and os.path.isdir(path):
                options += ["--tmpfs", path]
        # What the command names of the suite is a program of the agent's, or a file for it.
        named = [argument for argument in argv if argument.startswith(f"{self._directory}{os.sep}")]
        for path in (*self._readable, *named):
            if os.path.exists(path):
                options += ["--ro-bind", path, path]
        for path in (folder, *writable):
            options += ["--bind", path, path]
        return [PROGRAM, *options, *_NAMESPACES, "--chdir", folder, "--", *argv]


def has_bubblewrap() -> bool:
    """Whether there is such a program on this machine."""
    return shutil.which(PROGRAM) is not None
