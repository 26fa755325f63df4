"""AG-UI's messages: what a client of a stream holds, by role.

`read_messages` takes them from JSON that nobody vouches for (a snapshot, a run's input) and notes what it had to
drop or repair; 0.x `binary` content parts become media parts.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.events.layout import KEY
from seatrial.events.violation import quoted
from seatrial.transcript import Note, note_code, pointer
from seatrial.transcript.failure import CallStatus, Failure, find_failure, find_failure_inside

AGUI_MESSAGE_DROPPED = note_code(
    "agui_message_dropped",
    "A message of a snapshot or an input is not one of AG-UI's messages; it was dropped.",
    "serious",
)
AGUI_MESSAGE_REPAIRED = note_code(
    "agui_message_repaired",
    "A message of a snapshot or an input lacked something, or had it in another shape. Serious where a call without a "
    "name was dropped.",
    "look",
)
AGUI_PROPERTY_UNKNOWN = note_code(
    "agui_property_unknown",
    "A message of a snapshot or an input has a property that AG-UI does not know; it was left out. Serious where it is "
    "an object or a list of an assistant's message, which may hold a call, or is named like calls.",
    "harmless",
)
BINARY_PART_UPGRADED = note_code(
    "binary_part_upgraded",
    "A content part of the old kind `binary` became an image, audio, video or document part.",
    "harmless",
)

Part: TypeAlias = dict[str, Any]
"""A content part: text, image, audio, video or document."""


class FunctionCall(msgspec.Struct, gc=False):
    """The function of a tool call."""

    name: str
    arguments: str
    """JSON text, or what the model wrote in its place."""


class ToolCall(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """A tool call of an assistant message."""

    id: str
    function: FunctionCall
    # A factory is never equal to a default, so msgspec writes the key always, as AG-UI demands.
    type: Literal["function"] = msgspec.field(default_factory=lambda: "function")
    encrypted_value: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class _Message(msgspec.Struct, tag_field="role", rename="camel", omit_defaults=True, kw_only=True, gc=False):
    id: str
    metadata: dict[str, Any] | UnsetType = UNSET
    subagent_run_id: str | UnsetType = UNSET


class _Said(_Message, kw_only=True, omit_defaults=True, gc=False):
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class DeveloperMessage(_Said, tag="developer", kw_only=True, omit_defaults=True, gc=False):
    content: str


class SystemMessage(_Said, tag="system", kw_only=True, omit_defaults=True, gc=False):
    content: str


class AssistantMessage(_Said, tag="assistant", kw_only=True, omit_defaults=True, gc=False):
    content: str | UnsetType = UNSET
    tool_calls: list[ToolCall] | UnsetType = UNSET


class UserMessage(_Said, tag="user", kw_only=True, omit_defaults=True, gc=False):
    content: str | list[Part]


class ToolMessage(_Said, tag="tool", kw_only=True, omit_defaults=True, gc=False):
    tool_call_id: str
    content: str | list[Part]
    error: str | UnsetType = UNSET


class ReasoningMessage(_Said, tag="reasoning", kw_only=True, omit_defaults=True, gc=False):
    content: str


class ActivityMessage(_Message, tag="activity", kw_only=True, omit_defaults=True, gc=False):
    activity_type: str
    content: dict[str, Any]


TextMessage: TypeAlias = (
    DeveloperMessage | SystemMessage | AssistantMessage | UserMessage | ToolMessage | ReasoningMessage
)
Message: TypeAlias = TextMessage | ActivityMessage


def tool_calls_of(message: Message) -> list[ToolCall]:
    """The tool calls of a message: none, unless it is an assistant's."""
    if not isinstance(message, AssistantMessage) or message.tool_calls is UNSET:
        return []
    return message.tool_calls


def read_messages(values: Any, at: tuple[str | int, ...], notes: list[Note]) -> list[Message]:
    """The messages in a JSON array at this place; what cannot be read is noted."""
    if type(values) is not list:
        notes.append(Note(AGUI_MESSAGE_DROPPED, pointer(*at), "expected an array of messages"))
        return []
    messages = []
    for index, value in enumerate(values):
        here = (*at, index)
        message = _typed(value) or _repaired(value, here, notes)
        if message is not None:
            _note_unknown(message, value, here, notes)
            if isinstance(message, ToolMessage) and not message.error and (failure := find_failure(value)) is not None:
                message.metadata = mark_result(message.metadata, failure)
            if isinstance(message, UserMessage | ToolMessage) and type(message.content) is list:
                message.content = upgraded_parts(message.content, (*here, "content"), notes)
            messages.append(message)
    return messages


def mark_result(metadata: dict[str, Any] | UnsetType, failure: Failure) -> dict[str, Any]:
    """The metadata that says, under our key, how a tool result ended; what else is there stays."""
    known = {} if metadata is UNSET else metadata
    ours = known.get(KEY)
    marks = dict(ours) if type(ours) is dict else {}
    marks["in_doubt" if failure.status == "unknown" else "is_error"] = True
    if failure.status in ("cancelled", "timeout"):
        marks.setdefault("facts", {"status": failure.status})
    return {**known, KEY: marks}


_HOW_ENDED: dict[str, CallStatus] = {"failed": "error", "cancelled": "cancelled"}


def mark_status(metadata: dict[str, Any] | UnsetType, status: str | UnsetType) -> dict[str, Any] | UnsetType:
    """The metadata of a tool result whose event has this status, for which AG-UI has no place."""
    if status is UNSET or status == "completed":
        return metadata
    return mark_result(metadata, Failure(_HOW_ENDED.get(status, "unknown"), None))


def tool_of(message: ToolMessage) -> str | None:
    """The tool that a result names, where it does."""
    return message.name or None


def is_marked_in_doubt(metadata: dict[str, Any] | UnsetType) -> bool:
    """Whether metadata says, under our key, that nobody knows how a tool result ended."""
    ours = None if metadata is UNSET else metadata.get(KEY)
    return type(ours) is dict and ours.get("in_doubt") is True


def is_marked_failed(metadata: dict[str, Any]) -> bool:
    """Whether metadata says, under our key or as libraries do, that a tool result is an error."""
    ours = metadata.get(KEY)
    if type(ours) is dict and ours.get("is_error") is True:
        return True
    return find_failure_inside(metadata) is not None


def upgraded_parts(parts: list[Part], at: tuple[str | int, ...], notes: list[Note]) -> list[Part]:
    """The parts, with 0.x `binary` parts as media parts; the same list when there are none."""
    if all(part.get("type") != "binary" for part in parts):
        return parts
    # Producers that speak both versions send the same attachment twice.
    present = {_identity(part) for part in parts}
    modern = []
    for index, part in enumerate(parts):
        upgraded = _upgraded(part) if part.get("type") == "binary" else None
        if upgraded is None:
            modern.append(part)
            continue
        notes.append(Note(BINARY_PART_UPGRADED, pointer(*at, index), f"read as a part of kind {upgraded['type']}"))
        if _identity(upgraded) not in present:
            modern.append(upgraded)
    return modern


def _upgraded(part: Part) -> Part | None:
    mime_type = part.get("mimeType")
    if type(mime_type) is not str:
        return None
    family = mime_type.partition("/")[0]
    upgraded: Part = {"type": family if family in ("image", "audio", "video") else "document"}
    for kind, key in (("data", "data"), ("url", "url"), ("file", "id")):
        value = part.get(key)
        if type(value) is str and value:
            upgraded["source"] = {"type": kind, "value": value, "mimeType": mime_type}
            filename = part.get("filename")
            if type(filename) is str and filename:
                upgraded["metadata"] = {"filename": filename}
            return upgraded
    return None


def _identity(part: Part) -> tuple[str, ...] | None:
    """What identifies a media part; None for anything else."""
    source, metadata = part.get("source"), part.get("metadata")
    if type(source) is not dict:
        return None
    filename = metadata.get("filename") if type(metadata) is dict else None
    marks = (part.get("type"), source.get("type"), source.get("value"), source.get("mimeType"), filename)
    return tuple([mark if type(mark) is str else "" for mark in marks])


def _note_unknown(message: Message, value: dict[str, Any], at: tuple[str | int, ...], notes: list[Note]) -> None:
    """Note what a message, or a call in it, has beyond the fields of its kind."""
    kind = type(message)
    unknown = [(key, item, at) for key, item in value.items() if key not in kind.__struct_encode_fields__]
    calls = value.get("toolCalls") if kind is AssistantMessage else None
    for index, call in enumerate(calls if type(calls) is list else ()):
        if type(call) is dict:
            here = (*at, "toolCalls", index)
            unknown += [(key, item, here) for key, item in call.items() if key not in ToolCall.__struct_encode_fields__]
    for key, item, here in unknown:
        if key == "role":
            continue
        # An assistant's message may hold calls of another protocol there; any other one, where the name says so.
        heavy = type(item) in (dict, list) and item and (kind is AssistantMessage or _OF_CALLS.search(key) is not None)
        text = f"a property {quoted(key)} that such messages do not have was left out"
        notes.append(Note(AGUI_PROPERTY_UNKNOWN, pointer(*here, key), text, "serious" if heavy else None))


def _typed(value: Any) -> Message | None:
    try:
        message: Message = msgspec.convert(value, Message)
    except msgspec.ValidationError:
        return None
    return message


def _repaired(value: Any, at: tuple[str | int, ...], notes: list[Note]) -> Message | None:
    """The message after the usual repairs: nulls, no id, content and arguments that are not text."""
    if type(value) is not dict:
        notes.append(Note(AGUI_MESSAGE_DROPPED, pointer(*at), "expected an object"))
        return None
    repaired = {key: item for key, item in value.items() if item is not None}
    role = repaired.get("role")
    if type(repaired.get("id")) is not str:
        repaired["id"] = f"seatrial-message{pointer(*at).replace('/', '-')}"
    content = repaired.get("content", "")
    if role == "activity":
        repaired["content"] = content if type(content) is dict else {"value": content}
    elif type(content) is list and role in ("user", "tool"):
        repaired["content"] = [part for part in content if type(part) is dict]
    elif "content" in repaired or role != "assistant":
        repaired["content"] = _text(content)
    calls = repaired.get("toolCalls")
    if type(calls) is list:
        repaired["toolCalls"] = [call for call in map(_repaired_call, calls) if call is not None]
    for key in ("name", "error", "encryptedValue", "subagentRunId"):
        if key in repaired and type(repaired[key]) is not str:
            del repaired[key]
    if type(repaired.get("metadata", {})) is not dict:
        del repaired["metadata"]
    message = _typed(repaired)
    if message is None:
        notes.append(Note(AGUI_MESSAGE_DROPPED, pointer(*at), f"role {quoted(role)} with what came is no message"))
    elif type(calls) is list and (nameless := len(calls) - len(repaired["toolCalls"])):
        text = f"dropped {nameless} tool call(s) without a name"
        notes.append(Note(AGUI_MESSAGE_REPAIRED, pointer(*at), text, "serious"))
    else:
        notes.append(Note(AGUI_MESSAGE_REPAIRED, pointer(*at), "some of its fields were null, missing or misshapen"))
    return message


def _repaired_call(call: Any) -> dict[str, Any] | None:
    function = call.get("function") if type(call) is dict else None
    if type(function) is not dict or type(function.get("name")) is not str:
        return None
    kept = {key: call[key] for key, kind in _CALL_FIELDS.items() if type(call.get(key)) is kind}
    call_id = call.get("id")
    arguments = _text(function.get("arguments", ""))
    return {
        **kept,
        "id": call_id if type(call_id) is str else "",
        "function": {"name": function["name"], "arguments": arguments},
    }


_OF_CALLS = re.compile("call|tool|function|invocation|action|step", re.IGNORECASE)
_CALL_FIELDS = {"encryptedValue": str, "metadata": dict}


def _text(value: Any) -> str:
    """Text as it is, text parts joined, anything else as JSON."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if type(value) is list:
        items = [part.get("text") if type(part) is dict else part for part in value]
        texts = [item for item in items if type(item) is str]
        if len(texts) == len(value):
            return "".join(texts)
    try:
        return wire.encode(value).decode()
    except SeatrialError:
        return ""
