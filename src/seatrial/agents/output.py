"""What a program gave as its answer: a provider response, or plain text; and the trace file it may name."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable

import msgspec

from seatrial import formats
from seatrial._support import wire
from seatrial.agents.streamed import ending_fault, reported_failure
from seatrial.errors import SeatrialError
from seatrial.events.order import StreamEnding
from seatrial.formats import agent_response, contract, output_messages
from seatrial.formats.chat.hidden_calls import may_hold_call, note_repeated_keys
from seatrial.formats.chat.limits import excess
from seatrial.formats.chat.turn import STREAM_TRUNCATED
from seatrial.formats.reading import Reading
from seatrial.runs import Fault
from seatrial.trajectory.extraction import TRACE_REF_NOT_READ, resolve_trace_ref
from seatrial.transcript import AssistantMessage, Note, StopReason, pointer

MAX_TRACE_BYTES = 64 * 1024 * 1024

_STRUCTURED = re.compile(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
# Text may begin with a bracket too: `[a link](...)`, `{{mustache}}`, `[1] a reference`.
_MEANT_AS_JSON = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:(?:\[\s*)*\{\s*["}]|\[\s*"|[\[{]\s*\Z)')

_IN_LINE = re.compile(rb'(?:[a-z0-9]{1,10}:)?\s*(\[?\s*\{\s*".*)')
"""JSON in a line of a stream: `data: {...}`, `9:{...}`, or the object alone."""


def read_output(data: bytes) -> Reading:
    """Read the output of one run: JSON is a provider response or messages of a known format, other text the answer.

    Raises `SeatrialError` when there is nothing, or when it was meant as JSON and is broken, or no response. A number,
    a word or a quoted text may happen to be JSON, and is the answer all the same.
    """
    if not _STRUCTURED.match(data):
        return output_messages.read_text_output(data)
    try:
        return note_repeated_keys(data, read_record(data))
    except SeatrialError as error:
        broken = _broken(data)
        if broken is None or error.code == "unread_format":
            raise
        if _MEANT_AS_JSON.match(data):
            raise broken from None
        return output_messages.read_text_output(data)


def read_record(data: bytes) -> Reading:
    """Read an agent response, a provider response, or what a framework writes, by whatever gives its format away.

    An object with `final_response` is an agent response, also where it has keys of a provider response besides.
    Raises `SeatrialError`; one for a format that is known and not read names it.
    """
    if agent_response.is_agent_response(data):
        return agent_response.read(data)
    try:
        return output_messages.read(data)
    except SeatrialError as error:
        refusal = error
    try:
        return formats.read(data)
    except SeatrialError as error:
        if error.code in ("unread_format", "ambiguous_format", "format_failed"):
            raise
    raise refusal


def read_remains(data: bytes) -> tuple[Reading | None, bool]:
    """What an attempt that failed left behind: its reading, where it is a record; and whether it may hold a call that
    is not in the reading.

    Most often it is a page that says what went wrong, which is not a record and holds no call.
    """
    try:
        reading = note_repeated_keys(data, read_record(data))
    except SeatrialError:
        return None, _may_hold_call(data)
    said = reading.transcript.done()
    if reading.events or reading.trace or any(type(message) is AssistantMessage for message in said):
        return reading, False
    return None, _may_hold_call(data)


def _may_hold_call(data: bytes) -> bool:
    """Whether there is JSON in data that looks like a call, or that is broken: a document, lines or events."""
    if excess(data) is not None:
        return True  # not opened to see: it would take far more memory than it is long
    if (found := _held(data)) is not None:
        return found
    if _MEANT_AS_JSON.match(data) and _held(data.strip().splitlines()[0]) is None:
        return True
    lines = [match[1] for line in data.splitlines() if (match := _IN_LINE.match(line)) is not None]
    return any(_held(line) is not False for line in lines)


def _held(data: bytes) -> bool | None:
    """Whether JSON looks as if there were a call in it; None when the data is not JSON."""
    try:
        return may_hold_call("", wire.decode(data, repairs=[]))
    except SeatrialError:
        return None


def unreadable(error: SeatrialError) -> str:
    """The class of fault of an answer that could not be read: it is not the agent's when a format of others failed."""
    return "format_failed" if error.code == "format_failed" else "agent_bad_response"


def reading_fault(reading: Reading) -> Fault | None:
    """The fault of a run whose own record says that it did not end well."""
    if reading.events is not None:
        ending = StreamEnding()
        for event in reading.events:
            ending.take(event)
        return ending_fault(ending) or reported_failure(reading)
    if (failure := reported_failure(reading)) is not None:
        return failure
    if reading.format == agent_response.FORMAT:
        report = contract.check(reading)
        return None if report.violation is None else Fault(report.violation, report.message)
    return last_turn_fault(reading)


def last_turn_fault(reading: Reading) -> Fault | None:
    """The fault of a run whose transcript ends with a turn that failed or was aborted."""
    if reading.events is not None or reading.format == agent_response.FORMAT:
        return None  # their end and their answer say how the run ended
    # A turn that failed may have made calls, whose results follow it.
    last = next((said for said in reversed(reading.transcript.messages) if type(said) is AssistantMessage), None)
    if last is None or last.stop_reason not in (StopReason.ERROR, StopReason.ABORTED):
        return None
    if any(note.code == STREAM_TRUNCATED for note in reading.notes):
        return None  # a record that was cut does not say how the run ended; its calls are partly unknown
    return Fault("agent_reported_error", last.error_message or "the agent's last turn did not end well")


def read_trace_file(reading: Reading, directory: str, roots: Iterable[str]) -> bytes | Note | None:
    """What the file holds that `trace_ref` names, or why it was not read; None when it names none.

    It is relative to `directory`, and read only from below that or one of `roots`, links followed.
    """
    if reading.trace_ref is None:
        return None
    roots = [os.path.realpath(root) for root in (directory, *roots)]
    named = resolve_trace_ref(reading.trace_ref, roots[0], roots[1:])
    if isinstance(named, Note):
        return named
    real = resolve_trace_ref(os.path.realpath(named), roots[0], roots[1:])
    if isinstance(real, Note):
        return real
    try:
        return read_file(real, MAX_TRACE_BYTES)
    except SeatrialError as error:
        return Note(TRACE_REF_NOT_READ, pointer("trace_ref"), error.message)


def read_file(path: str, limit: int) -> bytes:
    """The content of a file that a program made. Raises `SeatrialError` when it is not one, or too large."""
    data = _read(path, 0, limit + 1)
    if len(data) > limit:
        raise SeatrialError("too_large", f"the file is larger than {limit:,} bytes")
    return data


def read_part(path: str, offset: int, length: int) -> bytes:
    """A part of a file that a program is still writing; b"" when there is none yet."""
    try:
        return _read(path, offset, length)
    except SeatrialError:
        return b""


def _broken(data: bytes) -> SeatrialError | None:
    """Why data is not JSON; None when it is, or too deep to tell."""
    try:
        wire.decode(data, _CHECKED, repairs=[])
    except SeatrialError as error:
        return None if error.code == "too_deep" else error
    return None


def _read(path: str, offset: int, length: int) -> bytes:
    try:
        # A program may leave a pipe there, and opening one waits for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SeatrialError("unreadable_file", "it is not a regular file")
            file.seek(offset)
            return file.read(length)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SeatrialError("unreadable_file", f"the file cannot be read: {reason}") from None


_CHECKED = msgspec.json.Decoder(msgspec.Raw)
"""Looks at all of it and keeps nothing: what was refused for its size must not be opened to say why."""
