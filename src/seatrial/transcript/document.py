"""Transcripts as JSON: the strict reader, the lenient reader, the reader of long files, and the writers.

The strict reader takes what the seed's own types take and nothing else. The lenient one takes an array of
messages, an object that holds one under `messages`, a single message, or JSON lines, and notes what it had to
drop, guess or repair. Both read sound input at the speed of the typed decoder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import is_too_deep
from seatrial.errors import SeatrialError
from seatrial.transcript.messages import Message
from seatrial.transcript.note import Note, note_code, pointer, repair_notes
from seatrial.transcript.salvage import hidden_fault, salvage_message, salvage_messages, typed_message

INVALID_LINE = note_code("invalid_line", "A line is not JSON; it was dropped, the other lines stay.", "serious")


class MessageLine(msgspec.Struct):
    """What one line of JSON lines held."""

    line: int
    """Number of the line, from 1; blank lines count."""
    message: Message | None
    """None when nothing of the line could be kept; then there is a note."""
    notes: list[Note]
    """Pointers start with the line, counted from 0, as if the lines were an array."""


def decode_messages(data: bytes) -> list[Message]:
    """Read a JSON array of messages, strictly.

    An unknown role or stop reason, a missing key, a wrong type or a number out of range is a `SeatrialError`
    with the JSON pointer of the culprit. Unknown keys are ignored.
    """
    messages = wire.decode(data, _MESSAGES)
    for index, message in enumerate(messages):
        fault = hidden_fault(message)
        if fault is not None:
            place, problem = fault
            raise SeatrialError("invalid_document", problem, pointer=pointer(index, *place))
    return messages


def read_messages(data: bytes) -> tuple[list[Message], list[Note]]:
    """Read messages from bytes nobody vouches for, and tell what had to be dropped, guessed or repaired.

    Raises `SeatrialError` only when the input is empty, not JSON, too deep, or holds no messages at all.
    """
    if not data or data.isspace():
        raise SeatrialError("empty_input", "there is nothing to read")
    messages = _typed(data)
    if messages is not None:
        return messages, []
    return _careful(data)


def iter_messages(lines: Iterable[bytes]) -> Iterator[MessageLine]:
    """Read JSON lines one at a time, leniently; blank lines are skipped.

    Holds one line at a time, so a file of any length can be read: `iter_messages(open(path, "rb"))`.
    """
    for index, line in enumerate(lines):
        if line and not line.isspace():
            yield _read_line(index, line)


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Write messages as one JSON array: tag first, keys in order, what is None left out."""
    return wire.encode(list(messages))


def encode_lines(messages: Iterable[Message]) -> bytes:
    """Write messages as JSON lines, each ended by a newline."""
    # A raw newline can only come from white space inside reasoning details, where a blank means the same.
    lines = [wire.encode(message).replace(b"\n", b" ") for message in messages]
    return b"\n".join([*lines, b""])


def _typed(data: bytes) -> list[Message] | None:
    """The messages of sound input; None when it needs the careful way."""
    if is_too_deep(data):
        return None
    try:
        if data[:1] == b"[":
            messages = _MESSAGES.decode(data)
        elif data[:1] == b"{":
            try:
                messages = _MESSAGE.decode_lines(data)
            except msgspec.ValidationError:
                messages = _HOLDER.decode(data).messages
        else:
            return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if any(map(hidden_fault, messages)) else messages


def _careful(data: bytes) -> tuple[list[Message], list[Note]]:
    repairs: list[wire.Repair] = []
    try:
        whole = bytes(wire.decode(data, _RAW, repairs))
    except SeatrialError as error:
        # Several JSON values are lines; but a broken array is a broken array, whatever its lines look like.
        if data.lstrip()[:1] == b"[":
            raise
        return _read_lines(data, error)
    notes = repair_notes(repairs)
    return salvage_messages(whole, notes), notes


def _read_lines(data: bytes, error: SeatrialError) -> tuple[list[Message], list[Note]]:
    lines = list(iter_messages(data.split(b"\n")))
    messages = [line.message for line in lines if line.message is not None]
    if not messages:
        raise error
    return messages, [note for line in lines for note in line.notes]


def _read_line(index: int, line: bytes) -> MessageLine:
    message = typed_message(line)
    if message is not None:
        return MessageLine(index + 1, message, [])
    repairs: list[wire.Repair] = []
    try:
        whole = bytes(wire.decode(line, _RAW, repairs))
    except SeatrialError as error:
        return MessageLine(index + 1, None, [Note(INVALID_LINE, pointer(index), f"line {index + 1}: {error.message}")])
    notes = repair_notes(repairs, pointer(index))
    return MessageLine(index + 1, salvage_message(whole, (index,), notes), notes)


class _Holder(msgspec.Struct):
    messages: list[Message]


_MESSAGES: msgspec.json.Decoder[list[Message]] = msgspec.json.Decoder(list[Message])
_MESSAGE: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_HOLDER = msgspec.json.Decoder(_Holder)
_RAW = msgspec.json.Decoder(msgspec.Raw)
