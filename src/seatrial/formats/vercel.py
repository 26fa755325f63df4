"""Vercel's AI SDK: UIMessages, ModelMessages, and recorded UI message streams. Read, not written.

A streamed message is gathered from its chunks into a UIMessage, then read like one that came whole. Without `finish`,
and without the `[DONE]` that a server sends after it, it was cut off: its turn ends in an error. Another `start` begins
the next message of a recording.

The data stream protocol of the AI SDK up to version 4 has lines of a letter or digit, a colon and JSON. Each line is
read as the chunk of a UI message stream that took its place in version 5.

| line | chunk |
| --- | --- |
| `0:"text"`, `g:"text"` | a delta of text, of reasoning |
| `b:`, `c:`, `9:` | a tool call: its start, a piece of its arguments, the whole of it |
| `a:` | the result of a tool |
| `2:`, `8:` | data, annotations |
| `h:`, `k:` | a source, a file |
| `3:"text"` | an error |
| `f:`, `e:`, `d:` | start of a step, end of a step, end of the message |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.chat.calls import canonical
from seatrial.formats.chat.decoding import members, value
from seatrial.formats.chat.documents import (
    StreamReader,
    keep_rest,
    open_document,
    read_chat_document,
    read_list,
    sniff_messages,
)
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import STREAM_TRUNCATED, TurnEnding, end_turn
from seatrial.formats.dialects.vercel import OWN_PARTS, read_usage
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import LIKELY, SURE, Members, Sample, Sniff, objects_of, text_of
from seatrial.transcript import AssistantMessage, StopReason, Transcript, Usage

FORMAT: Final = "vercel"
_REASONS: Final = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool-calls": StopReason.TOOL_USE,
    "content-filter": StopReason.OTHER,
    "error": StopReason.ERROR,
    "other": StopReason.OTHER,
    "unknown": StopReason.OTHER,
}
_TEXTS: Final = ("text", "reasoning")
_TOOL_KEYS: Final = ("toolName", "input", "errorText", "output", "preliminary", "providerExecuted", "title")
_STATES: Final = {
    "tool-input-start": "input-streaming",
    "tool-input-available": "input-available",
    "tool-input-error": "output-error",
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-output-denied": "output-denied",
    "tool-approval-request": "approval-requested",
}
_BEGINS: Final = frozenset({"tool-input-start", "tool-input-available", "tool-input-error"})
_WHOLE: Final = frozenset({"source-url", "source-document", "file", "reasoning-file", "custom"})
CHUNK_TYPES: Final = frozenset(
    {"start", "finish", "start-step", "finish-step", "abort", "message-metadata", "tool-input-delta",
     "tool-approval-response", *_STATES, *_WHOLE,
     *(f"{kind}-{at}" for kind in _TEXTS for at in ("start", "delta", "end"))}
) - {"file"}  # fmt: skip
"""The types by which a stream is known; `file` is also that of a part, and `error` of much else."""


def sniff(sample: Sample) -> Sniff | None:
    """Typed parts, tool invocations, content parts of ModelMessages, or the chunks of a stream."""
    return _sniff_lines(sample) or sniff_messages(sample, _sniff_message)


def _sniff_message(entry: Members) -> Sniff | None:
    if "role" not in entry:
        kind = text_of(entry, "type")
        known = kind in CHUNK_TYPES and not {"id", "delta", "toolCallId", "messageId"}.isdisjoint(entry)
        return Sniff(SURE + 5, f"a chunk of the type {kind}") if known else None
    if "toolInvocations" in entry:
        return Sniff(SURE + 5, "a message with toolInvocations")
    if any("type" in part for part in objects_of(entry.get("parts"))):
        return Sniff(LIKELY + 5, "a message with typed parts")
    kinds = {text_of(part, "type") for part in objects_of(entry.get("content"))}
    return None if kinds.isdisjoint(OWN_PARTS) else Sniff(SURE + 5, "a content part of ModelMessages")


def read(data: bytes) -> Reading:
    """Read messages, an object with `messages`, or a UI message stream as SSE, as lines or as an array of chunks."""
    if _is_lines(data):
        stream = VercelStream()
        _feed_lines(data, stream)
        return stream.finish()
    document = open_document(data, NoteTally())
    if document is None:
        return VercelStream().read(data)
    if isinstance(document, list) and document and _is_chunk(document[0]):
        return VercelStream().read(document)
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


class VercelStream(StreamReader):
    """Reads the chunks of a UI message stream."""

    format = FORMAT

    def __init__(self) -> None:
        super().__init__()
        self._messages = 0
        self._begin()

    def _begin(self) -> None:
        self._under_way = False
        self._ended = False
        self._parts: list[dict[str, Any]] = []
        self._open: dict[tuple[str, str], dict[str, Any]] = {}
        """Parts whose text is on its way, as a list of fragments, by kind and id."""
        self._tools: dict[str, dict[str, Any]] = {}
        self._metadata: dict[str, Any] = {}
        self._error: Any = None
        self._reason: Any = None
        self._aborted = False

    def _take(self, payload: bytes, at: At) -> None:
        if payload.strip() == b"[DONE]":
            self._ended = True
            self._end_message()
            return
        chunk = wire.decode(payload, repairs=[])
        kind = chunk.get("type") if type(chunk) is dict else None
        if type(kind) is not str:
            raise SeatrialError("invalid_document", "expected a chunk with a type")
        if kind == "start" and self._under_way:
            self._end_message()
        self._under_way = True
        prefix, _, what = kind.rpartition("-")
        if prefix in _TEXTS and what in ("start", "delta", "end"):
            self._take_text(prefix, what, chunk)
        elif kind in _STATES or kind in ("tool-input-delta", "tool-approval-response"):
            self._take_tool(kind, chunk)
        elif kind == "start-step":
            self._parts.append({"type": "step-start"})
        elif kind in _WHOLE or kind.startswith("data-"):
            self._parts.append(chunk)
        elif kind in ("start", "finish", "message-metadata", "finish-step"):
            self._take_metadata(kind, chunk)
        elif kind == "abort":
            self._ended = self._aborted = True
        elif kind == "error":
            self._error = chunk.get("errorText") or "the stream reports an error"
        else:
            raise SeatrialError("invalid_document", f"unknown chunk type {kind[:100]!r}")

    def _take_metadata(self, kind: str, chunk: dict[str, Any]) -> None:
        if type(metadata := chunk.get("messageMetadata")) is dict:
            self._metadata.update(metadata)
        if self._id is None and type(message_id := chunk.get("messageId")) is str:
            self._id = message_id
        if kind == "finish":
            self._ended = True
            self._reason = chunk.get("finishReason")

    def _take_text(self, kind: str, what: str, chunk: dict[str, Any]) -> None:
        key = (kind, _text(chunk, "id"))
        if what == "end":
            self._open.pop(key, None)
            return
        if what == "start" or key not in self._open:
            self._open[key] = {"type": kind, "text": []}
            self._parts.append(self._open[key])
        part = self._open[key]
        if what == "delta":
            part["text"].append(_text(chunk, "delta"))
        if kind == "reasoning" and (metadata := chunk.get("providerMetadata")):
            part["providerMetadata"] = metadata

    def _take_tool(self, kind: str, chunk: dict[str, Any]) -> None:
        call_id = chunk.get("toolCallId")
        if kind == "tool-approval-response" and call_id is None:
            return
        if type(call_id) is not str:
            raise SeatrialError("invalid_document", "expected a chunk with a toolCallId")
        part = self._tools.get(call_id)
        if part is None or _begins_another(kind, chunk, part):
            # A result whose call is not in this stream stays without a name, which is noted when it is read.
            part = self._tools[call_id] = {"type": "dynamic-tool", "toolName": "", "toolCallId": call_id}
            self._parts.append(part)
        if kind == "tool-input-delta":
            part.setdefault("rawInput", []).append(_text(chunk, "inputTextDelta"))
            return
        name = chunk.get("toolName")
        if name is not None and type(name) is not str:
            raise SeatrialError("invalid_document", "expected a chunk with a toolName that is text")
        for key in _TOOL_KEYS:
            if key in chunk and (key != "toolName" or name):
                part[key] = chunk[key]
        if kind == "tool-approval-response":
            part["approval"] = {"approved": chunk.get("approved"), "reason": chunk.get("reason")}
            part["state"] = "approval-responded"
        else:
            part["state"] = _STATES[kind]

    def _end(self) -> None:
        self._end_message()

    def _end_message(self) -> None:
        if not self._under_way:
            return
        for part in self._parts:
            if type(fragments := part.get("text")) is list:
                part["text"] = "".join(fragments)
            if type(pieces := part.get("rawInput")) is list:
                part["rawInput"] = "".join(pieces)
                if "input" in part:
                    del part["rawInput"]
        at: At = (self._messages,) if self._messages else ()
        self._messages += 1
        before = len(self._run.messages)
        self._chat.read({"role": "assistant", "parts": self._parts, "metadata": self._metadata}, at)
        # The turn that ended is the last one that this message brought.
        message = next(found for found in reversed(self._run.messages[before:]) if type(found) is AssistantMessage)
        if self._aborted and self._error is None:
            message.stop_reason = StopReason.ABORTED
            self._tally.add(STREAM_TRUNCATED, at, "the turn was aborted")
        elif self._error is not None or not self._ended or self._reason is not None:
            ending = TurnEnding(self._reason, self._error, cut_off=not self._ended)
            end_turn(message, ending, _REASONS, self._run, self._tally, at)
        self._begin()


def _begins_another(kind: str, chunk: dict[str, Any], part: dict[str, Any]) -> bool:
    """Whether a chunk begins another call under an id that is used already."""
    if kind not in _BEGINS or "state" not in part:
        return False
    if part["state"] not in ("input-streaming", "input-available"):
        return True  # that one has ended
    name, known = chunk.get("toolName"), part["toolName"]
    if name and known and name != known:
        return True
    if kind == "tool-input-start":
        return "input" in part or "rawInput" in part
    return "input" in part and "input" in chunk and canonical(part["input"]) != canonical(chunk["input"])


def _text(chunk: dict[str, Any], key: str) -> str:
    found = chunk.get(key)
    if type(found) is not str:
        raise SeatrialError("invalid_document", f"expected a chunk with {key}")
    return found


_LINE: Final = re.compile(rb'([0-9a-k]):(?=["{\[])')
_FIRST_LINE: Final = re.compile(rb'(?:0:"|f:\{"messageId"|[9bc]:\{"toolCallId"|[28]:\[)')
_LINE_TEXTS: Final = {b"0": "text", b"g": "reasoning"}
_LINE_KINDS: Final = {
    b"b": "tool-input-start",
    b"c": "tool-input-delta",
    b"9": "tool-input-available",
    b"a": "tool-output-available",
    b"2": "data-v4",
    b"8": "data-v4",
    b"h": "source-url",
    b"k": "file",
    b"f": "start-step",
    b"e": "finish-step",
    b"d": "finish",
}
_LINE_NAMES: Final[Mapping[str, str]] = {"args": "input", "result": "output", "argsTextDelta": "inputTextDelta"}
_LINE_SIGNATURES: Final = frozenset({b"i", b"j"})
"""Of reasoning, which say nothing to anybody but the model."""


def _is_lines(data: bytes) -> bool:
    """Whether bytes are such a stream."""
    return _FIRST_LINE.match(data.lstrip()) is not None


def _sniff_lines(sample: Sample) -> Sniff | None:
    """The first line gives it away."""
    return Sniff(SURE + 5, "lines of the data stream protocol") if _is_lines(sample.head) else None


def _feed_lines(data: bytes, stream: VercelStream) -> None:
    """Feed the lines to a reader of UI message streams."""
    for number, line in enumerate(data.split(b"\n")):
        if line and not line.isspace():
            for chunk in _chunks(line.strip(), number):
                stream.feed_payload(wire.encode(chunk))


def _chunks(line: bytes, number: int) -> Iterator[dict[str, Any]]:
    match = _LINE.match(line)
    code = match[1] if match is not None else b""
    if code in _LINE_SIGNATURES:
        return
    try:
        value = wire.decode(line[2:], repairs=[])
    except SeatrialError:
        code, value = b"", None
    if code in _LINE_TEXTS and type(value) is str:
        # Deltas that follow each other are one text; there is nothing that ends one.
        yield {"type": f"{_LINE_TEXTS[code]}-delta", "id": "0", "delta": value}
        return
    for kind in _LINE_TEXTS.values():
        yield {"type": f"{kind}-end", "id": "0"}
    if code == b"3":
        yield {"type": "error", "errorText": value}
    elif code in (b"2", b"8"):
        yield {"type": _LINE_KINDS[code], "data": value}
    elif code in _LINE_KINDS and isinstance(value, dict):
        yield {**{_LINE_NAMES.get(key, key): item for key, item in value.items()}, "type": _LINE_KINDS[code]}
    else:
        yield {"type": f"line {number + 1}, which is not one of the protocol"}
