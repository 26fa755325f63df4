"""Live trace posts: what an agent reports of itself while it works (dispatch.md 5.5).

A post becomes a CUSTOM event called `trace.<type>` with the payload as its value. It does not become a message: the
answer of the agent has those, and they would occur twice.
"""

from __future__ import annotations

import re
from typing import Any

from seatrial.events.types import CustomEvent

TRACE_TYPES = frozenset(
    {
        "assistant_message",
        "thinking",
        "system_prompt",
        "custom",
        "llm_payload",
        "handoff",
        "subagent_message",
        "subagent_final",
    }
)
"""The closed set of types."""

MAX_SEGMENTS = 8
MAX_LABEL = 256

_SEGMENT = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def trace_problem(trace_type: str, payload: Any) -> str | None:
    """What is wrong with a post, in words; None when it can be recorded."""
    if trace_type not in TRACE_TYPES:
        return f"there is no trace type {trace_type[:64]!r}; the types are {', '.join(sorted(TRACE_TYPES))}"
    if type(payload) is not dict:
        return "the payload of a trace post is a JSON object"
    if trace_type == "handoff":
        for key in ("from_sub_agent", "to_sub_agent"):
            label = payload.get(key)
            if type(label) is not str or actor_label(label) is None:
                return f"{key} must be the label of an actor, up to 8 segments of letters, digits, `_.:-`"
    return None


def is_self_handoff(trace_type: str, payload: dict[str, Any]) -> bool:
    """Whether an agent hands over to itself, which means nothing and is dropped."""
    return trace_type == "handoff" and actor_label(payload["from_sub_agent"]) == actor_label(payload["to_sub_agent"])


def trace_event(trace_type: str, payload: dict[str, Any]) -> CustomEvent:
    """The event that a post is recorded as."""
    return CustomEvent(name=f"trace.{trace_type}", value=payload)


def actor_label(text: str) -> str | None:
    """The label of a sub-agent, trimmed: the path of calls that led to it, as `supervisor/refunds` (dispatch.md 5.1).
    None when it is not one."""
    label = text.strip()
    segments = label.split("/", MAX_SEGMENTS)
    if len(label) > MAX_LABEL or len(segments) > MAX_SEGMENTS:
        return None
    return label if all(_SEGMENT.fullmatch(segment) for segment in segments) else None
