"""What a reader gives and what a writer gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from seatrial.events.types import Event
from seatrial.formats.chat.calls import PlacedFacts
from seatrial.formats.chat.notes import At
from seatrial.transcript import AssistantMessage, Note, Transcript, note_code, pointer

EARLIER_TURNS_MISSING = note_code(
    "earlier_turns_missing",
    "The record continues an earlier response or conversation that is not in it; what was called there is unknown.",
    "serious",
)
WAITS_FOR_INPUT = note_code(
    "waits_for_input",
    "The run ended with an interrupt, a request for an approval, or a call without a result: the agent waits for "
    "input, and what it would do with it is unknown.",
    "serious",
)

RECORD_WAS_PARTIAL = note_code(
    "record_was_partial",
    "The record was written by Seatrial from one of which not all calls are known.",
    "serious",
)

WAITS = "the agent waits for input, so its task is not finished: what it would do next is unknown"
_EARLIER = ("previous_response_id", "conversation")
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
    facts: list[PlacedFacts] = []
    """When calls ran, how they ended and who ran them, where the source says so beside them."""
    answer_only: bool = False
    """Whether the record is an answer and nothing else, so that nothing in it lists calls."""
    single_turn: bool = False
    """Whether it is one turn of a model, or one message: calls of other turns are not in it."""


def single_turn(reading: Reading) -> Reading:
    """The reading of a record that is one turn of a model, or one message, and no list of what was said.

    A turn of a loop looks the same whatever was called in the others: without a call of its own, it is an answer and
    nothing else.
    """
    messages = reading.transcript.messages
    reading.single_turn = True
    if not any(type(message) is AssistantMessage and message.tool_calls() for message in messages):
        reading.answer_only = True
    return reading


def why_partial(reading: Reading) -> str | None:
    """Why a record does not have all calls of its run; None when nothing says that it does not."""
    serious = [note for note in reading.notes if note.serious]
    if serious:
        more = f", and {len(serious) - 1} more" if len(serious) > 1 else ""
        return f"{serious[0].message} ({serious[0].code}{more})"
    if reading.single_turn:
        return "it is one turn of a model, or one message"
    return "it is an answer, and lists no calls" if reading.answer_only else None


def earlier_turns(response: Mapping[str, Any], known: Collection[str] = (), at: At = ()) -> list[Note]:
    """A note when a response of the Responses API continues what is not there; `known` are responses that are."""
    for key in _EARLIER:
        earlier = response.get(key)
        if earlier and not (type(earlier) is str and earlier in known):
            text = "this continues an earlier response or conversation; return the items of all of them"
            return [Note(EARLIER_TURNS_MISSING, pointer(*at, key), text)]
    return []


def was_partial(why: str, *at: str | int) -> Note:
    """The note for a record that says that it was written from one that was partial."""
    return Note(RECORD_WAS_PARTIAL, pointer(*at), f"said of the record that this was written from: {why[:500]}")


class Written(msgspec.Struct):
    """What a writer made of a transcript."""

    data: bytes
    losses: list[Note]
    """Everything of the transcript that the format cannot carry; pointers go into the transcript."""
