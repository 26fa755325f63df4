"""An agent that is a Python function. It does everything right."""

from __future__ import annotations

from typing import Any

from shop.clerk import messages, serve


def answer(instruction: str) -> dict[str, Any]:
    """Answer a customer."""
    talk = serve(instruction)
    return {"final_response": talk.answer, "messages": messages(instruction, talk)}
