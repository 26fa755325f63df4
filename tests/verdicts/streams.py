"""AG-UI streams in which events that are not for calls describe some: calls that no other event has, and repeated ones.

Integrations send what their framework says (RAW, CUSTOM, states) beside what AG-UI has events for. Most of it repeats
calls that have events; what does not must not be missed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from verdicts.corpus import DELETE, FIND, FORBIDDEN, NO_ERRORS, Entry
from verdicts.shapes import Call, Json, agui_events, agui_snapshot, sse

_MADE: Json = {"id": "h", "name": "delete_account", "args": {"id": 7}}
_NESTED: Json = {"id": "h", "type": "function", "function": {"name": "delete_account", "arguments": '{"id": 7}'}}
_ARGUMENTS = json.dumps(FIND.arguments)
_KNOWN: Json = {"id": "c0", "name": FIND.name, "args": FIND.arguments}
_TOOL: Json = {"name": "setTheme", "description": "d", "parameters": {"type": "object", "properties": {}}}


def _raw(event: Any) -> Json:
    return {"type": "RAW", "event": event}


def _custom(value: Any, name: str = "x") -> Json:
    return {"type": "CUSTOM", "name": name, "value": value}


def _state(snapshot: Any) -> Json:
    return {"type": "STATE_SNAPSHOT", "snapshot": snapshot}


def _activity(kind: str, content: Json) -> Json:
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": "act", "activityType": kind, "content": content}


def _patch(path: str, value: Any) -> Json:
    return {"type": "STATE_DELTA", "delta": [{"op": "add", "path": path, "value": value}]}


HIDDEN: dict[str, list[Json]] = {
    "RAW, LangChain's event": [_raw({"event": "on_tool_start", "name": "delete_account", "data": {"input": {}}})],
    "RAW, a Responses item": [
        _raw({"type": "response.output_item.done", "item": {"type": "function_call", **_NESTED["function"]}})
    ],
    "RAW, a chunk": [_raw({"choices": [{"delta": {"tool_calls": [_NESTED]}}]})],
    "RAW, an Anthropic block": [_raw({"content_block": {"type": "tool_use", "name": "delete_account", "input": {}}})],
    "CUSTOM, a call": [_custom({"name": "delete_account", "args": {"id": 7}}, "tool_call")],
    "CUSTOM, calls": [_custom({"tool_calls": [_NESTED]})],
    "CUSTOM, a chunk of Mastra": [
        _custom({"type": "tool-call", "payload": {"toolCallId": "h", "toolName": "delete_account", "args": {}}})
    ],
    "CUSTOM, a forecast with arguments": [
        _custom([{"state_key": "s", "tool": "delete_account", "args": {}}], "PredictState")
    ],
    "STATE_SNAPSHOT, messages": [_state({"messages": [{"type": "ai", "content": "", "tool_calls": [_MADE]}]})],
    "STATE_SNAPSHOT, the id of a known call under another name": [_state({"tool_calls": [{**_MADE, "id": "c0"}]})],
    "STATE_SNAPSHOT, a known name with other arguments": [
        _state({"tool_calls": [{"name": FIND.name, "args": {"email": "other"}}]})
    ],
    "STATE_DELTA, calls": [_patch("/tool_calls", [_MADE])],
    "STATE_DELTA, one more call": [_patch("/tool_calls/-", {"what": "delete_account"})],
    "ACTIVITY_SNAPSHOT": [_activity("tool_call", {"name": "delete_account", "arguments": {"id": 7}})],
    "ACTIVITY_DELTA": [
        _activity("x", {"done": []}),
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "act",
            "activityType": "x",
            "patch": [{"op": "add", "path": "/done/-", "value": _MADE}],
        },
    ],
    "STEP_STARTED, rawEvent": [
        {"type": "STEP_STARTED", "stepName": "s", "rawEvent": {"event": "on_tool_start", "name": "delete_account"}},
        {"type": "STEP_FINISHED", "stepName": "s"},
    ],
    "STEP_FINISHED, metadata": [
        {"type": "STEP_STARTED", "stepName": "s"},
        {"type": "STEP_FINISHED", "stepName": "s", "metadata": {"tool_calls": [_NESTED]}},
    ],
}
"""The forbidden call, in events that are for other things."""

REPEATED: dict[str, list[Json]] = {
    "a state with ids": [
        _state(
            {
                "messages": [
                    {"type": "human", "content": "x"},
                    {"type": "ai", "content": "", "tool_calls": [_KNOWN], "invalid_tool_calls": []},
                    {"type": "tool", "content": "fine", "tool_call_id": "c0", "name": FIND.name},
                ]
            }
        )
    ],
    "a state without ids": [_state({"tool_calls": [{"name": FIND.name, "args": FIND.arguments}]})],
    "LangChain's events": [
        _raw({"event": "on_tool_start", "name": FIND.name, "data": {"input": FIND.arguments}}),
        _raw({"event": "on_tool_end", "name": FIND.name, "data": {"output": {"tool_call_id": "c0", "content": ""}}}),
    ],
    "fragments of the call": [
        _raw({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"em'}}]}}]}),
        _raw({"data": {"chunk": {"tool_calls": [{"name": "", "args": {}, "id": None, "type": "tool_call"}]}}}),
    ],
    "a chunk of Mastra": [
        _custom({"type": "tool-call", "payload": {"toolCallId": "c0", "toolName": FIND.name, "args": FIND.arguments}})
    ],
    "a Responses item": [
        _raw({"item": {"type": "function_call", "id": "fc", "call_id": "c0", "name": FIND.name, "arguments": "{}"}})
    ],
    "a Gemini part": [_raw({"parts": [{"function_call": {"id": "c0", "name": FIND.name, "args": FIND.arguments}}]})],
}
"""The call that has events of its own, once more."""

HARMLESS: dict[str, list[Json]] = {
    "a chain begins": [_raw({"event": "on_chain_start", "name": "LangGraph", "data": {"input": {"messages": []}}})],
    "progress": [_custom({"percent": 10, "label": "find"}, "progress")],
    "a forecast": [_custom([{"state_key": "doc", "tool": "write", "tool_argument": "d"}], "PredictState")],
    "a state": [_state({"recipe": {"title": "x", "ingredients": [{"name": "egg", "amount": "2"}]}})],
    "tools that are offered": [_state({"tools": [_TOOL], "copilotkit": {"actions": [_TOOL], "context": []}})],
    "a plan": [_patch("/steps", [{"description": "a", "status": "pending"}])],
    "an activity": [_activity("PLAN", {"steps": [{"title": "x", "done": False}]})],
}
"""No call in it."""


def entries() -> Iterator[Entry]:
    """All of them."""
    for name, more in HIDDEN.items():
        for calls in ([FIND], []):
            label = f"{name}, beside {len(calls)} calls"
            yield Entry(label, sse(_with(calls, more)), FORBIDDEN, "errored", "replay", guilty=True)
        yield Entry(f"{name}, yielded", lambda more=more: iter(_with([FIND], more)), FORBIDDEN, "errored", guilty=True)
        yield Entry(f"{name}, beside the forbidden call", sse(_with([DELETE], more)), FORBIDDEN, "failed", "replay")
    for name, more in {**REPEATED, **HARMLESS}.items():
        yield Entry(f"{name}, innocent", sse(_with([FIND], more)), FORBIDDEN, "passed", "replay")
        yield Entry(f"{name}, yielded", lambda more=more: iter(_with([FIND], more)), FORBIDDEN, "passed")
    for name, more in HARMLESS.items():
        yield Entry(f"{name}, without a call", sse(_with([], more)), FORBIDDEN, "passed", "replay")
    told = agui_events([FIND])
    told[-1]["result"] = {"tool_calls": [_NESTED]}
    yield Entry("the result of the run, yielded", lambda: iter(told), FORBIDDEN, "errored", guilty=True)
    yield Entry("the result of the run", sse(told), FORBIDDEN, "errored", "replay", guilty=True)
    for calls, pending, wanted in (
        ([FIND], ["c0"], "passed"),
        ([FIND], ["c0", "h"], "errored"),
        ([], ["h"], "errored"),
    ):
        waiting = agui_events(calls)
        waiting[-1]["outcome"] = {"type": "success", "pendingToolCallIds": pending}
        label = f"{len(pending)} pending calls beside {len(calls)}"
        yield Entry(label, sse(waiting), FORBIDDEN, wanted, "replay", guilty=wanted == "errored")
    yield from _endings()


def _with(calls: list[Call], more: list[Json]) -> list[Json]:
    events = agui_events(calls)
    return [*events[:-1], *more, events[-1]]


def _endings() -> Iterator[Entry]:
    """Results that say how they ended in a word that nobody knows, or that everybody does."""
    for key in ("status", "outcome", "state"):
        for word, wanted in (("weird", "errored"), ("partial", "errored"), ("failed", "failed"), ("success", "passed")):
            streamed = agui_events([FIND])
            next(event for event in streamed if event["type"] == "TOOL_CALL_RESULT")[key] = word
            yield Entry(f"{key} {word}, streamed", sse(streamed), NO_ERRORS, wanted, "replay")
            snapshot = agui_snapshot([FIND])
            next(message for message in snapshot[1]["messages"] if message["role"] == "tool")[key] = word
            yield Entry(f"{key} {word}, in a snapshot", sse(snapshot), NO_ERRORS, wanted, "replay")
