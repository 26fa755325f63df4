"""Events from producers that nobody vouches for: strict where that works, else repaired, with a note for each repair.

What is repaired: the old THINKING_* types; nulls where a field should be absent; the seed's generic fields (`name`,
`content`, `delta`, `result`, `error`) in place of AG-UI's own; ids that are missing; fields of a wrong type, which are
left out. An event needs nothing but a `type`. What has no type that is known is kept in a RAW event that stands in for
it (`stands_in`): it goes into the log as it was sent, and nothing else is made of it.

The typed event has nothing but the fields of its type. Where that is less than what was sent, or something else, the
event keeps what was sent (`Event.sent`), and is written so again.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial._support.nesting import MAX_DEPTH, is_too_deep
from seatrial.errors import SeatrialError
from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.codec import (
    CARRIED_TYPES,
    EVENT_TYPES,
    RAW_SOURCE,
    event_decoder,
    from_native,
    keep_sent,
    to_native,
)
from seatrial.events.violation import quoted
from seatrial.transcript import Note, Notes, Weight, note_code, pointer, repair_notes
from seatrial.transcript.failure import FAILURE_KEYS, find_failure, read_status

LEGACY_EVENT = note_code(
    "legacy_event", "An event of a THINKING_* type, which AG-UI 1.0 no longer has, became REASONING_*.", "harmless"
)
EVENT_UNREADABLE = note_code(
    "event_unreadable",
    "A frame is not JSON, or not an object with a type; the log keeps it, and it was not read.",
    "serious",
)
UNKNOWN_EVENT_TYPE = note_code(
    "unknown_event_type",
    "An event has a type that AG-UI does not know; the log keeps it, and it was not read.",
    "serious",
)
EVENT_FIELD_MAPPED = note_code(
    "event_field_mapped",
    "A field was read from one of the generic fields, or from the envelope around the event.",
    "harmless",
)
EVENT_FIELD_MISSING = note_code(
    "event_field_missing",
    "A required field is missing or of a wrong type; an empty or made-up value is used. Serious where it says what "
    "was called, with what, or what it returned.",
    "look",
)
EVENT_FIELD_DROPPED = note_code(
    "event_field_dropped",
    "A field is null or of a wrong type, or a part of it is; that was left out. Serious where it may hold a call, or "
    "says how the run ended.",
    "look",
)
EVENT_PROPERTY_UNKNOWN = note_code(
    "event_property_unknown",
    "An event has a property that its type does not have; the log keeps it, and it was not read. Serious where it is "
    "an object or a list, which may hold a call.",
    "harmless",
)

MAX_PROPERTIES_NOTED = 100
"""Each unknown property is noted once; of a stream that has more of them, the first so many."""


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
_SUBAGENT = _Field("subagentRunId", text=True, default="")
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
    "STATE_DELTA": (_Field("delta", ("content", "result"), default=[]),),
    "MESSAGES_SNAPSHOT": (_Field("messages", ("content", "result")),),
    "ACTIVITY_SNAPSHOT": (_ACTIVITY, _Field("content", ("result", "delta"), default={})),
    "ACTIVITY_DELTA": (_ACTIVITY, _Field("patch", ("delta", "content"), default=[])),
    "REASONING_MESSAGE_CONTENT": (_DELTA,),
    "REASONING_MESSAGE_CHUNK": (_OPTIONAL_DELTA,),
    "REASONING_ENCRYPTED_VALUE": (
        _Field("encryptedValue", ("content", "delta", "result"), text=True, default=""),
        _Field("entityId", ("toolCallId", "messageId"), text=True, default=""),
    ),
    "SUBAGENT_STARTED": (_SUBAGENT, _Field("name", text=True, default="")),
    "SUBAGENT_FINISHED": (_SUBAGENT,),
    "SUBAGENT_ERROR": (_SUBAGENT, _Field("message", ("error", "content"), text=True, default="")),
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

# What says which tool was called, with what, or with which result. Without it, a call is not known.
_OF_A_CALL = frozenset({"toolCallId", "toolCallName", "delta", "content", "messages"})

# Properties of other protocols that hold no call, whatever is in them.
_HOLDS_NO_CALL = frozenset({"annotations", "citations", "logprobs", "usage", "headers", "tags", "span", "traceContext"})

_OUTCOMES: dict[type[t.Event], dict[str, type[msgspec.Struct]]] = {
    t.RunFinished: {"success": t.SuccessOutcome, "interrupt": t.InterruptOutcome, "cancelled": t.CancelledOutcome},
    t.SubagentFinished: {"success": t.SubagentSuccessOutcome, "suspended": t.SuspendedOutcome},
}


def read_event(data: bytes) -> tuple[t.Event, list[Note]]:
    """One event and what had to be repaired in it. A stream of them is for an `EventReader`, which remembers ids."""
    reader = EventReader()
    return reader.read(data), reader.notes


def decode_event(data: bytes) -> t.Event:
    """The event in JSON that is valid under the seed's schema, or of one of the four types that only AG-UI has.

    `SeatrialError` for anything else. `EventReader` is the lenient way, and says what it had to repair.
    """
    try:
        if len(data) <= MAX_DEPTH or not is_too_deep(data):
            return event_decoder().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    value = wire.decode_input(data)
    try:
        msgspec.convert(value, SeedEvent)
    except msgspec.ValidationError as error:
        raise wire.invalid_document(error) from None
    return EventReader().read_value(value)


class EventReader:
    """Reads the events of one stream, and remembers what was opened under ids that it made up."""

    def __init__(self, *, thread_id: str = "", run_id: str = "") -> None:
        self.notes: list[Note] = Notes()
        self.thread_id = thread_id
        """For a RUN_STARTED or RUN_FINISHED that does not say: the envelope does."""
        self.run_id = run_id
        self._open: dict[str, str] = {}
        """The last id that was opened, by what it names."""
        self._made_up = 0
        self._legacy_noted: set[str] = set()
        self._properties_noted: set[tuple[str, str]] = set()
        self._is_legacy = False
        """Whether the event at hand is of an old type; those never had ids."""
        self._name = ""
        """The type of the event at hand."""
        self._used: set[str] = set()
        """Properties of the event at hand that another field was read from."""
        self._at: tuple[str | int, ...] = ()

    def read(self, data: bytes, index: int | None = None) -> t.Event:
        """The event in these bytes; the notes point to the index, where there is one."""
        try:
            if len(data) > MAX_DEPTH and is_too_deep(data):
                return self._repaired(data, index)
            event = event_decoder().decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._repaired(data, index)
        return self.settled(event, data, index)

    def settled(self, event: t.Event, data: bytes, index: int | None = None) -> t.Event:
        """An event that was decoded strictly, when it says all that its bytes say; else the one they mean."""
        kind = type(event)
        if event.raw_event is None or (kind in _DOUBTFUL and _says_less(event)):
            return self._repaired(data, index)
        if kind in _OPENERS:
            self._opened(event)
        return event

    def read_value(self, value: Any, index: int | None = None) -> t.Event:
        """The event in a decoded JSON value."""
        self._at = () if index is None else (index,)
        if type(value) is not dict or type(value.get("type")) is not str:
            return self._stand_in(EVENT_UNREADABLE, value, "expected an object with a `type`")
        fields = dict(value)
        self._used = {"type"}
        self._translate_legacy(fields)
        if (error := _failed_end(fields)) is not None:
            # A run that says of itself that it failed has an event for it.
            value = {**value, "type": "RUN_ERROR", "message": error}
            self._used.update(["outcome", "result", "runId"])
            fields = {**value}
            self._note(EVENT_FIELD_MAPPED, "outcome", "the outcome is a failure: read as RUN_ERROR")
        name: str = fields["type"]
        kind = EVENT_TYPES.get(name)
        if kind is None:
            return self._stand_in(UNKNOWN_EVENT_TYPE, value, f"there is no event type {quoted(name)}")
        self._name = name
        if kind is t.RawEvent and fields.get("source") == RAW_SOURCE and _is_unknown(fields.get("event")):
            return self._stand_in(UNKNOWN_EVENT_TYPE, fields["event"], "it stands for an event of an unknown type")
        for absent in _NULL_IS_ABSENT:
            if fields.get(absent, UNSET) is None:
                del fields[absent]
                self._note(EVENT_FIELD_DROPPED, absent, "null; an absent value is left out", "harmless")
        self._fill(name, fields)
        self._note_unknown(kind, fields)
        event = self._converted(kind, fields)
        if event is None:
            return self._stand_in(EVENT_UNREADABLE, value, f"what came cannot be made a {name}")
        if isinstance(event, t.CustomEvent) and (carried := from_native(event)) is not None:
            self._name = event.name
            self._note_unknown(type(carried), dict(event.value))
            event = carried
        if kind in _OPENERS:
            self._opened(event)
        if self._is_legacy:
            # The type is not one that anybody may send; the rest of it is as it was sent.
            value = {**value, "type": name, "messageId": fields["messageId"]}
        if not _says_the_same(event, value):
            keep_sent(event, value)
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
        fields.pop("messageId", None)  # of no meaning in these types
        if former not in self._legacy_noted:
            self._legacy_noted.add(former)
            self._note(LEGACY_EVENT, "type", f"{former} became {fields['type']}; further ones are not noted")
        if "title" in fields:
            self._used.add("title")
            self._note(EVENT_FIELD_DROPPED, "title", "REASONING_START has no title", "harmless")

    def unreadable(self, data: bytes, error: SeatrialError, index: int | None = None) -> t.Event:
        """The RAW event that stands in for bytes which are not JSON."""
        self._at = () if index is None else (index,)
        return self._stand_in(EVENT_UNREADABLE, data.decode("utf-8", "replace"), error.message)

    def _repaired(self, data: bytes, index: int | None) -> t.Event:
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
            self._mark_failed(fields)
        if name == "REASONING_ENCRYPTED_VALUE" and fields.get("subtype") not in ("tool-call", "message"):
            fields["subtype"] = "tool-call" if "toolCallId" in fields else "message"
            self._note(EVENT_FIELD_MAPPED, "subtype", f"read as {fields['subtype']!r}")
        if name == "RAW" and "event" not in fields:
            fields["event"] = {key: value for key, value in fields.items() if key != "type"}
            self._used.update(fields)
            self._note(EVENT_FIELD_MISSING, "event", "the event itself stands in")
        for spec in _FIELDS.get(name, ()):
            self._fill_field(spec, fields)
        match name:
            case "STATE_DELTA":
                self._fill_patch(fields, "delta")
            case "ACTIVITY_DELTA":
                self._fill_patch(fields, "patch")
            case "MESSAGES_SNAPSHOT":
                self._fill_messages(fields)
            case "ACTIVITY_SNAPSHOT" if type(fields["content"]) is not dict:
                fields["content"] = {"value": fields["content"]}
                self._note(EVENT_FIELD_MAPPED, "content", "a value that is no object stands under `value`")
            case "TOOL_CALL_RESULT" if not _is_content(fields["content"]):
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
                self._used.add(source)
                self._note(EVENT_FIELD_MAPPED, name, f"read from `{source}`")
            elif field.default is not UNSET:
                value = field.default
                self._note(EVENT_FIELD_MISSING, name, f"read as {field.default!r}", self._weight(name))
            else:
                return
        if field.text and type(value) is not str:
            value = _as_text(value)
            # What is not a name may hold one: nobody knows which tool was called.
            weight: Weight | None = "serious" if name == "toolCallName" else None
            self._note(EVENT_FIELD_MAPPED, name, "a value that is no text became JSON text", weight)
        fields[name] = value

    def _fill_id(self, fields: dict[str, Any], field: str, what: str, opens: bool) -> None:
        if type(fields.get(field)) is str:
            return
        # Old types have no ids, and continue nothing but what an old type began.
        kept_under = f"legacy {what}" if self._is_legacy else what
        if opens or kept_under not in self._open:
            self._open[kept_under] = self._new_id(what)
        fields[field] = self._open[kept_under]
        if not self._is_legacy:
            weight: Weight | None = None if opens else self._weight(field)
            self._note(EVENT_FIELD_MISSING, field, f"read as {fields[field]!r}", weight)

    def _fill_patch(self, fields: dict[str, Any], field: str) -> None:
        if type(fields[field]) is dict:
            fields[field] = [fields[field]]
            self._note(EVENT_FIELD_MAPPED, field, "a single operation became a list of one")
        if type(fields[field]) is not list or any(type(operation) is not dict for operation in fields[field]):
            # A part of a patch would make a state that nobody ever had.
            fields[field] = []
            self._note(EVENT_FIELD_DROPPED, field, "it is no list of operations; nothing is changed")

    def _fill_messages(self, fields: dict[str, Any]) -> None:
        messages = fields.get("messages", UNSET)
        if type(messages) is list:
            if any(type(message) is not dict for message in messages):
                fields["messages"] = [message for message in messages if type(message) is dict]
                self._note(EVENT_FIELD_DROPPED, "messages", "what is not an object in it was left out", "serious")
            return
        if messages is not UNSET:
            del fields["messages"]
        self._note(EVENT_FIELD_MISSING, "messages", "there is no list of messages; they stay as they are", "serious")

    def _new_id(self, what: str) -> str:
        self._made_up += 1
        return f"seatrial-{what}-{self._made_up}"

    def _mark_failed(self, fields: dict[str, Any]) -> None:
        """Say how a tool's call ended, where the event says so in a way that AG-UI has no field for."""
        metadata = fields.get("metadata", UNSET)
        own = fields.get("status") in _TASK_STATUSES  # a field of the event, which says it by itself
        failure = find_failure({key: value for key, value in fields.items() if key != "status"} if own else fields)
        if failure is None or not (metadata is UNSET or type(metadata) is dict):
            return
        said = [key for key in fields if key in FAILURE_KEYS]
        self._used.update(said)
        fields["metadata"] = agui.mark_result(metadata, failure)
        unknown = failure.status == "unknown"
        text = "how the call ended is not known: nobody uses this word" if unknown else "the result is an error"
        self._note(EVENT_FIELD_MAPPED, said[0] if said else "metadata", text, "look" if unknown else None)

    def _note_unknown(self, kind: type[t.Event], fields: dict[str, Any]) -> None:
        """Note the properties that events of this type do not have, and take them out."""
        # In the order of the fields: the order of a set is another in every process.
        for key in [key for key in fields if key not in _names(kind) and key != "type"]:
            value = fields.pop(key)
            noted = (self._name, key)
            if key in self._used or noted in self._properties_noted:
                continue
            if len(self._properties_noted) < MAX_PROPERTIES_NOTED:
                self._properties_noted.add(noted)
            weight: Weight | None = "serious" if type(value) in (dict, list) and key not in _HOLDS_NO_CALL else None
            if weight is not None or len(self._properties_noted) < MAX_PROPERTIES_NOTED:
                more = "; further ones are not noted"
                self._note(EVENT_PROPERTY_UNKNOWN, key, f"{self._name} has no property {quoted(key)}{more}", weight)

    def _converted(self, kind: type[t.Event], fields: dict[str, Any]) -> t.Event | None:
        """The typed event, without the optional fields that do not fit; None when others do not."""
        for field, trimmed in (("usage", self._usage), ("outcome", self._outcome)):
            if field in fields and field in _names(kind):
                trimmed(kind, fields)
        while True:
            try:
                return msgspec.convert(fields, kind)
            except msgspec.ValidationError as error:
                place = wire.invalid_document(error).pointer
                name = "" if place is None else place.split("/")[1]
                if name not in _optional(kind) or name not in fields:
                    return None
                if name == "timestamp" and type(fields[name]) is float and abs(fields[name]) < 2**53:
                    fields[name] = int(fields[name])
                    self._note(EVENT_FIELD_DROPPED, name, "the fraction of a millisecond was dropped", "harmless")
                else:
                    del fields[name]
                    self._note(EVENT_FIELD_DROPPED, name, str(error), self._weight(name))

    def _usage(self, kind: type[t.Event], fields: dict[str, Any]) -> None:
        if type(fields["usage"]) is not list:
            return
        read = [_fitting(entry, t.TokenUsage) for entry in fields["usage"] if type(entry) is dict]
        if read != fields["usage"]:
            fields["usage"] = read
            self._note(EVENT_FIELD_DROPPED, "usage", "what is neither a count nor a name in it was left out")

    def _outcome(self, kind: type[t.Event], fields: dict[str, Any]) -> None:
        """How a run ended must not be lost with a detail of it: a run that asks would look like one that succeeded."""
        sent = fields["outcome"]
        if sent is None:
            del fields["outcome"]
            self._note(EVENT_FIELD_DROPPED, "outcome", "null; an absent value is left out", "harmless")
            return
        if type(sent) is str and sent in _OUTCOMES[kind]:
            sent = fields["outcome"] = {"type": sent}
            self._note(EVENT_FIELD_MAPPED, "outcome", "text was read as the outcome of that type")
        name = sent.get("type") if type(sent) is dict else None
        outcome = _OUTCOMES[kind].get(name) if type(name) is str else None
        if outcome is None:
            return
        if outcome is t.InterruptOutcome:
            asked = sent.get("interrupts")
            interrupts = [self._interrupt(item) for item in (asked if type(asked) is list else [])]
            read = {"type": name, "interrupts": interrupts or [self._interrupt({})]}
        else:
            read = {"type": name, **_fitting(sent, outcome)}
        if read != sent:
            fields["outcome"] = read
            self._note(EVENT_FIELD_DROPPED, "outcome", "what does not fit in it was left out")

    def _interrupt(self, sent: Any) -> dict[str, Any]:
        asked: dict[str, Any] = dict(sent) if type(sent) is dict else {}
        asked["id"] = asked["id"] if type(asked.get("id")) is str else self._new_id("interrupt")
        asked["reason"] = asked["reason"] if type(asked.get("reason")) is str else ""
        return _fitting(asked, t.Interrupt)

    def _stand_in(self, code: str, value: Any, why: str) -> t.RawEvent:
        self._note(code, None, why)
        event = t.RawEvent(event=value, source=RAW_SOURCE)
        known = type(value) is dict and type(value.get("type")) is str
        keep_sent(event, value if known else {"type": "RAW", "event": value, "source": RAW_SOURCE})
        return event

    def _weight(self, field: str) -> Weight | None:
        """That of losing a field of the event at hand: what was called, or how a run ended, may be unknown."""
        if self._name == "RUN_FINISHED" and field == "outcome":
            return "serious"
        is_call = self._name.startswith("TOOL_CALL_") or self._name == "MESSAGES_SNAPSHOT"
        return "serious" if is_call and field in _OF_A_CALL else None

    def _note(self, code: str, field: str | None, message: str, weight: Weight | None = None) -> None:
        at = self._at if field is None else (*self._at, field)
        self.notes.append(Note(code, pointer(*at), message, weight))


class SeedEvent(msgspec.Struct, rename="camel"):
    """What the seed's schema says of an event: nothing of most fields."""

    type: Literal[tuple(EVENT_TYPES)]  # type: ignore[valid-type]  # they are 31
    event_id: t.OpaqueId | UnsetType = UNSET
    thread_id: t.OpaqueId | UnsetType = UNSET
    message_id: t.OpaqueId | UnsetType = UNSET
    tool_call_id: t.OpaqueId | UnsetType = UNSET
    artifact_id: t.OpaqueId | UnsetType = UNSET
    name: str | UnsetType = UNSET
    status: t.RunStatus | UnsetType = UNSET
    error: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    created_at: str | UnsetType = UNSET


def _failed_end(fields: dict[str, Any]) -> str | None:
    """What a RUN_FINISHED whose outcome says that the run failed says of it; None for any other event."""
    outcome = fields.get("outcome")
    if fields["type"] != "RUN_FINISHED":
        return None
    said = outcome if type(outcome) is dict else {"type": outcome}
    name = said.get("type", said.get("status"))
    if read_status(name) not in ("error", "timeout"):
        return None
    texts = [said.get("error"), said.get("message"), said.get("reason")]
    texts += [text.get("message") for text in texts if type(text) is dict]
    reason = next((text for text in texts if type(text) is str and text.strip()), None)
    return reason or f"the agent says of its run: {name}"


def _says_less(event: t.Event) -> bool:
    """Whether a typed event of a doubtful type says less than its bytes."""
    if isinstance(event, t.CustomEvent):
        return event.name in CARRIED_TYPES
    if isinstance(event, t.RawEvent):
        return event.source == RAW_SOURCE
    return isinstance(event, t.RunFinished) and event.result is None


def _says_the_same(event: t.Event, sent: dict[str, Any]) -> bool:
    """Whether the fields of an event are all of what was sent."""
    return bool(msgspec.to_builtins(event) == sent or msgspec.to_builtins(to_native(event)) == sent)


def _is_unknown(event: Any) -> bool:
    """Whether this is an event of a type that nobody knows."""
    return type(event) is dict and type(event.get("type")) is str and event["type"] not in EVENT_TYPES


def _is_content(value: Any) -> bool:
    return type(value) is str or (type(value) is list and all(type(part) is dict and "type" in part for part in value))


def _as_text(value: Any) -> str:
    try:
        return value if type(value) is str else wire.encode(value).decode()
    except SeatrialError:
        return ""


def _fitting(value: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The members of an object that are fields of this type and fit."""
    kept: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        if name in value:
            with suppress(msgspec.ValidationError):
                msgspec.convert(value[name], field.type)
                kept[name] = value[name]
    return kept


_OPENERS = {
    EVENT_TYPES[name]: ("tool_call_id" if field == "toolCallId" else "message_id", what)
    for name, (field, what, opens) in _IDS.items()
    if opens
}
_TASK_STATUSES = get_args(t.RunStatus)
_DOUBTFUL = frozenset({t.CustomEvent, t.RawEvent, t.RunFinished})


@cache
def _names(kind: type[t.Event]) -> frozenset[str]:
    """The wire names of the fields that events of this type have."""
    return frozenset(kind.__struct_encode_fields__)


@cache
def _optional(kind: type[t.Event]) -> frozenset[str]:
    """The wire names of the fields that events of this type may lack."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind) if not field.required)
