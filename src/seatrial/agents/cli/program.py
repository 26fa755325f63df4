"""The program of a CLI agent: how it is called, where its files are, and what its end means."""

from __future__ import annotations

import asyncio
import errno
import glob
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal, Self

import msgspec

from seatrial.agents.agent import RunWorkspace
from seatrial.agents.cli.config import CliConfig, argv
from seatrial.agents.cli.container import ContainerSandbox
from seatrial.agents.cli.placeholders import PLACEHOLDERS, put_in, used
from seatrial.agents.cli.process import Process
from seatrial.agents.cli.sandbox import Bubblewrap, Sandbox, SandboxedCommand
from seatrial.agents.cli.scratch import Scratch
from seatrial.agents.output import read_trace_file
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading
from seatrial.runs import Fault
from seatrial.transcript import Note, note_code

FILES_LEFT = note_code("files_left", "Not all files that the agent left behind could be removed.", "harmless")

PROCESSES_ENDED = note_code(
    "processes_ended",
    "The program had started processes that left its process group and outlived it; they were ended.",
    "harmless",
)
PROCESSES_LEFT = note_code(
    "processes_left", "Processes that the program had started outlive it, and could not be ended.", "look"
)

HEALTHCHECK_S = 60.0
_TRY = 'touch made-in-the-sandbox && { command -v -- "$0" || :; }'
"""Fails where the workspace cannot be written to; prints where the program is."""
_SHOWN_FILES = 5

_EXHAUSTED = frozenset({errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EMFILE, errno.ENFILE})


class RunFiles(msgspec.Struct):
    """Where one start of a program has its files."""

    folder: Path
    workspace: RunWorkspace | None = None
    """Where the program works, if it has a workspace."""
    left: str | None = None
    """After the run: why not all files could be removed."""
    process: Process | None = None
    """The program that works with them."""

    @property
    def notes(self) -> list[Note]:
        """What is to be said of what the program left behind, after the run."""
        notes = []
        if self.left is not None:
            notes.append(Note(FILES_LEFT, "", f"files of the agent are left: {self.left}"))
        if self.process is not None and self.process.ended_outside:
            notes.append(Note(PROCESSES_ENDED, "", f"{self.process.ended_outside} outlived the program"))
        if self.process is not None and self.process.left_outside is None:
            text = "how many is not known: what ends them (the program's supervisor) was itself killed"
            notes.append(Note(PROCESSES_LEFT, "", text))
        elif self.process is not None and self.process.left_outside:
            notes.append(Note(PROCESSES_LEFT, "", f"{self.process.left_outside} could not be ended"))
        return notes

    @property
    def prompt(self) -> Path:
        """The instruction, or the lines of a batch."""
        return self.folder / "prompt"

    @property
    def output(self) -> Path:
        """Where the program writes its answer, if it is told to."""
        return self.folder / "output"

    @property
    def work(self) -> Path:
        """The workspace, else an empty directory."""
        return self.folder / "work" if self.workspace is None else self.workspace.folder


class Program:
    """A command that is ready to be started. Entered for an experiment: it is healthy, and has a scratch directory."""

    def __init__(self, config: CliConfig, directory: Path) -> None:
        self._arguments = _split(config.command)
        self._healthcheck = None if config.healthcheck is None else _split(config.healthcheck)
        self._names = {name for argument in self._arguments for name in used(argument) if name is not None}
        if unknown := self._names - PLACEHOLDERS.keys():
            raise SeatrialError("invalid_config", f"unknown placeholder `{{{min(unknown)}}}`")
        self._cwd = str(directory / config.cwd if config.cwd is not None else directory)
        self._own_env = config.env
        self._env = {**os.environ, **config.env}
        self._input = config.input or self._usual_input()
        self._record = config.record
        self.sandbox = _sandbox(config, directory)
        """What keeps it to its workspace, if anything does."""
        self.directory = directory.resolve()
        """The suite's."""
        self.has_output_file = "OUTPUT_FILE" in self._names
        """Whether it answers in a file, and not on standard output."""
        self.has_record = config.record is not None
        """Whether it records its runs itself."""
        self._scratch: Scratch | None = None
        self._closing = ExitStack()

    async def __aenter__(self) -> Self:
        await self._check_health()
        await self._check_sandbox()
        # In a thread: what a killed process left is removed first.
        self._scratch = self._closing.enter_context(await asyncio.to_thread(Scratch))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.to_thread(self._closing.close)

    @property
    def reads_prompt(self) -> bool:
        """Whether it needs the instruction in a file."""
        return self._input == "stdin" or "PROMPT_FILE" in self._names

    @asynccontextmanager
    async def files(self, workspace: RunWorkspace | None = None) -> AsyncIterator[RunFiles]:
        """Files for one start. Raises `OSError` when they cannot be made."""
        if self._scratch is None:
            raise RuntimeError("the program was not entered")
        async with self._scratch.folder() as folder:
            files = RunFiles(folder.path, workspace)
            if workspace is None:
                files.work.mkdir()
            yield files
        files.left = folder.left

    async def start(
        self, stack: AsyncExitStack, files: RunFiles, values: Mapping[str, str], env: Mapping[str, str] | None = None
    ) -> Process | Fault:
        """Start it with these values in place, and further variables; it ends with the stack at the latest."""
        values = {
            "PROMPT_FILE": str(files.prompt),
            "OUTPUT_FILE": str(files.output),
            "WORKDIR": str(files.work),
            **values,
        }
        try:
            stdin = stack.enter_context(files.prompt.open("rb")) if self._input == "stdin" else None
            command = self._command(files, values, {**self._environment(files), **(env or {})})
            process = Process(
                command.argv,
                cwd=self._cwd if files.workspace is None else str(files.workspace.folder),
                env=command.environment,
                stdin=stdin,
                has_output=not self.has_output_file,
                afterwards=command.afterwards,
            )
            files.process = await stack.enter_async_context(process)
            return process
        except (OSError, ValueError) as error:
            return system_fault(error, "agent_not_started", f"the program {_not_started(error)}")

    def record_files(self, files: RunFiles) -> set[str]:
        """The files that there are now where the program records its runs. Blocks."""
        if self._record is None:
            return set()
        if self._record.startswith("~/"):
            home = self._environment(files).get("HOME") or os.path.expanduser("~")
            root, pattern = home, self._record.removeprefix("~/")
        else:
            root, pattern = str(files.work), self._record
        found = glob.glob(pattern, root_dir=root, recursive=True, include_hidden=True)
        paths = {path for name in found if os.path.isfile(path := os.path.join(root, name))}
        if files.workspace is None:
            return paths
        # It has no home but the one we gave it, and what a link to elsewhere names is no record of its.
        inside = f"{os.path.realpath(root)}/"
        return {path for path in paths if os.path.realpath(path).startswith(inside)}

    def new_record(self, files: RunFiles, before: set[str]) -> str:
        """The file in which the program recorded this run. Raises `SeatrialError` unless there is exactly one."""
        after = self.record_files(files)
        new = sorted(after - before)
        if len(new) == 1:
            return new[0]
        if new:
            shown = ", ".join([os.path.basename(path) for path in new[:_SHOWN_FILES]])
            message = f"`record` must match one new file, and matches {len(new)}: {shown}"
            hint = (
                "runs at once must not share a directory (`concurrency: 1`, or below `{WORKDIR}`); narrow the pattern"
            )
            raise SeatrialError("ambiguous_record", message, hint=hint)
        old = f"; {len(after)} match that were there before" if after else ""
        raise SeatrialError("unreadable_file", f"no new file matches `record: {self._record}`{old}")

    async def trace_file(self, reading: Reading, files: RunFiles) -> bytes | Note | None:
        """What the file holds that `trace_ref` names, or why it was not read; None when there is no such thing."""
        if reading.trace_ref is None:
            return None
        named_in = files.folder if self.has_output_file else self.directory
        roots = (str(self.directory), str(files.folder))
        return await asyncio.to_thread(read_trace_file, reading, str(named_in), roots)

    def _command(self, files: RunFiles, values: Mapping[str, str], environment: dict[str, str]) -> SandboxedCommand:
        program, *arguments = [put_in(argument, values) for argument in self._arguments]
        if files.workspace is None:
            return SandboxedCommand([program, *arguments], environment)
        argv = [self._located(program), *arguments]
        if self.sandbox is None:
            return SandboxedCommand(argv, environment)
        workspace = files.workspace
        writable = [str(workspace.home), workspace.environment["TMPDIR"], str(files.folder)]
        return self.sandbox.wrap(argv, str(workspace.folder), writable, environment)

    def _located(self, program: str) -> str:
        """In a workspace, the same program as without one, and not one that lies in it."""
        inside = self.sandbox is not None and self.sandbox.has_programs and os.path.isabs(program)
        return program if os.sep not in program or inside else os.path.realpath(os.path.join(self._cwd, program))

    def _environment(self, files: RunFiles) -> dict[str, str]:
        return self._env if files.workspace is None else {**files.workspace.environment, **self._own_env}

    def check_presence(self) -> None:
        """Raise `SeatrialError` when there is nothing to start. What a placeholder names is not known before a run."""
        if any(used(self._arguments[0])) or (self.sandbox is not None and self.sandbox.has_programs):
            return
        name = put_in(self._arguments[0], {})
        # A name with a slash is looked for where the program starts, any other on its own PATH.
        where = os.path.join(self._cwd, name) if os.sep in name else name
        if shutil.which(where, path=os.pathsep.join(os.get_exec_path(self._env))) is None:
            raise SeatrialError("agent_unhealthy", f"there is no program {name!r} that can be started")

    async def _check_health(self) -> None:
        if self._healthcheck is None:
            return
        command = SandboxedCommand([put_in(argument, {}) for argument in self._healthcheck], self._env)
        if self.sandbox is not None and self.sandbox.has_programs:
            command = self.sandbox.wrap(command.argv, "/", [], self._own_env)
        try:
            async with (
                asyncio.timeout(HEALTHCHECK_S),
                Process(
                    command.argv,
                    cwd=self._cwd,
                    env=command.environment,
                    has_output=False,
                    afterwards=command.afterwards,
                ) as process,
            ):
                code = await process.wait()
                problem = None if code == 0 else f"{_ending(code)}\n{process.log_lines()}".rstrip()
        except TimeoutError:
            problem = f"did not end within {HEALTHCHECK_S:g} s"
        except FileNotFoundError:
            problem = f"cannot be started: there is no program {command.argv[0]!r}"
        except (OSError, ValueError) as error:
            problem = _not_started(error)
        if problem is not None:
            raise SeatrialError("agent_unhealthy", f"the healthcheck {problem}")

    async def _check_sandbox(self) -> None:
        """Raise `SeatrialError` when the sandbox cannot be made here, or the program is not in it: afterwards, that
        could not be told from what the program itself does."""
        if self.sandbox is None or any(used(self._arguments[0])):
            return
        program = self._located(put_in(self._arguments[0], {}))
        await asyncio.to_thread(self._try_sandbox, self.sandbox, program)

    def _try_sandbox(self, sandbox: Sandbox, program: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            command = sandbox.wrap(["/bin/sh", "-c", _TRY, program], folder, [], self._own_env)
            environment = {**self._env, **command.environment}
            try:
                done = subprocess.run(  # noqa: S603
                    command.argv,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=HEALTHCHECK_S,
                    check=False,
                )
                told = done.stderr.decode("utf-8", "replace").strip()[-500:]
            except OSError as error:
                raise SeatrialError("agent_unhealthy", f"the sandbox {_not_started(error)}") from None
            except subprocess.TimeoutExpired:
                raise SeatrialError("agent_unhealthy", f"the sandbox took longer than {HEALTHCHECK_S:g} s") from None
            finally:
                if command.afterwards:
                    subprocess.run(  # noqa: S603
                        command.afterwards, env=environment, capture_output=True, timeout=HEALTHCHECK_S, check=False
                    )
            written = os.listdir(folder)
        if done.returncode != 0:
            hint = (
                "fetch it yourself, as with `docker pull`"
                if "No such image" in told or "image not known" in told
                else None
            )
            raise SeatrialError("agent_unhealthy", f"the sandbox cannot be made: {told}", hint=hint)
        if not written:
            told = "what is written in the sandbox does not arrive here: is its service that of another machine?"
            raise SeatrialError("agent_unhealthy", told)
        if not done.stdout:
            told = f"the program {program!r} is not in the sandbox"
            hint = "name the directory that it is installed in under `sandbox_read`"
            if sandbox.has_programs:
                hint = "use an image that has it; a program of the suite's directory is named with a `/`"
            raise SeatrialError("agent_unhealthy", told, hint=hint)

    def _usual_input(self) -> Literal["prompt_file", "stdin", "arg"]:
        if "PROMPT_FILE" in self._names:
            return "prompt_file"
        return "arg" if "PROMPT" in self._names else "stdin"


def exit_fault(code: int, log: str) -> Fault:
    """The fault of a program that did not end with 0."""
    return Fault("agent_signal" if code < 0 else "agent_exit", f"the program {_ending(code)}", detail=log or None)


def system_fault(error: OSError | ValueError, error_class: str, message: str) -> Fault:
    """The fault of something that the system refused: of this class, unless the machine had nothing left."""
    exhausted = isinstance(error, OSError) and error.errno in _EXHAUSTED
    return Fault("out_of_resources" if exhausted else error_class, message)


def _ending(code: int) -> str:
    """How a program ended, in words."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _not_started(error: OSError | ValueError) -> str:
    """Why a program did not start, in words. Not with its arguments: they may be secret."""
    return f"cannot be started: {error.strerror if isinstance(error, OSError) else error}"


def _sandbox(config: CliConfig, directory: Path) -> Sandbox | None:
    if config.sandbox is None:
        return None
    if config.sandbox == "bubblewrap":
        return Bubblewrap(directory, config.sandbox_read)
    return ContainerSandbox(config.image or "", directory, config.sandbox_read)


def _split(command: str | list[str]) -> list[str]:
    try:
        arguments = argv(command)
    except ValueError as error:
        raise SeatrialError("invalid_config", f"the command cannot be split into arguments: {error}") from None
    if not arguments:
        raise SeatrialError("invalid_config", "the command names no program")
    return arguments
