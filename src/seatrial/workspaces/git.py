"""Running git so that nothing but our arguments decides what it does: no hooks, no configuration of anybody's."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from seatrial.errors import SeatrialError

GIT_S = 120.0
"""How long one command of git may take."""
MAX_OUTPUT = 64 * 1024 * 1024
_SAFE = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "gc.auto=0",
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}


def check_git() -> None:
    """Raise `SeatrialError` when there is no git on this machine."""
    if shutil.which("git") is None:
        raise SeatrialError("workspace_failed", "a workspace needs `git`, which is not on the PATH", hint="install git")


def git(*arguments: str, cwd: Path, variables: Mapping[str, str] | None = None, codes: tuple[int, ...] = (0,)) -> bytes:
    """What a command of git prints. Raises `SeatrialError` when it ends with another code than these. Blocks."""
    check_git()
    environment = {"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT, **(variables or {})}
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *_SAFE, *arguments],  # noqa: S607 - that of the PATH
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SeatrialError("workspace_failed", f"`git {arguments[0]}` took longer than {GIT_S:g} s") from None
    if done.returncode not in codes:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SeatrialError("workspace_failed", f"`git {arguments[0]}`: {told[-1] if told else done.returncode}"[:500])
    return done.stdout


def commit_baseline(folder: Path) -> None:
    """Make a repository of a folder with one commit, for agents that want one. It is theirs: nothing of ours reads it.

    The commit is the same whenever the files are the same.
    """
    if os.path.lexists(folder / ".git"):
        return  # `setup` made it
    who = {"NAME": "Seatrial", "EMAIL": "seatrial@localhost", "DATE": "2000-01-01T00:00:00Z"}
    variables = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    git("init", "--quiet", "--template=", "--initial-branch=main", cwd=folder)
    git("add", "--all", cwd=folder)
    git("commit", "--quiet", "--allow-empty", "--no-verify", "--message=baseline", cwd=folder, variables=variables)
