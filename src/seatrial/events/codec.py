"""Events to bytes and back.

The AG-UI view has every event as it is. The native view knows 27 of the 31 types; the four others travel as CUSTOM
with their type as the name (`to_native`), and become themselves again on reading (`from_native`).

An event is written as it was sent, where that says more than the fields of its type: see `Event.sent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import MAX_WRITTEN_DEPTH, is_too_deep
from seatrial.events import types as t

E = TypeVar("E", bound=t.BaseEvent)

EVENT_TYPES: dict[str, type[t.Event]] = {str(kind.__struct_config__.tag): kind for kind in t.Event.__args__}
"""The type for each wire name."""

CARRIED_TYPES = {"ACTIVITY_DELTA", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"}
"""The types that the seed's schema lacks."""

RAW_SOURCE = "seatrial"
"""`source` of the RAW events that stand in for what could not be read."""

_CARRIED_CLASSES = frozenset({EVENT_TYPES[name] for name in CARRIED_TYPES})
_NATIVE_TYPES = EVENT_TYPES.keys() - CARRIED_TYPES
_encode = msgspec.json.Encoder().encode
# What any event may carry stays at the top of a CUSTOM event, where readers of the native view look for it.
_COMMON = dict(zip(t.BaseEvent.__struct_fields__, t.BaseEvent.__struct_encode_fields__, strict=True))


@cache
def event_decoder() -> msgspec.json.Decoder[t.Event]:
    """The strict decoder of an event. Made when first needed, because 31 types take their time."""
    return msgspec.json.Decoder(t.Event)


def encode_event(event: t.Event) -> bytes:
    """The event as compact JSON, type first: as it was sent, where that says more than its fields."""
    sent = event.sent
    try:
        written = _encode(event if sent is None else {"type": sent["type"], **sent})
    except (UnicodeEncodeError, RecursionError):
        # Repairs what can be repaired, and says what is wrong with the rest.
        return wire.encode(event if sent is None else sent)
    return _checked(written)


def encode_events(events: Sequence[t.Event]) -> list[bytes]:
    """All of these events, each as `encode_event` writes it, in less time."""
    try:
        if not any([event.sent for event in events]):  # noqa: C419 (a list is quicker)
            return [_checked(written) for written in map(_encode, events)]
    except (UnicodeEncodeError, RecursionError):
        pass
    return [encode_event(event) for event in events]


def _checked(written: bytes) -> bytes:
    """The bytes of an event, which are not nested too deeply. Raises `SeatrialError`."""
    if len(written) > MAX_WRITTEN_DEPTH and is_too_deep(written, MAX_WRITTEN_DEPTH):
        raise wire.too_deep(MAX_WRITTEN_DEPTH)
    return written


def encode_fields(event: t.Event) -> bytes:
    """The fields of an event and nothing else that it was sent with."""
    return wire.encode(event)


def keep_sent(event: t.BaseEvent, sent: dict[str, Any] | None) -> None:
    """Remember how an event was sent; None to forget it."""
    event.__dict__["sent"] = sent


def stands_in(event: t.Event) -> bool:
    """Whether an event is the RAW one that stands in for something that is none, or of no known type."""
    if type(event) is not t.RawEvent or event.source != RAW_SOURCE or event.sent is None:
        return False
    # A RAW event that somebody sent has kept what was sent only if there was more.
    return event.sent["type"] != "RAW" or len(event.sent) == 3


def amended(event: E, **fields: Any) -> E:
    """The event with other values in these fields, and in what it was sent as."""
    copy: E = msgspec.structs.replace(event, **fields)
    if event.sent is not None:
        names = dict(zip(event.__struct_fields__, event.__struct_encode_fields__, strict=True))
        keep_sent(copy, {**event.sent, **{names[field]: value for field, value in fields.items()}})
    return copy


def stamp(event: t.Event, timestamp: int) -> None:
    """Say when an event came, if it does not say so itself."""
    if event.timestamp is msgspec.UNSET:
        event.timestamp = timestamp
        if event.sent is not None and "timestamp" not in event.sent:
            keep_sent(event, {**event.sent, "timestamp": timestamp})


def to_native(event: t.Event) -> t.Event:
    """The event in a type that the native view knows."""
    if type(event) not in _CARRIED_CLASSES:
        return event
    common = {field: getattr(event, field) for field in _COMMON}
    carried = t.CustomEvent(**_carried(msgspec.to_builtins(event)), **common)
    if event.sent is not None:
        keep_sent(carried, _carried_whole(event.sent))
    return carried


class _Typed(msgspec.Struct, gc=False):
    type: str


_TYPED = msgspec.json.Decoder(_Typed)


def type_of(data: bytes) -> str | None:
    """The type of an encoded event; None when it has none, or the bytes are not JSON."""
    try:
        return _TYPED.decode(data).type
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def native_bytes(data: bytes) -> bytes:
    """A stored event as the native view has it; one of an unknown type is whole in a RAW event."""
    if type_of(data) in _NATIVE_TYPES:
        return data
    event = wire.decode(data)
    name = event.get("type") if type(event) is dict else None
    if name in CARRIED_TYPES:
        return wire.encode(_carried_whole(event))
    return data if name in EVENT_TYPES else wire.encode(t.RawEvent(event=event, source=RAW_SOURCE))


def _carried(event: dict[str, Any]) -> dict[str, Any]:
    names = _COMMON.values()
    return {
        "name": event["type"],
        "value": {key: item for key, item in event.items() if key not in names and key != "type"},
    }


def _carried_whole(event: dict[str, Any]) -> dict[str, Any]:
    """An event of a type that the native view lacks, with all that it was sent with, as the CUSTOM event it becomes."""
    common = {key: event[key] for key in _COMMON.values() if key in event}
    return {"type": "CUSTOM", **common, **_carried(event)}


def from_native(event: t.CustomEvent) -> t.Event | None:
    """The event that a CUSTOM event carries; None when it carries none."""
    if event.name not in CARRIED_TYPES or type(event.value) is not dict:
        return None
    common = {
        encoded: value for name, encoded in _COMMON.items() if (value := getattr(event, name)) is not msgspec.UNSET
    }
    kind = EVENT_TYPES[event.name]
    known = {key: item for key, item in event.value.items() if key in kind.__struct_encode_fields__}
    try:
        carried = msgspec.convert({**known, **common}, kind)
    except msgspec.ValidationError:
        return None
    if len(known) < len(event.value):
        keep_sent(carried, {**event.value, **common, "type": event.name})
    return carried
