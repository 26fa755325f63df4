"""Vercel's AI SDK: UIMessages, ModelMessages, and recorded UI message streams. Read, not written."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from seatrial.errors import SeatrialError
from seatrial.formats.chat import Chat
from seatrial.formats.chat_document import keep_rest, read_chat_document, read_list, sniff_messages
from seatrial.formats.dialects.vercel import OWN_PARTS, read_usage
from seatrial.formats.framing import open_document
from seatrial.formats.parts import At
from seatrial.formats.reading import Reading
from seatrial.formats.shape import members, value
from seatrial.formats.sniffing import LIKELY, SURE, Members, Sample, Sniff, objects, text_of
from seatrial.formats.tally import NoteTally
from seatrial.formats.vercel_lines import feed_lines, is_lines, sniff_lines
from seatrial.formats.vercel_stream import CHUNK_TYPES, VercelStream
from seatrial.transcript import Transcript, Usage

FORMAT: Final = VercelStream.format


def sniff(sample: Sample) -> Sniff | None:
    """Typed parts, tool invocations, content parts of ModelMessages, or the chunks of a stream."""
    return sniff_lines(sample) or sniff_messages(sample, _sniff_message)


def _sniff_message(entry: Members) -> Sniff | None:
    if "role" not in entry:
        kind = text_of(entry, "type")
        known = kind in CHUNK_TYPES and not {"id", "delta", "toolCallId", "messageId"}.isdisjoint(entry)
        return Sniff(SURE + 5, f"a chunk of the type {kind}") if known else None
    if "toolInvocations" in entry:
        return Sniff(SURE + 5, "a message with toolInvocations")
    if any("type" in part for part in objects(entry.get("parts"))):
        return Sniff(LIKELY + 5, "a message with typed parts")
    kinds = {text_of(part, "type") for part in objects(entry.get("content"))}
    return None if kinds.isdisjoint(OWN_PARTS) else Sniff(SURE + 5, "a content part of ModelMessages")


def read(data: bytes) -> Reading:
    """Read messages, an object with `messages`, or a UI message stream as SSE, as lines or as an array of chunks."""
    if is_lines(data):
        recording = VercelStream()
        feed_lines(data, recording)
        return recording.finish()
    document = open_document(data, NoteTally())
    if document is None:
        recording = VercelStream()
        recording.feed(data)
        return recording.finish()
    if isinstance(document, list) and document and _is_chunk(document[0]):
        recording = VercelStream()
        for entry in document:
            recording.feed_payload(entry)
        return recording.finish()
    expected = "an object with `messages`, or a recorded UI message stream"
    return read_chat_document(data, FORMAT, _container, expected)


def _is_chunk(entry: msgspec.Raw) -> bool:
    try:
        found = members(entry, NoteTally(), ())
        kind = value(found["type"], NoteTally(), ()) if found is not None and "type" in found else None
    except SeatrialError:
        return False
    return type(kind) is str and kind in CHUNK_TYPES and (found is None or "role" not in found)


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    if "role" in given:
        return False
    response = given.get("response")
    read = {"messages", "usage", "totalUsage"}
    if type(given.get("messages")) is list:
        read_list(given["messages"], chat, (*at, "messages"))
    elif type(response) is dict and type(response.get("messages")) is list:
        # What `generateText` gives.
        read_list(response["messages"], chat, (*at, "response", "messages"))
        read.add("response")
    else:
        return False
    usage = given.get("totalUsage") or given.get("usage")
    counts = read_usage(usage) if type(usage) is dict else None
    if counts is not None and run.usage is None:
        run.usage = Usage(**counts)
    keep_rest(given, frozenset(read), chat, run, at)
    return True
