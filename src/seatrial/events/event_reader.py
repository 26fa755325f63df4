"""Events from producers that nobody vouches for: strict where that works, else mended, with a note for each repair.

What is mended: the old THINKING_* types; nulls where a field should be absent; the seed's generic fields (`name`,
`content`, `delta`, `result`, `error`) in place of AG-UI's own; ids that are missing; optional fields of a wrong type.
What cannot be made an event of its type is kept whole in a RAW event: nothing is lost.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.events import types as t
from seatrial.events.codec import CARRIED_TYPES, EVENT_TYPES, event_decoder, from_native
from seatrial.events.remainder import KEY
from seatrial.events.violation import quoted
from seatrial.transcript import Note, note_code, pointer, repair_notes

LEGACY_EVENT = note_code(
    "legacy_event", "An event of a THINKING_* type, which AG-UI 1.0 has no more, became REASONING_*.", "harmless"
)
EVENT_UNREADABLE = note_code(
    "event_unreadable", "What came is not JSON, or no object with a type; it is kept as RAW.", "serious"
)
UNKNOWN_EVENT_TYPE = note_code(
    "unknown_event_type", "An event has a type that AG-UI does not know; it is kept as RAW.", "serious"
)
EVENT_UNTYPED = note_code("event_untyped", "An event lacks what its type needs; it is kept as RAW.", "serious")
EVENT_FIELD_MAPPED = note_code(
    "event_field_mapped",
    "A field was read from one of the generic fields, or from the envelope around the event.",
    "harmless",
)
EVENT_FIELD_MISSING = note_code(
    "event_field_missing", "A required field is missing; an empty or made-up value stands in.", "look"
)
EVENT_FIELD_DROPPED = note_code(
    "event_field_dropped", "An optional field is null or of a wrong type; it was dropped.", "look"
)

RAW_SOURCE = "seatrial"
"""`source` of the RAW events that keep what could not be read."""


class _Field(NamedTuple):
    """How a field is found when the event does not have it as it should."""

    name: str
    others: tuple[str, ...] = ()
    """Generic fields that may hold it."""
    text: bool = False
    """Whether any other JSON value becomes text."""
    default: Any = UNSET
    """What stands in when there is nothing; UNSET when there is no event without it."""


_DELTA = _Field("delta", ("content", "result"), text=True, default="")
_OPTIONAL_DELTA = _Field("delta", ("content", "result"), text=True)
_STEP = _Field("stepName", ("name",), text=True, default="")
_ACTIVITY = _Field("activityType", ("name",), text=True, default="")

_FIELDS: dict[str, tuple[_Field, ...]] = {
    "RUN_ERROR": (_Field("message", ("error", "content", "result"), text=True, default=""),),
    "STEP_STARTED": (_STEP,),
    "STEP_FINISHED": (_STEP,),
    "TEXT_MESSAGE_CONTENT": (_DELTA,),
    "TEXT_MESSAGE_CHUNK": (_OPTIONAL_DELTA,),
    "TOOL_CALL_START": (_Field("toolCallName", ("name",), text=True, default=""),),
    "TOOL_CALL_ARGS": (_DELTA,),
    "TOOL_CALL_CHUNK": (_OPTIONAL_DELTA, _Field("toolCallName", ("name",), text=True)),
    "TOOL_CALL_RESULT": (_Field("content", ("result", "error", "delta"), default=""),),
    "STATE_SNAPSHOT": (_Field("snapshot", ("content", "result", "delta")),),
    "STATE_DELTA": (_Field("delta", ("content", "result")),),
    "MESSAGES_SNAPSHOT": (_Field("messages", ("content", "result")),),
    "ACTIVITY_SNAPSHOT": (_ACTIVITY, _Field("content", ("result", "delta"), default={})),
    "ACTIVITY_DELTA": (_ACTIVITY, _Field("patch", ("delta", "content"))),
    "REASONING_MESSAGE_CONTENT": (_DELTA,),
    "REASONING_MESSAGE_CHUNK": (_OPTIONAL_DELTA,),
    "REASONING_ENCRYPTED_VALUE": (
        _Field("encryptedValue", ("content", "delta", "result"), text=True),
        _Field("entityId", ("toolCallId", "messageId")),
    ),
    "SUBAGENT_ERROR": (_Field("message", ("error", "content"), text=True, default=""),),
    "CUSTOM": (_Field("name", text=True, default=""), _Field("value", ("content", "delta", "result"), default=None)),
}

# Which id field an event has, and whether it opens what the id names.
_IDS: dict[str, tuple[str, str, bool]] = {
    "TEXT_MESSAGE_START": ("messageId", "message", True),
    "TEXT_MESSAGE_CONTENT": ("messageId", "message", False),
    "TEXT_MESSAGE_END": ("messageId", "message", False),
    "TOOL_CALL_START": ("toolCallId", "call", True),
    "TOOL_CALL_ARGS": ("toolCallId", "call", False),
    "TOOL_CALL_END": ("toolCallId", "call", False),
    "TOOL_CALL_RESULT": ("toolCallId", "call", False),
    "ACTIVITY_SNAPSHOT": ("messageId", "activity", True),
    "ACTIVITY_DELTA": ("messageId", "activity", False),
    "REASONING_START": ("messageId", "span", True),
    "REASONING_END": ("messageId", "span", False),
    "REASONING_MESSAGE_START": ("messageId", "reasoning", True),
    "REASONING_MESSAGE_CONTENT": ("messageId", "reasoning", False),
    "REASONING_MESSAGE_END": ("messageId", "reasoning", False),
}

_LEGACY = {
    "THINKING_START": "REASONING_START",
    "THINKING_END": "REASONING_END",
    "THINKING_TEXT_MESSAGE_START": "REASONING_MESSAGE_START",
    "THINKING_TEXT_MESSAGE_CONTENT": "REASONING_MESSAGE_CONTENT",
    "THINKING_TEXT_MESSAGE_END": "REASONING_MESSAGE_END",
}

# Any JSON value would do here, but null is how some producers spell absence.
_NULL_IS_ABSENT = ("rawEvent", "result", "input")


def read_event(data: bytes) -> tuple[t.Event, list[Note]]:
    """One event and what had to be mended in it. A stream of them is for an `EventReader`, which remembers ids."""
    reader = EventReader()
    return reader.read(data), reader.notes


class EventReader:
    """Reads the events of one stream, and remembers what was opened under ids that it made up."""

    def __init__(self, *, thread_id: str = "", run_id: str = "") -> None:
        self.notes: list[Note] = []
        self.thread_id = thread_id
        """For a RUN_STARTED or RUN_FINISHED that does not tell: the envelope does."""
        self.run_id = run_id
        self._open: dict[str, str] = {}
        """The last id that was opened, by what it names."""
        self._made_up = 0
        self._legacy_noted: set[str] = set()
        self._is_legacy = False
        """Whether the event at hand is of an old type; those never had ids."""
        self._at: tuple[str | int, ...] = ()

    def read(self, data: bytes, index: int | None = None) -> t.Event:
        """The event in these bytes; the notes point to the index, where there is one."""
        try:
            event = event_decoder().decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._mended(data, index)
        return self.settled(event, data, index)

    def settled(self, event: t.Event, data: bytes, index: int | None = None) -> t.Event:
        """An event that was decoded strictly, when it says all that its bytes say; else the one they mean."""
        kind = type(event)
        if event.raw_event is None or (kind in _DOUBTFUL and _says_less(event, data)):
            return self._mended(data, index)
        if kind in _OPENERS:
            self._opened(event)
        return event

    def read_value(self, value: Any, index: int | None = None) -> t.Event:
        """The event in a decoded JSON value."""
        self._at = () if index is None else (index,)
        if type(value) is not dict or type(value.get("type")) is not str:
            return self._raw(EVENT_UNREADABLE, value, "expected an object with a `type`")
        fields = dict(value)
        self._translate_legacy(fields)
        name: str = fields["type"]
        kind = EVENT_TYPES.get(name)
        if kind is None:
            return self._raw(UNKNOWN_EVENT_TYPE, value, f"there is no event type {quoted(name)}")
        for absent in _NULL_IS_ABSENT:
            if fields.get(absent, UNSET) is None:
                del fields[absent]
                self._note(EVENT_FIELD_DROPPED, absent, "null; an absent value is left out")
        self._fill(name, fields)
        event = self._converted(kind, fields)
        if event is None:
            return self._raw(EVENT_UNTYPED, value, f"what came cannot be made a {name}")
        if isinstance(event, t.CustomEvent):
            return from_native(event) or event
        if kind in _OPENERS:
            self._opened(event)
        return event

    def _opened(self, event: t.Event) -> None:
        field, what = _OPENERS[type(event)]
        self._open[what] = getattr(event, field)

    def _translate_legacy(self, fields: dict[str, Any]) -> None:
        former = fields["type"]
        self._is_legacy = former in _LEGACY
        if not self._is_legacy:
            return
        fields["type"] = _LEGACY[former]
        if former not in self._legacy_noted:
            self._legacy_noted.add(former)
            self._note(LEGACY_EVENT, "type", f"{former} became {fields['type']}; further ones are not noted")
        if "title" in fields:
            self._note(EVENT_FIELD_DROPPED, "title", "REASONING_START has no title")

    def unreadable(self, data: bytes, error: SeatrialError, index: int | None = None) -> t.Event:
        """The RAW event that keeps bytes which are not JSON."""
        self._at = () if index is None else (index,)
        return self._raw(EVENT_UNREADABLE, data.decode("utf-8", "replace"), error.message)

    def _mended(self, data: bytes, index: int | None) -> t.Event:
        self._at = () if index is None else (index,)
        repairs: list[wire.Repair] = []
        try:
            value = wire.decode(data, repairs=repairs)
        except SeatrialError as error:
            return self.unreadable(data, error, index)
        self.notes += repair_notes(repairs, pointer(*self._at))
        if type(value) is dict and "type" not in value and "event" in value:
            value = value["event"]  # the bytes were an envelope
        return self.read_value(value, index)

    def _fill(self, name: str, fields: dict[str, Any]) -> None:
        """Give an event what it lacks, where that can be found or made up."""
        if name in ("RUN_STARTED", "RUN_FINISHED"):
            for field, known in (("threadId", self.thread_id), ("runId", self.run_id)):
                if type(fields.get(field)) is not str:
                    fields[field] = known
                    self._note(EVENT_FIELD_MAPPED if known else EVENT_FIELD_MISSING, field, f"read as {quoted(known)}")
        if name in _IDS:
            self._fill_id(fields, *_IDS[name])
        if name == "TOOL_CALL_RESULT":
            if type(fields.get("messageId")) is not str:
                fields["messageId"] = self._new_id("result")
                self._note(EVENT_FIELD_MISSING, "messageId", f"made up {fields['messageId']!r}")
            if type(fields.get("error")) is str and type(fields.get("metadata", {})) is dict:
                self._mark_error(fields)
        if name == "REASONING_ENCRYPTED_VALUE" and fields.get("subtype") not in ("tool-call", "message"):
            fields["subtype"] = "tool-call" if "toolCallId" in fields else "message"
        if name == "RAW" and "event" not in fields:
            fields["event"] = {key: value for key, value in fields.items() if key != "type"}
            self._note(EVENT_FIELD_MISSING, "event", "the event itself stands in")
        for spec in _FIELDS.get(name, ()):
            self._fill_field(spec, fields)
        if name == "STATE_DELTA" and type(fields.get("delta")) is dict:
            fields["delta"] = [fields["delta"]]
            self._note(EVENT_FIELD_MAPPED, "delta", "a single operation became a list of one")
        if name == "ACTIVITY_SNAPSHOT" and type(fields["content"]) is not dict:
            fields["content"] = {"value": fields["content"]}
            self._note(EVENT_FIELD_MAPPED, "content", "a value that is no object stands under `value`")
        if name == "TOOL_CALL_RESULT" and not _is_content(fields["content"]):
            fields["content"] = _as_text(fields["content"])
            self._note(EVENT_FIELD_MAPPED, "content", "a value that is neither text nor parts became JSON text")

    def _fill_field(self, field: _Field, fields: dict[str, Any]) -> None:
        name = field.name
        value = fields.get(name, UNSET)
        if value is None and field.default is not None:
            value = UNSET
        if value is UNSET:
            source = next((other for other in field.others if fields.get(other) is not None), None)
            if source is not None:
                value = fields[source]
                self._note(EVENT_FIELD_MAPPED, name, f"read from `{source}`")
            elif field.default is not UNSET:
                value = field.default
                self._note(EVENT_FIELD_MISSING, name, f"read as {field.default!r}")
            else:
                return
        if field.text and type(value) is not str:
            value = _as_text(value)
            self._note(EVENT_FIELD_MAPPED, name, "a value that is no text became JSON text")
        fields[name] = value

    def _fill_id(self, fields: dict[str, Any], field: str, what: str, opens: bool) -> None:
        if type(fields.get(field)) is str:
            return
        if opens or what not in self._open:
            self._open[what] = self._new_id(what)
        fields[field] = self._open[what]
        if not self._is_legacy:
            self._note(EVENT_FIELD_MISSING, field, f"read as {fields[field]!r}")

    def _new_id(self, what: str) -> str:
        self._made_up += 1
        return f"seatrial-{what}-{self._made_up}"

    def _mark_error(self, fields: dict[str, Any]) -> None:
        # AG-UI's event has no place for it; the transcript has (see `remainder`).
        metadata = fields.get("metadata", {})
        known = metadata.get(KEY)
        fields["metadata"] = {**metadata, KEY: {**(known if type(known) is dict else {}), "is_error": True}}
        self._note(EVENT_FIELD_MAPPED, "error", "the result is an error")

    def _converted(self, kind: type[t.Event], fields: dict[str, Any]) -> t.Event | None:
        """The typed event, without the optional fields that do not fit; None when a required one does not."""
        optional = _optional(kind)
        while True:
            try:
                return msgspec.convert(fields, kind)
            except RecursionError:
                return None
            except msgspec.ValidationError as error:
                field = wire.invalid_document(error).pointer
                name = "" if field is None else field.split("/")[1]
                if name not in optional or name not in fields:
                    return None
                if name == "timestamp" and type(fields[name]) is float and abs(fields[name]) < 2**53:
                    fields[name] = int(fields[name])
                    self._note(EVENT_FIELD_DROPPED, name, "the fraction of a millisecond was dropped")
                elif (without := _without_nulls(fields[name])) != fields[name]:
                    fields[name] = without
                    self._note(EVENT_FIELD_DROPPED, name, "nulls in it were dropped")
                else:
                    del fields[name]
                    self._note(EVENT_FIELD_DROPPED, name, str(error))

    def _raw(self, code: str, value: Any, why: str) -> t.RawEvent:
        self._note(code, None, why)
        return t.RawEvent(event=value, source=RAW_SOURCE)

    def _note(self, code: str, field: str | None, message: str) -> None:
        at = self._at if field is None else (*self._at, field)
        self.notes.append(Note(code, pointer(*at), message))


def _says_less(event: t.Event, data: bytes) -> bool:
    """Whether the bytes say something that the typed event of a lenient type does not."""
    if isinstance(event, t.CustomEvent):
        return event.name in CARRIED_TYPES
    if isinstance(event, t.RunFinished):
        return event.result is None
    if isinstance(event, t.ToolCallResult):
        return b'"error"' in data
    if isinstance(event, t.ToolCallChunk) and event.tool_call_name is UNSET and b'"name"' in data:
        return True
    # A chunk without a delta is rare, one with a generic field in its place is what this is about.
    return getattr(event, "delta", "") is UNSET and (b'"content"' in data or b'"result"' in data)


def _is_content(value: Any) -> bool:
    return type(value) is str or (type(value) is list and all(type(part) is dict and "type" in part for part in value))


def _as_text(value: Any) -> str:
    try:
        return value if type(value) is str else wire.encode(value).decode()
    except SeatrialError:
        return ""


def _without_nulls(value: Any) -> Any:
    """The object, or the objects of the array, without members that are null."""
    if type(value) is list:
        return [_without_nulls(item) if type(item) is dict else item for item in value]
    if type(value) is dict:
        return {key: member for key, member in value.items() if member is not None}
    return value


_OPENERS = {
    EVENT_TYPES[name]: ("tool_call_id" if field == "toolCallId" else "message_id", what)
    for name, (field, what, opens) in _IDS.items()
    if opens
}
_DOUBTFUL = frozenset(
    {t.CustomEvent, t.RunFinished, t.ToolCallResult, t.TextMessageChunk, t.ToolCallChunk, t.ReasoningMessageChunk}
)


@cache
def _optional(kind: type[t.Event]) -> frozenset[str]:
    """The wire names of the fields that events of this type may lack."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind) if not field.required)
