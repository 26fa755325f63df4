"""What may hold a call, and what only repeats one or says which tools there are."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.formats.chat.hidden_calls import KnownCalls, calls_in_metadata, may_hold_call
from seatrial.transcript import AssistantMessage, StopReason, ToolCall

FIND = ToolCall("c1", "find", {"a": 1, "b": 2})
KNOWN = KnownCalls({"c1": "find"}, [FIND])
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "x", "args": {"id": 7}},
        {"name": "x", "args": {}},
        {"name": "x", "arguments": "{}"},
        {"name": "x", "input": {"id": 7}, "output": "ok"},
        {"name": "x", "parameters": {"id": 7}},
        {"function": {"name": "x", "arguments": "{}"}},
        {"tool": "x"},
        {"tool_name": "x"},
    ],
)
def test_a_tool_with_arguments_under_the_key_for_definitions_is_a_call(tool: dict[str, Any]) -> None:
    note = calls_in_metadata("tools", [tool])
    assert note is not None
    assert note.serious
    assert calls_in_metadata("tools", [tool], messages=[AssistantMessage([FIND], StopReason.TOOL_USE)]) is not None


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "x", "description": "d", "parameters": SCHEMA}],
        [{"name": "x", "parameters": SCHEMA}],
        [{"name": "x", "parameters": {}}],
        [{"name": "x", "description": "d", "input_schema": SCHEMA}],
        [{"name": "x", "description": "d", "args": {"id": {"title": "Id", "type": "integer"}}}],
        [{"name": "x", "description": "d", "args": {}}],
        [{"type": "function", "function": {"name": "x", "parameters": SCHEMA}}],
        [{"type": "mcp", "server_label": "s", "allowed_tools": ["x"]}],
        ["x"],
        {"x": {"description": "d", "inputSchema": SCHEMA}},
    ],
)
def test_a_definition_of_a_tool_is_no_call(tools: Any) -> None:
    assert calls_in_metadata("tools", tools) is None


def test_what_repeats_a_known_call_by_its_name_and_arguments_adds_nothing() -> None:
    assert not may_hold_call("tool_calls", [{"name": "find", "args": {"b": 2, "a": 1}}], KNOWN)
    assert not may_hold_call("tool_calls", [{"name": "find", "arguments": '{"b": 2, "a": 1}'}], KNOWN)
    assert may_hold_call("tool_calls", [{"name": "find", "args": {"b": 2, "a": 2}}], KNOWN)
    assert may_hold_call("tool_calls", [{"name": "delete", "args": {"b": 2, "a": 1}}], KNOWN)


def test_a_fragment_belongs_to_a_call_only_where_there_is_one() -> None:
    fragment = {"tool_calls": [{"index": 0, "id": None, "function": {"name": None, "arguments": '{"a'}}]}
    assert not may_hold_call("", fragment, KNOWN)
    assert may_hold_call("", fragment)


def test_tools_with_their_schemas_are_no_calls_under_any_name() -> None:
    assert not may_hold_call("actions", [{"name": "x", "description": "d", "parameters": SCHEMA}])
    assert may_hold_call("actions", [{"name": "x", "description": "deleted it"}])
    assert may_hold_call("tools_used", ["x"])
