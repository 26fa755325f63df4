"""Events to bytes and back.

The AG-UI view has every event as it is. The native view knows 27 of the 31 types; the four others travel as CUSTOM
with their type as the name (`to_native`), and become themselves again on reading (`from_native`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from seatrial import wire
from seatrial.events import types as t

EVENT_TYPES: dict[str, type[t.Event]] = {str(kind.__struct_config__.tag): kind for kind in t.Event.__args__}
"""The type for each wire name."""

CARRIED_TYPES = {"ACTIVITY_DELTA", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "SUBAGENT_ERROR"}
"""The types that the seed's schema lacks."""

_CARRIED_CLASSES = frozenset({EVENT_TYPES[name] for name in CARRIED_TYPES})
_CARRIED_BEGINNINGS = tuple([b'{"type":"%b"' % name.encode() for name in sorted(CARRIED_TYPES)])
_encode = msgspec.json.Encoder().encode
# What any event may carry stays at the top of a CUSTOM event, where readers of the native view look for it.
_COMMON = dict(zip(t.BaseEvent.__struct_fields__, t.BaseEvent.__struct_encode_fields__, strict=True))


@cache
def event_decoder() -> msgspec.json.Decoder[t.Event]:
    """The strict decoder of an event. Made when first needed, because 31 types take their time."""
    return msgspec.json.Decoder(t.Event)


def encode_event(event: t.Event) -> bytes:
    """The event as compact JSON, type first."""
    try:
        return _encode(event)
    except (UnicodeEncodeError, RecursionError):
        return wire.encode(event)  # which mends what can be mended, and else says what is wrong


def encode_events(events: Sequence[t.Event]) -> list[bytes]:
    """All of these events, each as `encode_event` writes it, in less time."""
    try:
        return list(map(_encode, events))
    except (UnicodeEncodeError, RecursionError):
        return [encode_event(event) for event in events]


def decode_event(data: bytes) -> t.Event:
    """The event in strict JSON; `SeatrialError` when it is not one of ours. `EventReader` is the lenient way."""
    try:
        return event_decoder().decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return wire.decode(data, event_decoder())  # which says what is wrong


def to_native(event: t.Event) -> t.Event:
    """The event in a type that the native view knows."""
    if type(event) not in _CARRIED_CLASSES:
        return event
    fields: dict[str, Any] = msgspec.to_builtins(event)
    name = fields.pop("type")
    common = {field: getattr(event, field) for field in _COMMON}
    value = {key: item for key, item in fields.items() if key not in _COMMON.values()}
    return t.CustomEvent(name=name, value=value, **common)


def native_bytes(data: bytes) -> bytes:
    """An event that `encode_event` wrote, as the native view has it."""
    return encode_event(to_native(decode_event(data))) if data.startswith(_CARRIED_BEGINNINGS) else data


def from_native(event: t.CustomEvent) -> t.Event | None:
    """The event that a CUSTOM event carries; None when it carries none."""
    if event.name not in CARRIED_TYPES or type(event.value) is not dict:
        return None
    common = {
        encoded: value for name, encoded in _COMMON.items() if (value := getattr(event, name)) is not msgspec.UNSET
    }
    try:
        carried: t.Event = msgspec.convert({**event.value, **common, "type": event.name}, t.Event)
    except (msgspec.ValidationError, RecursionError):
        return None
    return carried
