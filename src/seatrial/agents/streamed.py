"""A run whose agent sends events: each is handed on as it comes, and in the end they are read as a whole."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from io import BytesIO

import msgspec

from seatrial._support import wire
from seatrial._support.excerpt import MAX_DETAIL
from seatrial.agents.agent import EVENT_WORK, Emit, Reply
from seatrial.agents.off_loop import Turns, off_loop
from seatrial.errors import SeatrialError
from seatrial.events import Event, LogReader, cursor_text, encode_event, parse_cursor
from seatrial.events.codec import stands_in
from seatrial.events.deltas import CompactEvents
from seatrial.events.envelope import RunStreamTerminal
from seatrial.events.log import MAX_EVENTS, Frame, FrameReader
from seatrial.events.order import StreamEnding, Terminal
from seatrial.events.types import (
    CancelledOutcome,
    ReasoningEnd,
    ReasoningMessageChunk,
    ReasoningMessageContent,
    ReasoningMessageEnd,
    ReasoningMessageStart,
    ReasoningStart,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    SubagentError,
    SubagentFinished,
    SubagentStarted,
    TextMessageChunk,
    TextMessageContent,
    TextMessageEnd,
    TextMessageStart,
    ToolCallEnd,
    ToolCallStart,
)
from seatrial.formats.agui import reading_of
from seatrial.formats.chat.notes import RUN_FAILURE_REPORTED
from seatrial.formats.reading import Reading
from seatrial.runs import Fault

MAX_OPEN = 10_000
"""Messages, calls, steps and subagents that may be open at once: each is ended and read when time is up already."""
SLICE_BYTES = 64 * 1024
"""How much of what came is read at once."""


class StreamedRun:
    """The events of one run, from as many connections as it took."""

    def __init__(self, emit: Emit, format: str, frame: RunStarted | None = None) -> None:
        """With `frame`, events that do not start with a run of their own are put into this one."""
        self._events = CompactEvents()
        self._ready: deque[Event] = deque()
        """Those that were not handed on yet."""
        self.cursor: str | None = None
        """Where the last event stands, to resume behind it; None when it does not tell, or there was none."""
        self.lost: str | None = None
        """What was missing when the stream went on, in words."""
        self._emit = emit
        self._format = format
        self._frame = frame
        self._framed = False
        self._reader = LogReader()
        self._framing = FrameReader()
        self._received = _Received()
        self._turns = Turns()
        self._ids: set[str] = set()
        self._open: set[tuple[str, str]] = set()
        self._last_sequence: int | None = None
        self._catching_up = False
        self._ending = StreamEnding()
        self._understood = False
        """Whether anything that came is an event of AG-UI."""

    @property
    def count(self) -> int:
        """How many events have come."""
        return len(self._events) + len(self._ready)

    @property
    def ended(self) -> bool:
        """Whether the agent has said that its run is over."""
        return self._reader.terminal is not None or self._ending.last is not None

    @property
    def closed(self) -> bool:
        """Whether nothing can come after what has come: TERMINAL is the last frame of a native stream."""
        return self._reader.terminal is not None

    async def feed(self, chunk: bytes) -> None:
        """Take the next bytes. Raises `SeatrialError` when they cannot be frames of events, or are too many of them."""
        await self._turns.give()
        for start in range(0, len(chunk), SLICE_BYTES):
            part = chunk[start : start + SLICE_BYTES]
            self._received.add(part)
            for frame in self._framing.feed(part):
                self._take_frame(frame)
            await self._send()
            await self._turns.give()

    async def put(self, data: bytes, text: TextMessageChunk | None = None) -> None:
        """Take one event that came outside of any connection. Raises `SeatrialError` when there are too many.

        `text` is the event where the agent gave text, and the event around it is ours.
        """
        if text is None:
            self._received.add(data + b"\n")
        else:
            self._received.add_text(text)
        self._take(Frame(data))
        await self._send()
        await self._turns.give()

    async def close(self) -> None:
        """Take what is left of the connection: a last frame that was not closed."""
        for frame in self._framing.close():
            self._take_frame(frame)
        await self._send()

    async def finish(self) -> None:
        """Take what is left, and end the run that the events were put into."""
        await self.close()
        if self._framed and self._frame is not None and not self.ended:
            self._add(RunFinished(thread_id=self._frame.thread_id, run_id=self._frame.run_id))
        await self._send()

    def reconnect(self) -> None:
        """Go on with another connection: an unfinished frame is forgotten, and what came before is not taken again."""
        self._framing = FrameReader()
        self._catching_up = True

    async def reply(self, fault: Fault | None, http_status: int | None = None) -> Reply:
        """What came back. Without a fault, the events say whether the run ended well."""
        await self._send()
        size = max(self._received.size, EVENT_WORK * self.count)
        return await off_loop(size, lambda: self._reply(fault, http_status))

    def _reply(self, fault: Fault | None, http_status: int | None) -> Reply:
        if self._ending.last is None:
            self._reader.finish()
        reading: Reading | None = None
        if events := self._events.all():
            reading = reading_of(events, self._reader.notes, self._format, self._reader.run_id)
            reading.answer_only = self._framed and all(self._is_text(event) for event in events)
        return Reply(
            body=self._received.body(),
            reading=reading,
            fault=fault or self._fault() or (None if reading is None else reported_failure(reading)),
            http_status=http_status,
            streamed=True,
        )

    def _is_text(self, event: Event) -> bool:
        """Whether an event is a piece of text, or ours: a run of which nothing else came lists no calls."""
        return event is self._frame or isinstance(event, _TEXT_ALONE)

    def _take_frame(self, frame: Frame) -> None:
        if self._catching_up and not self._is_new(frame):
            return
        self._take(frame)

    def _take(self, frame: Frame) -> None:
        if self.count >= MAX_EVENTS:
            raise SeatrialError("too_large", f"there are more than {MAX_EVENTS:,} events")
        event = self._reader.take(frame)
        if event is None:
            return
        sequence = self._reader.sequence
        if sequence is not None and self._reader.run_id is not None:
            self._last_sequence = sequence
            self.cursor = cursor_text(self._reader.run_id, sequence)
        else:
            self.cursor = None
        if frame.id is not None:
            self._ids.add(frame.id)
            self.cursor = frame.id
        known = not stands_in(event)
        if known and not self._understood and self._frame is not None and not isinstance(event, RunStarted | RunError):
            self._framed = True
            self._add(self._frame)
        self._understood = self._understood or known
        self._add(event)

    def _add(self, event: Event) -> None:
        if (opened := _OPENS.get(type(event))) is not None:
            self._open.add((opened, getattr(event, opened)))
            if len(self._open) > MAX_OPEN:
                raise SeatrialError("too_large", f"more than {MAX_OPEN:,} messages, calls and steps are open at once")
        elif (closed := _CLOSES.get(type(event))) is not None:
            self._open.discard((closed, getattr(event, closed)))
        self._ending.take(event)
        self._ready.append(event)

    async def _send(self) -> None:
        """Hand on what was read; waits for the store when it is behind."""
        while self._ready:
            event = self._ready.popleft()
            self._events.append(event)
            await self._emit(event)

    def _is_new(self, frame: Frame) -> bool:
        """Whether a frame of a resumed stream goes beyond the cursor. One without a place repeats what is known."""
        place = _place(frame)
        if place.is_control:
            return True
        if place.sequence is not None and self._last_sequence is not None:
            if place.sequence <= self._last_sequence:
                return False
            if place.sequence > self._last_sequence + 1:
                self.lost = f"events {self._last_sequence + 1} to {place.sequence - 1} did not come again"
        elif frame.id is None or frame.id in self._ids:
            return False
        self._catching_up = False
        return True

    def _fault(self) -> Fault | None:
        if self.lost is not None:
            return Fault("stream_truncated", f"the stream was taken up again, but {self.lost}")
        if not self._understood:
            return Fault("agent_bad_response", "the answer holds no event of AG-UI")
        return ending_fault(self._ending, self._reader.terminal)


class _Received:
    """What came, as it is kept: bytes as they are, and text that came piece by piece as one chunk.

    A frame around each piece would be ours, and many times as long as the piece. The log has every piece.
    """

    def __init__(self) -> None:
        self._bytes = BytesIO()
        self._piece: TextMessageChunk | None = None
        """The last piece of the text that is coming."""
        self._text = bytearray()

    @property
    def size(self) -> int:
        return self._bytes.tell() + len(self._text)

    def add(self, data: bytes) -> None:
        self._close_text()
        self._bytes.write(data)

    def add_text(self, piece: TextMessageChunk) -> None:
        if self._piece is None or self._piece.message_id != piece.message_id:
            self._close_text()
        self._piece = piece
        self._text += str(piece.delta).encode("utf-8", "surrogatepass")

    def body(self) -> bytes | None:
        self._close_text()
        return self._bytes.getvalue() or None  # its buffer, not a copy

    def _close_text(self) -> None:
        if self._piece is None:
            return
        text, self._text = self._text.decode("utf-8", "surrogatepass"), bytearray()
        self._bytes.write(encode_event(msgspec.structs.replace(self._piece, delta=text)) + b"\n")
        self._piece = None


def ending_fault(ending: StreamEnding, terminal: RunStreamTerminal | None = None) -> Fault | None:
    """What the end of a stream says of its run: an error of any of its runs, the last one's end, the TERMINAL frame."""
    fault = reported_end(ending.error or ending.last)
    if fault is not None:
        return fault
    if terminal is not None and terminal.status in ("failed", "cancelled"):
        return Fault("agent_reported_error", f"the agent's run ended as {terminal.status}")
    if terminal is None and ending.last is None:
        return Fault("stream_truncated", "the stream ended before RUN_FINISHED or RUN_ERROR")
    return None


def reported_end(terminal: Terminal | None) -> Fault | None:
    """The fault of a run whose last event says that the run failed, or that it was cancelled on the agent's side."""
    if isinstance(terminal, RunError):
        code = terminal.code if isinstance(terminal.code, str) else None
        return Fault("agent_reported_error", terminal.message[:MAX_DETAIL] or "the agent gave no reason", detail=code)
    if terminal is not None and isinstance(terminal.outcome, CancelledOutcome):
        return Fault("agent_reported_error", "the agent's run was cancelled on its side")
    return None


def reported_failure(reading: Reading) -> Fault | None:
    """The fault of a run whose record says in so many words that the run failed, whatever else is in it."""
    note = next((note for note in reading.notes if note.code == RUN_FAILURE_REPORTED), None)
    return None if note is None else Fault("agent_reported_error", note.message)


class _Place(msgspec.Struct):
    """Where a frame says that it stands."""

    type: str | None = None
    sequence: int | None = None
    """Of an envelope."""

    @property
    def is_control(self) -> bool:
        return self.type in ("KEEPALIVE", "TERMINAL")


def _place(frame: Frame) -> _Place:
    try:
        place = wire.decode(frame.data, _PLACE)
    except SeatrialError:
        place = _Place()
    if place.sequence is None and frame.id is not None:
        # The ids of other producers are only ids.
        with suppress(SeatrialError):
            place.sequence = parse_cursor(frame.id).sequence
    return place


_TEXT_ALONE = (
    TextMessageStart,
    TextMessageContent,
    TextMessageEnd,
    TextMessageChunk,
    ReasoningStart,
    ReasoningEnd,
    ReasoningMessageStart,
    ReasoningMessageContent,
    ReasoningMessageEnd,
    ReasoningMessageChunk,
    RunFinished,
    RunError,
)
_OPENS: dict[type, str] = {
    ReasoningMessageStart: "message_id",
    StepStarted: "step_name",
    SubagentStarted: "subagent_run_id",
    TextMessageStart: "message_id",
    ToolCallStart: "tool_call_id",
}
"""What opens something, and the field that names it."""
_CLOSES: dict[type, str] = {
    ReasoningMessageEnd: "message_id",
    StepFinished: "step_name",
    SubagentError: "subagent_run_id",
    SubagentFinished: "subagent_run_id",
    TextMessageEnd: "message_id",
    ToolCallEnd: "tool_call_id",
}
_PLACE = msgspec.json.Decoder(_Place)
