"""Runs that were recorded before: graded again, without running anything."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Container
from pathlib import Path
from typing import Protocol, Self

import msgspec

from seatrial import formats
from seatrial._support import wire
from seatrial._support.excerpt import excerpt
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.output import read_file, read_trace_file, reading_fault
from seatrial.agents.replay.config import ReplayConfig
from seatrial.errors import SeatrialError
from seatrial.runs import Fault, Run, class_of_status
from seatrial.transcript import Note, note_code

RECORD_LINE_UNUSABLE = note_code(
    "record_line_unusable",
    "A line of the file that is replayed is not JSON, or has no id: it may be a record of any case, so the calls of "
    "all runs of the agent are partly unknown.",
    "serious",
)
RECORD_LEFT_OUT = note_code(
    "record_left_out",
    "There are more records of a case than the suite has trials, so that some were not judged.",
    "serious",
)
RECORD_OF_NO_CASE = note_code(
    "record_of_no_case",
    "What is replayed has records under ids of which the suite has no case; they were not used.",
    "look",
)
MAX_RECORD_BYTES = 512 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024 * 1024


class RunArchive(Protocol):
    """Where the runs of earlier experiments are."""

    def __call__(self, experiment: str, agent: str | None, case_id: str, trial: int) -> Run | None:
        """The run of a case in an experiment; None when there is none. May block."""
        ...


class RecordPlace(msgspec.Struct):
    """Where one record is: a whole file, or a line of one."""

    path: str
    offset: int = 0
    length: int | None = None
    """None for the whole file."""


class Records(msgspec.Struct):
    """All that was recorded."""

    by_case: dict[str, list[RecordPlace]]
    """For each case one, or one for each trial."""
    unusable: list[int] = []
    """Lines that belong to no case, from 1."""


class ReplayAgent:
    """Answers with what was recorded for a case: the n-th record of it in the n-th trial, or the only one always."""

    uses_world = False

    def __init__(
        self, config: ReplayConfig, *, directory: Path, stored: RunArchive | None, trials: int | None = None
    ) -> None:
        """`trials` is how often each case is run; None when that is not known."""
        if (config.path is None) == (config.experiment is None):
            raise SeatrialError("invalid_config", "a replay needs either `path` or `experiment`")
        if config.experiment is not None and stored is None:
            raise SeatrialError("invalid_config", "there is no store to take the runs of an experiment from")
        if config.format is not None:
            formats.find_format(config.format, directory)
        self._config = config
        self._path = None if config.path is None else directory / config.path
        self._directory = str(directory.resolve())
        self._stored = stored
        self._trials = trials
        self._records = Records({})

    async def __aenter__(self) -> Self:
        if self._path is not None:
            self._records = await asyncio.to_thread(find_records, self._path)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        pass

    def check_presence(self) -> None:
        """Raise `SeatrialError` when there are no files to replay. A file of lines may be large, and is only opened."""
        if self._path is None:
            return
        if self._path.is_dir() or self._path.suffix == ".json":
            find_records(self._path)
        else:
            try:
                self._path.open("rb").close()
            except OSError as error:
                raise _unreadable(self._path, error) from None

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        reply = await asyncio.to_thread(self._reply, request)
        reply.replayed = True
        return reply

    def _reply(self, request: RunRequest) -> Reply:
        case_id, trial = request.case.id, request.trial
        if self._stored is not None and self._config.experiment is not None:
            try:
                run = self._stored(self._config.experiment, self._config.agent, case_id, trial)
            except SeatrialError as error:
                return Reply(fault=Fault("record_unreadable", f"the stored run cannot be read: {error}"))
            if run is not None:
                request.observed.steps = run.observed if run.reported is not None else run.observed or None
                if run.reading is not None and (run.completeness is None or run.completeness.level == "none"):
                    # What older versions stored does not say so, and replaying a run must not make its calls known.
                    run.reading.answer_only = run.reading.trace is None
                return Reply(body=run.body, reading=run.reading, fault=_stored_fault(run), diff=run.diff)
            return Reply(fault=self._missing(request))
        records = self._records.by_case.get(case_id, [])
        if trial > len(records) and len(records) != 1:
            return Reply(fault=self._missing(request))
        reply = self._read(records[min(trial, len(records)) - 1])
        if reply.reading is not None:
            reply.reading.notes += self._doubts(len(records))
        return reply

    def _doubts(self, records: int) -> list[Note]:
        """What was recorded and is not judged, of a case with so many records."""
        notes: list[Note] = []
        if self._records.unusable:
            text = f"{_lines(self._records.unusable)} of the records: not JSON, or without an id"
            notes.append(Note(RECORD_LINE_UNUSABLE, "", text))
        if self._trials is not None and records > self._trials:
            text = f"there are {records:,} records of the case, and the suite has `trials: {self._trials}`"
            notes.append(Note(RECORD_LEFT_OUT, "", text))
        return notes

    def _read(self, record: RecordPlace) -> Reply:
        try:
            data = _content(record)
        except (SeatrialError, OSError) as error:
            return Reply(fault=Fault("record_unreadable", f"the record cannot be read: {error}"))
        reply = Reply(body=data)
        try:
            reply.reading = formats.read(data, self._config.format)
        except SeatrialError as error:
            kind = error.code if error.code == "format_failed" else "record_unreadable"
            reply.fault = Fault(kind, f"the record cannot be read: {error}", excerpt(data))
            return reply
        reply.fault = reading_fault(reply.reading)
        folder = os.path.dirname(os.path.realpath(record.path))
        reply.trace_file = read_trace_file(reply.reading, folder, (self._directory,))
        return reply

    def _missing(self, request: RunRequest) -> Fault:
        told = f"there is no record of the case {request.case.id[:80]!r}"
        if request.trial > 1:
            told += f" for trial {request.trial}"
        if self._records.unusable:
            told += f"; {_lines(self._records.unusable)} of the records: not JSON, or without an id"
        return Fault("record_missing", told)


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN])) + (", ..." if len(numbers) > _SHOWN else "")
    return f"line {shown}" if len(numbers) == 1 else f"{len(numbers):,} lines ({shown})"


def unused_records(path: Path, cases: Container[str]) -> list[Note]:
    """A note when there are records that belong to none of the cases."""
    others = [case_id for case_id in find_records(path).by_case if case_id not in cases]
    if not others:
        return []
    shown = ", ".join([repr(case_id[:60]) for case_id in others[:_SHOWN]]) + (", ..." if len(others) > _SHOWN else "")
    return [Note(RECORD_OF_NO_CASE, "", f"{len(others):,} ids of records are not those of a case: {shown}")]


def _stored_fault(run: Run) -> Fault | None:
    """The fault of a stored run, in the classes of today; whose it is, is decided anew."""
    fault = run.fault
    if fault is None:
        return None
    today = None if fault.http_status is None else class_of_status(fault.http_status)
    today = today or _SUCCESSORS.get(fault.error_class, fault.error_class)
    return msgspec.structs.replace(fault, error_class=today, moved_to=None)


def find_records(path: Path) -> Records:
    """Where the record of each case is. Raises `SeatrialError` when the path leads to nothing of the kind."""
    try:
        if path.is_dir():
            return _in_directory(path)
        return _in_mapping(path) if path.suffix == ".json" else _in_lines(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> SeatrialError:
    return SeatrialError("unreadable_file", f"{path} cannot be read: {error.strerror}")


def _in_directory(path: Path) -> Records:
    """Files that are called by the id of their case; several are its trials, in the order of their names."""
    records = Records({})
    for file in sorted(path.iterdir()):
        if file.is_file() and not file.name.startswith("."):
            records.by_case.setdefault(file.stem, []).append(RecordPlace(str(file)))
    return records


def _in_mapping(path: Path) -> Records:
    """A JSON object: for each case a file, or one for each trial."""
    named = wire.decode_unambiguous(read_file(str(path), MAX_LINE_BYTES), _MAPPING)
    return Records(
        {
            case_id: [RecordPlace(str(path.parent / file)) for file in ([files] if isinstance(files, str) else files)]
            for case_id, files in named.items()
        }
    )


def _in_lines(path: Path) -> Records:
    """JSON lines with the `id` of their case. The file is read once, and not kept."""
    records = Records({})
    offset = number = 0
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise SeatrialError("too_large", f"a line of {path} is larger than {MAX_LINE_BYTES:,} bytes")
            if not line.isspace():
                record_id = _id_of(line)
                if record_id is None:
                    records.unusable.append(number)
                else:
                    records.by_case.setdefault(record_id, []).append(RecordPlace(str(path), offset, len(line)))
            offset += len(line)
    return records


def _id_of(line: bytes) -> str | None:
    try:
        record_id = wire.decode(line, _ID, []).id
    except SeatrialError:
        return None
    return None if record_id is None else str(record_id)


def _content(record: RecordPlace) -> bytes:
    if record.length is None:
        return read_file(record.path, MAX_RECORD_BYTES)
    with open(record.path, "rb") as file:
        file.seek(record.offset)
        return file.read(record.length).strip()


class _Id(msgspec.Struct):
    id: str | int | None = None


_SHOWN = 5
_SUCCESSORS = {"agent_batch_died": "agent_exit"}
"""Classes of older stores that have become one other class."""

_ID = msgspec.json.Decoder(_Id)
_MAPPING = msgspec.json.Decoder(dict[str, str | list[str]])
