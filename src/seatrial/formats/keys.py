"""Keys of foreign records that nobody here reads, and whether one of them may hold a tool call.

A key that was left out must not hide a call. So an unknown key with an object or an array under a message of the agent
is a serious note, unless it is in `KEYS_WITHOUT_CALLS`.
"""

from __future__ import annotations

from typing import Any, Final

from seatrial.transcript.note import Note, note_code, pointer

KEY_DROPPED = note_code(
    "key_dropped",
    "A key has no place in the transcript; it was dropped. Serious where a call of the agent's may stand under it.",
    "harmless",
)
CALLS_IN_METADATA = note_code(
    "calls_in_metadata",
    "Metadata of the record looks as if there were tool calls in it; they were not read.",
    "serious",
)

KEYS_WITHOUT_CALLS: Final = frozenset(
    {
        "annotations",
        "avgLogprobs",
        "cacheControl",
        "cachePoint",
        "cache_control",
        "citationMetadata",
        "citation_metadata",
        "citations",
        "context_management",
        "experimental_attachments",
        "generationInfo",
        "generation_info",
        "groundingMetadata",
        "grounding_metadata",
        "logprobs",
        "logprobsResult",
        "metrics",
        "performanceConfig",
        "promptFeedback",
        "prompt_filter_results",
        "content_filter_results",
        "providerMetadata",
        "providerOptions",
        "provider_details",
        "safetyRatings",
        "safety_ratings",
        "service_tier",
        "tags",
        "token_ids",
        "tokens",
        "top_logprobs",
        "urlContextMetadata",
        "url_context_metadata",
        "usage",
        "usageMetadata",
        "usage_metadata",
    }
)
"""Keys that are known to hold no call, whatever stands under them."""

_DEFINITIONS: Final = frozenset(
    {
        "functions",
        "parallel_tool_calls",
        "toolChoice",
        "toolConfig",
        "tool_choice",
        "tool_config",
        "tools",
    }
)
"""What a model is offered, in requests and in the responses that repeat them: no call was made by it."""

_NAMES_OF_CALLS: Final = frozenset(
    {
        "action",
        "actions",
        "arguments",
        "call_id",
        "calls",
        "functionCall",
        "function_call",
        "function_calls",
        "intermediate_steps",
        "server_tool_use",
        "tool",
        "toolCallId",
        "toolCalls",
        "toolInvocations",
        "toolName",
        "toolUse",
        "tool_call",
        "tool_call_id",
        "tool_calls",
        "tool_input",
        "tool_name",
        "tool_use",
        "tool_uses",
        "tools_called",
        "tools_used",
        "trajectory",
    }
)
_MAX_LOOKED_AT: Final = 2_000


def may_hold_call(key: str, value: Any) -> bool:
    """Whether something that nobody read looks as if there were a call in it. Looks at a bounded part of it."""
    if type(value) is not dict and type(value) is not list:
        return False
    if not value:
        return False
    if key in _NAMES_OF_CALLS:
        return True
    waiting: list[Any] = [value]
    for _ in range(_MAX_LOOKED_AT):
        if not waiting:
            return False
        found = waiting.pop()
        if type(found) is dict:
            if not _NAMES_OF_CALLS.isdisjoint(found):
                return True
            waiting += [item for item in found.values() if type(item) is dict or type(item) is list]
        elif type(found) is list:
            waiting += [item for item in found[:_MAX_LOOKED_AT] if type(item) is dict or type(item) is list]
    return True


def calls_in_metadata(key: str, value: Any, *at: str | int) -> Note | None:
    """The note for what stands beside the messages, under a key that nobody reads, and looks like calls."""
    if key in KEYS_WITHOUT_CALLS or key in _DEFINITIONS or not may_hold_call(key, value):
        return None
    return Note(CALLS_IN_METADATA, pointer(*at, key), "what stands here looks like calls, and was not read")
