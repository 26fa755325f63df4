"""Streams that AG-UI's client accepts, with every type of event and field, and what one wrong field makes of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]


class Mutant(NamedTuple):
    """A stream in which one thing was changed."""

    name: str
    """Which stream, where in it, and what was done."""
    events: list[Any]


_STARTED: Json = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
_FINISHED: Json = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
_USAGE: Json = {
    "provider": "p",
    "model": "m",
    "inputTokens": 1,
    "outputTokens": 2,
    "totalTokens": 3,
    "reasoningTokens": 4,
    "cachedInputTokens": 5,
    "cacheWriteInputTokens": 6,
}
_PARTS: list[Json] = [
    {"type": "text", "text": "see", "id": "p1", "metadata": {"k": 1}},
    {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}, "id": "p2"},
    {"type": "audio", "source": {"type": "url", "value": "http://x/a", "mimeType": "audio/mp3"}, "metadata": "any"},
    {"type": "video", "source": {"type": "file", "value": "f", "provider": "p", "mimeType": "video/mp4"}},
    {"type": "document", "source": {"type": "url", "value": "http://x/d"}},
]
_MESSAGES: list[Json] = [
    {
        "id": "d",
        "role": "developer",
        "content": "be brief",
        "name": "n",
        "encryptedValue": "e",
        "metadata": {"k": None},
    },
    {"id": "s", "role": "system", "content": "be kind", "name": "n", "subagentRunId": "sub"},
    {"id": "u", "role": "user", "content": "hi", "name": "n", "metadata": {}},
    {"id": "v", "role": "user", "content": _PARTS},
    {
        "id": "a",
        "role": "assistant",
        "content": "ok",
        "name": "n",
        "encryptedValue": "e",
        "toolCalls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "f", "arguments": "{}"},
                "encryptedValue": "e",
                "metadata": {"k": 1},
            }
        ],
    },
    {"id": "o", "role": "tool", "toolCallId": "c1", "content": "done", "error": "no", "encryptedValue": "e"},
    {"id": "p", "role": "tool", "toolCallId": "c1", "content": [{"type": "text", "text": "x"}], "metadata": {}},
    {"id": "y", "role": "activity", "activityType": "PLAN", "content": {"n": 1}, "metadata": {"k": 1}},
    {"id": "z", "role": "reasoning", "content": "hm", "encryptedValue": "e", "metadata": {}},
]
_BASE: Json = {"timestamp": 1700000000000, "rawEvent": {"x": 1}, "metadata": {"k": None}}

STREAMS: dict[str, list[Json]] = {
    "text": [
        {**_STARTED, **_BASE, "protocolVersion": "1.0", "parentRunId": "before"},
        {"type": "STEP_STARTED", "stepName": "plan", **_BASE},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "name": "n", **_BASE},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hel", **_BASE},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "lo"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", **_BASE},
        {"type": "STEP_FINISHED", "stepName": "plan", **_BASE},
        {**_FINISHED, **_BASE, "result": {"a": 1}, "usage": [_USAGE]},
    ],
    "calls": [
        _STARTED,
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "m", **_BASE},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"q":1}', **_BASE},
        {"type": "TOOL_CALL_END", "toolCallId": "c", **_BASE},
        {"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c", "content": "ok", "role": "tool", **_BASE},
        {"type": "TOOL_CALL_RESULT", "messageId": "r2", "toolCallId": "c", "content": _PARTS},
        {**_FINISHED, "outcome": {"type": "success", "pendingToolCallIds": ["c", "d"]}},
    ],
    "chunks": [
        _STARTED,
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "name": "n", "delta": "a", **_BASE},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "b"},
        {
            "type": "TOOL_CALL_CHUNK",
            "toolCallId": "c",
            "toolCallName": "f",
            "parentMessageId": "m",
            "delta": "{",
            **_BASE,
        },
        {"type": "TOOL_CALL_CHUNK", "delta": "}"},
        {"type": "REASONING_MESSAGE_CHUNK", "messageId": "x", "delta": "hm", **_BASE},
        {"type": "REASONING_MESSAGE_CHUNK", "messageId": "x", "delta": "m"},
        _FINISHED,
    ],
    "reasoning": [
        _STARTED,
        {"type": "REASONING_START", "messageId": "s", **_BASE},
        {"type": "REASONING_MESSAGE_START", "messageId": "x", "role": "reasoning", **_BASE},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "x", "delta": "hm", **_BASE},
        {"type": "REASONING_MESSAGE_END", "messageId": "x", **_BASE},
        {"type": "REASONING_END", "messageId": "s", **_BASE},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "x", "encryptedValue": "e", **_BASE},
        _FINISHED,
    ],
    "thinking": [
        _STARTED,
        {"type": "THINKING_START", "title": "Plan", **_BASE},
        {"type": "THINKING_TEXT_MESSAGE_START", **_BASE},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm", **_BASE},
        {"type": "THINKING_TEXT_MESSAGE_END", **_BASE},
        {"type": "THINKING_END", **_BASE},
        _FINISHED,
    ],
    "state": [
        _STARTED,
        {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}, **_BASE},
        {
            "type": "STATE_DELTA",
            "delta": [
                {"op": "add", "path": "/a", "value": None},
                {"op": "replace", "path": "/n", "value": 2},
                {"op": "test", "path": "/n", "value": 2},
                {"op": "copy", "from": "/n", "path": "/b"},
                {"op": "move", "from": "/b", "path": "/c"},
                {"op": "remove", "path": "/c"},
            ],
            **_BASE,
        },
        {
            "type": "ACTIVITY_SNAPSHOT",
            "messageId": "y",
            "activityType": "P",
            "content": {"n": 1},
            "replace": True,
            **_BASE,
        },
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "y",
            "activityType": "P",
            "patch": [{"op": "replace", "path": "/n", "value": 2}],
            **_BASE,
        },
        {"type": "RAW", "event": {"any": 1}, "source": "s", **_BASE},
        {"type": "CUSTOM", "name": "n", "value": {"any": 1}, **_BASE},
        _FINISHED,
    ],
    "snapshot": [_STARTED, {"type": "MESSAGES_SNAPSHOT", "messages": _MESSAGES, **_BASE}, _FINISHED],
    "legacy parts": [
        _STARTED,
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [
                {
                    "id": "u",
                    "role": "user",
                    "content": [
                        {"type": "binary", "mimeType": "image/png", "data": "AA==", "filename": "f.png"},
                        {"type": "binary", "mimeType": "text/plain", "url": "http://x/t"},
                        {"type": "image", "source": {"type": "url", "value": "u"}, "metadata": None},
                    ],
                }
            ],
        },
        _FINISHED,
    ],
    "input": [
        {
            **_STARTED,
            "input": {
                "threadId": "t",
                "runId": "r",
                "protocolVersion": "1.0",
                "parentRunId": "q",
                "state": {"n": 1},
                "messages": [_MESSAGES[2], _MESSAGES[4], _MESSAGES[5]],
                "tools": [{"name": "f", "description": "d", "parameters": {"type": "object"}, "metadata": {"k": 1}}],
                "context": [{"description": "d", "value": "v"}],
                "forwardedProps": {"a": 1},
                "resume": [{"interruptId": "i", "status": "resolved", "payload": {"a": 1}, "metadata": {"k": 1}}],
            },
        },
        _FINISHED,
    ],
    "subagents": [
        _STARTED,
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "description": "d", **_BASE},
        {
            "type": "SUBAGENT_STARTED",
            "subagentRunId": "s2",
            "name": "n",
            "parentSubagentRunId": "s",
            "parentToolCallId": "c",
            "parentMessageId": "m",
        },
        {"type": "STEP_STARTED", "stepName": "p", "subagentRunId": "s"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": "s"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x", "subagentRunId": "s"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "s"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "subagentRunId": "s"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}", "subagentRunId": "s"},
        {"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": "s"},
        {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c", "content": "ok", "subagentRunId": "s"},
        {"type": "STEP_FINISHED", "stepName": "p", "subagentRunId": "s"},
        {
            "type": "SUBAGENT_FINISHED",
            "subagentRunId": "s2",
            "result": {"a": 1},
            "outcome": {"type": "success"},
            **_BASE,
        },
        {"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "m", "code": "c", **_BASE},
        _FINISHED,
    ],
    "suspended": [
        _STARTED,
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"},
        {
            "type": "SUBAGENT_FINISHED",
            "subagentRunId": "s",
            "outcome": {"type": "suspended", "interruptIds": ["i"]},
        },
        {
            **_FINISHED,
            "outcome": {
                "type": "interrupt",
                "interrupts": [
                    {
                        "id": "i",
                        "reason": "confirmation",
                        "message": "may I?",
                        "toolCallId": "c",
                        "responseSchema": {"type": "object"},
                        "expiresAt": "2030-01-01T00:00:00Z",
                        "metadata": {"k": 1},
                        "subagentRunId": "s",
                    }
                ],
            },
        },
    ],
    "cancelled": [_STARTED, {**_FINISHED, "outcome": {"type": "cancelled"}, "result": None}],
    "error": [_STARTED, {"type": "RUN_ERROR", "message": "boom", "code": "c", "usage": [_USAGE], **_BASE}],
}
"""Together they have every type and every field. None of them is cut off."""

_VALUES: dict[str, Any] = {
    "null": None,
    "empty text": "",
    "text": "robot",
    "negative": -1,
    "fraction": 1.5,
    "whole float": 2.0,
    "huge": 2**53,
    "list": [],
    "list of numbers": [5],
    "object": {},
    "object with a type": {"type": "robot", "role": "robot", "op": "robot"},
}
_OF_EVERY_EVENT = frozenset({"timestamp", "rawEvent", "metadata"})
_FEW = ("null", "text", "fraction", "huge")
"""Fields that every event has, and what is done to them: all of it would be most of the streams."""
_OPAQUE = frozenset({"rawEvent", "metadata", "state", "snapshot", "value", "payload", "parameters", "forwardedProps"})
"""Values that are anybody's: what is inside them is not changed."""


def mutants() -> Iterator[Mutant]:
    """Every stream with one field deleted, replaced or added, wherever there is one."""
    for name, events in STREAMS.items():
        for index, event in enumerate(events):
            for path in _paths(event, (index,)):
                label = f"{name} /{'/'.join(map(str, path))}"
                if len(path) > 1:
                    yield Mutant(f"{label} deleted", _changed(events, path, _delete))
                    yield Mutant(f"{label} repeated", _changed(events, path, _repeat))
                for what in _FEW if len(path) == 2 and path[1] in _OF_EVERY_EVENT else _VALUES:
                    yield Mutant(f"{label} = {what}", _changed(events, path, _set(_VALUES[what])))
                if isinstance(_at(events, path), dict):
                    for key in ("unknown", "subagentRunId", "toString"):
                        if key not in _at(events, path):
                            yield Mutant(f"{label} + {key}", _changed(events, (*path, key), _set("more")))
            yield Mutant(f"{name} /{index} dropped", events[:index] + events[index + 1 :])
            yield Mutant(f"{name} /{index} twice", [*events[: index + 1], *events[index:]])


def _paths(value: Any, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield at
    if at[-1] in _OPAQUE:
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*at, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _changed(events: list[Json], path: tuple[Any, ...], change: Any) -> list[Any]:
    # Only what is on the way is copied: there are thousands of streams.
    changed: list[Any] = list(events)
    holder: Any = changed
    for key in path[:-1]:
        holder[key] = copy.copy(holder[key])
        holder = holder[key]
    change(holder, path[-1])
    return changed


def _delete(holder: Any, key: Any) -> None:
    del holder[key]


def _repeat(holder: Any, key: Any) -> None:
    """The same element twice in a list; a field of an object has no second."""
    if isinstance(holder, list):
        holder.insert(key, holder[key])


def _set(value: Any) -> Any:
    def change(holder: Any, key: Any) -> None:
        holder[key] = value

    return change
