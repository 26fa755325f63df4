"""Tools and their registry (transcript.md 1.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seatrial.transcript import TextBlock
from seatrial.transcript.tool import (
    AgentTool,
    CancelSignal,
    ExecutionMode,
    ToolHistoryPolicy,
    ToolIdentityPolicy,
    ToolRegistry,
    ToolResult,
    ToolUpdateSink,
)


class Named(AgentTool):
    """The least that a tool must say."""

    description = "Does nothing."

    def __init__(self, name: str, text: str = "") -> None:
        self._name = name
        self.text = text

    @property
    def name(self) -> str:
        return self._name

    def parameters_schema(self) -> dict[str, Any]:
        return {"type": "object"}

    async def execute(self, call_id: str, arguments: Any, signal: CancelSignal, update: ToolUpdateSink) -> ToolResult:
        return ToolResult.text(self.text)


class Pinned(Named):
    history_policy = ToolHistoryPolicy(dedup_arg="path", pins_active_plan=True)
    identity_policy = ToolIdentityPolicy(operation_arg="action")


def test_execution_modes_have_their_wire_names() -> None:
    assert [mode.value for mode in ExecutionMode] == ["parallel", "sequential"]


def test_a_tool_that_says_nothing_else_has_the_defaults() -> None:
    tool = Named("noop")
    assert tool.requires_exclusive_sandbox is False
    assert tool.max_result_chars is None
    assert tool.history_policy == ToolHistoryPolicy(None, None, False, False)
    assert tool.identity_policy == ToolIdentityPolicy(None, None, None)
    assert tool.aborts_siblings_on_error is False
    assert tool.counts_toward_tool_call_limit is True
    assert tool.parallel_safe_per_turn is False
    assert tool.counts_toward_termination_vote is True
    assert tool.prepare_arguments({"a": 1}) == {"a": 1}
    assert tool.validate({"a": 1}) is None


def test_a_tool_must_have_a_name_a_description_a_schema_and_an_execution() -> None:
    assert AgentTool.__abstractmethods__ == {"name", "description", "parameters_schema", "execute"}
    with pytest.raises(TypeError):
        AgentTool()  # type: ignore[abstract]  # the point of the test


def test_registering_a_name_again_replaces_the_tool_and_keeps_its_place() -> None:
    registry = ToolRegistry([Named("a", "old"), Named("b")])
    registry.register(Named("a", "new"))
    assert registry.names() == ["a", "b"]
    replaced = registry.get("a")
    assert isinstance(replaced, Named)
    assert replaced.text == "new"
    assert len(registry) == 2


def test_with_tool_leaves_the_registry_as_it_was() -> None:
    empty = ToolRegistry()
    one = empty.with_tool(Named("a"))
    assert empty.is_empty()
    assert [tool.name for tool in one] == ["a"]
    assert not one.is_empty()


def test_policies_are_looked_up_by_name_and_default_for_unknown_ones() -> None:
    registry = ToolRegistry([Pinned("plan"), Named("other")])
    assert registry.history_policy("plan").pins_active_plan
    assert registry.identity_policy("plan").operation_arg == "action"
    assert registry.history_policy("nobody") == ToolHistoryPolicy()
    assert registry.identity_policy("nobody") == ToolIdentityPolicy()
    assert list(registry.identity_policies()) == ["plan", "other"]
    assert registry.get("nobody") is None


@pytest.mark.parametrize(
    ("result", "json"),
    [
        (ToolResult.text("ok"), b'{"content":[{"type":"text","text":"ok"}]}'),
        (ToolResult.terminal("done"), b'{"content":[{"type":"text","text":"done"}],"terminate":true}'),
        (ToolResult.error("no"), b'{"content":[{"type":"text","text":"no"}],"is_error":true}'),
        (
            ToolResult.argument_validation_error("search", "q is missing"),
            b'{"content":[{"type":"text","text":"q is missing"}],"is_error":true,"details":'
            b'{"kind":"tool_argument_validation","recoverable":true,"display_hidden":true,"tool":"search"}}',
        ),
        (ToolResult([], narration="n"), b'{"content":[],"narration":"n"}'),
    ],
)
def test_results_are_written_without_defaults_and_read_back(result: ToolResult, json: bytes) -> None:
    assert msgspec.json.encode(result) == json
    assert msgspec.json.decode(json, type=ToolResult) == result


def test_content_is_required() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b"{}", type=ToolResult)


def test_narration_is_trimmed_and_a_blank_one_ignored() -> None:
    result = ToolResult.text("ok").with_narration("  Ran `ls`. \n")
    assert result == ToolResult([TextBlock("ok")], narration="Ran `ls`.")
    assert result.with_narration(" \n") == result
    assert ToolResult.text("ok").narration is None
