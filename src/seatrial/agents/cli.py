"""An agent that is a program, started for each run (trajectory.md 4)."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Self

import msgspec

from seatrial import wire
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.config import CliConfig
from seatrial.agents.invocation import Invocation, exit_fault
from seatrial.agents.limit import time_limit
from seatrial.agents.output import read_file, read_output, read_trace_file
from seatrial.agents.process import Process
from seatrial.agents.workspace import Workspace
from seatrial.errors import SeatrialError
from seatrial.runs import Fault


class _Folder(msgspec.Struct):
    """Where one run has its files."""

    path: Path

    @property
    def prompt(self) -> Path:
        return self.path / "prompt.txt"

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def work(self) -> Path:
        return self.path / "work"


class CliAgent:
    """Starts a program for each run, and takes what it writes as the answer."""

    def __init__(self, config: CliConfig, *, directory: Path, timeout_s: float | None) -> None:
        self._invocation = Invocation(config, directory)
        self._directory = directory.resolve()
        self._timeout_s = timeout_s
        self._max_bytes = config.max_response_bytes
        self._workspace: Workspace | None = None
        self._closing = ExitStack()

    async def __aenter__(self) -> Self:
        await self._invocation.check_health()
        self._workspace = self._closing.enter_context(Workspace())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.to_thread(self._closing.close)

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        if self._workspace is None:
            raise RuntimeError("the agent was not entered")
        async with AsyncExitStack() as stack:
            try:
                folder = _Folder(await stack.enter_async_context(self._workspace.folder()))
                self._fill(folder, request)
            except OSError as error:
                return Reply(fault=Fault("internal_error", f"the files of the run cannot be made: {error.strerror}"))
            return await self._run(folder, request)

    def _fill(self, folder: _Folder, request: RunRequest) -> None:
        folder.work.mkdir()
        if self._invocation.input == "stdin" or "PROMPT_FILE" in self._invocation.names:
            folder.prompt.write_text(wire.without_surrogates(request.case.instruction), encoding="utf-8", newline="")

    async def _run(self, folder: _Folder, request: RunRequest) -> Reply:
        limit = time_limit(request, self._timeout_s)
        reply = Reply()
        async with AsyncExitStack() as stack:
            process = await self._invocation.start(stack, self._values(folder, request), folder.prompt)
            if isinstance(process, Fault):
                return Reply(fault=process)
            try:
                async with asyncio.timeout(limit.seconds):
                    await self._take_output(process, reply)
                    if reply.fault is None and (code := await process.wait()) != 0:
                        reply.fault = exit_fault(code, process.log_lines())
            except TimeoutError:
                await process.end()
                reply.fault = limit.fault()
                reply.fault.detail = process.log_lines() or None
        if reply.fault is None:
            await self._read(folder, reply)
        return reply

    async def _take_output(self, process: Process, reply: Reply) -> None:
        """Collect standard output as it comes, so that what there is of it is kept whatever happens."""
        if self._invocation.has_output_file:
            return
        parts = bytearray()
        try:
            while part := await process.read():
                parts += part
                if len(parts) > self._max_bytes:
                    reply.fault = Fault("response_too_large", f"the output is larger than {self._max_bytes:,} bytes")
                    parts.clear()
                    return
        finally:
            reply.body = bytes(parts) or None

    async def _read(self, folder: _Folder, reply: Reply) -> None:
        try:
            if self._invocation.has_output_file:
                reply.body = read_file(str(folder.output), self._max_bytes)
            reply.reading = read_output(reply.body or b"")
        except SeatrialError as error:
            reply.fault = output_fault(error)
            return
        if reply.reading.trace_ref is None:
            return
        directory = folder.path if self._invocation.has_output_file else self._directory
        roots = (str(self._directory), str(folder.path))
        reply.trace_file = await asyncio.to_thread(read_trace_file, reply.reading, str(directory), roots)

    def _values(self, folder: _Folder, request: RunRequest) -> dict[str, str]:
        case = request.case
        return {
            "PROMPT": case.instruction,
            "PROMPT_FILE": str(folder.prompt),
            "EVAL_ID": case.id,
            "ATTEMPT": str(request.attempt),
            "FILES": "\n".join([os.path.join(self._directory, file) for file in case.files]),
            "OUTPUT_FILE": str(folder.output),
            "WORKDIR": str(folder.work),
            "SUITE_FILE": "" if request.suite_file is None else str(request.suite_file.resolve()),
        }


def output_fault(error: SeatrialError) -> Fault:
    """The fault of output that cannot be read."""
    if error.code in ("empty_input", "unreadable_file"):
        return Fault("agent_output_missing", f"the program ended well but left no answer: {error.message}")
    kind = "response_too_large" if error.code == "too_large" else "agent_bad_response"
    return Fault(kind, f"the output is not a provider response: {error}")
