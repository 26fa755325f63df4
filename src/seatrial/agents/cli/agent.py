"""An agent that is a program, started for each run (trajectory.md 4)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from seatrial import formats
from seatrial._support import wire
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.cli.config import OUTPUTS, CliConfig
from seatrial.agents.cli.process import Process
from seatrial.agents.cli.program import Program, RunFiles, exit_fault, system_fault
from seatrial.agents.cli.sandbox import Sandbox
from seatrial.agents.limit import time_limit
from seatrial.agents.off_loop import off_loop
from seatrial.agents.output import read_file, read_output, reading_fault, unreadable
from seatrial.errors import SeatrialError
from seatrial.formats.chat.turn import STREAM_TRUNCATED
from seatrial.formats.output_messages import read_text_output
from seatrial.formats.reading import Reading
from seatrial.formats.registry import find_format
from seatrial.runs import Fault

if TYPE_CHECKING:
    from seatrial.world.grant import RunGrant


class CliAgent:
    """Starts a program for each run, and takes what it writes as the answer."""

    uses_world = True
    uses_workspace = True

    def __init__(self, config: CliConfig, *, directory: Path, timeout_s: float | None) -> None:
        self.program = Program(config, directory)
        self._timeout_s = timeout_s
        self._max_bytes = config.max_response_bytes
        self._output = config.output

    @property
    def sandbox(self) -> Sandbox | None:
        """What the commands of graders are run in, too: they run what the agent wrote."""
        return self.program.sandbox

    async def __aenter__(self) -> Self:
        await self.program.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.program.__aexit__(*exc_info)

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        grant = request.grant
        if self.sandbox is not None and request.workspace is None:
            # As in the run service, which has no cases: it must not run without what the suite promises.
            return Reply(fault=Fault("workspace_failed", "the agent has a `sandbox`, and no workspace to be kept to"))
        async with AsyncExitStack() as stack:
            try:
                files = await stack.enter_async_context(self.program.files(request.workspace))
                if self.program.reads_prompt:
                    prompt = wire.without_surrogates(request.case.instruction)
                    files.prompt.write_text(prompt, encoding="utf-8", newline="")
            except OSError as error:
                message = f"the files of the run cannot be made: {error.strerror}"
                return Reply(fault=system_fault(error, "internal_error", message))
            reply = await self._run(files, request, grant)
        reply.notes = files.notes
        return reply

    async def _run(self, files: RunFiles, request: RunRequest, grant: RunGrant | None) -> Reply:
        limit = time_limit(request, self._timeout_s)
        reply = Reply()
        before = await asyncio.to_thread(self.program.record_files, files)
        async with AsyncExitStack() as stack:
            env = {} if grant is None else _environment(grant)
            process = await self.program.start(stack, files, self._values(request), env)
            if isinstance(process, Fault):
                return Reply(fault=process)
            try:
                async with asyncio.timeout(limit.seconds):
                    await self._take_output(process, reply)
                    if reply.fault is None and (code := await process.wait()) != 0:
                        reply.fault = self._exit_fault(
                            code, process.log_lines(), in_sandbox=files.workspace is not None
                        )
            except TimeoutError:
                await process.end()
                reply.fault = limit.fault()
                reply.fault.detail = process.log_lines() or None
        if reply.fault is None:
            await self._read(files, reply, before)
        else:
            await self._keep_output(files, reply, before)
        return reply

    async def _keep_output(self, files: RunFiles, reply: Reply, before: set[str]) -> None:
        """Keep what a program wrote before it failed: it may list calls."""
        if self.program.has_output_file or self.program.has_record:
            try:
                reply.body = await asyncio.to_thread(self._written, files, before) or None
            except SeatrialError as error:
                reply.cut = error.code == "too_large"

    async def _take_output(self, process: Process, reply: Reply) -> None:
        """Collect standard output as it comes, so that what there is of it is kept whatever happens."""
        if self.program.has_output_file:
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

    def _exit_fault(self, code: int, log: str, *, in_sandbox: bool) -> Fault:
        if in_sandbox and self.sandbox is not None and self.sandbox.failed(code, log):
            return Fault("agent_not_started", "the sandbox could not be made", detail=log)
        return exit_fault(code, log)

    def _written(self, files: RunFiles, before: set[str]) -> bytes:
        """What the program wrote into a file: its record, else its answer."""
        path = self.program.new_record(files, before) if self.program.has_record else str(files.output)
        return read_file(path, self._max_bytes)

    async def _read(self, files: RunFiles, reply: Reply, before: set[str]) -> None:
        named = "record" if self.program.has_record else "output"
        try:
            body = reply.body or b""
            if self.program.has_output_file or self.program.has_record:
                body = await asyncio.to_thread(self._written, files, before)
            reply.body = body or None
            reply.reading = await off_loop(len(body), lambda: self._reading(body))
        except SeatrialError as error:
            reply.fault = _output_fault(error, len(reply.body or b""), named, self._output)
        else:
            reply.fault = reading_fault(reply.reading)
            if reply.fault is None and self._output is not None:
                # It said what it would print: then a stream without its end is its own doing.
                cut = next((note for note in reply.reading.notes if note.code == STREAM_TRUNCATED), None)
                reply.fault = None if cut is None else Fault("stream_truncated", cut.message)
            reply.trace_file = await self.program.trace_file(reply.reading, files)

    def _reading(self, body: bytes) -> Reading:
        """Read as what the suite says it is. What is no such record is never taken for the answer."""
        if self._output == "text":
            return read_text_output(body)
        if self._output is not None:
            name = OUTPUTS.get(self._output) or self._output
            find_format(name, self.program.directory)
            return formats.read(body, name)
        return formats.read(body) if self.program.has_record else read_output(body)

    def _values(self, request: RunRequest) -> dict[str, str]:
        case = request.case
        return {
            "PROMPT": case.instruction,
            "EVAL_ID": case.id,
            "ATTEMPT": str(request.attempt),
            "FILES": "\n".join([str(self.program.directory / file) for file in case.files]),
            "SUITE_DIR": str(self.program.directory),
            "SUITE_FILE": "" if request.suite_file is None else str(request.suite_file.resolve()),
        }


def _environment(grant: RunGrant) -> dict[str, str]:
    """How a program finds the tool proxy: by our names, and by those that clients of it know (dispatch.md 16)."""
    return {
        "SEATRIAL_PROXY_URL": grant.url,
        "SEATRIAL_RUN_TOKEN": grant.token,
        "SEATRIAL_RUN_ID": grant.run_id,
        "PIPELINES_ODYSSEY_PROXY_URL": grant.url,
        "PIPELINES_RUN_TOKEN": grant.token,
        "PIPELINES_RUN_TOKEN_JTI": grant.jti,
        "PIPELINES_RUN_ID": grant.run_id,
    }


def _output_fault(error: SeatrialError, size: int, named: str = "output", format: str | None = None) -> Fault:
    """The fault of output that cannot be read."""
    if error.code in ("empty_input", "unreadable_file"):
        left = "record" if named == "record" else "answer"
        return Fault("agent_output_missing", f"the program ended well but left no {left}: {error.message}")
    if error.code == "ambiguous_record":
        return Fault("record_unreadable", str(error))
    if error.code == "not_json":
        return Fault("agent_bad_response", f"the {named}, {size:,} bytes, is broken JSON: {error}")
    kind = "response_too_large" if error.code == "too_large" else unreadable(error)
    wanted = "a provider response" if format is None and named == "output" else format or "a record that is read"
    return Fault(kind, f"the {named} is not {wanted}: {error}")
