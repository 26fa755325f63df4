"""Whole records of chat messages: JSON documents, lines of JSON, and streams as they arrive or as they were recorded.

The formats that share `read_chat_document` differ in their objects: a `Container` knows those of its format. Formats
with a stream of their own read it with a `StreamReader`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeAlias

import msgspec

from seatrial._support.wire import Repair
from seatrial.errors import SeatrialError
from seatrial.events.framing import NdjsonParser, SseFrame, SseParser
from seatrial.formats.chat.decoding import decoded, decoded_message, items, members
from seatrial.formats.chat.notes import At, NoteTally, json_kind, note_failure
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import STREAM_TRUNCATED, keep_in_metadata
from seatrial.formats.reading import WAITS, WAITS_FOR_INPUT, Reading, single_turn
from seatrial.formats.sniffing import Members, Sample, Sniff, objects_of, surest
from seatrial.transcript import Transcript, note_code, pointer
from seatrial.transcript.salvage import MESSAGE_DROPPED

FRAME_DROPPED = note_code(
    "frame_dropped", "A frame of a stream is not what its format sends; it was dropped.", "serious"
)

_BOM = b"\xef\xbb\xbf"
_SSE_DATA = re.compile(rb"(?:\A|[\r\n])data:")

_RESPONSES = frozenset({"final_response", "session_done", "output_messages", "outputMessages", "trace", "trace_ref"})
_CONTAINERS = 20
"""How many objects of a list are looked into for messages."""
_LEVELS = 10
"""How far into a document one value that cannot be held is kept apart from the others."""
Container: TypeAlias = Callable[[dict[str, Any], Chat, Transcript, At], bool]
"""Reads an object that holds messages, or says that it is none. Another one reads the entries of a list."""
Entries: TypeAlias = Callable[[list[Any], Chat, Transcript], None]


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


class Framing:
    """Takes the frames off a stream that arrives in any pieces; the first byte shows which kind of frames."""

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

    def read(self, recording: bytes | list[msgspec.Raw]) -> Reading:
        """Read a whole stream: its bytes, or what its frames held."""
        if isinstance(recording, bytes):
            self.feed(recording)
        else:
            for payload in recording:
                self.feed_payload(payload)
        return self.finish()

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
        reading = Reading(self.format, self._run, self._tally.total(), id=self._id, facts=self._chat.finish())
        return single_turn(reading) if self._responses == 1 else reading

    @abstractmethod
    def _take(self, payload: bytes, at: At) -> None:
        """Take one payload; an error drops it."""

    @abstractmethod
    def _end(self) -> None:
        """End the response that is under way, if there is one."""


def _payloads(frames: list[bytes] | list[SseFrame]) -> list[bytes]:
    return [frame if isinstance(frame, bytes) else frame.data for frame in frames]


def read_chat_document(
    data: bytes, format: str, container: Container, expected: str, entries: Entries | None = None
) -> Reading:
    """Read a document of messages; `expected` says in an error what an object should have been."""
    tally = NoteTally(len(data))
    run = Transcript(messages=[], metadata={})
    chat = Chat(tally, run.messages)
    document = open_document(data, tally)
    if isinstance(document, dict):
        given = decoded(msgspec.Raw(data), tally, (), _LEVELS)
        if not container(given, chat, run, ()):
            _read_item(given, chat, expected)
            chat.is_single_turn = True
    else:
        found = [*_decoded(_frames(data) if document is None else document, tally)]
        if entries is not None:
            entries(found, chat, run)
        else:
            read_entries(found, container, chat, run)
    chat.close_turn()
    record_id = run.metadata.get("id")
    found_id = record_id if type(record_id) is str else None
    reading = Reading(format, run, tally.total(), id=found_id, facts=chat.finish())
    return single_turn(reading) if chat.is_single_turn else reading


def read_plain_messages(
    document: dict[str, msgspec.Raw] | list[msgspec.Raw], data: bytes, format: str, tally: NoteTally
) -> Reading:
    """Read an opened document that is one message, or an array or lines of messages."""
    run = Transcript(messages=[])
    chat = Chat(tally, run.messages)
    if isinstance(document, dict):
        chat.read(decoded_message(msgspec.Raw(data), tally, ()), ())
    else:
        chat.read_all(decoded_items(document, tally, ()))
    reading = Reading(format, run, tally.total(), facts=chat.finish())
    return single_turn(reading) if isinstance(document, dict) else reading


def sniff_messages(
    sample: Sample, sniff: Callable[[Members], Sniff | None], keys: tuple[str, ...] = ("messages",)
) -> Sniff | None:
    """What the messages of a sample say, also those in its objects, unless these are responses with a name."""
    best = sample.surest(sniff)
    for entry in sample.entries[:_CONTAINERS]:
        if not _RESPONSES.isdisjoint(entry):
            return None
        for key in keys:
            found = surest(f"{key}: ", objects_of(entry.get(key)), sniff)
            if found is not None and (best is None or found.confidence > best.confidence):
                best = found
    return best


def read_entries(found: Iterable[Any], container: Container, chat: Chat, run: Transcript) -> None:
    """Read the entries of a list, each a message or an object that holds some.

    Objects of which each holds all messages so far, as states of a graph do, are one conversation.
    """
    before: list[Any] = []
    for index, entry in enumerate(found):
        if type(entry) is dict and type(messages := entry.get("messages")) is list:
            if before and "role" not in entry and messages[: len(before)] == before:
                chat.read_all(messages[len(before) :], (index, "messages"))
                keep_rest(entry, frozenset({"messages"}), chat, run, (index,))
                before = messages
                continue
            before = messages
        if type(entry) is not dict or not container(entry, chat, run, (index,)):
            chat.read(entry, (index,))


def read_list(given: Any, chat: Chat, at: At) -> None:
    """Read the array of messages that stands under a key."""
    if type(given) is not list:
        raise SeatrialError(
            "invalid_document", f"expected an array of messages, got {json_kind(given)}", pointer=pointer(*at)
        )
    chat.read_all(given, at)


def keep_rest(given: dict[str, Any], read: frozenset[str], chat: Chat, run: Transcript, at: At) -> None:
    """Keep what else an object says in the run's metadata."""
    if given.get("__interrupt__"):
        # How LangGraph says that a graph stopped to ask.
        chat.tally.add(WAITS_FOR_INPUT, (*at, "__interrupt__"), WAITS)
    note_failure({key: value for key, value in given.items() if key not in read}, chat.tally, at, of_run=not at)
    for key, value in given.items():
        if key not in read and value is not None:
            keep_in_metadata(run, key, value, chat.tally, at)


def _read_item(given: Any, chat: Chat, expected: str) -> None:
    from seatrial.formats.dialects import find_dialect

    if type(given) is not dict or find_dialect(given) is None:
        raise SeatrialError("invalid_document", f"expected messages, or {expected}")
    chat.read(given, ())


def _frames(data: bytes) -> list[msgspec.Raw]:
    parser = SseParser()
    payloads = [frame.data for frame in [*parser.feed(data), *parser.close()]]
    return [msgspec.Raw(payload) for payload in payloads if payload.strip() != b"[DONE]"]


def _decoded(entries: Iterable[msgspec.Raw], tally: NoteTally) -> Iterable[Any]:
    for index, entry in enumerate(entries):
        try:
            yield decoded(entry, tally, (index,), _LEVELS)
        except SeatrialError as error:
            tally.add(MESSAGE_DROPPED, (index,), error.message, each="")


def decoded_items(entries: list[msgspec.Raw], tally: NoteTally, at: tuple[str | int, ...]) -> Iterator[Any]:
    """The messages in these bytes; one that is not JSON, as a line may be, is dropped with a note."""
    for index, entry in enumerate(entries):
        try:
            yield decoded_message(entry, tally, (*at, index))
        except SeatrialError as error:
            tally.add(MESSAGE_DROPPED, (*at, index), error.message)
