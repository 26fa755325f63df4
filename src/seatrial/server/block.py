"""Events of a run in a row, and what they look like in the native view. Each form is made once, for all who want it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, TypeAlias

import msgspec

from seatrial.errors import SeatrialError
from seatrial.events import cursor_text, envelope_bytes, envelope_head
from seatrial.events.codec import CARRIED_TYPES, native_bytes

FrameForm: TypeAlias = Literal["sse", "ndjson"]

_TYPE = b'{"type":"'


class EventFraming:
    """What goes around the events of one run."""

    __slots__ = ("_cursor", "_head")

    def __init__(self, run_id: str, thread_id: str) -> None:
        self._head = envelope_head(run_id, thread_id)
        self._cursor = cursor_text(run_id, 0)[:-1].encode()

    def framed(self, form: FrameForm, sequence: int, event: bytes) -> bytes:
        """One event in its envelope; in a frame of SSE its cursor is the id."""
        envelope = envelope_bytes(self._head, sequence, native_event(event))
        if form == "ndjson":
            return envelope + b"\n"
        return b"id: %b%d\ndata: %b\n\n" % (self._cursor, sequence, envelope)


class Block:
    """Events that follow each other. It is shared by all who read it, and never changes."""

    __slots__ = ("_filtered", "_framing", "_whole", "events", "first", "size")

    def __init__(self, framing: EventFraming, first: int, events: Sequence[bytes]) -> None:
        self.first = first
        """The sequence of the first event."""
        self.events = events
        self.size = sum(map(len, events))
        self._framing = framing
        self._whole: dict[FrameForm, bytes] = {}
        self._filtered: tuple[FrameForm, frozenset[str], bytes] | None = None

    @property
    def following(self) -> int:
        """The sequence behind the last event."""
        return self.first + len(self.events)

    def behind(self, position: int) -> Block:
        """The events behind this sequence, which is one of the block's, or the one before it."""
        passed = position + 1 - self.first
        return Block(self._framing, position + 1, self.events[passed:]) if passed else self

    def framed(self, form: FrameForm, types: frozenset[str] | None = None) -> bytes:
        """The events, or those of these types, as they are sent."""
        if types is None:
            data = self._whole.get(form)
            if data is None:
                data = self._whole[form] = self._framed(form, None)
            return data
        # There are as many sets of types as clients make up, so only the last one is kept.
        if self._filtered is None or self._filtered[:2] != (form, types):
            self._filtered = (form, types, self._framed(form, types))
        return self._filtered[2]

    def _framed(self, form: FrameForm, types: frozenset[str] | None) -> bytes:
        framed = self._framing.framed
        return b"".join(
            [
                framed(form, sequence, event)
                for sequence, event in enumerate(self.events, self.first)
                if types is None or not types.isdisjoint(_types_of(event))
            ]
        )


def native_event(event: bytes) -> bytes:
    """A stored event as the native view has it: of a type that the view knows, and in one line."""
    with suppress(SeatrialError):  # what cannot be read as what it says it is stays as it is
        event = native_bytes(event)
    if b"\n" in event or b"\r" in event:
        event = event.replace(b"\r", b" ").replace(b"\n", b" ")  # in JSON they are white space between its parts
    return event


class _Typed(msgspec.Struct):
    type: str


_TYPED = msgspec.json.Decoder(_Typed)


def _types_of(event: bytes) -> tuple[str, ...]:
    """The type of a stored event, and the one that it has in the native view when that is another."""
    if event.startswith(_TYPE):
        name = event[len(_TYPE) : event.find(b'"', len(_TYPE))].decode("utf-8", "replace")
    else:
        try:
            name = _TYPED.decode(event).type
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ()
    return (name, "CUSTOM") if name in CARRIED_TYPES else (name,)
