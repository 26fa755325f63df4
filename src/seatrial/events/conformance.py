"""What a client of AG-UI 1.0 accepts: the shape of each event, as `@ag-ui/client` 1.0.0 holds producers to it.

A client drops what it does not know, with a warning: types of events, properties, and kinds of messages, content parts,
patch operations and outcomes. A field that it does know and that is missing or malformed ends the stream. So an event
can be readable here, after repairs, and still be one that every client refuses; `refusal` says which.

The order of events is for `verify`. What is checked here is one event at a time, in the JSON as it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from seatrial.events.violation import quoted
from seatrial.transcript import pointer

FieldPath: TypeAlias = tuple[str | int, ...]


class ClientRefusal(NamedTuple):
    """Why a client ends the stream at an event."""

    pointer: str
    """Into the event."""
    message: str


class _Value(NamedTuple):
    """A value that is looked at as a whole."""

    fits: Callable[[Any], bool]
    expected: str


class _List(NamedTuple):
    item: _Shape
    at_least: int = 0


class _Object(NamedTuple):
    """An object; properties that are not listed are dropped by clients."""

    required: Mapping[str, _Shape]
    optional: Mapping[str, _Shape]


class _Tagged(NamedTuple):
    """One of several objects, which a text under `key` distinguishes. Clients drop an object with another tag."""

    key: str
    members: dict[str, _Object]


class _TextOr(NamedTuple):
    """Text, or a list."""

    otherwise: _List


_Shape: TypeAlias = "_Value | _List | _Object | _Tagged | _TextOr"

_SAFE = 2**53 - 1


def _is_integer(value: Any, least: int) -> bool:
    # JSON has one kind of number: 1.0 is an integer to a client.
    if type(value) is float:
        return value.is_integer() and least <= value <= _SAFE
    return type(value) is int and least <= value <= _SAFE


_POINTER = re.compile(r"(/([^/~]|~[01])*)*")

_TEXT = _Value(lambda value: type(value) is str, "text")
_ANYTHING = _Value(lambda value: True, "a value")
_NOT_NULL = _Value(lambda value: value is not None, "a value; what is absent is left out")
_OPEN = _Value(lambda value: type(value) is dict, "an object")
_TRUTH = _Value(lambda value: type(value) is bool, "true or false")
_MOMENT = _Value(lambda value: _is_integer(value, -_SAFE), "an integer of at most 2^53-1")
_COUNT = _Value(lambda value: _is_integer(value, 0), "an integer from 0 to 2^53-1")
_PATH = _Value(lambda value: type(value) is str and _POINTER.fullmatch(value) is not None, "a JSON Pointer")


def _one_of(*texts: str) -> _Value:
    return _Value(lambda value: type(value) is str and value in texts, " or ".join(map(quoted, texts)))


def _fields(text: str, shape: _Shape = _TEXT) -> dict[str, _Shape]:
    return dict.fromkeys(text.split(), shape)


_TEXT_ROLE = _one_of("developer", "system", "assistant", "user")
_METADATA = {"metadata": _OPEN}
_OWNER = _fields("subagentRunId")

_SOURCE = _Tagged(
    "type",
    {
        "data": _Object(_fields("value mimeType"), {}),
        "url": _Object(_fields("value"), _fields("mimeType")),
        "file": _Object(_fields("value"), _fields("provider mimeType")),
    },
)
_OF_PART = {"id": _TEXT, "metadata": _NOT_NULL}
_MEDIA = _Object({"source": _SOURCE}, _OF_PART)
_PARTS = _List(
    _Tagged(
        "type",
        {
            "text": _Object(_fields("text"), _OF_PART),
            **dict.fromkeys(("image", "audio", "video", "document"), _MEDIA),
        },
    )
)
_CONTENT = _TextOr(_PARTS)

_SETTING = _Object({"path": _PATH, "value": _ANYTHING}, {})
_MOVING = _Object({"from": _PATH, "path": _PATH}, {})
_PATCH = _List(
    _Tagged(
        "op",
        {
            **dict.fromkeys(("add", "replace", "test"), _SETTING),
            **dict.fromkeys(("move", "copy"), _MOVING),
            "remove": _Object({"path": _PATH}, {}),
        },
    )
)

_OF_MESSAGE = {**_OWNER, **_METADATA, **_fields("encryptedValue")}
_NAMED = {**_OF_MESSAGE, **_fields("name")}
_CALL = _Object(
    {"id": _TEXT, "type": _one_of("function"), "function": _Object(_fields("name arguments"), {})},
    {**_fields("encryptedValue"), **_METADATA},
)
_INSTRUCTION = _Object(_fields("id content"), _NAMED)
_MESSAGES = _List(
    _Tagged(
        "role",
        {
            "developer": _INSTRUCTION,
            "system": _INSTRUCTION,
            "assistant": _Object(_fields("id"), {**_NAMED, "content": _TEXT, "toolCalls": _List(_CALL)}),
            "user": _Object({"id": _TEXT, "content": _CONTENT}, _NAMED),
            "tool": _Object({"id": _TEXT, "toolCallId": _TEXT, "content": _CONTENT}, {**_OF_MESSAGE, "error": _TEXT}),
            "activity": _Object({"id": _TEXT, "activityType": _TEXT, "content": _OPEN}, {**_OWNER, **_METADATA}),
            "reasoning": _Object(_fields("id content"), _OF_MESSAGE),
        },
    )
)

_USAGE = _List(
    _Object(
        {},
        {
            **_fields("provider model"),
            **_fields("inputTokens outputTokens totalTokens reasoningTokens", _COUNT),
            **_fields("cachedInputTokens cacheWriteInputTokens", _COUNT),
        },
    )
)
_INTERRUPT = _Object(
    _fields("id reason"),
    {**_fields("message toolCallId expiresAt"), "responseSchema": _OPEN, **_METADATA, **_OWNER},
)
_RUN_OUTCOME = _Tagged(
    "type",
    {
        "success": _Object({}, {"pendingToolCallIds": _List(_TEXT)}),
        "interrupt": _Object({"interrupts": _List(_INTERRUPT, at_least=1)}, {}),
        "cancelled": _Object({}, {}),
    },
)
_SUBAGENT_OUTCOME = _Tagged(
    "type", {"success": _Object({}, {}), "suspended": _Object({}, {"interruptIds": _List(_TEXT)})}
)
_TOOL = _Object(_fields("name description"), {"parameters": _NOT_NULL, **_METADATA})
_ANSWER = _Object(
    {"interruptId": _TEXT, "status": _one_of("resolved", "cancelled")}, {"payload": _NOT_NULL, **_METADATA}
)
_INPUT = _Object(
    {**_fields("threadId runId"), "messages": _MESSAGES},
    {
        **_fields("protocolVersion parentRunId"),
        "state": _ANYTHING,
        "tools": _List(_TOOL),
        "context": _List(_Object(_fields("description value"), {})),
        "forwardedProps": _NOT_NULL,
        "resume": _List(_ANSWER),
    },
)

_OF_EVENT = {"timestamp": _MOMENT, "rawEvent": _NOT_NULL, **_METADATA}
_ATTRIBUTED = {**_OF_EVENT, **_OWNER}


def _event(required: Mapping[str, _Shape], optional: Mapping[str, _Shape] | None = None) -> _Object:
    return _Object(required, {**_ATTRIBUTED, **(optional or {})})


def _of_run(required: Mapping[str, _Shape], optional: Mapping[str, _Shape]) -> _Object:
    return _Object(required, {**_OF_EVENT, **optional})


_EVENTS: dict[str, _Object] = {
    "RUN_STARTED": _of_run(_fields("threadId runId"), {**_fields("protocolVersion parentRunId"), "input": _INPUT}),
    "RUN_FINISHED": _of_run(_fields("threadId runId"), {"result": _NOT_NULL, "outcome": _RUN_OUTCOME, "usage": _USAGE}),
    "RUN_ERROR": _of_run(_fields("message"), {"code": _TEXT, "usage": _USAGE}),
    "STEP_STARTED": _event(_fields("stepName")),
    "STEP_FINISHED": _event(_fields("stepName")),
    "TEXT_MESSAGE_START": _event(_fields("messageId"), {"role": _TEXT_ROLE, "name": _TEXT}),
    "TEXT_MESSAGE_CONTENT": _event(_fields("messageId delta")),
    "TEXT_MESSAGE_END": _event(_fields("messageId")),
    "TEXT_MESSAGE_CHUNK": _event({}, {**_fields("messageId delta name"), "role": _TEXT_ROLE}),
    "TOOL_CALL_START": _event(_fields("toolCallId toolCallName"), _fields("parentMessageId")),
    "TOOL_CALL_ARGS": _event(_fields("toolCallId delta")),
    "TOOL_CALL_END": _event(_fields("toolCallId")),
    "TOOL_CALL_CHUNK": _event({}, _fields("toolCallId toolCallName parentMessageId delta")),
    "TOOL_CALL_RESULT": _event(
        {"messageId": _TEXT, "toolCallId": _TEXT, "content": _CONTENT}, {"role": _one_of("tool")}
    ),
    "STATE_SNAPSHOT": _event({"snapshot": _ANYTHING}),
    "STATE_DELTA": _event({"delta": _PATCH}),
    "MESSAGES_SNAPSHOT": _of_run({"messages": _MESSAGES}, {}),
    "ACTIVITY_SNAPSHOT": _event({"messageId": _TEXT, "activityType": _TEXT, "content": _OPEN}, {"replace": _TRUTH}),
    "ACTIVITY_DELTA": _event({"messageId": _TEXT, "activityType": _TEXT, "patch": _PATCH}),
    "REASONING_START": _event(_fields("messageId")),
    "REASONING_END": _event(_fields("messageId")),
    "REASONING_MESSAGE_START": _event({"messageId": _TEXT, "role": _one_of("reasoning")}),
    "REASONING_MESSAGE_CONTENT": _event(_fields("messageId delta")),
    "REASONING_MESSAGE_END": _event(_fields("messageId")),
    "REASONING_MESSAGE_CHUNK": _event({}, _fields("messageId delta")),
    "REASONING_ENCRYPTED_VALUE": _event(
        {"subtype": _one_of("tool-call", "message"), "entityId": _TEXT, "encryptedValue": _TEXT}
    ),
    "SUBAGENT_STARTED": _of_run(
        _fields("subagentRunId name"),
        _fields("description parentSubagentRunId parentToolCallId parentMessageId"),
    ),
    "SUBAGENT_FINISHED": _of_run(_fields("subagentRunId"), {"result": _NOT_NULL, "outcome": _SUBAGENT_OUTCOME}),
    "SUBAGENT_ERROR": _of_run(_fields("subagentRunId message"), _fields("code")),
    "RAW": _event({"event": _ANYTHING}, _fields("source")),
    "CUSTOM": _event({"name": _TEXT, "value": _ANYTHING}),
    # Retired types, which clients still translate. They make up the ids.
    "THINKING_START": _event({}),
    "THINKING_END": _event({}),
    "THINKING_TEXT_MESSAGE_START": _event({}),
    "THINKING_TEXT_MESSAGE_CONTENT": _event(_fields("delta")),
    "THINKING_TEXT_MESSAGE_END": _event({}),
}

# Where clients take null for absent, because producers sent it before 1.0: by type of event.
_NULL_IS_ABSENT: dict[str, tuple[str, ...]] = {
    "RUN_FINISHED": ("result", "outcome"),
    "SUBAGENT_FINISHED": ("result",),
    "TOOL_CALL_START": ("parentMessageId",),
    "TOOL_CALL_CHUNK": ("parentMessageId",),
}


def refusal(value: Any) -> ClientRefusal | None:
    """Why a client ends the stream at this event, or None."""
    if type(value) is not dict:
        return ClientRefusal("", "expected an object with a `type`")
    name = value.get("type")
    if type(name) is not str or not name:
        return ClientRefusal("/type", f"expected text that names a type of event, got {_shown(name)}")
    shape = _EVENTS.get(name)
    if shape is None:
        return None  # a client drops the event
    absent = [key for key in ("rawEvent", *_NULL_IS_ABSENT.get(name, ())) if value.get(key, ...) is None]
    if absent:
        value = {key: item for key, item in value.items() if key not in absent}
    if name in ("RUN_STARTED", "MESSAGES_SNAPSHOT"):
        value = _modern(value, name)
    return _wrong(value, shape, ())


def _wrong(value: Any, shape: _Shape, at: FieldPath) -> ClientRefusal | None:
    """The first part of a value that a client refuses, or None."""
    match shape:
        case _Value():
            return None if shape.fits(value) else _expected(shape.expected, value, at)
        case _TextOr():
            if type(value) is str:
                return None
            return _wrong(value, shape.otherwise, at) if type(value) is list else _expected("text or a list", value, at)
        case _List():
            if type(value) is not list:
                return _expected("a list", value, at)
            kept = [(index, item) for index, item in enumerate(value) if not _is_dropped(item, shape.item)]
            if len(kept) < shape.at_least:
                return ClientRefusal(pointer(*at), f"expected at least {shape.at_least} in the list")
            return next((wrong for index, item in kept if (wrong := _wrong(item, shape.item, (*at, index)))), None)
        case _Tagged():
            if type(value) is not dict:
                return _expected("an object", value, at)
            return _wrong(value, shape.members[value[shape.key]], at)
    if type(value) is not dict:
        return _expected("an object", value, at)
    for name, field in shape.required.items():
        if name not in value:
            return ClientRefusal(pointer(*at, name), "a required field is missing")
        if wrong := _wrong(value[name], field, (*at, name)):
            return wrong
    for name, field in shape.optional.items():
        if name in value and not _is_dropped(value[name], field) and (wrong := _wrong(value[name], field, (*at, name))):
            return wrong
    return None


def _is_dropped(value: Any, shape: _Shape) -> bool:
    """Whether clients leave a value out instead of looking at it: its kind, or that of a part it needs, is unknown."""
    if type(value) is not dict:
        return False
    if isinstance(shape, _Tagged):
        tag = value.get(shape.key)
        member = shape.members.get(tag) if type(tag) is str else None
        return member is None or _is_dropped(value, member)
    if isinstance(shape, _Object):
        return any(name in value and _is_dropped(value[name], field) for name, field in shape.required.items())
    return False


def _modern(event: dict[str, Any], name: str) -> Any:
    """The event after what clients translate in its messages and its input."""
    if name == "MESSAGES_SNAPSHOT":
        return _with_items(event, "messages", _modern_message)
    given = event.get("input")
    if type(given) is not dict:
        return event
    given = _without_null(given, "forwardedProps")
    given = _with_items(given, "tools", lambda tool: _without_null(tool, "parameters"))
    given = _with_items(given, "resume", lambda answer: _without_null(answer, "payload"))
    return {**event, "input": _with_items(given, "messages", _modern_message)}


def _modern_message(message: Any) -> Any:
    return _with_items(message, "content", _modern_part)


def _modern_part(part: Any) -> Any:
    if type(part) is not dict:
        return part
    if part.get("type") in ("image", "audio", "video", "document"):
        return _without_null(part, "metadata")
    if part.get("type") == "binary" and type(part.get("mimeType")) is str:
        for kind, key in (("data", "data"), ("url", "url")):
            # What JavaScript takes for true, lists and objects among it.
            if part.get(key) not in (None, False, 0, ""):
                source = {"type": kind, "value": part[key], "mimeType": part["mimeType"]}
                return {"type": "document", "source": source}
    return part


def _with_items(value: Any, key: str, changed: Callable[[Any], Any]) -> Any:
    if type(value) is not dict or type(value.get(key)) is not list:
        return value
    return {**value, key: [changed(item) for item in value[key]]}


def _without_null(value: Any, key: str) -> Any:
    if type(value) is not dict or value.get(key, ...) is not None:
        return value
    return {name: item for name, item in value.items() if name != key}


def _expected(what: str, value: Any, at: FieldPath) -> ClientRefusal:
    return ClientRefusal(pointer(*at), f"expected {what}, got {_shown(value)}")


def _shown(value: Any) -> str:
    return (
        {None: "null", True: "true", False: "false"}[value] if value is None or type(value) is bool else quoted(value)
    )
