"""JSON of chat records, decoded level by level, so that a value that cannot be held affects nothing but itself.

What cannot be held is a number out of range, or text that is not UTF-8 and has to be repaired. `Shape` reads objects
whose keys are declared as a struct: its fields are `Any`, or `msgspec.Raw` where the bytes matter or are read further
down. Data that fits is decoded in one go; data that does not is read key by key, and unknown keys are noted.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.chat.hidden_calls import KEY_DROPPED, KEYS_WITHOUT_CALLS, may_hold_call_under
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.parts import read_raw_thought
from seatrial.transcript import Note, Weight, note_code, pointer
from seatrial.transcript.salvage import VALUE_UNREADABLE

KEY_REPEATED = note_code("key_repeated", "The same thing is given under two names; the first is used.", "serious")

S = TypeVar("S", bound=msgspec.Struct)
D = TypeVar("D")
_SAYS_NOTHING = frozenset({b"null", b"0", b"[]", b"{}", b'""', b"false"})
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])


def take_first(rest: dict[str, Any], keys: tuple[str, ...], notes: list[Note]) -> tuple[str, Any]:
    """The first of these keys that says something, taken out, and its value; the first key and None otherwise."""
    given = [key for key in keys if rest.get(key) is not None]
    for key in keys:
        if key not in given:
            rest.pop(key, None)
    notes += [Note(KEY_REPEATED, pointer(key), f"{given[0]} is given as well, and used") for key in given[1:]]
    return (given[0], rest.pop(given[0])) if given else (keys[0], None)


def members(data: bytes | msgspec.Raw, tally: NoteTally, at: At) -> dict[str, msgspec.Raw] | None:
    """The members of an object, as bytes; None when the JSON is something else."""
    return _decoded(data, _MEMBERS, tally, at)


def items(data: bytes | msgspec.Raw, tally: NoteTally, at: At) -> list[msgspec.Raw] | None:
    """The items of an array, as bytes; None when the JSON is something else."""
    return _decoded(data, _ITEMS, tally, at)


def value(data: bytes | msgspec.Raw, tally: NoteTally, at: At) -> Any:
    """Any JSON value; where it cannot be held (too deep, a number out of range), its JSON as text, with a note."""
    repairs: list[wire.Repair] = []
    try:
        found = wire.decode(bytes(data), repairs=repairs)
    except SeatrialError as error:
        tally.add(VALUE_UNREADABLE, at, error.message)
        return str(data, "utf-8", "replace")
    tally.add_repairs(repairs, at)
    return found


def _decoded(data: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[D], tally: NoteTally, at: At) -> D | None:
    repairs: list[wire.Repair] = []
    try:
        found = wire.decode(bytes(data), decoder, repairs)
    except SeatrialError as error:
        if error.code != "invalid_document":
            raise
        return None
    tally.add_repairs(repairs, at)
    return found


def drop_key(key: str, given: Any, tally: NoteTally, at: At) -> None:
    """Note that a key has no place in the transcript, unless its value (decoded, or as bytes) says nothing."""
    if not given or (isinstance(given, msgspec.Raw) and bytes(given) in _SAYS_NOTHING):
        return
    looked_at = given
    if isinstance(given, msgspec.Raw):
        looked_at = value(given, NoteTally(), ())
    # What cannot be held comes as text, and what is in it is unknown.
    unknown = type(looked_at) is str and isinstance(given, msgspec.Raw) and not bytes(given).startswith(b'"')
    suspect = (unknown and key not in KEYS_WITHOUT_CALLS) or may_hold_call_under(key, looked_at)
    weight: Weight = "serious" if suspect else "harmless"
    tally.add(KEY_DROPPED, (*at, key), f"dropped the key {key[:100]!r}", each=f"{key} {weight}", weight=weight)


class Shape(Generic[S]):
    """Reads objects into one struct type, which forbids unknown keys."""

    def __init__(self, struct: type[S]) -> None:
        self._struct = struct
        self._decoder = msgspec.json.Decoder(struct)
        fields = msgspec.structs.fields(struct)
        self._known = frozenset(field.encode_name for field in fields)
        self._raw = frozenset(field.encode_name for field in fields if field.type is msgspec.Raw)

    def read(self, data: bytes | msgspec.Raw, tally: NoteTally, at: At) -> S | None:
        """The object in these bytes of JSON, or None when they hold something else."""
        found = self.fit(data)
        if found is None and (given := members(data, tally, at)) is not None:
            found = self.walk(given, tally, at)
        return found

    def fit(self, data: bytes | msgspec.Raw) -> S | None:
        """The object, if it has no other keys and all its values can be held."""
        return wire.decode_sound(data, self._decoder)

    def walk(self, given: dict[str, msgspec.Raw], tally: NoteTally, at: At) -> S:
        """The object out of members of which some may be unknown, or cannot be held."""
        values: dict[str, Any] = {}
        for key, raw in given.items():
            if key in self._raw:
                values[key] = raw
            elif key in self._known:
                values[key] = value(raw, tally, (*at, key))
            else:
                drop_key(key, raw, tally, at)
        return self._struct(**values)


def decoded(raw: msgspec.Raw, tally: NoteTally, at: At, levels: int = 4) -> Any:
    """The value; where it cannot be held as a whole, level by level: calls, a call, its function, the arguments."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    if levels:
        if (given := members(raw, tally, at)) is not None:
            return {key: decoded(member, tally, (*at, key), levels - 1) for key, member in given.items()}
        if (entries := items(raw, tally, at)) is not None:
            return [decoded(entry, tally, (*at, index), levels - 1) for index, entry in enumerate(entries)]
    return value(raw, tally, at)


def decoded_messages(raw: msgspec.Raw, tally: NoteTally, at: At) -> Any:
    """The value of an array of messages for `Chat`, so that a value that cannot be held affects nothing but itself.

    An array comes as an iterator, because its messages are read one after the other.
    """
    entries = items(raw, tally, at)
    if entries is None:
        return value(raw, tally, at)
    return (decoded_message(entry, tally, (*at, index)) for index, entry in enumerate(entries))


def decoded_message(raw: msgspec.Raw, tally: NoteTally, at: At) -> Any:
    """One message; native reasoning in it keeps its bytes, as blocks or as raw entries."""
    try:
        message = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decoded_by_key(raw, tally, at)
    if type(message) is dict and not _AS_SENT.isdisjoint(message):
        _keep_as_sent(message, _REASONING.decode(raw), tally, at)
    return message


def _decoded_by_key(raw: msgspec.Raw, tally: NoteTally, at: At) -> Any:
    given = members(raw, tally, at)
    if given is None:
        return value(raw, tally, at)
    sent = _Reasoning(**{key: given.pop(key) for key in _AS_SENT.intersection(given)})
    message = {key: decoded(member, tally, (*at, key)) for key, member in given.items()}
    _keep_as_sent(message, sent, tally, at)
    return message


def _keep_as_sent(message: dict[str, Any], sent: _Reasoning, tally: NoteTally, at: At) -> None:
    if sent.thinking is not UNSET:
        message["thinking"] = _decoded_thinking(sent.thinking, message.get("role"), tally, (*at, "thinking"))
    if sent.reasoning_details is not UNSET:
        message["reasoning_details"] = decoded_details(sent.reasoning_details, tally, (*at, "reasoning_details"))


def decoded_details(raw: msgspec.Raw, tally: NoteTally, at: At) -> Any:
    """The entries of `reasoning_details`, each byte for byte as it was sent; the value, where it is not an array."""
    entries = items(raw, tally, at)
    if entries is None:
        return value(raw, tally, at)
    return [_sent(entry, tally, (*at, index)) for index, entry in enumerate(entries)]


def _sent(entry: msgspec.Raw, tally: NoteTally, at: At) -> msgspec.Raw:
    try:
        str(entry, "utf-8")
    except UnicodeDecodeError:
        tally.add_repairs(["invalid_utf8_replaced"], at)
        return msgspec.Raw(str(entry, "utf-8", "replace").encode())
    # A copy, because a raw value keeps the whole input that it was cut from.
    return entry.copy()


def _decoded_thinking(raw: msgspec.Raw, role: Any, tally: NoteTally, at: At) -> Any:
    entries = items(raw, tally, at) if role == "assistant" else None
    if entries is None:
        return value(raw, tally, at)
    # Blocks already, because these keep their bytes.
    return [read_raw_thought(entry) or value(entry, tally, (*at, index)) for index, entry in enumerate(entries)]


class _Reasoning(msgspec.Struct):
    """Native reasoning of a message, as it was sent."""

    thinking: msgspec.Raw | UnsetType = UNSET
    reasoning_details: msgspec.Raw | UnsetType = UNSET


_AS_SENT = frozenset(_Reasoning.__struct_fields__)
_REASONING = msgspec.json.Decoder(_Reasoning)
_decode = msgspec.json.Decoder().decode
