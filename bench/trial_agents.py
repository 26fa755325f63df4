"""Agents that cost next to nothing: one tool call, one answer."""

from __future__ import annotations

import time
from typing import Any

ANSWER = "The order is on its way."


async def answer(instruction: str) -> dict[str, Any]:
    return response(instruction)


def answer_in_thread(instruction: str) -> dict[str, Any]:
    """The same as a function that may block, and so gets a thread."""
    return response(instruction)


def response(instruction: str, *, padding: str = "") -> dict[str, Any]:
    call = {"id": "call_1", "name": "search", "arguments": {"order": 17}}
    return {
        "final_response": ANSWER,
        "messages": [
            {"role": "user", "content": instruction},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": f"shipped{padding}"},
            {"role": "assistant", "content": ANSWER},
        ],
    }


def plain(instruction: str) -> str:
    """Answers at once."""
    return "ok"


def busy(subject: Any) -> bool:
    """A grader that computes for 20 ms of the processor's time."""
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    return bool(subject.answer == "ok")
