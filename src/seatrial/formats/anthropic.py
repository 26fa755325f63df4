"""Anthropic Messages: messages, requests, responses and recorded streams; written as a request without its model.

Native thinking with a signature goes both ways untouched. Thinking without one, also from another provider, is
written as an unsigned `thinking` block: true to the record, but the API itself refuses unsigned thinking. Prompted
thinking is written into text blocks as `<thought>` tags, and read out of them again.

A streamed message is gathered from its deltas, then read like one that came whole. Without `message_stop` it was cut
off: if it has no stop reason either, its turn ends in an error. Another `message_start` begins the next message of a
recording.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from seatrial.errors import SeatrialError
from seatrial.formats.anthropic_writer import write_request
from seatrial.formats.chat.decoding import Shape, decoded, drop_key, items, members, value
from seatrial.formats.chat.documents import StreamReader, decoded_items, open_document, read_plain_messages
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import TurnEnding, end_turn, keep_in_metadata
from seatrial.formats.dialects.anthropic import STOP_REASONS, read_system, read_usage
from seatrial.formats.reading import Reading, Written, single_turn
from seatrial.formats.sniffing import HINT, SURE, Members, Sample, Sniff, sniff_chat, text_of
from seatrial.transcript import Transcript

FORMAT: Final = "anthropic"
EVENT_TYPES = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    }
)
"""The types by which a stream is known; `error` is also that of a response."""
_NOT_METADATA = frozenset({"id", "type", "role", "content", "stop_reason", "usage", "error"})


def sniff(sample: Sample) -> Sniff | None:
    """Events of its streams, a response, or messages with its content blocks."""
    return sample.surest(_sniff_event) or sniff_chat(sample, FORMAT)


def _sniff_event(entry: Members) -> Sniff | None:
    kind = text_of(entry, "type")
    if kind in EVENT_TYPES:
        return Sniff(SURE, f"a stream event of the type {kind}")
    if kind == "message" and "content" in entry and "role" in entry and "status" not in entry:
        return Sniff(HINT if "stop_reason" not in entry else SURE, "a response of the type message")
    return None


def read(data: bytes) -> Reading:
    """Read a messages array, a request, a response, or a stream recorded as SSE, as lines or as an array of events."""
    tally = NoteTally(len(data))
    document = open_document(data, tally)
    if document is None:
        return AnthropicStream(tally).read(data)
    entries = [msgspec.Raw(data)] if isinstance(document, dict) else document
    if entries and _text(members(entries[0], NoteTally(), ()), "type") in EVENT_TYPES:
        return AnthropicStream(tally).read(entries)
    if isinstance(document, dict) and not _is_message(document):
        return _read_object(document, tally)
    return read_plain_messages(document, data, FORMAT, tally)


def write(transcript: Transcript) -> Written:
    """Write a request: `{"system": ..., "messages": [...]}`, to which a sender adds the model and a limit."""
    return write_request(transcript)


def _is_message(document: dict[str, msgspec.Raw]) -> bool:
    """Whether this is one message of a conversation; a response of the model is one as well, but says more."""
    role = _text(document, "role")
    return role is not None and not (role == "assistant" and _text(document, "type") == "message")


def _text(document: dict[str, msgspec.Raw] | None, key: str) -> str | None:
    # What is found on the way is noted when the document is read.
    found = value(document[key], NoteTally(), ()) if document is not None and key in document else None
    return found if type(found) is str else None


def _read_object(document: dict[str, msgspec.Raw], tally: NoteTally) -> Reading:
    run = Transcript(messages=[], metadata={})
    chat = Chat(tally, run.messages)
    record_id = None
    if "messages" in document:
        _read_request(document, chat, run)
    elif "content" in document or "error" in document:
        said = {key: value(raw, tally, (key,)) for key, raw in document.items() if key != "content"}
        blocks = decoded(document["content"], tally, ("content",)) if "content" in document else None
        add_response(said, blocks, TurnEnding(error=said.get("error")), chat, run, ())
        record_id = said.get("id")
    else:
        raise SeatrialError(
            "invalid_document",
            "expected messages, a request with `messages`, a response with `content`, or a recorded stream",
        )
    found_id = record_id if type(record_id) is str else None
    reading = Reading(FORMAT, run, tally.total(), id=found_id, facts=chat.finish())
    return reading if "messages" in document else single_turn(reading)


def _read_request(document: dict[str, msgspec.Raw], chat: Chat, run: Transcript) -> None:
    messages = items(document["messages"], chat.tally, ("messages",))
    if messages is None:
        raise SeatrialError("invalid_document", "expected an array of messages", pointer="/messages")
    if "system" in document:
        read_system(decoded(document["system"], chat.tally, ("system",)), chat, ("system",))
    chat.read_all(decoded_items(messages, chat.tally, ("messages",)), ("messages",))
    for key, raw in document.items():
        if key not in ("system", "messages") and (what := value(raw, chat.tally, (key,))) is not None:
            run.metadata[key] = what


def add_response(said: dict[str, Any], blocks: Any, ending: TurnEnding, chat: Chat, run: Transcript, at: At) -> None:
    """Add the message of a response; `said` is what else the response says."""
    message = chat.add_assistant(chat.pieces(blocks, (*at, "content"), agent=True), (*at, "content"))
    ending.stop_reason = said.get("stop_reason")
    end_turn(message, ending, STOP_REASONS, run, chat.tally, (*at, "stop_reason"))
    for key, what in said.items():
        if key not in _NOT_METADATA and what is not None:
            keep_in_metadata(run, key, what, chat.tally, at)
    if said.get("usage") is not None:
        message.usage, rest = read_usage(said["usage"], chat, (*at, "usage"))
        chat.note_missing_calls(message, said["usage"], (*at, "usage"))
        if rest:
            keep_in_metadata(run, "usage", rest, chat.tally, at)


class AnthropicEvent(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of an event of any type."""

    type: Any = None
    index: Any = None
    message: Any = None
    content_block: Any = None
    delta: Any = None
    usage: Any = None
    error: Any = None


_EVENT = Shape(AnthropicEvent)
_GROWING = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "thinking"),
    "input_json_delta": ("partial_json", "tool_use"),
    "compaction_delta": ("content", "compaction"),
}
"""Which key of a delta is a fragment, and the type of the block that it belongs to."""


class AnthropicStream(StreamReader):
    """Reads `message_start`, `content_block_*`, `message_delta`, `message_stop`, `ping` and `error`."""

    format = FORMAT

    def __init__(self, tally: NoteTally | None = None) -> None:
        super().__init__(tally)
        self._begin()

    def _begin(self) -> None:
        self._under_way = False
        self._said: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}
        self._error: Any = None

    def _take(self, payload: bytes, at: At) -> None:
        event = _EVENT.read(payload, self._tally, at)
        kind = event.type if event is not None else None
        if event is None or type(kind) is not str:
            raise SeatrialError("invalid_document", "expected an event with a type")
        if kind == "ping":
            return
        if kind == "message_stop":
            self._end_response(done=True)
            return
        if kind == "message_start":
            self._end()
            self._start(event.message, at)
        elif kind == "content_block_start":
            self._start_block(event)
        elif kind == "content_block_delta":
            self._take_delta(event, at)
        elif kind == "message_delta":
            self._take_usage(event.usage)
            if type(event.delta) is dict:
                self._said.update({key: what for key, what in event.delta.items() if what is not None})
        elif kind == "error":
            self._error = event.error or "the stream reports an error"
        elif kind != "content_block_stop":
            raise SeatrialError("invalid_document", f"unknown event type {kind[:100]!r}")
        self._under_way = True

    def _start(self, message: Any, at: At) -> None:
        if type(message) is not dict:
            raise SeatrialError("invalid_document", "expected a message to start with")
        self._said = {key: what for key, what in message.items() if key not in ("content", "usage")}
        self._take_usage(message.get("usage"))
        drop_key("content", message.get("content"), self._tally, (*at, "message"))
        if self._id is None and type(message.get("id")) is str:
            self._id = message["id"]

    def _take_usage(self, usage: Any) -> None:
        # Counts are cumulative; a later event repeats only those that it knows.
        if type(usage) is dict:
            self._usage.update({key: count for key, count in usage.items() if count is not None})

    def _start_block(self, event: AnthropicEvent) -> None:
        index = _index(event)
        if type(event.content_block) is not dict or index in self._blocks:
            raise SeatrialError("invalid_document", "expected a content block under an index of its own")
        self._blocks[index] = _Block(event.content_block)

    def _take_delta(self, event: AnthropicEvent, at: At) -> None:
        delta = event.delta if type(event.delta) is dict else {}
        kind = delta.get("type")
        if kind == "citations_delta":
            drop_key("citation", delta.get("citation"), self._tally, (*at, "delta"))
            return
        key, block_type = _GROWING.get(kind, ("", "")) if type(kind) is str else ("", "")
        fragment = delta.get(key)
        if type(fragment) is not str:
            raise SeatrialError("invalid_document", "expected a delta of a known type")
        index = _index(event)
        if index not in self._blocks:
            self._blocks[index] = _Block({"type": block_type})
        self._blocks[index].gather(key, fragment)

    def _end(self) -> None:
        self._end_response(done=False)

    def _end_response(self, *, done: bool) -> None:
        if not self._under_way:
            return
        said = {**self._said, "usage": self._usage or None}
        blocks = [self._blocks[index].whole() for index in sorted(self._blocks)]
        at: At = (self._responses,) if self._responses else ()
        self._responses += 1
        add_response(said, blocks, TurnEnding(error=self._error, cut_off=not done), self._chat, self._run, at)
        self._begin()


def _index(event: AnthropicEvent) -> int:
    return event.index if type(event.index) is int else 0


class _Block:
    """One content block under way."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self._fragments: dict[str, list[str]] = {}

    def gather(self, key: str, fragment: str) -> None:
        self._fragments.setdefault(key, []).append(fragment)

    def whole(self) -> dict[str, Any]:
        """The block as it stands in a whole message. Input is left as text, which is read like any call's arguments."""
        block = dict(self._start)
        for key, fragments in self._fragments.items():
            text = "".join(fragments)
            if key == "partial_json":
                if text:
                    block["input"] = text
            else:
                given = block.get(key)
                block[key] = given + text if type(given) is str else text
        return block
