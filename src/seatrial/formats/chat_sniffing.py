"""What gives chat messages away, for the formats that share them: OpenAI, OpenRouter, Anthropic, the transcript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from seatrial.formats.sniffing import (
    COMMON,
    ENTRIES,
    HINT,
    LIKELY,
    SURE,
    Members,
    Sample,
    Sniff,
    first_byte,
    items,
    objects,
    says_something,
    surest,
    text_of,
)

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


def sniff_chat(sample: Sample, format: str) -> Sniff | None:
    """How sure one of the formats of plain chat messages is of a sample."""

    def of_format(claim: Callable[[Members], tuple[str, Sniff] | None]) -> Callable[[Members], Sniff | None]:
        def sniff(entry: Members) -> Sniff | None:
            found = claim(entry)
            return found[1] if found is not None and found[0] == format else None

        return sniff

    document = sample.document
    if document is not None and "messages" in document and not any(key in document for key in _BESIDES):
        return _sniff_request(document, format, of_format(_message))
    return sample.surest(of_format(_message))


def _sniff_request(document: Members, format: str, message: Callable[[Members], Sniff | None]) -> Sniff | None:
    if items(document["messages"]) is None:
        return None
    for name, keys in _REQUEST_KEYS.items():
        for key in keys:
            if key in document:
                return Sniff(SURE, f"messages beside a key {key}") if name == format else None
    if "/" in (text_of(document, "model") or ""):
        return Sniff(SURE, "messages for a model with its maker's name") if format == "openrouter" else None
    found = surest("a request: ", objects(document["messages"]), message)
    if found is None and format == "openai":
        return Sniff(COMMON - 1, "a key messages")
    return found


def _message(entry: Members) -> tuple[str, Sniff] | None:
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
    for part in objects(entry.get("content"))[:ENTRIES]:
        if (found := _part(part)) is not None:
            return found
    for key in _OPENAI_KEYS:
        if says_something(entry.get(key)):
            return "openai", Sniff(LIKELY, f"a message with {key}")
    if role in _OPENAI_ROLES:
        return "openai", Sniff(LIKELY, f"a message of the role {role}")
    if role != "assistant" and first_byte(entry.get("timestamp")).isdigit():
        return "transcript", Sniff(HINT, "a message with a timestamp")
    return "openai", Sniff(COMMON, "messages with role and content, as all chat APIs have them")


def _part(part: Members) -> tuple[str, Sniff] | None:
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
