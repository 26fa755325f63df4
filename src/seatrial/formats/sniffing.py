"""What a format is recognised by: the outermost levels of the bytes, opened once for all formats.

A document is opened one level at a time, a stream only at its beginning. `sniff_chat` tells apart the formats that
share plain chat messages: OpenAI, OpenRouter, Anthropic and the transcript.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import MAX_DEPTH, is_too_deep
from seatrial.errors import SeatrialError

Members: TypeAlias = dict[str, msgspec.Raw]
"""An object whose values are still bytes."""
TextShape: TypeAlias = Literal["object", "array", "lines", "server-sent events", "other"]
T = TypeVar("T")
CERTAIN: Final = 100
"""The bytes name the format themselves."""
SURE: Final = 80
"""Nothing else looks like this."""
LIKELY: Final = 60
"""What comes later may show a dialect of it."""
HINT: Final = 40
COMMON: Final = 10
"""Common ground of several formats, which all of them read alike."""
ENTRIES: Final = 200
"""How many messages, lines or frames are looked at."""
_PREFIX: Final = 256 * 1024
"""How much of a stream is looked at, in bytes."""
_BOM = b"\xef\xbb\xbf"
_SSE = re.compile(rb"(?:data|event|id|retry)?:")

_PREFIXES: Final[dict[TextShape, str]] = {
    "object": "",
    "array": "an array: ",
    "lines": "lines: ",
    "server-sent events": "server-sent events: ",
    "other": "",
}
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_STRING = msgspec.json.Decoder(str)
_REQUEST_KEYS: Final = {
    "anthropic": ("system", "anthropic_version", "stop_sequences", "thinking"),
    "openrouter": ("provider", "models", "route", "transforms", "plugins", "reasoning"),
}
_ANTHROPIC_PARTS: Final = frozenset({"tool_use", "tool_result", "server_tool_use", "redacted_thinking", "document"})
_TRANSCRIPT_PARTS: Final = frozenset({"tool_call", "reasoning", "reasoning_details"})
_OPENAI_PARTS: Final = frozenset({"image_url", "input_audio", "file", "refusal"})
_OPENAI_ROLES: Final = frozenset({"tool", "developer", "function"})
_OPENAI_KEYS: Final = ("tool_calls", "tool_call_id", "function_call", "refusal")
CALL_KEYS: Final = ("tool_calls", "toolCalls", "function_call")
_BESIDES: Final = ("parts", "final_response", "output_messages")
"""Keys with which something is not a chat message or request of one of these formats."""


class Sniff(msgspec.Struct, frozen=True):
    """How sure a format is that bytes are its own."""

    confidence: int
    """1 to 100."""
    reason: str
    """What gives it away, for people."""


class Sample(msgspec.Struct):
    """Bytes of unknown format, opened."""

    head: bytes
    """The first bytes, without white space."""
    shape: TextShape
    entries: list[Members]
    """The object; else the first objects of the array, the lines or the frames."""

    @property
    def document(self) -> Members | None:
        """The object, where the bytes are one."""
        return self.entries[0] if self.shape == "object" and self.entries else None

    def surest(self, sniff: Callable[[Members], Sniff | None]) -> Sniff | None:
        """The surest of what one object of the sample says each."""
        return surest(f"{_PREFIXES[self.shape]}", self.entries, sniff)


def open_sample(data: bytes) -> Sample:
    """Open bytes as far as formats need it."""
    text = data.removeprefix(_BOM).lstrip()
    if not text:
        raise SeatrialError("empty_input", "there is nothing in the input to read")
    head = text[:64]
    if text[:1] == b"{":
        first_line, _, more = text.partition(b"\n")
        if more.strip() and members_of(first_line) is not None:
            return Sample(head, "lines", _objects(text.split(b"\n", ENTRIES)[:ENTRIES]))
        document = members_of(text)
        if document is None and is_too_deep(text):
            raise wire.too_deep()
        return Sample(head, "object", [] if document is None else [document])
    if text[:1] == b"[":
        entries = items_of(text)
        if entries is None and is_too_deep(text):
            raise wire.too_deep()
        return Sample(head, "array", _objects(entries or []))
    if _SSE.match(text):
        # Here, because most documents need no parser of frames.
        from seatrial.events.framing import SseParser

        parser = SseParser()
        frames = [*parser.feed(text[:_PREFIX]), *parser.close()]
        return Sample(head, "server-sent events", _objects([frame.data for frame in frames]))
    return Sample(head, "other", [])


def surest(prefix: str, entries: Iterable[Members], sniff: Callable[[Members], Sniff | None]) -> Sniff | None:
    """The surest of what the entries say each; `prefix` says where they stand."""
    best: Sniff | None = None
    for entry in entries:
        found = sniff(entry)
        if found is not None and (best is None or found.confidence > best.confidence):
            best = found
            if best.confidence >= SURE:
                break
    return None if best is None else Sniff(best.confidence, prefix + best.reason)


def members_of(data: bytes | msgspec.Raw | None) -> Members | None:
    """The members of an object; None when it is something else."""
    return None if data is None else opened(data, _MEMBERS)


def items_of(data: bytes | msgspec.Raw | None) -> list[msgspec.Raw] | None:
    """The items of an array; None when it is something else."""
    return None if data is None else opened(data, _ITEMS)


def objects_of(data: bytes | msgspec.Raw | None) -> list[Members]:
    """The first objects of an array; none when it is something else."""
    return _objects(items_of(data) or [])


def text_of(entry: Members, key: str) -> str | None:
    """The text under a key; None when there is none."""
    return opened(entry[key], _STRING) if key in entry else None


def first_byte(raw: msgspec.Raw | None) -> bytes:
    """The first byte of a value, which shows its kind."""
    return b"" if raw is None else bytes(raw)[:1]


def says_something(raw: msgspec.Raw | None) -> bool:
    """Whether a value is there and not empty."""
    return raw is not None and bytes(raw) not in (b"null", b"[]", b'""')


def opened(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T | None:
    """What is inside, still as bytes; None when it is of another kind, or not JSON."""
    try:
        if len(data) <= MAX_DEPTH or not is_too_deep(data):
            return decoder.decode(data)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return wire.decode(bytes(data), decoder, [])
    except SeatrialError:
        return None


def _objects(entries: Iterable[bytes | msgspec.Raw]) -> list[Members]:
    return [found for entry in islice(entries, ENTRIES) if (found := members_of(entry)) is not None]


def sniff_chat(sample: Sample, format: str) -> Sniff | None:
    """How sure one of the formats of plain chat messages is of a sample."""

    def of_format(claim: Callable[[Members], tuple[str, Sniff] | None]) -> Callable[[Members], Sniff | None]:
        def sniff(entry: Members) -> Sniff | None:
            found = claim(entry)
            return found[1] if found is not None and found[0] == format else None

        return sniff

    document = sample.document
    if document is not None and "messages" in document and not any(key in document for key in _BESIDES):
        return _sniff_request(document, format, of_format(_sniff_message))
    return sample.surest(of_format(_sniff_message))


def _sniff_request(document: Members, format: str, message: Callable[[Members], Sniff | None]) -> Sniff | None:
    if items_of(document["messages"]) is None:
        return None
    for name, keys in _REQUEST_KEYS.items():
        for key in keys:
            if key in document:
                return Sniff(SURE, f"messages beside a key {key}") if name == format else None
    if "/" in (text_of(document, "model") or ""):
        return Sniff(SURE, "messages for a model with its maker's name") if format == "openrouter" else None
    found = surest("a request: ", objects_of(document["messages"]), message)
    if found is None and format == "openai":
        return Sniff(COMMON - 1, "a key messages")
    return found


def _sniff_message(entry: Members) -> tuple[str, Sniff] | None:
    """The format that a message is of, and how sure that is."""
    role = text_of(entry, "role")
    if role is None or any(key in entry for key in _BESIDES):
        return None
    kind = text_of(entry, "type")
    if kind == "message" and "content" in entry and "stop_reason" in entry:
        return "anthropic", Sniff(SURE, "a response of the type message")
    if role == "tool_result" or (role == "custom" and "kind" in entry):
        return "transcript", Sniff(SURE, f"a message of the role {role}")
    if "stop_reason" in entry and not any(says_something(entry.get(key)) for key in CALL_KEYS):
        return "transcript", Sniff(SURE, "a message with a stop_reason")
    for key in ("reasoning", "reasoning_details"):
        if says_something(entry.get(key)):
            return "openrouter", Sniff(SURE, f"a message with {key}")
    for part in objects_of(entry.get("content"))[:ENTRIES]:
        if (found := _sniff_part(part)) is not None:
            return found
    for key in _OPENAI_KEYS:
        if says_something(entry.get(key)):
            return "openai", Sniff(LIKELY, f"a message with {key}")
    if role in _OPENAI_ROLES:
        return "openai", Sniff(LIKELY, f"a message of the role {role}")
    if role != "assistant" and first_byte(entry.get("timestamp")).isdigit():
        return "transcript", Sniff(HINT, "a message with a timestamp")
    return "openai", Sniff(COMMON, "messages with role and content, as all chat APIs have them")


def _sniff_part(part: Members) -> tuple[str, Sniff] | None:
    kind = text_of(part, "type")
    if kind is None:
        return None
    reason = f"a content part of the type {kind[:40]}"
    if kind in _ANTHROPIC_PARTS or (kind == "thinking" and "thinking" in part):
        return "anthropic", Sniff(SURE, reason)
    if kind in _TRANSCRIPT_PARTS or (kind == "thinking" and "text" in part):
        return "transcript", Sniff(SURE, reason)
    if kind == "image" and "source" in part:
        name = "transcript" if first_byte(part["source"]) == b'"' else "anthropic"
        return name, Sniff(SURE, f"{reason} with a source")
    return ("openai", Sniff(LIKELY, reason)) if kind in _OPENAI_PARTS else None
