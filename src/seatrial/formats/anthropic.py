"""Anthropic Messages: messages, requests, responses and recorded streams; written as a request without its model.

Native thinking with a signature goes both ways untouched. Thinking without one, also from another provider, is
written as an unsigned `thinking` block: true to the record, but the API itself refuses unsigned thinking. Prompted
thinking is woven into text blocks as `<thought>` tags, and read out of them again.
"""

from __future__ import annotations

import msgspec

from seatrial.errors import SeatrialError
from seatrial.formats.anthropic_stream import EVENT_TYPES, AnthropicStream
from seatrial.formats.anthropic_turn import add_response
from seatrial.formats.anthropic_writer import write_request
from seatrial.formats.chat import Chat
from seatrial.formats.chat_sniffing import sniff_chat
from seatrial.formats.completions import decoded_items
from seatrial.formats.decoding import decoded, decoded_message
from seatrial.formats.dialects.anthropic import read_system
from seatrial.formats.framing import open_document
from seatrial.formats.reading import Reading, Written, single_turn
from seatrial.formats.shape import items, members, value
from seatrial.formats.sniffing import HINT, SURE, Members, Sample, Sniff, text_of
from seatrial.formats.tally import NoteTally
from seatrial.formats.turn import TurnEnding
from seatrial.transcript import Transcript


def sniff(sample: Sample) -> Sniff | None:
    """Events of its streams, a response, or messages with its content blocks."""
    return sample.surest(_sniff_event) or sniff_chat(sample, AnthropicStream.format)


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
        recording = AnthropicStream(tally)
        recording.feed(data)
        return recording.finish()
    entries = [msgspec.Raw(data)] if isinstance(document, dict) else document
    if entries and _text(members(entries[0], NoteTally(), ()), "type") in EVENT_TYPES:
        recording = AnthropicStream(tally)
        for entry in entries:
            recording.feed_payload(entry)
        return recording.finish()
    if isinstance(document, dict) and not _is_message(document):
        return _read_object(document, tally)
    run = Transcript(messages=[])
    chat = Chat(tally, run.messages)
    if isinstance(document, dict):
        chat.read(decoded_message(msgspec.Raw(data), tally, ()), ())
    else:
        chat.read_all(decoded_items(document, tally, ()))
    reading = Reading(AnthropicStream.format, run, tally.total(), calls=chat.facts)
    return single_turn(reading) if isinstance(document, dict) else reading


def write(transcript: Transcript) -> Written:
    """Write a request: `{"system": ..., "messages": [...]}`, to which a sender adds the model and a limit."""
    return write_request(transcript)


def _text(document: dict[str, msgspec.Raw] | None, key: str) -> str | None:
    # What is found on the way is noted when the document is read.
    found = value(document[key], NoteTally(), ()) if document is not None and key in document else None
    return found if type(found) is str else None


def _is_message(document: dict[str, msgspec.Raw]) -> bool:
    """Whether this is one message of a conversation; a response of the model is one as well, but says more."""
    role = _text(document, "role")
    return role is not None and not (role == "assistant" and _text(document, "type") == "message")


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
    reading = Reading(AnthropicStream.format, run, tally.total(), id=found_id, calls=chat.facts)
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
