"""The explicit trace of a provider response: an array of events, of which only the type is required."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from seatrial.formats.chat.calls import FACT_KEYS
from seatrial.formats.chat.hidden_calls import (
    CALLS_IN_RESULT,
    KEYS_WITHOUT_CALLS,
    KnownCalls,
    holds_written_call,
    may_hold_call,
    may_hold_call_under,
)
from seatrial.formats.chat.notes import FAILURE_REPORTED, At, json_kind
from seatrial.formats.chat.text_calls import CALLS_IN_TEXT, writes_call
from seatrial.formats.reading import TraceEvent, TraceType
from seatrial.transcript import Note, ToolCall, Weight, note_code, pointer
from seatrial.transcript.arguments import read_arguments
from seatrial.transcript.salvage import VALUE_DROPPED

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
TRACE_KEY_KEPT = note_code(
    "trace_key_kept",
    "A key that a trace event has no field for was kept in its metadata. Serious when it may hold a call.",
    "harmless",
)
CALLS_INSIDE_TRACE_EVENT = note_code(
    "calls_inside_trace_event",
    "What a trace event holds looks like a tool call that has no event of its own; it was not read.",
    "serious",
)

TRACE_REF_KEYS = ("trace_ref", "traceRef")


def read_trace(value: Any, notes: list[Note], *, at: At = ()) -> list[TraceEvent] | None:
    """The valid events of a decoded trace; None when it is not a trace, so that the next source counts.

    An empty trace is one: it says that no tool was called.
    """
    if type(value) is not list:
        notes.append(Note(TRACE_INVALID, pointer(*at), f"expected an array, got {json_kind(value)}"))
        return None
    events: list[TraceEvent] = []
    known: KnownCalls | None = None
    made: KnownCalls | None = None
    for index, entry in enumerate(value):
        try:
            event: TraceEvent | None = msgspec.convert(entry, TraceEvent)
        except msgspec.ValidationError:
            event = _without_wrong_fields(entry, notes, (*at, index))
        if event is None:
            continue
        events.append(event)
        if not _FIELDS.issuperset(entry):
            _keep_others(event, entry, notes, (*at, index))
        if _is_said_by_agent(event):
            made = _known_calls(value) if made is None else made
            _note_calls_in_text(event, made, notes, (*at, index))
        if _may_name_other_calls(event):
            known = _calls_of(value) if known is None else known
            _note_calls_inside(event, known, notes, (*at, index))
    if value and not events:
        notes.append(Note(TRACE_INVALID, pointer(*at), "none of the events is valid"))
        return None
    if events and _ends_with_error(value):
        # Not the end of a call, so that of the run: what it did before that may be missing.
        said = f": {events[-1].text[:200]}" if events[-1].text else ""
        notes.append(Note(FAILURE_REPORTED, pointer(*at, len(value) - 1), f"the trace ends with an error{said}"))
    return events


def read_trace_ref(value: Any, notes: list[Note], *, at: At = ()) -> str | None:
    """The name of the file that holds the trace. One that is not text is a serious note: there is a trace somewhere."""
    if value is None or type(value) is str:
        return value
    notes.append(Note(VALUE_DROPPED, pointer(*at), f"expected a file name, got {json_kind(value)}", "serious"))
    return None


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
            is_lost = field.name in ("name", "id") or may_hold_call(field.name, given)
            weight: Weight = "serious" if is_lost else "look"
            text = f"expected another type than {json_kind(given)}"
            notes.append(Note(TRACE_FIELD_DROPPED, pointer(*at, field.name), text, weight))
    return event


def _keep_others(event: TraceEvent, entry: dict[str, Any], notes: list[Note], at: At) -> None:
    """Keep what the event has no field for in its metadata, where what it says of how a call went is found."""
    others = {key: value for key, value in entry.items() if key not in _FIELDS}
    if event.type == "tool_call" and "input" not in entry:
        name = next((name for name in _ARGUMENTS if name in others), None)
        if name is not None:
            event.input = others.pop(name)
    event.metadata = {**(event.metadata or {}), **others}
    for key in others:
        if key not in FACT_KEYS and key not in _PEOPLE:
            # The arguments under two names: it is unknown which of them the tool was given.
            twice = event.type == "tool_call" and key in _ARGUMENTS
            nested = type(others[key]) in (dict, list) and others[key] and key not in KEYS_WITHOUT_CALLS
            weight: Weight = "serious" if twice or nested else "harmless"
            notes.append(Note(TRACE_KEY_KEPT, pointer(*at, key), f"kept the key {key[:100]!r} as metadata", weight))


def _may_name_other_calls(event: TraceEvent) -> bool:
    return bool(event.metadata) or type(event.output) is dict or type(event.output) is list


def _note_calls_inside(event: TraceEvent, known: KnownCalls, notes: list[Note], at: At) -> None:
    """Note what looks like calls inside an event, other than those that have an event of their own."""
    inside = dict(event.metadata or {})
    if event.type in _SPEAKING:
        # What a model was given is not its doing.
        inside["output"] = event.output
    elif event.output is not None and holds_written_call(event.output, known):
        notes.append(Note(CALLS_IN_RESULT, pointer(*at, "output"), "a tool's result holds what is written like a call"))
    for key, value in inside.items():
        if may_hold_call_under(key, value, known):
            text = f"what stands under {key[:100]!r} looks like a call that has no event of its own"
            notes.append(Note(CALLS_INSIDE_TRACE_EVENT, pointer(*at), text))


def _is_said_by_agent(event: TraceEvent) -> bool:
    if event.type not in _SPEAKING or not (event.text or type(event.output) is str):
        return False
    return (event.metadata or {}).get("role") not in ("user", "system", "developer", "tool")


def _note_calls_in_text(event: TraceEvent, made: KnownCalls, notes: list[Note], at: At) -> None:
    """Note calls that the agent wrote into its text, other than those that have an event of their own."""
    for field, text in (("text", event.text), ("output", event.output)):
        if type(text) is str and writes_call(text, made):
            notes.append(Note(CALLS_IN_TEXT, pointer(*at, field), "the text holds what looks like a call"))


def _ends_with_error(entries: list[Any]) -> bool:
    """Whether the last event is an error, and not one of a call."""
    last = entries[-1]
    return type(last) is dict and last.get("type") == "error" and last.get("id") not in _calls_of(entries).names


def _calls_of(entries: list[Any]) -> KnownCalls:
    """The calls that have an event, by id."""
    calls = [entry for entry in entries if type(entry) is dict and entry.get("type") == "tool_call"]
    named = [(call.get("id"), call.get("name")) for call in calls]
    return KnownCalls.of([ToolCall(id, name, {}) for id, name in named if type(id) is str and type(name) is str])


def _known_calls(entries: list[Any]) -> KnownCalls:
    """The calls that have an event."""
    calls: list[ToolCall] = []
    for index, entry in enumerate(entries):
        if type(entry) is dict and entry.get("type") == "tool_call" and type(name := entry.get("name")) is str:
            arguments: Any = next((entry[key] for key in ("input", *_ARGUMENTS) if entry.get(key) is not None), {})
            if type(arguments) is str:
                arguments, _, _ = read_arguments(arguments)
            calls.append(ToolCall(str(index), name, arguments))
    return KnownCalls.of(calls, calls)


_FIELDS = frozenset(TraceEvent.__struct_fields__)
_ARGUMENTS = ("arguments", "args")
_PEOPLE = frozenset({"actor", "parent"})
_SPEAKING = frozenset({"model_step", "message"})
_TYPES = frozenset(get_args(TraceType))
