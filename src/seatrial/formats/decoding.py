"""Chat messages out of bytes, level by level, so that what cannot be held spoils nothing but itself.

What cannot be held is a number out of range, or text that is not UTF-8 and has to be repaired.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.formats import shape
from seatrial.formats.parts import At, read_raw_thought
from seatrial.formats.tally import NoteTally


def decoded_messages(raw: msgspec.Raw, tally: NoteTally, at: At) -> Any:
    """The value of an array of messages for `Chat`, so that what cannot be held spoils nothing but itself.

    An array comes as an iterator, because its messages are read one after the other.
    """
    entries = shape.items(raw, tally, at)
    if entries is None:
        return shape.value(raw, tally, at)
    return (decoded_message(entry, tally, (*at, index)) for index, entry in enumerate(entries))


def decoded_message(raw: msgspec.Raw, tally: NoteTally, at: At) -> Any:
    """One message; native reasoning in it keeps its bytes, as blocks or as raw entries."""
    given = shape.members(raw, tally, at)
    if given is None:
        return shape.value(raw, tally, at)
    thinking = given.pop("thinking", None)
    details = given.pop("reasoning_details", None)
    message = {key: decoded(member, tally, (*at, key)) for key, member in given.items()}
    if thinking is not None:
        message["thinking"] = _decoded_thinking(thinking, message.get("role"), tally, (*at, "thinking"))
    if details is not None:
        message["reasoning_details"] = decoded_details(details, tally, (*at, "reasoning_details"))
    return message


def decoded_details(raw: msgspec.Raw, tally: NoteTally, at: At) -> Any:
    """The entries of `reasoning_details`, each byte for byte as it was sent; the value, where it is no array."""
    entries = shape.items(raw, tally, at)
    if entries is None:
        return shape.value(raw, tally, at)
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
    entries = shape.items(raw, tally, at) if role == "assistant" else None
    if entries is None:
        return shape.value(raw, tally, at)
    # Blocks already, because these keep their bytes.
    return [read_raw_thought(entry) or shape.value(entry, tally, (*at, index)) for index, entry in enumerate(entries)]


def decoded(raw: msgspec.Raw, tally: NoteTally, at: At, levels: int = 4) -> Any:
    """The value; where it cannot be held as a whole, level by level: calls, a call, its function, the arguments."""
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    if levels:
        if (given := shape.members(raw, tally, at)) is not None:
            return {key: decoded(member, tally, (*at, key), levels - 1) for key, member in given.items()}
        if (entries := shape.items(raw, tally, at)) is not None:
            return [decoded(entry, tally, (*at, index), levels - 1) for index, entry in enumerate(entries)]
    return shape.value(raw, tally, at)


_decode = msgspec.json.Decoder().decode
