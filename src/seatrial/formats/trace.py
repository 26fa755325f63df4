"""The explicit trace of a provider response: an array of events, of which only the type is required."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from seatrial.formats.keys import KEY_DROPPED, KEYS_WITHOUT_CALLS
from seatrial.formats.parts import At, json_kind
from seatrial.formats.reading import TraceEvent, TraceType
from seatrial.transcript import Note, Weight, note_code, pointer

TRACE_INVALID = note_code(
    "trace_invalid", "The trace is not an array, or none of its events is valid; it was ignored.", "serious"
)
TRACE_FIELD_DROPPED = note_code(
    "trace_field_dropped",
    "A field of a trace event has the wrong type; it was dropped, the event stays. Serious for the name of a call.",
    "look",
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
            _note_unread(entry, notes, (*at, index))
        except msgspec.ValidationError:
            event = _without_wrong_fields(entry, notes, (*at, index))
            if event is not None:
                events.append(event)
                _note_unread(entry, notes, (*at, index))
    if value and not events:
        notes.append(Note(TRACE_INVALID, pointer(*at), "none of the events is valid"))
        return None
    return events


def _without_wrong_fields(entry: Any, notes: list[Note], at: At) -> TraceEvent | None:
    """The event less the fields that are of the wrong type; None, with a note, when it has no known type."""
    if type(entry) is not dict or type(kind := entry.get("type")) is not str or kind not in _TYPES:
        got = json_kind(entry) if type(entry) is not dict else "an object without one of the known types"
        notes.append(Note(TRACE_EVENT_DROPPED, pointer(*at), f"expected a trace event, got {got}"))
        return None
    event = TraceEvent(entry["type"])
    for field in msgspec.structs.fields(TraceEvent):
        if field.name == "type" or field.name not in entry:
            continue
        given = entry[field.name]
        try:
            setattr(event, field.name, msgspec.convert(given, field.type))
        except msgspec.ValidationError:
            if field.name == "id" and type(given) is int:
                event.id = str(given)  # numbered calls are usual
                continue
            # Without its name a call is lost, and without its id a result may go to the wrong call.
            weight: Weight = "serious" if field.name in ("name", "id") else "look"
            text = f"expected another type than {json_kind(given)}"
            notes.append(Note(TRACE_FIELD_DROPPED, pointer(*at, field.name), text, weight))
    return event


def _note_unread(entry: dict[str, Any], notes: list[Note], at: At) -> None:
    """Note keys that nobody reads and that may hold a call."""
    notes += [
        Note(KEY_DROPPED, pointer(*at, key), f"dropped the key {key[:100]!r}", "serious")
        for key, value in entry.items()
        if key not in _FIELDS and type(value) in (dict, list) and value and key not in KEYS_WITHOUT_CALLS
    ]


_FIELDS = frozenset(TraceEvent.__struct_encode_fields__)
_TYPES = frozenset(get_args(TraceType))
