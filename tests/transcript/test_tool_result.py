"""What a tool gives back (transcript.md 1.2, ToolResult)."""

from __future__ import annotations

import msgspec
import pytest

from seatrial.transcript import TextBlock
from seatrial.transcript.tool_result import ToolResult


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
