"""Formats that are recognised by name and refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial import formats
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response

DOCUMENTS: list[tuple[str, Any]] = [
    ("ATIF", {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a"}, "steps": []}),
    ("Inspect", {"version": 2, "status": "success", "eval": {}, "samples": [{"messages": [{"role": "user"}]}]}),
    ("Inspect", {"id": 1, "epoch": 1, "target": "", "messages": [{"role": "user", "content": "a"}]}),
    ("OTLP", {"resourceSpans": [{"scopeSpans": []}]}),
    ("OpenInference", [{"name": "llm", "attributes": {"openinference.span.kind": "LLM"}}]),
    ("ADK", {"eval_set_id": "e", "eval_cases": []}),
    ("OpenHands", [{"id": 1, "timestamp": "t", "source": "agent", "action": "run", "args": {"command": "rm"}}]),
    ("promptfoo", {"evalId": "e", "results": {}, "config": {}}),
    ("DeepEval", {"input": "a", "actual_output": "b", "tools_called": [{"name": "f"}]}),
    ("SWE-agent", {"trajectory": [], "history": [], "info": {}}),
    ("mini-swe-agent", {"info": {}, "messages": [{"role": "user", "content": "a"}], "trajectory_format": "1.1"}),
    ("AutoGen", {"messages": [{"source": "a", "models_usage": None, "type": "TextMessage"}], "stop_reason": "s"}),
    ("AutoGen", [{"source": "a", "models_usage": None, "type": "ToolCallRequestEvent", "content": [{"name": "f"}]}]),
    ("LlamaIndex", {"role": "assistant", "additional_kwargs": {}, "blocks": [{"block_type": "tool_call"}]}),
    ("Semantic Kernel", {"role": "assistant", "content_type": "message", "items": [{"content_type": "function_call"}]}),
    ("Letta", [{"id": "m", "message_type": "tool_call_message", "tool_call": {"name": "f"}}]),
    ("LangSmith", [{"id": "r", "run_type": "llm", "trace_id": "t", "dotted_order": "d", "inputs": {}}]),
]


@pytest.mark.parametrize(("name", "document"), DOCUMENTS)
def test_a_format_that_is_not_read_is_refused_by_its_name(name: str, document: Any) -> None:
    spellings = [json.dumps(document).encode()]
    if isinstance(document, list):
        spellings.append(b"\n".join([json.dumps(line).encode() for line in [*document, *document]]))
    for data in spellings:
        with pytest.raises(
            SeatrialError, match=f"this is .*{name}.* does not read yet .*it reads agent-response"
        ) as caught:
            formats.read(data)
        assert caught.value.code == "unread_format"


def test_an_archive_is_refused_by_its_name() -> None:
    with pytest.raises(SeatrialError) as caught:
        formats.read(b"PK\x03\x04rest")
    assert caught.value.code == "unread_format"


@pytest.mark.parametrize(("name", "document"), [(name, found) for name, found in DOCUMENTS if isinstance(found, list)])
def test_as_messages_of_something_else_it_is_named_and_makes_the_calls_partial(name: str, document: Any) -> None:
    body = {"final_response": "Done.", "messages": [*document, {"role": "assistant", "content": "Done."}]}
    notes = agent_response.read(json.dumps(body).encode()).notes
    assert any(note.serious and name in note.message for note in notes), notes
