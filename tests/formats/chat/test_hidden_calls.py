"""What may hold a call, and what only repeats one or says which tools there are."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.formats.chat.hidden_calls import (
    KnownCalls,
    calls_in_arguments,
    calls_in_metadata,
    may_hold_call,
    may_hold_call_under,
)
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


@pytest.mark.parametrize("key", ["citations", "provider_specific_fields", "usage"])
def test_what_is_written_like_a_call_is_found_under_a_key_that_holds_none_otherwise(key: str) -> None:
    call = {"tool_calls": [{"id": "c9", "function": {"name": "pay", "arguments": "{}"}}]}
    for value in (call, [call], {"inside": [call]}):
        assert may_hold_call_under(key, value)
        assert may_hold_call("", {key: value})
    data: list[Any] = [{"name": "Ada", "input": "x"}, [{"type": "url_citation"}], {"server_tool_use": {"n": 1}}]
    assert not any(may_hold_call_under(key, value) for value in data)


def test_calls_in_the_arguments_of_a_call_are_noted_unless_they_are_listed_as_well() -> None:
    inside = {"recipient_name": "functions.pay", "parameters": {"id": 7}}
    batch = ("multi_tool_use.parallel", {"tool_uses": [inside]})
    (note,) = calls_in_arguments([("look", {}), batch], "steps")
    assert (note.code, note.pointer) == ("calls_in_arguments", "/steps/1/arguments/tool_uses")
    assert calls_in_arguments([batch, ("pay", {"id": 7})]) == []
    assert calls_in_arguments([batch, ("pay", {"id": 8})])
    assert calls_in_arguments([("plan", {"calls": [{"name": "Ada"}], "tool_calls": "none", "invocations": 3})]) == []
