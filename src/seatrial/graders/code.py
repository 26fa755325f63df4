"""`code`: a command that reads the run as JSON and prints a verdict."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders.calls import known_of
from seatrial.graders.grader import FOR_GRADERS, Check, Finding, Grader, Subject, Surroundings, errored
from seatrial.graders.user_code import finding_of

MAX_OUTPUT = 4 * 1024 * 1024
_TAIL = 2000


class Code(Grader):
    """What a command says of the run. It gets JSON on standard input (`case`, `run`, `answer`, `messages`, `steps`) and
    prints a verdict: `{"passed": true}`, with `score`, `reasons`, `evidence`, `details` where it likes. At its time
    limit it is ended, with everything it has started."""

    kind: ClassVar[str] = "code"
    default_timeout_s: ClassVar[float] = 60.0

    command: str | list[str]
    """The program and its arguments, as a list, or as text that is split as a shell would, but no shell runs. It
    starts in the suite file's directory."""

    def prepare(self) -> Check:
        argv = self._argv()

        async def find(subject: Subject, surroundings: Surroundings) -> Finding:
            return await self._find(argv, subject, surroundings.directory)

        return Check(find, repeatable=False, keeps_time=True, reads=FOR_GRADERS)

    def check_presence(self, directory: Path) -> None:
        """Raise `SeatrialError` when there is no such program."""
        name = self._argv()[0]
        # A name with a slash is looked for in the suite's directory, any other on the PATH.
        if shutil.which(os.path.join(directory, name) if os.sep in name else name) is None:
            raise SeatrialError(
                "invalid_config", f"there is no program {name!r} that can be started", pointer="/command"
            )

    def _argv(self) -> list[str]:
        try:
            argv = shlex.split(self.command) if isinstance(self.command, str) else self.command
        except ValueError as error:
            message = f"the command cannot be split into arguments: {str(error).lower()}"
            raise SeatrialError("invalid_config", message, pointer="/command") from None
        if not argv or not argv[0] or any("\0" in argument for argument in argv):
            raise SeatrialError("invalid_config", "the command names no program", pointer="/command")
        return argv

    async def _find(self, argv: list[str], subject: Subject, directory: Path) -> Finding:
        try:
            ended = await _run(argv, wire.encode(subject_json(subject)), directory, self.limit_s)
        except (OSError, TypeError, ValueError) as error:
            return errored(f"`{argv[0]}` cannot be run: {error}")
        told = ended.stderr.decode("utf-8", "replace").strip()
        tail = f"; stderr ends: {told}" if told else ""
        if ended.problem is not None:
            return errored(f"`{argv[0]}` {ended.problem}{tail}")
        try:
            return finding_of(wire.decode_unambiguous(ended.stdout))
        except SeatrialError as error:
            return errored(f"`{argv[0]}` printed no verdict: {error}{tail}")


class Ended(msgspec.Struct):
    """How a process ended."""

    stdout: bytes
    stderr: bytes
    """The end of it."""
    problem: str | None = None


def subject_json(subject: Subject) -> dict[str, Any]:
    """What the command reads."""
    run = subject.run
    transcript = None if run.reading is None else run.reading.transcript
    return {
        "case": subject.case,
        "run": {
            "run_id": run.run_id,
            "agent": run.agent,
            "trial": run.trial,
            "status": run.status,
            "duration_ms": run.duration_ms,
            "steps_source": run.steps_source,
            "completeness": known_of(subject),
            "usage": None if transcript is None else transcript.usage,
            "cost_usd": None if transcript is None else transcript.cost_usd,
            "metadata": {} if transcript is None else transcript.metadata,
        },
        "answer": subject.answer,
        "messages": [] if transcript is None else transcript.messages,
        "steps": run.steps,
        "notes": [] if run.reading is None else run.reading.notes,
    }


async def _run(argv: list[str], stdin: bytes, directory: Path, timeout_s: float) -> Ended:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=directory,
        # A session of its own, so that what it starts can be ended with it.
        start_new_session=True,
    )
    ended = Ended(b"", b"")
    try:
        async with asyncio.timeout(timeout_s):
            async with asyncio.TaskGroup() as group:
                group.create_task(_feed(process, stdin))
                group.create_task(_keep_output(process, ended))
                group.create_task(_keep_tail(process, ended))
            code = await process.wait()
        if ended.problem is None and code != 0:
            ended.problem = f"ended with {code}" if code > 0 else f"was ended by signal {-code}"
    except TimeoutError:
        ended.problem = f"took longer than {timeout_s:g} s"
    finally:
        _end_group(process.pid)
        # First: asyncio waits for the end of the pipes as well, which somebody who left the group may hold for ever.
        # It has no public way to let go of them.
        process._transport.close()  # type: ignore[attr-defined]
        await process.wait()
    return ended


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    stdin = process.stdin
    if stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # a command need not read what it does not need
        stdin.write(data)
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()


async def _keep_output(process: asyncio.subprocess.Process, ended: Ended) -> None:
    stream = process.stdout
    kept: list[bytes] = []
    size = 0
    while stream is not None and (chunk := await stream.read(65_536)):
        size += len(chunk)
        if size > MAX_OUTPUT:
            ended.problem = f"printed more than {MAX_OUTPUT // 2**20} MiB"
            _end_group(process.pid)
            return
        kept.append(chunk)
    ended.stdout = b"".join(kept)


async def _keep_tail(process: asyncio.subprocess.Process, ended: Ended) -> None:
    stream = process.stderr
    while stream is not None and (chunk := await stream.read(65_536)):
        ended.stderr = (ended.stderr + chunk)[-_TAIL:]


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nobody of it is left
        os.killpg(pid, signal.SIGKILL)
