"""Streams: their frames, as server-sent events or as lines of JSON, and the readers that take what is in them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar

import msgspec

from seatrial.errors import SeatrialError
from seatrial.events.ndjson import NdjsonParser
from seatrial.events.sse import SseFrame, SseParser
from seatrial.formats.chat import Chat
from seatrial.formats.parts import At
from seatrial.formats.reading import Reading, single_turn
from seatrial.formats.shape import items, members
from seatrial.formats.tally import NoteTally
from seatrial.formats.turn import STREAM_TRUNCATED
from seatrial.transcript import Transcript, note_code
from seatrial.wire import Repair

FRAME_DROPPED = note_code(
    "frame_dropped", "A frame of a stream is not what its format sends; it was dropped.", "serious"
)

_BOM = b"\xef\xbb\xbf"
_SSE_DATA = re.compile(rb"(?:\A|[\r\n])data:")


class Framing:
    """Takes the frames off a stream that arrives in any pieces; its first byte tells which frames they are."""

    def __init__(self) -> None:
        self.repairs: list[Repair] = []
        self._head = b""
        self._parser: SseParser | NdjsonParser | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that these bytes complete."""
        if self._parser is None:
            data = (self._head + data).lstrip()
            if data.startswith(_BOM) and not self.repairs:
                data = data[len(_BOM) :].lstrip()
                self.repairs.append("bom_removed")
            if not data or (_BOM.startswith(data) and not self.repairs):
                self._head = data
                return []
            self._parser = NdjsonParser() if data[:1] in (b"{", b"[") else SseParser()
        return _payloads(self._parser.feed(data))

    def close(self) -> list[bytes]:
        """The last payload, when its frame was not closed."""
        return _payloads(self._parser.close()) if self._parser is not None else []


class StreamReader(ABC):
    """Reads the stream of a model's response as its bytes arrive, however they are cut.

    Notes on a frame point at its number, from 0, and into what it holds; notes on the message that was put together
    point into it as if it had come whole.
    """

    format: ClassVar[str]

    def __init__(self, tally: NoteTally | None = None) -> None:
        self._tally = tally or NoteTally()
        self._run = Transcript(messages=[], metadata={})
        self._chat = Chat(self._tally, self._run.messages)
        self._id: str | None = None
        self._framing = Framing()
        self._frames = 0
        self._responses = 0
        """How many responses of a model have ended; 0 for a stream that holds all turns of an agent."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        for payload in self._framing.feed(data):
            self.feed_payload(payload)

    def feed_payload(self, payload: bytes | msgspec.Raw) -> None:
        """Take what one frame held."""
        at = (self._frames,)
        self._frames += 1
        try:
            self._take(bytes(payload), at)
        except SeatrialError as error:
            self._tally.add(FRAME_DROPPED, at, error.message, each="")

    def finish(self) -> Reading:
        """What the stream said; after this it takes no more."""
        for payload in self._framing.close():
            self.feed_payload(payload)
        self._end()
        if not self._run.messages:
            self._tally.add(STREAM_TRUNCATED, (), "the stream holds no response")
        self._tally.add_repairs(self._framing.repairs, ())
        reading = Reading(self.format, self._run, self._tally.total(), id=self._id, calls=self._chat.facts)
        return single_turn(reading) if self._responses == 1 else reading

    @abstractmethod
    def _take(self, payload: bytes, at: At) -> None:
        """Take one payload; an error drops it."""

    @abstractmethod
    def _end(self) -> None:
        """End the response that is under way, if there is one."""


def open_document(data: bytes, tally: NoteTally) -> dict[str, msgspec.Raw] | list[msgspec.Raw] | None:
    """The members or the items of a JSON document, or lines of JSON as items; None for server-sent events."""
    text = data.removeprefix(_BOM).strip()
    if not text:
        raise SeatrialError("empty_input", "there is nothing in the input to read")
    if text[:1] not in (b"{", b"[") and _SSE_DATA.search(data):
        return None
    if text[:1] == b"{" and _is_object(text.partition(b"\n")[0]) and b"\n" in text:
        return [msgspec.Raw(line) for line in NdjsonParser().feed(data + b"\n")]
    document = members(data, tally, ()) if text[:1] == b"{" else items(data, tally, ())
    if document is None:
        raise SeatrialError("invalid_document", "expected a JSON object or an array")
    return document


def _is_object(line: bytes) -> bool:
    try:
        return members(line, NoteTally(), ()) is not None
    except SeatrialError:
        return False


def _payloads(frames: list[bytes] | list[SseFrame]) -> list[bytes]:
    return [frame if isinstance(frame, bytes) else frame.data for frame in frames]
