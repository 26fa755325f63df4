"""Recorded streams of events: SSE, NDJSON or a JSON array, of bare events or of envelopes.

KEEPALIVE and TERMINAL frames are recognised, the `[DONE]` of other protocols is passed over. An envelope that comes
again counts once. What is wrong with the envelopes (gaps, repetitions, another run) is noted; the events are given as
they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import MAX_DEPTH, is_too_deep
from seatrial.errors import SeatrialError
from seatrial.events import types as t
from seatrial.events.codec import event_decoder
from seatrial.events.conformance import refusal
from seatrial.events.envelope import RunStreamTerminal, SequencedOutputEnvelope, StreamKeepalive, parse_cursor
from seatrial.events.event_reader import EventReader
from seatrial.events.framing import NdjsonParser, SseFrame, SseParser
from seatrial.events.verify import STREAM_TRUNCATED
from seatrial.events.violation import quoted
from seatrial.transcript import Note, note_code, pointer, repair_notes

DONE_SENTINEL = note_code(
    "done_sentinel", "The stream has the `[DONE]` of other protocols, which AG-UI refuses.", "look"
)
FRAME_TRUNCATED = note_code(
    "frame_truncated", "The stream was cut inside a frame; what had come of it was dropped.", "serious"
)
ENVELOPE_INVALID = note_code(
    "envelope_invalid", "An envelope, KEEPALIVE or TERMINAL frame has a wrong, missing or unknown field.", "serious"
)
ENVELOPE_REPEATED = note_code("envelope_repeated", "An envelope came twice; it counts once.", "harmless")
EVENT_REFUSED = note_code(
    "event_refused", "A client of AG-UI 1.0 ends the stream here; it was repaired to read on.", "look"
)
SEQUENCE_GAP = note_code("sequence_gap", "Sequences are missing, at the start or between two events.", "serious")
SEQUENCE_REPEATED = note_code("sequence_repeated", "A sequence is not higher than the one before it.", "look")
RUN_CHANGED = note_code("run_changed", "An envelope names another run or thread than the one before it.", "look")
EVENTS_CUT = note_code(
    "events_cut", "A stream has more events than are read; those beyond that were dropped.", "serious"
)
AFTER_TERMINAL = note_code("after_terminal", "An event comes after the TERMINAL frame.", "serious")

MAX_EVENTS: Final = 200_000
"""Of one run: an event of twenty bytes takes five hundred in memory."""
_SLICE_BYTES: Final = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class EventLog(msgspec.Struct):
    """A whole recorded stream."""

    events: list[t.Event]
    notes: list[Note]
    """What had to be repaired; pointers are indices of events."""
    run_id: str | None = None
    """As the envelopes, or the ids of the SSE frames, name it."""
    thread_id: str | None = None
    sequences: list[int] | None = None
    """One for each event, when all have one."""
    terminal: RunStreamTerminal | None = None
    refused: list[Note] = []
    """Where a client of AG-UI would have ended the stream, if that was asked for. The order is for `verify`."""
    truncated: bool = False
    """Whether the last run in it has no end."""


class Frame(NamedTuple):
    """What a frame of a stream holds."""

    data: bytes
    id: str | None = None
    """Of an SSE frame."""
    closed: bool = True
    """False for a last frame that the stream may have been cut in."""


def read_log(data: bytes, *, check: bool = False) -> EventLog:
    """Read a recorded stream. A frame larger than 10 MiB is an error, as is input without any frame.

    Of more than `MAX_EVENTS` the rest is dropped, but for what says how the run ended.

    With `check`, every event is also checked against what clients of AG-UI accept, where that concerns one event alone;
    events in envelopes as if they had come without.
    """
    reader = LogReader(check=check)
    events: list[t.Event] = []
    sequences: list[int] = []
    ending: t.Event | None = None
    start = data.removeprefix(_BOM).lstrip()[:1]
    if check and start not in (b"[", b"{") and b"\r" in data:
        reader.refuse("lines end in CR; clients know LF alone, and take the whole for one frame")
    for frame in _frames(data, start):
        if len(events) >= MAX_EVENTS:
            if reader.cuts(frame) and isinstance(event := reader.take(frame), t.RunFinished | t.RunError):
                ending = event
            continue
        event = reader.take(frame)
        if event is not None:
            events.append(event)
            if reader.sequence is not None:
                sequences.append(reader.sequence)
    if not reader.frames:
        raise SeatrialError("empty_input", "there is no event in the input")
    reader.finish()
    if ending is not None:
        events.append(ending)
    complete = len(sequences) == len(events)
    return EventLog(
        events,
        reader.notes,
        reader.run_id,
        reader.thread_id,
        sequences if complete else None,
        reader.terminal,
        reader.refused,
        truncated=not reader.run_ended,
    )


class FrameReader:
    """Takes the frames of one connection off the chunks it arrives in; its first byte says which frames they are."""

    def __init__(self) -> None:
        self._head = b""
        self._parser: SseParser | NdjsonParser | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes. A JSON array is a document, not a stream: see `read_log`."""
        if self._parser is None:
            self._head = (self._head + chunk).lstrip()
            chunk = self._head.removeprefix(_BOM)
            if not chunk or _BOM.startswith(self._head):
                return []
            if chunk[:1] == b"[":
                hint = "an array can be read once all of it is there"
                raise SeatrialError("invalid_document", "a JSON array is not a stream of events", hint=hint)
            self._parser = NdjsonParser() if chunk[:1] == b"{" else SseParser()
            self._head = b""
        return _as_frames(self._parser.feed(chunk))

    def close(self) -> list[Frame]:
        """The last frame, if it was not closed."""
        return [] if self._parser is None else _as_frames(self._parser.close(), closed=False)


class LogReader:
    """Reads a stream as it arrives, in chunks of any size. Of what is behind it keeps the notes and nothing else."""

    def __init__(self, *, check: bool = False) -> None:
        """With `check`, `refused` says where a client of AG-UI would have ended the stream."""
        self.refused: list[Note] = []
        self._check = check
        self._reader = EventReader()
        self._decode_event = event_decoder().decode
        self._decode_envelope = _envelope_decoder().decode
        self.notes = self._reader.notes
        """Everything noted so far."""
        self.run_id: str | None = None
        self.thread_id: str | None = None
        self.sequence: int | None = None
        """Of the last event; None when it had none."""
        self.terminal: RunStreamTerminal | None = None
        self.frames = 0
        """How many frames have come, those without an event too."""
        self._index = 0
        self._cut = False
        self._framing = FrameReader()
        self._enveloped = False
        """Whether the last event came in an envelope; the next one is then tried as one first."""
        self._last_sequence = -1
        self._taken_envelopes: dict[tuple[str, int], int] = {}
        """Run and sequence of every envelope so far, and a hash of what it held."""
        self.run_ended = False
        """Whether the last run that started has ended."""

    def feed(self, chunk: bytes) -> list[t.Event]:
        """The events that this chunk completes. A JSON array is a document, not a stream: see `read_log`."""
        return self._taken(self._framing.feed(chunk))

    def close(self) -> list[t.Event]:
        """The event of the last frame, if it was not closed. The notes are complete after this."""
        events = self._taken(self._framing.close())
        self.finish()
        return events

    def finish(self) -> None:
        """Note it when the stream ends inside a run."""
        if not self.run_ended:
            self.notes.append(Note(STREAM_TRUNCATED, "", "the stream ends without RUN_FINISHED or RUN_ERROR"))

    def take(self, frame: Frame) -> t.Event | None:
        """The event in one frame, if there is one."""
        data = frame.data
        if not data:
            return None
        self.frames += 1
        self.sequence = None
        event = self._event(data, closed=frame.closed)
        if event is None:
            return None
        if frame.id is not None and not self._enveloped:
            self._take_id(frame.id)
        if self.terminal is not None:
            self._note(AFTER_TERMINAL, "an event comes after the TERMINAL frame")
        kind = type(event)
        if kind is t.RunFinished or kind is t.RunError:
            self.run_ended = True
        elif kind is t.RunStarted:
            self.run_ended = False
        self._index += 1
        return event

    def cuts(self, frame: Frame) -> bool:
        """Note, once, that no more events are read. True for a frame that may say how the run ended."""
        if not self._cut:
            self._cut = True
            self._note(EVENTS_CUT, f"read no more than {MAX_EVENTS:,} events")
        return b"RUN_" in frame.data or b"TERMINAL" in frame.data

    def refuse(self, why: str, at: str = "") -> None:
        """Say that a client would have ended the stream at the event that comes next."""
        if self._check:
            self.refused.append(Note(EVENT_REFUSED, pointer(self._index) + at, why))

    def _taken(self, frames: Iterable[Frame]) -> list[t.Event]:
        return [event for frame in frames if (event := self.take(frame)) is not None]

    def _event(self, data: bytes, *, closed: bool) -> t.Event | None:
        if self._check:
            return self._carefully(data, closed=closed)
        if len(data) > MAX_DEPTH and is_too_deep(data):
            return self._carefully(data, closed=closed)
        try:
            if not self._enveloped:
                return self._reader.settled(self._decode_event(data), data, self._index)
            envelope = self._decode_envelope(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._carefully(data, closed=closed)
        if self._is_repeated(envelope.run_id, envelope.sequence, data):
            return None
        self._place(envelope.run_id, envelope.thread_id, envelope.sequence)
        return self._reader.settled(envelope.event, data, self._index)

    def _carefully(self, data: bytes, *, closed: bool) -> t.Event | None:
        """The event in a frame that is not what the last one was, or not quite an event."""
        if data.strip() == b"[DONE]":
            self._note(DONE_SENTINEL, "`[DONE]` was passed over")
            self.refuse("`[DONE]` is not JSON")
            return None
        repairs: list[wire.Repair] = []
        try:
            value = wire.decode(data, repairs=repairs)
        except SeatrialError as error:
            self.refuse(error.message)
            if not closed and error.code == "not_json":
                self._note(FRAME_TRUNCATED, f"the last {len(data)} bytes are no whole frame")
                return None
            self._enveloped = False
            return self._reader.unreadable(data, error, self._index)
        self.notes += repair_notes(repairs, pointer(self._index))
        if type(value) is dict:
            kind = value.get("type")
            if kind == "KEEPALIVE":
                self._take_keepalive(value)
                return None
            if kind == "TERMINAL":
                self._take_terminal(value)
                return None
            if kind is None and "event" in value:
                self._enveloped = True
                if not self._take_envelope(value, data):
                    return None
                return self._read(value["event"])
        self._enveloped = False
        return self._read(value)

    def _read(self, value: Any) -> t.Event:
        if self._check and (refused := refusal(value)) is not None:
            self.refuse(refused.message, refused.pointer)
        return self._reader.read_value(value, self._index)

    def _take_envelope(self, value: dict[str, Any], data: bytes) -> bool:
        """Take where an event stands; False when it stood there before."""
        head = {key: item for key, item in value.items() if key != "event"}
        try:
            checked = msgspec.convert(head, _EnvelopeHead)
            if self._is_repeated(checked.run_id, checked.sequence, data):
                return False
            self._place(checked.run_id, checked.thread_id, checked.sequence)
            return True
        except msgspec.ValidationError as error:
            self._note(ENVELOPE_INVALID, f"the envelope: {error}")
        run_id, thread_id, sequence = head.get("runId"), head.get("threadId"), head.get("sequence")
        self._place(
            run_id if type(run_id) is str else None,
            thread_id if type(thread_id) is str else None,
            sequence if type(sequence) is int and sequence >= 0 else None,
        )
        return True

    def _is_repeated(self, run_id: str, sequence: int, data: bytes) -> bool:
        place, content = (run_id, sequence), hash(data)
        known = self._taken_envelopes.get(place)
        if known is None:
            self._taken_envelopes[place] = content
            return False
        if known != content:
            return False  # one of the two is not what it says it is, and both count
        self._note(ENVELOPE_REPEATED, f"sequence {sequence} came again")
        return True

    def _take_keepalive(self, value: dict[str, Any]) -> None:
        try:
            msgspec.convert(value, StreamKeepalive)
        except msgspec.ValidationError as error:
            self._note(ENVELOPE_INVALID, f"KEEPALIVE: {error}")

    def _take_terminal(self, value: dict[str, Any]) -> None:
        try:
            self.terminal = msgspec.convert(value, RunStreamTerminal)
        except msgspec.ValidationError as error:
            self._note(ENVELOPE_INVALID, f"TERMINAL: {error}")

    def _take_id(self, text: str) -> None:
        try:
            cursor = parse_cursor(text)
        except SeatrialError:
            return  # the ids of other producers say nothing to us
        self._place(cursor.run_id, None, cursor.sequence)

    def _place(self, run_id: str | None, thread_id: str | None, sequence: int | None) -> None:
        """Take where an event stands in its run; note it when that is not right behind the one before it."""
        if run_id is not None and run_id != self.run_id:
            if self.run_id is not None:
                self._note(RUN_CHANGED, f"run {quoted(self.run_id)} is followed by run {quoted(run_id)}")
                self._last_sequence = -1
            self.run_id = self._reader.run_id = run_id
        if thread_id is not None and thread_id != self.thread_id:
            if self.thread_id is not None:
                self._note(RUN_CHANGED, f"thread {quoted(self.thread_id)} is followed by {quoted(thread_id)}")
            self.thread_id = self._reader.thread_id = thread_id
        if sequence is None:
            return
        if sequence <= self._last_sequence:
            self._note(SEQUENCE_REPEATED, f"sequence {sequence} comes after {self._last_sequence}")
        elif sequence != self._last_sequence + 1:
            self._note(SEQUENCE_GAP, f"sequence {sequence} comes where {self._last_sequence + 1} should")
        self.sequence = self._last_sequence = sequence

    def _note(self, code: str, message: str) -> None:
        self.notes.append(Note(code, pointer(self._index), message))


class _EnvelopeHead(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    run_id: t.OpaqueId
    thread_id: t.OpaqueId
    sequence: t.Sequence


def _frames(data: bytes, start: bytes) -> Iterable[Frame]:
    if start == b"[":
        return [Frame(bytes(item)) for item in wire.decode(data, _ARRAY, [])]
    return _parsed(data, NdjsonParser() if start == b"{" else SseParser())


def _parsed(data: bytes, parser: NdjsonParser | SseParser) -> Iterator[Frame]:
    for at in range(0, len(data), _SLICE_BYTES):
        yield from _as_frames(parser.feed(data[at : at + _SLICE_BYTES]))
    yield from _as_frames(parser.close(), closed=False)


def _as_frames(frames: list[bytes] | list[SseFrame], *, closed: bool = True) -> list[Frame]:
    return [
        Frame(frame, None, closed) if isinstance(frame, bytes) else Frame(frame.data, frame.id, closed)
        for frame in frames
    ]


@cache
def _envelope_decoder() -> msgspec.json.Decoder[SequencedOutputEnvelope]:
    return msgspec.json.Decoder(SequencedOutputEnvelope)


_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
