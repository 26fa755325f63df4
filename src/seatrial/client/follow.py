"""A run's stream as it is followed over any number of connections: what is new, what was there, what is missing.

No input or output happens here: chunks go in, envelopes come out, the same ones however the chunks are cut.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, TypeAlias

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import MAX_WRITTEN_DEPTH, is_too_deep
from seatrial.errors import SeatrialError
from seatrial.events import types as t
from seatrial.events.envelope import RunStreamTerminal, SequencedOutputEnvelope, StreamKeepalive
from seatrial.events.event_reader import EventReader
from seatrial.events.framing import NdjsonParser, SseParser
from seatrial.transcript import Note

StreamForm: TypeAlias = Literal["sse", "ndjson"]

MAX_NOTES = 100
"""Notes that are kept of a stream; a run may never end."""

_ENDED = t.TERMINAL_STATUSES | {"input_required"}


class Received(msgspec.Struct, gc=False):
    """An envelope, and the bytes that it came as."""

    envelope: SequencedOutputEnvelope
    data: bytes


class Follow:
    """How far a run has been followed, and how."""

    def __init__(
        self, run_id: str, *, after: int | None = None, filtered: bool = False, form: StreamForm = "sse"
    ) -> None:
        """With `filtered`, not all events come, so that sequences are skipped: only their order can be checked."""
        self.position: int | None = after
        """The sequence behind which the stream is taken up; None at the beginning."""
        self.status: t.RunStatus | None = None
        """Set by TERMINAL. An end without it is no end."""
        self.duplicates = 0
        """Events that came again, and were dropped."""
        self.retry_s: float | None = None
        """How long the server, when it last said so, asked to wait before the next connection."""
        self.fault: SeatrialError | None = None
        """Why the stream cannot be followed any further."""
        self.progressed = False
        """Whether the last chunk brought anything that was not there before, if only a KEEPALIVE."""
        self._run_id = run_id
        self._filtered = filtered
        self._form = form
        self._reader = EventReader(run_id=run_id)
        self._decode = _envelope_decoder().decode
        self.connect()

    @property
    def notes(self) -> list[Note]:
        """What had to be repaired in events that this version does not know; the first ones."""
        return self._reader.notes

    def connect(self) -> None:
        """A new connection: half a frame that the last one left is gone, and comes again."""
        self._parser: SseParser | NdjsonParser = SseParser() if self._form == "sse" else NdjsonParser()
        self._last_here = -1
        """The last sequence on this connection, new or not."""
        self.fault = None

    def feed(self, chunk: bytes) -> list[Received]:
        """The new envelopes that this chunk completes. Those before a fault are given, and none after it."""
        self.progressed = False
        try:
            frames = self._parser.feed(chunk)
        except SeatrialError as error:
            self.fault = error
            return []
        if isinstance(self._parser, SseParser) and self._parser.retry is not None:
            self.retry_s = self._parser.retry / 1000
        received: list[Received] = []
        for frame in frames:
            if self.status is not None or self.fault is not None:
                break
            data = frame if isinstance(frame, bytes) else frame.data
            try:
                if len(data) > MAX_WRITTEN_DEPTH and is_too_deep(data, MAX_WRITTEN_DEPTH):
                    raise msgspec.DecodeError  # which the next reader says
                envelope = self._decode(data)
            except (msgspec.DecodeError, UnicodeDecodeError):
                self._take_other(data, received)
            else:
                envelope.event = self._reader.settled(envelope.event, data, envelope.sequence)
                self._take(envelope, data, received)
        del self.notes[MAX_NOTES:]
        return received

    def _take(self, envelope: SequencedOutputEnvelope, data: bytes, received: list[Received]) -> None:
        sequence = envelope.sequence
        expected = 0 if self.position is None else self.position + 1
        if envelope.run_id != self._run_id:
            self._break(f"an event of another run came, {envelope.run_id[:80]!r}")
        elif self._filtered and sequence < self._last_here:
            # What was skipped before could be this one: that it came before cannot be said.
            self._break(f"event {sequence} came after event {self._last_here}")
        elif sequence < expected:
            self.duplicates += 1
            self._last_here = sequence
        elif sequence > expected and not self._filtered:
            self._break(f"event {sequence} came where {expected} should have")
        else:
            self.position = self._last_here = sequence
            self.progressed = True
            received.append(Received(envelope, data))

    def _take_other(self, data: bytes, received: list[Received]) -> None:
        """A frame that is not quite an envelope: it closes the stream, shows that it is alive, or is of the future."""
        if not data.strip():
            return
        try:
            frame = wire.decode(data, _FRAME)
            if frame.type == "KEEPALIVE":
                self._take_keepalive(wire.decode(data, _KEEPALIVE))
            elif frame.type == "TERMINAL":
                self._take_terminal(wire.decode(data, _TERMINAL))
            else:
                head = wire.decode(data, _LOOSE)
                event = self._reader.read(bytes(head.event), head.sequence)
                self._take(SequencedOutputEnvelope(head.run_id, head.thread_id, head.sequence, event), data, received)
        except SeatrialError as error:
            self._break(f"a frame is none: {error}")

    def _take_keepalive(self, keepalive: StreamKeepalive) -> None:
        sequence = keepalive.cursor.sequence
        ahead = self.position is None or sequence > self.position
        if keepalive.cursor.run_id != self._run_id:
            self._break(f"a keepalive of another run came, {keepalive.cursor.run_id[:80]!r}")
        elif ahead and not self._filtered:
            self._break(f"the service has sent event {sequence}, and it has not come")
        else:
            self.progressed = True
            self._last_here = max(self._last_here, sequence)
            if ahead:
                self.position = sequence

    def _take_terminal(self, terminal: RunStreamTerminal) -> None:
        if terminal.run_id != self._run_id:
            self._break(f"the end of another run came, {terminal.run_id[:80]!r}")
        elif terminal.status not in _ENDED:
            self._break(f"the stream was closed with the status {terminal.status}, which is no end")
        else:
            self.status = terminal.status
            self.progressed = True

    def _break(self, message: str) -> None:
        details = {"runId": self._run_id, "after": self.position}
        self.fault = SeatrialError("stream_broken", f"the stream is broken: {message}", details=details)


class _Frame(msgspec.Struct):
    type: str | None = None


class _LooseEnvelope(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """An envelope whose event is of no type that this version knows."""

    run_id: t.OpaqueId
    thread_id: t.OpaqueId
    sequence: t.Sequence
    event: msgspec.Raw


@cache
def _envelope_decoder() -> msgspec.json.Decoder[SequencedOutputEnvelope]:
    return msgspec.json.Decoder(SequencedOutputEnvelope)


_FRAME = msgspec.json.Decoder(_Frame)
_KEEPALIVE = msgspec.json.Decoder(StreamKeepalive)
_TERMINAL = msgspec.json.Decoder(RunStreamTerminal)
_LOOSE = msgspec.json.Decoder(_LooseEnvelope)
