"""A stream from end to end: expand, verify and fold in one pass, as a client does it.

A client stops at the first violation. A replay reports it and keeps folding, so that what the rest of a
broken stream says is not lost; a chunk that cannot be expanded is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET

from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.expand import CHUNKS, Expander
from seatrial.events.fold import Folded, Folding
from seatrial.events.verify import Verifier
from seatrial.events.violation import OrderViolation
from seatrial.transcript import Note


class Replay(msgspec.Struct):
    """What came of a stream."""

    folded: Folded
    violation: OrderViolation | None
    """The first event that may not stand where it stands."""
    notes: list[Note]
    """Breaches of rules to come, then what changed nothing in the fold; pointers are indices of events."""


def replay(events: Iterable[t.Event], *, messages: Iterable[agui.Message] = (), state: Any = UNSET) -> Replay:
    """Expand, verify and fold. The run starts from these messages, which are taken over, and this state."""
    expander, verifier, folding = Expander(), Verifier(), Folding(messages=messages, state=state)
    lanes, checks, applies = expander.lanes, verifier.checks, folding.applies
    violation: OrderViolation | None = None
    # Most events continue what the one right before them continued, with a delta and nothing else. All that the
    # stages make of such a one is that they append the delta.
    run_kind: type | None = None
    run_header: Any = None
    write: Callable[[str], None] = _nowhere
    for index, event in enumerate(events):
        kind = type(event)
        if kind is run_kind and _HEADERS[kind](event) == run_header and (delta := event.delta) is not UNSET:  # type: ignore[union-attr]
            if delta:  # the pieces of a compacted text are empty behind the first
                write(delta)  # type: ignore[arg-type]  # the types in _HEADERS have text
            continue
        if lanes or kind in CHUNKS:
            expanded = expander.feed(event, index)
            if isinstance(expanded, OrderViolation):
                violation = violation or expanded
                continue
        else:
            expanded = [event]
        for part in expanded:
            if violation is None:
                fault = checks[type(part)](part, index)
                if fault is not None:
                    violation = OrderViolation(index, *fault)
            applies[type(part)](part, index)
        run_kind = None
        if kind in _HEADERS:
            write = _writer(event, expander, verifier, folding)
            if write is not _nowhere:
                run_kind, run_header = kind, _HEADERS[kind](event)
    folded = folding.result()
    return Replay(folded, violation, [*verifier.notes, *folded.notes])


# What two events have in common when the second does to an open item what the first did.
_HEADERS: dict[type, attrgetter[Any]] = {
    t.TextMessageContent: attrgetter("message_id", "subagent_run_id", "metadata"),
    t.ReasoningMessageContent: attrgetter("message_id", "subagent_run_id", "metadata"),
    t.ToolCallArgs: attrgetter("tool_call_id", "subagent_run_id", "metadata"),
    t.TextMessageChunk: attrgetter("message_id", "role", "name", "subagent_run_id", "metadata", "raw_event"),
    t.ReasoningMessageChunk: attrgetter("message_id", "subagent_run_id", "metadata", "raw_event"),
    t.ToolCallChunk: attrgetter(
        "tool_call_id", "tool_call_name", "parent_message_id", "subagent_run_id", "metadata", "raw_event"
    ),
}


def _writer(event: Any, expander: Expander, verifier: Verifier, folding: Folding) -> Callable[[str], None]:
    """What takes the deltas of the events right behind this one that have the same header."""
    # An event with more than a delta does more than append, and an attribution has to be checked each time.
    if event.subagent_run_id is not UNSET or event.metadata is not UNSET:
        return _nowhere
    kind: type = type(event)
    is_call = kind is t.ToolCallArgs or kind is t.ToolCallChunk
    item = event.tool_call_id if is_call else event.message_id
    if kind in CHUNKS:
        stream = expander.lanes.get(UNSET)
        # Without an attribution it may still have continued a stream of another lane.
        if stream is None or not stream.goes_on(CHUNKS[kind], item) or event.raw_event is not UNSET:
            return _nowhere
        item = stream.id
    if is_call:
        opened, writers = verifier.calls, folding.drafts.argument_writers
    elif kind is t.TextMessageContent or kind is t.TextMessageChunk:
        opened, writers = verifier.texts, folding.drafts.writers
    else:
        opened, writers = verifier.reasonings, folding.drafts.writers
    return writers.get(item, _nowhere) if item in opened else _nowhere


def _nowhere(delta: str) -> None:
    """Takes no delta: the events are to go through all stages."""
