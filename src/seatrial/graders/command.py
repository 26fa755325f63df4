"""`command`: whether a command succeeds in the workspace, as the agent left it."""

from __future__ import annotations

import shlex
from typing import ClassVar

from seatrial._support.patterns import Pattern
from seatrial.errors import SeatrialError
from seatrial.graders.changes import DIFF_UNKNOWN, NEEDS, without_workspace
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored, passed_if
from seatrial.runs.removed import RUN_AGAIN

WORKSPACE_GONE = "workspace_gone"
"""The code of a verdict on a stored run, whose workspace is gone."""
_SHOWN = 1000


class WorkspaceCommand(Grader):
    """Whether a command ends as it should in the workspace, after the agent. Commands of one run come one after the
    other, in the order of the suite, in the same folder. At its time limit it is ended, with everything it has
    started, and the grader is errored."""

    kind: ClassVar[str] = "command"
    default_timeout_s: ClassVar[float] = 60.0

    command: str | list[str]
    """The program and its arguments, as a list, or as text that is split as a shell would, but no shell runs. It starts
    in the workspace, with an empty home and a cleaned environment."""
    exit_code: int = 0
    """The code that it must end with."""
    output: str | None = None
    """A pattern of Python's `re` that must be found in its standard output, the last 64 KiB of which are kept."""

    def prepare(self) -> Check:
        argv = self._argv()
        try:
            pattern = None if self.output is None else Pattern(self.output)
        except SeatrialError as error:
            error.pointer = "/output"
            raise

        async def find(subject: Subject, surroundings: Surroundings) -> Finding:
            return await self._find(argv, pattern, subject)

        # The same command on the same run is not found again: it can only be run while the workspace is there.
        return Check(find, keeps_time=True, queues=True, of_diff=True, needs=NEEDS)

    def _argv(self) -> list[str]:
        try:
            argv = shlex.split(self.command) if isinstance(self.command, str) else self.command
        except ValueError as error:
            message = f"the command cannot be split into arguments: {str(error).lower()}"
            raise SeatrialError("invalid_config", message, pointer="/command") from None
        if not argv or not argv[0] or any("\0" in argument for argument in argv):
            raise SeatrialError("invalid_config", "the command names no program", pointer="/command")
        return argv

    async def _find(self, argv: list[str], pattern: Pattern | None, subject: Subject) -> Finding:
        if subject.workspace is None:
            if subject.run.diff is None:
                return without_workspace()
            told = "the workspace of the run is gone, and the command can only be run in it"
            return errored(told, f"to do: {RUN_AGAIN}", code=WORKSPACE_GONE)
        try:
            ended = await subject.workspace.run(argv, self.limit_s)
        except (OSError, ValueError) as error:
            return errored(f"`{argv[0]}` cannot be run: {error}")
        except SeatrialError as error:
            return errored(f"`{argv[0]}` cannot be run: {error.message}", code=DIFF_UNKNOWN)
        said = (ended.log or ended.output).strip()[-_SHOWN:]
        tail = [f"it wrote: {said}"] if said else []
        if ended.code is None:
            told = f"`{argv[0]}` took longer than {self.limit_s:g} s, its time limit (`timeout_s`)"
            return errored(told, *tail, code="grader_timeout")
        how = f"ended with code {ended.code}" if ended.code >= 0 else f"was ended by signal {-ended.code}"
        reason = f"`{argv[0]}` {how}, {self.exit_code} wanted"
        if ended.code != self.exit_code:
            return passed_if(False, reason, *tail)
        if pattern is None:
            return passed_if(True, reason)
        if pattern.search(ended.output) is not None:
            return passed_if(True, reason, f"{pattern.text!r} is in its output")
        if ended.cut:
            return errored(
                reason, f"{pattern.text!r} is not in the last {len(ended.output):,} characters of its output"
            )
        return passed_if(False, reason, f"{pattern.text!r} is not in its output", *tail)
