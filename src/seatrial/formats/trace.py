"""The explicit trace of a provider response: an array of events, of which only the type is required."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.formats.parts import At, json_kind
from seatrial.formats.reading import TraceEvent
from seatrial.transcript import Note, note_code, pointer

TRACE_INVALID = note_code(
    "trace_invalid", "The trace is not an array, or none of its events is valid; it was ignored.", "serious"
)
TRACE_EVENT_DROPPED = note_code(
    "trace_event_dropped", "A trace event is not valid; it was dropped, the rest stays.", "serious"
)


def read_trace(value: Any, notes: list[Note], *, at: At = ()) -> list[TraceEvent] | None:
    """The valid events of a decoded trace; None when it is no trace, so that the next source counts.

    An empty trace is one: it says that no tool was called.
    """
    if type(value) is not list:
        notes.append(Note(TRACE_INVALID, pointer(*at), f"expected an array, got {json_kind(value)}"))
        return None
    events: list[TraceEvent] = []
    for index, entry in enumerate(value):
        try:
            events.append(msgspec.convert(entry, TraceEvent))
        except msgspec.ValidationError as error:
            notes.append(Note(TRACE_EVENT_DROPPED, pointer(*at, index), str(error)))
    if value and not events:
        notes.append(Note(TRACE_INVALID, pointer(*at), "none of the events is valid"))
        return None
    return events
