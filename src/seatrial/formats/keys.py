"""Keys of foreign records that nobody here reads, and whether one of them may hold a tool call.

A key that was left out must not hide a call. So an unknown key with an object or an array under a message of the agent
is a serious note, unless it is in `KEYS_WITHOUT_CALLS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from seatrial.transcript.messages import AssistantMessage, Message
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
        "provider_specific_fields",
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
_ARGUMENTS: Final = frozenset({"args", "arguments", "input", "tool_input"})
_NAMES_OF_TOOLS: Final = ("name", "tool", "function", "tool_name", "toolName")
_CALL_TYPE_ENDINGS: Final = ("_call", "toolcall", "tool_use", "tooluse", "tool_result", "_call_output")
_NOT_TOOLS: Final = frozenset({"phone_call", "video_call", "voice_call"})
"""What people have with each other ends in `_call` as well."""
_SETTINGS: Final = frozenset({"max_tokens", "temperature", "top_p"})
_SAYS_NOTHING: tuple[Any, ...] = (None, "", [], {}, 0)
_IDS: Final = ("id", "call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id")
_NONE_KNOWN: Final[Mapping[str, str]] = {}
_MAX_LOOKED_AT: Final = 20_000


def may_hold_call(key: str, value: Any, known: Mapping[str, str] = _NONE_KNOWN) -> bool:
    """Whether something that nobody read looks as if there were a call in it. Looks at a bounded part of it.

    `known` are the names of the calls that were read elsewhere, by id: to repeat those is to add nothing.
    """
    if type(value) is not dict and type(value) is not list:
        return False
    if not value:
        return False
    if key in _NAMES_OF_CALLS and not _are_known(value, known):
        return True
    waiting: list[Any] = [value]
    for _ in range(_MAX_LOOKED_AT):
        if not waiting:
            return False
        found = waiting.pop()
        if type(found) is dict:
            if _is_schema(found) or _is_known(found, known):
                continue  # what a tool takes, not what it was given
            if _looks_like_call(found, known):
                return True
            waiting += [
                item
                for name, item in found.items()
                if (type(item) is dict or type(item) is list) and name not in KEYS_WITHOUT_CALLS
            ]
        elif type(found) is list:
            waiting += [item for item in found[:_MAX_LOOKED_AT] if type(item) is dict or type(item) is list]
    return True


def calls_in_metadata(key: str, value: Any, *at: str | int, messages: Iterable[Message] = ()) -> Note | None:
    """The note for a key beside the messages that is kept as metadata, when it looks like calls that they lack."""
    if key in KEYS_WITHOUT_CALLS or key in _DEFINITIONS or not may_hold_call(key, value):
        return None
    calls = [call for message in messages if type(message) is AssistantMessage for call in message.tool_calls()]
    if calls and not may_hold_call(key, value, {call.id: call.name for call in calls}):
        return None
    return Note(CALLS_IN_METADATA, pointer(*at, key), "what stands here looks like calls, and was not read")


def _looks_like_call(value: dict[str, Any], known: Mapping[str, str]) -> bool:
    """Whether an object itself, not what is inside it, looks like a call or says that there was one."""
    for key in _NAMES_OF_CALLS.intersection(value):
        if value[key] not in _SAYS_NOTHING and not _are_known(value[key], known):
            return True
    if type(kind := value.get("type")) is str and _is_call_type(kind):
        return True
    if not any(type(value.get(key)) is str for key in _NAMES_OF_TOOLS):
        return False
    if not _ARGUMENTS.isdisjoint(value):
        return True
    parameters = value.get("parameters")
    return type(parameters) is dict and not (
        _is_schema(parameters) or "description" in value or not _SETTINGS.isdisjoint(parameters)
    )


def _are_known(value: Any, known: Mapping[str, str]) -> bool:
    items = value if type(value) is list else [value]
    return bool(known) and all(type(item) is dict and _is_known(item, known) for item in items)


def _is_known(value: dict[str, Any], known: Mapping[str, str]) -> bool:
    """Whether this is, or belongs to, a call that was read elsewhere; one of another name is another call."""
    for key in _IDS if known else ():
        if type(call_id := value.get(key)) is str and call_id in known:
            function = value.get("function")
            named = function if type(function) is dict else value
            names = [name for key in _NAMES_OF_TOOLS if type(name := named.get(key)) is str]
            return not names or known[call_id] in names
    return False


def _is_call_type(kind: str) -> bool:
    kind = kind.lower().replace("-", "_")
    return kind not in _NOT_TOOLS and (
        kind.endswith(_CALL_TYPE_ENDINGS) or kind.startswith("tool_") or kind == "dynamic_tool"
    )


def _is_schema(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return type(value.get("properties")) is dict or (type(kind) is str and kind.lower() == "object")
