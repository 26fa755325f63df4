"""Breaches of the order of events: what `verify` and `expand` find."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

VIOLATION_CODES: dict[str, str] = {
    "run_not_started": "The first event must be RUN_STARTED or RUN_ERROR.",
    "run_still_active": "A run starts while the one before it has not ended.",
    "run_already_finished": "After RUN_FINISHED only RUN_ERROR or a new RUN_STARTED may come.",
    "run_already_errored": "After RUN_ERROR only a new RUN_STARTED may come.",
    "already_open": "Something starts under an id that is open already.",
    "not_open": "An event continues or ends something that is not open.",
    "step_already_open": "A step starts that the same agent has open already.",
    "step_not_open": "A step is finished that was not started.",
    "step_of_another": "A step is finished by an agent that did not start it.",
    "left_open": "A run finishes while something in it is still open.",
    "subagent_already_active": "A subagent starts that is active already.",
    "subagent_reused": "A subagent starts under the id of one that has ended in this run.",
    "subagent_parent_unknown": "A subagent starts under a parent that was never started.",
    "subagent_not_active": "A subagent ends that is not active.",
    "attribution": "An event is attributed to another agent than the one that opened what it continues.",
    "attribution_null": "A message is attributed to null; an absent attribution is left out.",
    "malformed": "An event is no object with a type, lacks a required field, or has one of a wrong type.",
    "truncated": "The stream ends without the end of its run.",
    "chunk_without_id": "The first chunk of a stream has no id.",
    "chunk_without_name": "The first chunk of a tool call has no tool name.",
    "chunk_ambiguous": "A chunk without id and attribution could continue several streams.",
    "chunk_changed": "A chunk repeats a field of its opener with another value.",
}
"""Every way in which an order of events is illegal; the last four are found by `expand`."""

Owner: TypeAlias = str | UnsetType
"""The subagent that something belongs to; UNSET is the parent agent."""


class OrderViolation(msgspec.Struct, frozen=True):
    """The first event that may not stand where it stands."""

    index: int
    """Its index in the stream, before chunks were expanded."""
    code: str
    """One of `VIOLATION_CODES`."""
    message: str
    """One sentence, for people."""


class OrderFault(NamedTuple):
    """A violation, before it is known which event of the stream it is."""

    code: str
    message: str


def name_of(event: msgspec.Struct) -> str:
    """The wire name of an event's type."""
    return str(event.__struct_config__.tag)


def agent(owner: Owner) -> str:
    """Who that is, for people."""
    return "the parent agent" if owner is UNSET else f"subagent {quoted(owner)}"


def quoted(value: Any) -> str:
    """A name out of the stream, short enough for a sentence."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
