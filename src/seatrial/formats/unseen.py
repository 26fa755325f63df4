"""What a reader did not see: calls among the metadata, or in events that are for other things; keys that occur twice.

All are looked for once a record is read, whatever its format. Of a key that occurs twice, readers keep the last, and
what stood under the first is lost; the decoder does not say so, so the bytes are looked at again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import UNSET

from seatrial.events import types as t
from seatrial.events.codec import stands_in
from seatrial.events.remainder import KEY
from seatrial.formats.keys import CALLS_IN_METADATA, KnownCalls, calls_in_metadata, may_hold_call
from seatrial.formats.reading import Reading
from seatrial.formats.tally import NoteTally
from seatrial.nesting import is_too_deep
from seatrial.transcript.messages import AssistantMessage, Message, ToolCall
from seatrial.transcript.note import Note, note_code
from seatrial.transcript.transcript import Transcript

KEY_TWICE_IN_OBJECT = note_code(
    "key_twice_in_object", "An object of the record has a key twice; the last one counts, the first is lost.", "serious"
)
CALLS_IN_EVENT = note_code(
    "calls_in_event",
    "An event that is not for calls (RAW, CUSTOM, a state, an activity, RUN_FINISHED) describes one that no other "
    "event has.",
    "serious",
)
_SHOWN: Final = 3


def note_unseen(data: bytes, reading: Reading) -> Reading:
    """The reading, with notes for all that its reader did not see."""
    return note_repeated_keys(data, note_calls_in_metadata(reading))


def note_calls_in_metadata(reading: Reading) -> Reading:
    """The reading, with a note for everything beside its messages that looks like calls."""
    if not any(note.code == CALLS_IN_METADATA for note in reading.notes):
        run = reading.transcript
        found = [calls_in_metadata(key, value, messages=run.messages) for key, value in run.metadata.items()]
        reading.notes += [note for note in found if note is not None]
    return reading


def calls_in_events(events: Iterable[t.Event], transcript: Transcript) -> list[Note]:
    """Notes on events that describe calls other than those of the transcript, which the events add up to.

    Many integrations send what their framework says beside what AG-UI has events for. To repeat a call, by its id or by
    its name and arguments, is to add nothing.
    """
    names = {call.id: call.name for call in _calls(transcript.messages)}
    known = KnownCalls(names, _calls(transcript.done()))
    tally = NoteTally()
    for index, event in enumerate(events):
        if isinstance(event, t.RunFinished) and isinstance(event.outcome, t.SuccessOutcome):
            pending = event.outcome.pending_tool_call_ids
            for call_id in () if pending is UNSET else pending:
                if call_id not in names:
                    text = f"the call {call_id[:40]!r} is said to wait for a result, and no event has it"
                    tally.add(CALLS_IN_EVENT, (index, "outcome"), text, each="pending")
        for field, key, value in _payloads(event):
            if may_hold_call(key, value, known):
                kind = str(type(event).__struct_config__.tag)
                text = f"what {kind} has under {field!r} looks like a call that no other event has"
                tally.add(CALLS_IN_EVENT, (index, field), text, each=f"{kind} {field}")
    return tally.total()


def _payloads(event: t.Event) -> Iterator[tuple[str, str, Any]]:
    """What an event has in which anything may stand: the field, the key that names it, and the value."""
    if event.raw_event is not UNSET:
        yield "rawEvent", "", event.raw_event
    if event.metadata is not UNSET:
        yield "metadata", "", {key: value for key, value in event.metadata.items() if key != KEY}
    if type(event) not in _OPEN:  # as almost always
        return
    if isinstance(event, t.RawEvent):
        if not stands_in(event):  # which is noted as what it is
            yield "event", "", event.event
    elif isinstance(event, t.CustomEvent):
        if not _is_forecast(event):
            yield "value", event.name, event.value
    elif isinstance(event, t.StateSnapshot):
        yield "snapshot", "", event.snapshot
    elif isinstance(event, t.StateDelta):
        yield from (("delta", _last(operation), operation.get("value")) for operation in event.delta)
    elif isinstance(event, t.ActivitySnapshot):
        yield "content", event.activity_type, event.content
    elif isinstance(event, t.ActivityDelta):
        yield from (("patch", _last(operation), operation.get("value")) for operation in event.patch)


def _is_forecast(event: t.CustomEvent) -> bool:
    """Whether this says which argument of which tool will become which part of the state, as integrations send it."""
    value = event.value if event.name == "PredictState" else None
    return type(value) is list and all(type(item) is dict and _FORECAST.issuperset(item) for item in value)


def _last(operation: dict[str, Any]) -> str:
    """The key that an operation writes to; that of the list, where it adds to one."""
    path = operation.get("path")
    parts = [part for part in (path.split("/") if type(path) is str else []) if not part.isdecimal() and part != "-"]
    return parts[-1] if parts else ""


def _calls(messages: Iterable[Message]) -> list[ToolCall]:
    return [call for message in messages if type(message) is AssistantMessage for call in message.tool_calls()]


def note_repeated_keys(data: bytes, reading: Reading) -> Reading:
    """The reading, with a note for keys that occur twice in an object of its record: a document, lines or events."""
    if any(note.code == KEY_TWICE_IN_OBJECT for note in reading.notes):
        return reading
    repeated: dict[str, None] = {}
    if not _look(data, repeated):
        for line in data.splitlines():
            _look(line.removeprefix(b"data:"), repeated)
    if repeated:
        names = ", ".join([repr(name[:40]) for name in [*repeated][:_SHOWN]])
        text = f"{names} {'occurs' if len(repeated) == 1 else 'occur'} twice in one object"
        reading.notes.append(Note(KEY_TWICE_IN_OBJECT, "", text))
    return reading


def _look(data: bytes, repeated: dict[str, None]) -> bool:
    """Whether the data is JSON; adds the keys that occur twice in an object."""

    def look(members: list[tuple[str, Any]]) -> None:
        if len(members) > 1 and len(members) != len({key for key, _ in members}):
            seen: set[str] = set()
            for key, _ in members:
                if key in seen:
                    repeated[key] = None
                seen.add(key)

    if is_too_deep(data):
        return False
    try:
        json.loads(data, object_pairs_hook=look)
    except ValueError:
        return False
    return True


_FORECAST: Final = frozenset({"state_key", "stateKey", "tool", "tool_argument", "toolArgument"})
_OPEN: Final = (t.RawEvent, t.CustomEvent, t.StateSnapshot, t.StateDelta, t.ActivitySnapshot, t.ActivityDelta)
