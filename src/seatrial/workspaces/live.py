"""The workspace of one attempt: a copy for the agent alone, its baseline, and what became of it."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from contextlib import AsyncExitStack
from pathlib import Path

from seatrial._support.path_pattern import PathPatterns
from seatrial.agents.agent import RunWorkspace
from seatrial.agents.cli.process import Process
from seatrial.agents.cli.sandbox import Sandbox, SandboxedCommand
from seatrial.errors import SeatrialError
from seatrial.graders.grader import CommandEnd
from seatrial.runs.workspace import WorkspaceDiff, WorkspaceSource
from seatrial.workspaces.diff import difference
from seatrial.workspaces.git import commit_baseline
from seatrial.workspaces.source import copy_source
from seatrial.workspaces.tree import FolderSnapshot, LookBounds, shown, snapshot

LOOK_S = 120.0
"""How long looking at a workspace may take."""
MAX_OUTPUT = 64 * 1024
"""Bytes of the output of a command that are kept: the last."""
_KEPT_VARIABLES = ("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "USER", "LOGNAME", "SHELL")
"""What of our environment a program in a workspace gets, besides `LC_*`."""


def clean_environment(home: Path, temporary: Path) -> dict[str, str]:
    """The environment of a program in a workspace: nothing of ours that may be secret, or lead to what is."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT_VARIABLES or name.startswith("LC_")}
    return {**kept, "HOME": str(home), "TMPDIR": str(temporary)}


class LiveWorkspace:
    """A workspace that is there. Closing it removes it."""

    def __init__(
        self, source: WorkspaceSource, folder: Path, stack: AsyncExitStack, sandbox: Sandbox | None = None
    ) -> None:
        """`folder` is empty, and for this alone; it goes with the stack."""
        self._sandbox = sandbox
        self._source = source
        self._ignored = PathPatterns(source.ignore)
        self._folder = folder
        self._stack = stack
        self._baseline: FolderSnapshot | None = None
        self._turn = asyncio.Lock()
        self._homes = 0
        self.abandoned = ""
        """Why nobody knows what happens in it; empty when it is known."""
        work, home, temporary = (folder / name for name in ("workspace", "home", "tmp"))
        for made in (work, home, temporary):
            made.mkdir()
        self.place = RunWorkspace(folder=work, home=home, environment=clean_environment(home, temporary))

    async def fill(self, directory: Path) -> None:
        """Copy the source, run its `setup`, and take the baseline. Raises `SeatrialError` or `OSError`."""
        await asyncio.to_thread(copy_source, self._source, directory, self.place.folder)
        if self._source.setup is not None:
            await self._set_up(self._source.setup)
        await asyncio.to_thread(commit_baseline, self.place.folder)
        baseline = await asyncio.to_thread(self._look)
        self._stack.callback(baseline.close)
        self._baseline = baseline
        unread = next((path for path, entry in baseline.entries.items() if entry.unreadable), None)
        if unread is not None:
            raise SeatrialError("workspace_failed", f"{shown(unread)} in the workspace cannot be read")
        if baseline.problem:
            raise SeatrialError("workspace_failed", f"the workspace cannot be used: {baseline.problem}")

    async def diff(self) -> WorkspaceDiff:
        """What the agent changed. Never raises for what it did."""
        if self.abandoned:
            return WorkspaceDiff(unlisted=self.abandoned)
        try:
            return await asyncio.to_thread(self._compare)
        except (OSError, SeatrialError) as error:
            told = error.message if isinstance(error, SeatrialError) else error.strerror or str(error)
            return WorkspaceDiff(unlisted=f"the workspace cannot be read: {told}")

    async def run(self, argv: list[str], limit_s: float) -> CommandEnd:
        """Run a command in the workspace as it is now, with a home of its own: what the agent left in its own decides
        nothing. One after the other. Raises `OSError` when it cannot be started, and `SeatrialError`."""
        async with self._turn:
            if self.abandoned:
                raise SeatrialError("workspace_failed", self.abandoned)
            self._homes += 1
            home = self._folder / f"home-{self._homes}"
            # Fails where the agent made one that lies in wait.
            home.mkdir()
            (home / "tmp").mkdir()
            command = SandboxedCommand(argv, clean_environment(home, home / "tmp"))
            if self._sandbox is not None:
                command = self._sandbox.wrap(argv, str(self.place.folder), [str(home)], command.environment)
            ended = await self._command(command, limit_s)
            if self._sandbox is not None and ended.code and self._sandbox.failed(ended.code, ended.log):
                raise SeatrialError("workspace_failed", f"it cannot be started in the sandbox: {ended.log}")
            return ended

    async def close(self) -> None:
        """Remove it."""
        await self._stack.aclose()

    def _look(self, before: FolderSnapshot | None = None) -> FolderSnapshot:
        bounds = LookBounds(self._source.max_files, self._source.max_bytes, time.monotonic() + LOOK_S)
        return snapshot(self.place.folder, self._ignored, bounds, before)

    def _compare(self) -> WorkspaceDiff:
        if self._baseline is None:
            raise SeatrialError("workspace_failed", "it has no baseline")
        scratch = self._folder / "diff"
        scratch.mkdir()
        try:
            after = self._look(self._baseline)
        except FileNotFoundError:
            after = FolderSnapshot()  # the agent removed all of it
        with after:
            return difference(self._baseline, after, scratch)

    async def _set_up(self, command: str | list[str]) -> None:
        argv = shlex.split(command) if isinstance(command, str) else command
        try:
            outside = SandboxedCommand(argv, dict(self.place.environment))
            ended = await self._command(outside, self._source.setup_timeout_s)
        except OSError as error:
            told = f"`setup` of the workspace cannot be started: {error.strerror}"
            raise SeatrialError("workspace_failed", told) from None
        if ended.code is None:
            told = f"`setup` of the workspace took longer than {self._source.setup_timeout_s:g} s"
            raise SeatrialError("workspace_failed", told)
        if ended.code != 0:
            said = ended.log or ended.output[-500:].strip()
            told = f"`setup` of the workspace ended with {ended.code}{f': {said}' if said else ''}"
            raise SeatrialError("workspace_failed", told)

    async def _command(self, command: SandboxedCommand, limit_s: float) -> CommandEnd:
        # Raises when the agent put something else in its place.
        os.close(os.open(self.place.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
        output, cut = bytearray(), False
        code: int | None = None
        folder = str(self.place.folder)
        process = Process(command.argv, cwd=folder, env=command.environment, afterwards=command.afterwards)
        async with process:
            try:
                async with asyncio.timeout(limit_s):
                    while part := await process.read():
                        output += part
                        if len(output) > MAX_OUTPUT:
                            cut = True
                            del output[:-MAX_OUTPUT]
                    code = await process.wait()
            except TimeoutError:
                await process.end()
            log = process.log_lines()
        if process.left_outside != 0:
            self.abandoned = "processes of a command outlive it, and may change the workspace still"
        return CommandEnd(code, output.decode("utf-8", "replace"), cut, log)
