"""What a reader gives and what a writer gives."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from seatrial.events.types import Event
from seatrial.formats.call_facts import CallFacts
from seatrial.transcript import Note, Transcript

TraceType = Literal["model_step", "tool_call", "tool_result", "message", "error"]


class TraceEvent(msgspec.Struct, omit_defaults=True):
    """One entry of an explicit `trace` array. Only the type is required; order is array order."""

    type: TraceType
    timestamp: str | int | float | None = None
    """As given."""
    id: str | None = None
    name: str | None = None
    input: Any = None
    output: Any = None
    text: str | None = None
    metadata: dict[str, Any] | None = None


class Reading(msgspec.Struct):
    """What a reader made of one foreign record."""

    format: str
    """Name of the format that was read."""
    transcript: Transcript
    notes: list[Note]
    """Everything that had to be dropped, guessed or repaired."""
    id: str | None = None
    """The record's own id, where the format has one (a line of a batch)."""
    trace: list[TraceEvent] | None = None
    """The explicit trace, where the source gave one; None is not the same as an empty one."""
    trace_ref: str | None = None
    """A file that holds the trace, as named by the source."""
    events: list[Event] | None = None
    """The events, where the source was a stream of them."""
    calls: dict[str, CallFacts] = {}
    """When calls ran, how they ended and who ran them, where the source says so beside them; by call id."""
    answer_only: bool = False
    """Whether the record is an answer and nothing else, so that nothing in it lists calls."""


class Written(msgspec.Struct):
    """What a writer made of a transcript."""

    data: bytes
    losses: list[Note]
    """Everything of the transcript that the format cannot carry; pointers go into the transcript."""
