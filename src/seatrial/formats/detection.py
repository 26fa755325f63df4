"""Which format bytes are in: found out from what is in them, with the reason in words.

A document is opened one level at a time, a stream only at its beginning. Messages that have nothing but a `role` and
`content` are the common ground of all chat APIs: they are called `openai`, whoever wrote them, and every reader of
chat messages reads them alike. A request without anything of its own is the same case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias, TypeVar

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError

_BOM = b"\xef\xbb\xbf"
_SSE = re.compile(rb"(?:data|event|id|retry)?:")
_PREFIX = 256 * 1024
"""How much of a stream is looked at, in bytes."""
_ENTRIES = 200
"""How many messages, lines or frames are looked at."""

_ANTHROPIC_EVENTS = frozenset(
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
_OUTPUT_KEYS = ("output_messages", "outputMessages", "trace", "trace_ref", "traceRef")
_ANTHROPIC_REQUEST = ("system", "anthropic_version", "stop_sequences", "thinking")
_OPENROUTER_REQUEST = ("provider", "models", "route", "transforms", "plugins", "reasoning")
_ANTHROPIC_PARTS = frozenset({"tool_use", "tool_result", "server_tool_use", "redacted_thinking", "document"})
_TRANSCRIPT_PARTS = frozenset({"tool_call", "reasoning", "reasoning_details"})
_OPENAI_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_OPENAI_ROLES = frozenset({"tool", "developer", "function"})
_OPENAI_KEYS = ("tool_calls", "tool_call_id", "function_call", "refusal")

T = TypeVar("T")
Members: TypeAlias = dict[str, msgspec.Raw]


class Detection(msgspec.Struct, frozen=True):
    """What the bytes look like."""

    format: str
    reason: str
    """What gave it away, for people."""


class _Guess(msgspec.Struct, frozen=True):
    format: str
    reason: str
    sure: int = 3
    """3: nothing else looks like this; 2: what comes later may show a dialect of it; 1: a hint; 0: common ground."""


def detect(data: bytes) -> Detection:
    """The format of these bytes; `SeatrialError` `undetected_format` when they look like none."""
    text = data.removeprefix(_BOM).lstrip()
    if not text:
        raise SeatrialError("empty_input", "there is nothing in the input to read")
    guess = None
    if text[:1] in (b"{", b"["):
        guess = _guess_document(text)
    elif _SSE.match(text):
        guess = _guess_frames(text[:_PREFIX])
    if guess is None:
        raise SeatrialError(
            "undetected_format",
            "the input looks like none of the known formats",
            hint="name its format, on the command line with --from",
        )
    return Detection(guess.format, guess.reason)


def _guess_document(text: bytes) -> _Guess | None:
    first_line, _, more = text.partition(b"\n")
    if more.strip() and text[:1] == b"{" and _members(first_line) is not None:
        return _among("lines: ", text.split(b"\n", _ENTRIES)[:_ENTRIES])
    if text[:1] == b"[":
        entries = _opened(text, _ITEMS)
        return None if entries is None else _among("an array: ", entries)
    members = _members(text)
    return None if members is None else _guess_object(members)


def _guess_frames(prefix: bytes) -> _Guess | None:
    # Here, because most documents need no parser of frames.
    from seatrial.events.sse import SseParser

    parser = SseParser()
    frames = [*parser.feed(prefix), *parser.close()]
    return _among("server-sent events: ", [frame.data for frame in frames])


def _among(prefix: str, entries: Iterable[bytes | msgspec.Raw]) -> _Guess | None:
    """The surest guess about the first entries that are objects."""
    best: _Guess | None = None
    for entry in islice(entries, _ENTRIES):
        members = _members(entry)
        guess = None if members is None else _guess_object(members)
        if guess is not None and (best is None or guess.sure > best.sure):
            best = guess
            if guess.sure == 3:
                break
    return None if best is None else _Guess(best.format, prefix + best.reason, best.sure)


def _guess_object(members: Members) -> _Guess | None:
    return (
        _guess_response(members)
        or _guess_event(members)
        or _guess_completion(members)
        or _guess_request(members)
        or _guess_message(members)
        or (_Guess("output-messages", "a top-level key text", 2) if "text" in members else None)
    )


def _guess_response(members: Members) -> _Guess | None:
    if "final_response" in members:
        return _Guess("agent-response", "a top-level key final_response")
    if "session_done" in members and "message" in members:
        return _Guess("agent-response", "the keys message and session_done of a turn")
    for key in _OUTPUT_KEYS:
        if key in members:
            return _Guess("output-messages", f"a top-level key {key}")
    if _first_byte(members.get("output")) == b"[" and "object" not in members:
        return _Guess("output-messages", "a top-level array output")
    return None


def _guess_event(members: Members) -> _Guess | None:
    if "sequence" in members and "runId" in members and "event" in members:
        return _Guess("events", "envelopes with runId and sequence")
    kind = _string(members, "type")
    if kind in ("KEEPALIVE", "TERMINAL"):
        return _Guess("events", f"a stream frame of the type {kind}", 2)
    if kind is not None and kind.isupper():
        return _Guess("agui", f"an event of the AG-UI type {kind[:40]}")
    if kind in _ANTHROPIC_EVENTS:
        return _Guess("anthropic", f"a stream event of the type {kind}")
    if kind == "message" and "content" in members:
        return _Guess("anthropic", "a response of the type message")
    return None


def _guess_completion(members: Members) -> _Guess | None:
    if "choices" not in members:
        return None
    kind = _string(members, "object") or "choices"
    if "provider" in members:
        return _Guess("openrouter", f"{kind} with a provider")
    choices = _opened(members["choices"], _OBJECTS) or []
    for choice in choices[:_ENTRIES]:
        said = _members(choice.get("delta", choice.get("message", b""))) or {}
        for key in ("reasoning", "reasoning_details"):
            if _says_something(said.get(key)):
                return _Guess("openrouter", f"{kind} with {key}")
    return _Guess("openai", f"{kind} without reasoning", 2)


def _guess_request(members: Members) -> _Guess | None:
    messages = _opened(members["messages"], _ITEMS) if "messages" in members else None
    if messages is None:
        return None
    for key in _ANTHROPIC_REQUEST:
        if key in members:
            return _Guess("anthropic", f"messages beside a key {key}")
    for key in _OPENROUTER_REQUEST:
        if key in members:
            return _Guess("openrouter", f"messages beside a key {key}")
    if "/" in (_string(members, "model") or ""):
        return _Guess("openrouter", "messages for a model with its maker's name")
    return _among("a request: ", messages) or _Guess("openai", "a key messages", 0)


def _guess_message(members: Members) -> _Guess | None:
    role = _string(members, "role")
    if role is None:
        return None
    if role == "tool_result" or (role == "custom" and "kind" in members):
        return _Guess("transcript", f"a message of the role {role}")
    if "stop_reason" in members:
        return _Guess("transcript", "a message with a stop_reason")
    for key in ("reasoning", "reasoning_details"):
        if _says_something(members.get(key)):
            return _Guess("openrouter", f"a message with {key}")
    for part in (_opened(members.get("content", b""), _OBJECTS) or [])[:_ENTRIES]:
        if (guess := _guess_part(part)) is not None:
            return guess
    for key in _OPENAI_KEYS:
        if _says_something(members.get(key)):
            return _Guess("openai", f"a message with {key}", 2)
    if role in _OPENAI_ROLES:
        return _Guess("openai", f"a message of the role {role}", 2)
    if role != "assistant" and _first_byte(members.get("timestamp")).isdigit():
        return _Guess("transcript", "a message with a timestamp", 1)
    return _Guess("openai", "messages with role and content, as all chat APIs have them", 0)


def _guess_part(part: Members) -> _Guess | None:
    kind = _string(part, "type")
    reason = f"a content part of the type {kind}"
    if kind in _ANTHROPIC_PARTS or (kind == "thinking" and "thinking" in part):
        return _Guess("anthropic", reason)
    if kind in _TRANSCRIPT_PARTS or (kind == "thinking" and "text" in part):
        return _Guess("transcript", reason)
    if kind == "image" and "source" in part:
        return _Guess("transcript" if _first_byte(part["source"]) == b'"' else "anthropic", f"{reason} with a source")
    return _Guess("openai", reason, 2) if kind in _OPENAI_PARTS else None


def _members(data: bytes | msgspec.Raw) -> Members | None:
    return _opened(data, _MEMBERS)


def _opened(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T | None:
    """What is inside, still as bytes; None when it is of another kind, or not JSON."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return wire.decode(bytes(data), decoder, [])
    except SeatrialError:
        return None


def _string(members: Members, key: str) -> str | None:
    return _opened(members.get(key, b""), _STRING)


def _first_byte(raw: msgspec.Raw | None) -> bytes:
    return b"" if raw is None else bytes(raw)[:1]


def _says_something(raw: msgspec.Raw | None) -> bool:
    return raw is not None and bytes(raw) not in (b"null", b"[]", b'""')


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_STRING = msgspec.json.Decoder(str)
