"""A program that takes all cases at once: a JSON line for each in, a JSON line for each out (trajectory.md 4)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import msgspec

from seatrial._support import wire
from seatrial.agents.agent import AnsweredAgain, EndedBadly, Reply, RunRequest
from seatrial.agents.cli.config import CliConfig
from seatrial.agents.cli.process import READ_BYTES, Process
from seatrial.agents.cli.program import Program, RunFiles, exit_fault, system_fault
from seatrial.agents.cli.waiting import WaitingRequests
from seatrial.agents.limit import RunTimeLimit
from seatrial.agents.off_loop import off_loop
from seatrial.agents.output import read_part, read_record, reading_fault, unreadable
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response, output_messages
from seatrial.formats.chat.hidden_calls import note_repeated_keys
from seatrial.formats.reading import Reading
from seatrial.runs import Fault
from seatrial.transcript import Note, note_code, pointer

BATCH_LINE_UNUSABLE = note_code(
    "batch_line_unusable",
    "A line of a batch is not JSON, too long, or has no id: it belongs to no run. Unless it is plain text, the calls "
    "of the run whose id it begins with, or else of all runs of the batch, are partly unknown.",
    "serious",
)
BATCH_ID_UNKNOWN = note_code(
    "batch_id_unknown",
    "A line of a batch has an id that no case was sent under. The calls of all runs of the batch are partly unknown.",
    "serious",
)
BATCH_ID_REPEATED = note_code(
    "batch_id_repeated",
    "A line of a batch has the id of an earlier one. The first counts, and the calls of its run are partly unknown.",
    "serious",
)
BATCH_ENDED_BADLY = note_code(
    "batch_ended_badly",
    "The program of a batch ended badly, or had to be ended, after it had answered every case: its runs have that "
    "fault.",
    "look",
)

MAX_NOTES = 100
POLL_S = 0.05
"""How often a file that a program writes is looked at."""

_HEAD_BYTES = 1000
"""What is kept of a line that is too long: its id may be in it."""
_BREATHE = 200
"""Requests that are written before others have a turn."""


class CliBatchAgent:
    """Starts one program for all cases, and takes its lines while it runs."""

    def __init__(self, config: CliConfig, *, directory: Path, timeout_s: float | None) -> None:
        self.notes: list[Note] = []
        """What in the output belongs to no run; the first hundred. A batch adds to those of the batches before it."""
        self._unnoted = 0
        self.program = Program(config, directory)
        self._timeout_s = timeout_s
        self._max_bytes = config.max_response_bytes
        self._running: set[_RunningBatch] = set()

    async def __aenter__(self) -> Self:
        await self.program.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        # Whoever stopped asking for replies may have left a program running.
        for batch in list(self._running):
            await batch.process.end()
        await self.program.__aexit__(*exc_info)

    async def run_batch(
        self, requests: Iterable[RunRequest]
    ) -> AsyncGenerator[tuple[RunRequest, Reply | AnsweredAgain | EndedBadly], None]:
        """Ask all; replies come as their lines do, and in the end one for every request that got none.

        A deadline is counted from one line to the next: the runs of a batch have no beginnings of their own.
        """
        unsent = iter(requests)
        noted_before = len(self.notes)
        doubts = _Doubts()
        with WaitingRequests() as waiting:
            async with AsyncExitStack() as stack:
                batch = await self._begin(stack, unsent, waiting)
                fault = batch if isinstance(batch, Fault) else None
                lines = Lines(self._max_bytes)
                while isinstance(batch, _RunningBatch):
                    chunk = await batch.read()
                    if isinstance(chunk, Fault):
                        fault = chunk
                        break
                    for number, line in lines.feed(chunk) if chunk else lines.close():
                        found = self._asked(number, line, lines.heads.pop(number, b""), waiting, batch.attempt)
                        if isinstance(found, _Asked) and line is not None:
                            reply = await self._reply(number, line, batch.files)
                            reply.doubts = doubts.of(found.request_id)
                            yield found.request, reply
                        elif isinstance(found, _Stray) and doubts.add(found):
                            ids = waiting if found.request_id is None else [found.request_id]
                            for again in filter(None, map(waiting.take_again, ids)):
                                yield again, AnsweredAgain(found.note)
                    if not chunk:
                        fault = await batch.end()
                        break
            if fault is not None:
                for request in waiting.taken():
                    yield request, EndedBadly(msgspec.structs.replace(fault))
            unanswered = False
            for request_id, request in waiting.take_rest():
                unanswered = True
                lost = fault or _missing(request_id, self.notes[noted_before:])
                yield request, Reply(fault=lost, doubts=doubts.of(request_id))
            if fault is not None and not unanswered and len(self.notes) < MAX_NOTES:
                self.notes.append(Note(BATCH_ENDED_BADLY, "", fault.message))
        if isinstance(batch, _RunningBatch):
            self.notes += batch.files.notes
        for request in unsent:
            yield request, Reply(fault=fault)

    async def _begin(
        self, stack: AsyncExitStack, requests: Iterator[RunRequest], waiting: WaitingRequests
    ) -> _RunningBatch | Fault:
        """Write the requests and start the program."""
        try:
            files = await stack.enter_async_context(self.program.files())
            sent = await _send(files.prompt, requests, waiting, self.program.directory)
        except OSError as error:
            return system_fault(error, "internal_error", f"the files of the batch cannot be made: {error.strerror}")
        suite_file = "" if sent.suite_file is None else str(sent.suite_file.resolve())
        process = await self.program.start(stack, files, {"ATTEMPT": str(sent.attempt), "SUITE_FILE": suite_file})
        if isinstance(process, Fault):
            return process
        own = self._timeout_s is not None
        silence = RunTimeLimit(self._timeout_s if own else sent.longest_s, is_deadline=not own)
        batch = _RunningBatch(process, files, sent.attempt, silence, in_file=self.program.has_output_file)
        self._running.add(batch)
        stack.callback(self._running.discard, batch)
        return batch

    def _asked(
        self, number: int, line: bytes | None, head: bytes, waiting: WaitingRequests, attempt: int
    ) -> _Asked | _Stray | None:
        """The request that a line answers; a note when it answers none, or one that was answered.

        Of a line that is too long there is only its head.
        """
        if line is not None and (not line or line.isspace()):
            return None
        found = _answered(line, waiting, self._max_bytes)
        if isinstance(found, _Asked):
            return found
        code, message, repeated = found
        where = f", in attempt {attempt}" if attempt > 1 else ""
        note = Note(code, pointer(number), message + where)
        if len(self.notes) < MAX_NOTES:
            self.notes.append(note)
        else:
            self._unnoted += 1
            message = f"{message}{where}; {self._unnoted:,} such lines before it have no note"
            self.notes[-1] = Note(code, pointer(number), message)
        # Of its run, the note says what that means for it: the line itself is in no record.
        if repeated is not None:
            text = f"line {number} answers this case again, and is not read: what it did by that line is not known"
            return _Stray(repeated, Note(code, "", text + where))
        start = head if line is None else line
        if not _may_be_record(start):
            return None
        begun = _id_at_start(start)
        if code == BATCH_LINE_UNUSABLE and begun is not None and begun in waiting:
            text = f"line {number} begins with the id of this case, and cannot be read: what it did by it is not known"
            return _Stray(begun, Note(code, "", text + where))
        told = "has an id that no case was sent under" if code == BATCH_ID_UNKNOWN else "cannot be read, or has no id"
        text = f"line {number} of the batch {told}: whatever it says may have been done by this run"
        return _Stray(None, Note(code, "", text + where))

    async def _reply(self, number: int, line: bytes, files: RunFiles) -> Reply:
        reply = Reply(body=line)
        try:
            reply.reading = await off_loop(len(line), lambda: note_repeated_keys(line, _read(line)))
        except SeatrialError as error:
            reply.fault = Fault(unreadable(error), f"line {number} cannot be read: {error}")
        else:
            reply.fault = reading_fault(reply.reading)
            reply.trace_file = await self.program.trace_file(reply.reading, files)
        return reply


class _Asked(msgspec.Struct):
    """The request that a line answers."""

    request_id: str
    request: RunRequest


class _Stray(msgspec.Struct):
    """A line that is in no record, though it may hold a call."""

    request_id: str | None
    """The request that it belongs to; None when it may belong to any of the batch."""
    note: Note


class _Doubts:
    """Which requests of a batch have lines that are in no record."""

    def __init__(self) -> None:
        self._of_all: Note | None = None
        self._of_one: dict[str, Note] = {}

    def add(self, stray: _Stray) -> bool:
        """Keep a line for the answers that come after it; False when it leaves no more unknown than an earlier one."""
        if stray.request_id is not None:
            return self._of_one.setdefault(stray.request_id, stray.note) is stray.note
        known = self._of_all is not None
        self._of_all = self._of_all or stray.note
        return not known

    def of(self, request_id: str) -> list[Note]:
        """What is to be noted on the run of a request."""
        return [note for note in (self._of_all, self._of_one.get(request_id)) if note is not None]


class _RunningBatch:
    """A program that works on a batch, and what it writes."""

    def __init__(
        self, process: Process, files: RunFiles, attempt: int, silence: RunTimeLimit, *, in_file: bool
    ) -> None:
        """With `in_file`, it writes to its output file, else to standard output."""
        self.process = process
        self.files = files
        self.attempt = attempt
        self._silence = silence
        self._in_file = in_file
        self._offset = 0

    async def read(self) -> bytes | Fault:
        """The next bytes of its output, b"" at the end; a fault when it says nothing for too long."""
        try:
            async with asyncio.timeout(self._silence.seconds):
                return await (self._read_file() if self._in_file else self.process.read())
        except TimeoutError:
            return await self._give_up()

    async def end(self) -> Fault | None:
        """Wait for its end; a fault when that is not a good one."""
        try:
            async with asyncio.timeout(self._silence.seconds):
                code = await self.process.wait()
        except TimeoutError:
            return await self._give_up()
        return None if code == 0 else exit_fault(code, self.process.log_lines())

    async def _read_file(self) -> bytes:
        while True:
            ended = self.process.ended
            chunk = read_part(str(self.files.output), self._offset, READ_BYTES)
            if chunk or ended:
                self._offset += len(chunk)
                return chunk
            await asyncio.sleep(POLL_S)

    async def _give_up(self) -> Fault:
        await self.process.end()
        fault = self._silence.fault()
        fault.message = f"the program wrote nothing for {self._silence.seconds:g} s"
        fault.detail = self.process.log_lines() or None
        return fault


class _Sent(msgspec.Struct):
    """What the requests of a batch have in common."""

    suite_file: Path | None = None
    attempt: int = 1
    longest_s: float | None = 0.0
    """The longest of their deadlines; None when one has none."""


async def _send(path: Path, requests: Iterator[RunRequest], waiting: WaitingRequests, directory: Path) -> _Sent:
    """Write a line for each request; files of cases are relative to the directory."""
    sent = _Sent()
    with path.open("wb") as file:
        for number, request in enumerate(requests, start=1):
            case = request.case
            # A further trial of a case is sent under the id of its run: ids are what tells the lines apart.
            request_id = request.run_id if case.id in waiting else case.id
            waiting.add(request_id, request)
            line: dict[str, Any] = {
                "id": request_id,
                "prompt": case.instruction,
                # Whole: the program may start elsewhere.
                "files": [str(directory / file) for file in case.files],
                "input": case.input,
            }
            if case.messages:
                line["messages"] = case.messages
            file.write(wire.encode(line) + b"\n")
            sent.suite_file, sent.attempt = request.suite_file, request.attempt
            if sent.longest_s is not None:
                sent.longest_s = None if request.timeout_s is None else max(sent.longest_s, request.timeout_s)
            if number % _BREATHE == 0:
                await asyncio.sleep(0)
    return sent


def _read(line: bytes) -> Reading:
    """What a line says, in any shape that a program may print for a single run."""
    if not agent_response.is_agent_response(line):
        try:
            return output_messages.read(line)
        except SeatrialError:
            pass
    members = wire.decode(line, _MEMBERS, [])
    # The id is that of the request, and none of the record's own.
    members.pop("id", None)
    return read_record(wire.encode(members))


def _may_be_record(start: bytes) -> bool:
    """Whether a line that starts so may hold a call: it is an object, or a list of objects. Plain text is a log."""
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    return not start or start.startswith(b"{") or start.removeprefix(b"[").lstrip().startswith(b"{")


def _id_at_start(start: bytes) -> str | None:
    """The id that a line begins with, whatever follows; None when it begins with something else."""
    found = _ID_AT_START.match(start)
    if found is None:
        return None
    try:
        return str(_ID.decode(found[1] + b"}").id)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _answered(line: bytes | None, waiting: WaitingRequests, max_bytes: int) -> _Asked | tuple[str, str, str | None]:
    """The request that a line answers; else the code of a note, what it says, and the id if it was answered before."""
    if line is None:
        return BATCH_LINE_UNUSABLE, f"the line is longer than {max_bytes:,} bytes", None
    try:
        given = wire.decode(line, _ID, []).id
    except SeatrialError as error:
        return BATCH_LINE_UNUSABLE, error.message, None
    if given is None:
        return BATCH_LINE_UNUSABLE, "the line has no id", None
    request_id = str(given)
    request = waiting.take(request_id)
    if request is not None:
        return _Asked(request_id, request)
    text = f"the id is {request_id[:80]!r}"
    return (BATCH_ID_REPEATED, text, request_id) if request_id in waiting else (BATCH_ID_UNKNOWN, text, None)


def _missing(request_id: str, notes: list[Note]) -> Fault:
    told = f"no line of the output has the id {request_id[:80]!r}"
    if notes:
        told += f"; of the lines that belong to no run, the first is line {notes[0].pointer[1:]}: {notes[0].message}"
    return Fault("agent_output_missing", told)


class _Id(msgspec.Struct):
    id: str | int | None = None


_ID = msgspec.json.Decoder(_Id)
_ID_AT_START = re.compile(rb'\s*(\{\s*"id"\s*:\s*(?:"(?:[^"\\]|\\.){0,900}"|-?[0-9]{1,20}(?=[\s,}])))')
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Lines:
    """Cuts chunks of any size into lines without their ends, and counts them. One that is too long costs nothing but
    itself, and the cost is linear in the bytes."""

    def __init__(self, limit: int) -> None:
        self.number = 0
        """Of the line that was given last, from 1; blank ones count."""
        self.heads: dict[int, bytes] = {}
        """How lines began that were too long, by their numbers; for the reader to take."""
        self._limit = limit
        self._open = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[tuple[int, bytes | None]]:
        """The lines that this chunk completes, with their numbers; None in the place of one that is too long."""
        *ended, rest = chunk.split(b"\n")
        lines = [self._end(part) for part in ended]
        self._add(rest)
        return lines

    def close(self) -> list[tuple[int, bytes | None]]:
        """The last line, when it lacks its end."""
        return [self._end(b"")] if self._open or self._skipping else []

    def _add(self, part: bytes) -> None:
        if not self._skipping:
            self._open += part
            if len(self._open) > self._limit:
                self._skipping = True
                self.heads[self.number + 1] = bytes(self._open[:_HEAD_BYTES])
                self._open.clear()

    def _end(self, part: bytes) -> tuple[int, bytes | None]:
        self._add(part)
        self.number += 1
        line = None if self._skipping else bytes(self._open)
        self._skipping = False
        self._open.clear()
        return self.number, line
