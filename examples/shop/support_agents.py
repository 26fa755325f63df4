"""Three agents: one returns only text, the same one returns its messages too, and one has no tools at all."""

from __future__ import annotations

import json
from typing import Any

from shop.clerk import serve


def text_only(instruction: str) -> str:
    """Answer, and say nothing about the tools that were called on the way."""
    return serve(instruction, careful=False).answer


def with_messages(instruction: str) -> dict[str, Any]:
    """Answer with the whole conversation, in the shape of a LangGraph state."""
    talk = serve(instruction, careful=False)
    calls = [{"id": call["id"], "name": call["name"], "args": call["arguments"]} for call in talk.calls]
    results = [
        {"type": "tool", "tool_call_id": call["id"], "content": json.dumps(call["result"])} for call in talk.calls
    ]
    return {
        "messages": [
            {"type": "human", "content": instruction},
            {"type": "ai", "content": "", "tool_calls": calls},
            *results,
            {"type": "ai", "content": talk.answer},
        ]
    }


def no_tools(instruction: str) -> str:
    """Answer without looking anything up: this one has no tools to call."""
    return "Please see the page 'Your orders'. I cannot look orders up or change them."
