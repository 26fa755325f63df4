"""The kind `cli`: keys, checks, and what `doctor` asks."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

import msgspec

from seatrial._support.environment import fill, names_secret, parts, resolve
from seatrial.agents.checks import check_secret, filled
from seatrial.agents.cli.container import IMAGE, PROGRAMS, container_program
from seatrial.agents.cli.placeholders import ONE_CASE, PLACEHOLDERS, used
from seatrial.agents.cli.presets import PRESETS, PresetName
from seatrial.agents.cli.sandbox import has_bubblewrap
from seatrial.agents.config import CASE_KEYS, MAX_RESPONSE_BYTES, AgentCheck, AgentConfig, AgentStart, Bytes, Probe
from seatrial.errors import SeatrialError
from seatrial.formats.registry import FORMATS, find_format
from seatrial.problems import KeyPath, Problems, meant, quoted
from seatrial.runs import Case

if TYPE_CHECKING:
    from seatrial.agents.cli.agent import CliAgent
    from seatrial.agents.cli.batch import CliBatchAgent

ProgramCommand: TypeAlias = str | list[str]

OUTPUTS: Mapping[str, str | None] = {"claude-json": "claude-stream-json", "text": None}
"""What `output` may be besides the name of a format: the format that reads it, None for plain text."""
_INPUT_PLACEHOLDER = {"prompt_file": "PROMPT_FILE", "arg": "PROMPT"}


class CliConfig(AgentConfig):
    """A program that is started for each case, or once for all."""

    kind: ClassVar[str] = "cli"
    started_by: ClassVar[str | None] = "command"
    own_faults: ClassVar[frozenset[str]] = frozenset(
        {"agent_exit", "agent_signal", "agent_output_missing", "agent_not_started"}
    )
    case_hints: ClassVar[Mapping[str, str]] = {
        "input": "only `batch: true` sends it to a program",
        "messages": "only `batch: true` sends it to a program",
        "files": "name `{FILES}` in its `command`",
        "workspace": "a batch has no workspaces: leave out `batch: true`",
        "timeout_s": "a batch has one limit for all its cases, its own `timeout_s`",
    }

    command: ProgramCommand = msgspec.field(default_factory=list)
    """The program and its arguments, as a list, or as text that is split as a shell would, but no shell runs. Needed,
    unless there is a `preset`."""
    preset: PresetName | None = None
    """A well-known coding agent, instead of a `command`: how it is started, what it prints, and its environment.
    `doctor` shows what that is."""
    arguments: list[str] = msgspec.field(default_factory=list)
    """Further arguments for the `preset`."""
    cwd: str | None = None
    """The directory it starts in; the suite file's when absent. In a case with a workspace it starts there."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables it gets besides ours; in a case with a workspace, besides a cleaned environment. One whose name
    suggests a secret (`API_KEY`) must be written `${NAME}`."""
    input: Literal["prompt_file", "stdin", "arg"] | None = None
    """How it gets the instruction; when absent, by the placeholder that `command` has, else on standard input."""
    output: str | None = None
    """What it answers with: a format by name, `claude-json`, or `text` for an answer that is never read as a record.
    When absent, JSON is read by what gives its format away, and other text is the answer."""
    record: str | None = None
    """The file in which it records the run, as a pattern (`*`, `**`) below `{WORKDIR}`, or below its home directory
    (`~/`): the one that is new after the run is read in place of its answer."""
    sandbox: Literal["bubblewrap", "container"] | None = None
    """What keeps it to its workspace: `bubblewrap`, or a `container` of Podman or Docker, which must be installed. For
    cases with a workspace."""
    image: str | None = None
    """The image of its container, which must be there: none is downloaded."""
    sandbox_read: list[str] = msgspec.field(default_factory=list)
    """What it can read in the sandbox besides the system: the directories of programs and libraries that are installed
    in a home directory, or relative to the suite file."""
    batch: bool = False
    """Whether one process takes all cases, as JSON lines."""
    healthcheck: ProgramCommand | None = None
    """A command that must end with 0 before the first case is run."""
    max_response_bytes: Bytes = MAX_RESPONSE_BYTES
    """The largest answer that is taken, in a batch the largest line; more ends the program."""

    def __post_init__(self) -> None:
        if self.preset is None:
            return
        preset = PRESETS[self.preset]
        if not self.command:
            self.command = [*preset.command, *self.arguments]
        if self.output is None and self.record is None:
            self.output = preset.output
        name = preset.credential
        credential = {} if name is None or self.env else {name: f"${{{name}}}"}
        self.env = {**preset.settings, **credential, **self.env}

    def build(self, start: AgentStart) -> CliAgent | CliBatchAgent:
        timeout_s = self.read_timeout_s(start)
        if self.batch:
            from seatrial.agents.cli.batch import CliBatchAgent

            return CliBatchAgent(self, directory=start.directory, timeout_s=timeout_s)
        from seatrial.agents.cli.agent import CliAgent

        return CliAgent(self, directory=start.directory, timeout_s=timeout_s)

    def resolved(self, variables: Mapping[str, str]) -> Self:
        """Arguments are split before anything is filled in, and braces in values are doubled, so that a value is one
        argument, or a part of one, whatever it contains."""
        rest = resolve(msgspec.structs.replace(self, command=[], healthcheck=None), variables)
        return msgspec.structs.replace(
            rest,
            command=_filled(self.command, variables),
            healthcheck=None if self.healthcheck is None else _filled(self.healthcheck, variables),
        )

    def taken_keys(self, import_from: Path | None) -> frozenset[str]:
        if self.batch:
            # It is sent everything, but no single case is waited for.
            return frozenset(CASE_KEYS) - {"timeout_s", "workspace"}
        try:
            names = {name for argument in argv(self.command) for name in used(argument)}
        except ValueError:
            return frozenset(CASE_KEYS)
        return frozenset({"timeout_s", "workspace"} | ({"files"} if "FILES" in names else set()))

    def without_proxy(self) -> str | None:
        return "a program that takes all cases at once (`batch: true`)" if self.batch else None

    def check_case(self, case: Case, problems: Problems) -> None:
        if case.workspace is None and self.sandbox is not None:
            problems.add((), f"the agent has a `sandbox`, and the case `{case.id}` no `workspace` to keep it to")
        if case.workspace is not None and self.cwd is not None and not self.batch:
            told = f"`cwd` of an agent does nothing in the case `{case.id}`: it starts in the workspace"
            problems.add(("workspace",), told, "leave out one of them")

    def check(self, check: AgentCheck) -> None:
        problems = check.problems
        for name, text in self.env.items():
            if not name or "=" in name or "\0" in name:
                problems.add(("env", name), f"{quoted(name)} cannot be the name of a variable")
            elif "\0" in text:
                problems.add(("env", name), f"`{name}` has a character that no variable can have")
            elif names_secret(name):
                check_secret(text, ("env", name), problems)
        if self.cwd is not None and check.needed:
            cwd = filled(self.cwd, check.variables)
            if cwd is not None and not os.path.isdir(check.directory / cwd):
                problems.add(("cwd",), f"there is no directory {quoted(self.cwd)}")
        if self.healthcheck is not None:
            _check_command(self.healthcheck, "healthcheck", problems)
        if self.batch and self.concurrency is not None:
            told = "`concurrency` does nothing with `batch: true`: one program takes all cases"
            problems.add(("concurrency",), told)
        if self.batch and self.timeout_s is not None and self.run_timeout_s is not None:
            told = "of a batch, either `timeout_s` or `run_timeout_s` counts"
            problems.add(("run_timeout_s",), told, "keep one of them")
        self._check_record(problems)
        self._check_sandbox(check)
        if self.preset is None:
            if self.arguments:
                problems.add(("arguments",), "`arguments` are for a `preset`", "write them into `command`")
            if not self.command:
                problems.add(("command",), "`command` names no program", f"or name a `preset`: {', '.join(PRESETS)}")
                return
        elif self.command != [*PRESETS[self.preset].command, *self.arguments]:
            problems.add(("command",), "`preset` and `command` exclude each other", "keep one of them")
            return
        elif self.batch:
            problems.add(("batch",), "a `preset` takes one case at a time")
        found = _check_command(self.command, "command", problems)
        if found is None:
            return
        if self.record is not None and not self.record.startswith("~/") and "WORKDIR" not in found:
            told = "`record` is looked for below `{WORKDIR}`, and `command` does not name it"
            problems.add(("record",), told, "name `{WORKDIR}` in `command`, or begin the pattern with `~/`")
        wanted = _INPUT_PLACEHOLDER.get(self.input or "")
        if wanted is not None and wanted not in found:
            problems.add(("input",), f"`input: {self.input}` needs `{{{wanted}}}` in `command`")
        for name in sorted(found & ONE_CASE if self.batch else ()):
            told = f"`{{{name}}}` is about one case, and a batch has all of them"
            problems.add(("command",), told, "`{PROMPT_FILE}` has a JSON line for each case")

    def _check_sandbox(self, check: AgentCheck) -> None:
        problems = check.problems
        if self.sandbox is None:
            for key in ("sandbox_read", "image"):
                if getattr(self, key):
                    problems.add((key,), f"`{key}` does nothing without a `sandbox`")
            return
        if self.batch:
            problems.add(("sandbox",), "`sandbox` does nothing with `batch: true`: a batch has no workspaces")
        if self.sandbox == "bubblewrap":
            if self.image is not None:
                problems.add(("image",), "`image` does nothing with `sandbox: bubblewrap`", "`sandbox: container`")
            if check.needed and not has_bubblewrap():
                problems.add(("sandbox",), "there is no `bwrap` on this machine", "install bubblewrap")
        else:
            self._check_container(check)
        for index, path in enumerate(self.sandbox_read if check.needed else ()):
            if not os.path.exists(check.directory / os.path.expanduser(path)):
                problems.add(("sandbox_read", index), f"there is no {quoted(path)}")

    def _check_container(self, check: AgentCheck) -> None:
        problems = check.problems
        if self.image is None:
            problems.add(("sandbox",), "`sandbox: container` needs an `image`", "such as `image: python:3.12-slim`")
        elif (image := filled(self.image, check.variables)) is not None and not IMAGE.fullmatch(image):
            problems.add(("image",), f"{quoted(image)} cannot be the name of an image")
        if check.needed and container_program() is None:
            names = " nor ".join([f"`{name}`" for name in PROGRAMS])
            problems.add(("sandbox",), f"there is neither {names} on this machine", "install one of them")

    def _check_record(self, problems: Problems) -> None:
        for key in ("output", "record") if self.batch else ():
            if getattr(self, key) is not None:
                problems.add((key,), f"`{key}` does nothing with `batch: true`: its answers are JSON lines")
        if self.output is not None and self.output not in OUTPUTS:
            try:
                find_format(self.output)
            except SeatrialError as error:
                if error.code == "unknown_format":
                    names = [*FORMATS, *OUTPUTS]
                    problems.add(("output",), error.message, meant(self.output, names) or f"one of {', '.join(names)}")
        if self.record is None:
            return
        if self.output == "text":
            problems.add(("output",), "`output: text` is an answer, and `record` names a record")
        parts = self.record.removeprefix("~/").split("/")
        if self.record.startswith("/") or ".." in parts or not all(parts) or "\0" in self.record:
            problems.add(("record",), "`record` is a pattern below `{WORKDIR}`, or below `~/`")

    def check_presence(self, agent: CliAgent | CliBatchAgent) -> None:
        agent.program.check_presence()

    async def probe(self, agent: CliAgent | CliBatchAgent, proxy_url: str) -> Probe:
        self.check_presence(agent)
        if self.preset is None:
            return Probe(True, "can be started")
        return Probe(True, f"can be started as {shlex.join(self.command)}, which prints {self.output or self.record}")


def argv(command: ProgramCommand) -> list[str]:
    """The arguments of a command. Raises `ValueError` for text whose quotes do not close."""
    return shlex.split(command) if isinstance(command, str) else list(command)


def _arguments(command: ProgramCommand) -> list[str]:
    try:
        return argv(command)
    except ValueError as error:
        said = str(error).lower()
        raise SeatrialError("invalid_config", f"the command cannot be split into arguments: {said}") from None


def _filled(command: ProgramCommand, variables: Mapping[str, str]) -> list[str]:
    return [fill(argument, variables, double_braces=True) for argument in _arguments(command)]


def _check_command(command: ProgramCommand, key: str, problems: Problems) -> set[str] | None:
    """The placeholders that a command uses; None when it cannot be split."""
    try:
        arguments = _arguments(command)
    except SeatrialError as error:
        problems.add((key,), error.message)
        return None
    if not arguments or not arguments[0]:
        problems.add((key,), f"`{key}` names no program")
    found: set[str] = set()
    for index, argument in enumerate(arguments):
        path: KeyPath = (key,) if isinstance(command, str) else (key, index)
        if "\0" in argument:
            problems.add(path, f"`{key}` has a character that no argument can have")
        try:
            plain = "".join(part for part in parts(argument) if isinstance(part, str))
        except SeatrialError as error:
            # Of a list, that is told with all variables. Text may be right as a whole, and no longer when it is cut.
            if isinstance(command, str):
                problems.add(path, error.message, error.hint)
            return None
        for name in used(plain):
            if name is None:
                problems.add(path, "there is a brace without a placeholder", "write `{{` or `}}` for the brace itself")
            elif name in PLACEHOLDERS:
                found.add(name)
            else:
                hint = meant(f"{{{name}}}", [f"{{{known}}}" for known in PLACEHOLDERS])
                problems.add(path, f"unknown placeholder `{{{name}}}`", hint)
    return found
