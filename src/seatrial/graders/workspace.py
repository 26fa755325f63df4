"""Graders of the agent's workspace: what it changed there, and whether a command succeeds in what it left.

`allowed_paths`, `forbidden_paths` and `diff` go by the diff that was recorded with the run. What is not in it is not
known, and a check that something was not done does not pass by that.
"""

from __future__ import annotations

import shlex
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from seatrial._support.path_pattern import PathPatterns
from seatrial._support.patterns import Pattern
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored, listed, passed_if, quoted
from seatrial.runs import ChangedFile, WorkspaceDiff
from seatrial.runs.removed import RUN_AGAIN

DIFF_UNKNOWN = "diff_unknown"
"""The code of a verdict that depends on changes which are not known."""
NEEDS = frozenset({"workspace"})
_SIGNS = {"added": "+", "removed": "-"}
_TO_DO = "run it again; what is no work of the agent's can be left out with `ignore`, and limits raised in `workspace`"

Paths = Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)]
PatternText = Annotated[str, Meta(min_length=1)]
LeastOrMost = Annotated[int, Meta(ge=0)]
WORKSPACE_GONE = "workspace_gone"
"""The code of a verdict on a stored run, whose workspace is gone."""
_SHOWN = 1000


class AllowedPaths(Grader):
    """Whether the agent changed nothing but these paths. Errored where not all changes are known."""

    kind: ClassVar[str] = "allowed_paths"

    paths: Paths
    """Paths from the workspace, as patterns: `src`, `tests/*.py`, `**/*.md`. A folder stands for all in it."""

    def prepare(self) -> Check:
        patterns = _path_patterns(self.paths)

        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            diff = subject.run.diff
            if diff is None:
                return without_workspace()
            outside = [file.path for file in diff.files if patterns.fitting(file.path) is None]
            if outside:
                told = f"{len(outside)} of {len(diff.files)} changed files are outside of the allowed paths"
                return passed_if(False, f"{told}: {listed(list(map(quoted, outside)))}")
            if diff.unlisted:
                return _unknown(diff.unlisted)
            return passed_if(True, f"{len(diff.files)} of {len(diff.files)} changed files are in the allowed paths")

        return Check(find, of_diff=True, needs=NEEDS)


class ForbiddenPaths(Grader):
    """Whether the agent changed none of these paths. Errored where not all changes are known."""

    kind: ClassVar[str] = "forbidden_paths"

    paths: Paths
    """As in `allowed_paths`."""

    def prepare(self) -> Check:
        patterns = _path_patterns(self.paths)

        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            diff = subject.run.diff
            if diff is None:
                return without_workspace()
            found = [file.path for file in diff.files if patterns.fitting(file.path) is not None]
            if found:
                told = f"{len(found)} of {len(diff.files)} changed files are in the forbidden paths"
                return passed_if(False, f"{told}: {listed(list(map(quoted, found)))}")
            if diff.unlisted:
                return _unknown(diff.unlisted)
            return passed_if(True, f"none of {len(diff.files)} changed files is in the forbidden paths")

        return Check(find, of_diff=True, needs=NEEDS)


class Diff(Grader):
    """How much the agent changed, and what. Patterns are searched for in single lines. Errored where what it depends on
    is not known: a binary file, for example, has no lines."""

    kind: ClassVar[str] = "diff"

    min_files: LeastOrMost | None = None
    """How many files it must have changed."""
    max_files: LeastOrMost | None = None
    """How many it may have changed; 0 for none."""
    max_lines: LeastOrMost | None = None
    """How many lines it may have added and removed, taken together."""
    added: list[PatternText] = msgspec.field(default_factory=list)
    """Patterns of Python's `re`: each must be found in an added line."""
    not_added: list[PatternText] = msgspec.field(default_factory=list)
    """Patterns that must be in no added line."""
    removed: list[PatternText] = msgspec.field(default_factory=list)
    """Patterns: each must be found in a removed line."""
    not_removed: list[PatternText] = msgspec.field(default_factory=list)
    """Patterns that must be in no removed line."""

    def prepare(self) -> Check:
        if self == type(self)(**{key: getattr(self, key) for key in Grader.__struct_fields__}):
            hint = "give it `max_files`, `max_lines`, `added`, `not_added`, ..."
            raise SeatrialError("invalid_config", "the `diff` grader checks nothing", hint=hint)
        if self.min_files is not None and self.max_files is not None and self.min_files > self.max_files:
            raise SeatrialError("invalid_config", "`min_files` is more than `max_files`", pointer="/min_files")
        wanted = [
            (key, pattern, must)
            for key in _SIGNS
            for must in (True, False)
            for pattern in self._patterns(key if must else f"not_{key}")
        ]

        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            diff = subject.run.diff
            if diff is None:
                return without_workspace()
            claims = _Claims()
            self._count(diff, claims)
            gap = diff.unlisted or _without_text(diff.hidden)
            for key, sign in _SIGNS.items():
                lines = changed_lines(diff, sign) if any(each[0] == key for each in wanted) else []
                for of_key, pattern, must in wanted:
                    if of_key != key:
                        continue
                    line = next((line for line in lines if pattern.search(line) is not None), None)
                    where = f"no {key} line" if line is None else f"the {key} line {quoted(line)}"
                    known = line is not None or not gap
                    claims.claim((line is not None) == must if known else None, f"{pattern.text!r} is in {where}", gap)
            return claims.finding()

        return Check(find, of_diff=True, needs=NEEDS)

    def _patterns(self, key: str) -> list[Pattern]:
        found = []
        for index, text in enumerate(getattr(self, key)):
            try:
                found.append(Pattern(text))
            except SeatrialError as error:
                error.pointer = f"/{key}/{index}"
                raise
        return found

    def _count(self, diff: WorkspaceDiff, claims: _Claims) -> None:
        files = len(diff.files)
        if self.min_files is not None:
            told = f"{files} changed files, at least {self.min_files} wanted"
            claims.claim(files >= self.min_files or (None if diff.unlisted else False), told, diff.unlisted)
        if self.max_files is not None:
            told = f"{files} changed files, at most {self.max_files} allowed"
            claims.claim(files <= self.max_files and (None if diff.unlisted else True), told, diff.unlisted)
        if self.max_lines is not None:
            lines = diff.added + diff.removed
            gap = diff.unlisted or _without_text([file for file in diff.files if file.added is None])
            told = f"{diff.added} lines added and {diff.removed} removed, at most {self.max_lines} allowed"
            claims.claim(lines <= self.max_lines and (None if gap else True), told, gap)


class _Claims:
    """What came of the parts of one check."""

    def __init__(self) -> None:
        self._met: list[str] = []
        self._broken: list[str] = []
        self._unknown: list[str] = []

    def claim(self, holds: bool | None, told: str, gap: str) -> None:
        """One that holds, does not, or may: because of this gap in what is known."""
        if holds is None:
            self._unknown.append(f"{told}; not all is known: {gap}")
        else:
            (self._met if holds else self._broken).append(told)

    def finding(self) -> Finding:
        """All together: one that is broken fails, whatever is unknown of others."""
        if self._broken:
            return passed_if(False, *self._broken, *self._unknown, *self._met)
        if self._unknown:
            return errored(*self._unknown, *self._met, f"to do: {_TO_DO}", code=DIFF_UNKNOWN)
        return passed_if(True, *self._met)


def changed_lines(diff: WorkspaceDiff, sign: str) -> list[str]:
    """The lines of a patch that were added (`+`) or removed (`-`), without the sign."""
    lines = []
    in_hunk = False
    for line in diff.patch.split("\n"):
        # In a hunk, every line begins with a sign; `--- a/x` and `+++ b/x` stand before the first one.
        if line.startswith("@@ "):
            in_hunk = True
        elif line.startswith("diff --git "):
            in_hunk = False
        elif in_hunk and line.startswith(sign):
            lines.append(line[1:])
    return lines


def without_workspace() -> Finding:
    """The finding on a run whose agent had no workspace."""
    told = "the run has no workspace, so nothing is known of what the agent changed"
    return errored(
        told, "to do: an agent of kind `cli`, or a function with the parameter `workspace`", code=DIFF_UNKNOWN
    )


def _unknown(gap: str) -> Finding:
    return errored(f"not all that the agent changed is known: {gap}", f"to do: {_TO_DO}", code=DIFF_UNKNOWN)


def _without_text(files: list[ChangedFile]) -> str:
    if not files:
        return ""
    named = [f"{quoted(file.path)} ({file.hidden})" for file in files]
    return f"the text of {len(files)} changed files is not: {listed(named)}"


def _path_patterns(paths: list[str]) -> PathPatterns:
    try:
        return PathPatterns(paths)
    except SeatrialError as error:
        error.pointer = f"/paths{error.pointer or ''}"
        raise


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
