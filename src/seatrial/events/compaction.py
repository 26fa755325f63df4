"""Events of a long stream, kept small: of a text that comes in many pieces, only the text is kept.

A place stays for every event, so that notes point where they would: the first piece has all of the text, and those
behind it are empty. What the events add up to is the same.
"""

from __future__ import annotations

from io import StringIO
from typing import cast

import msgspec
from msgspec import UNSET

from seatrial.events import types as t
from seatrial.events.types import Event

_PIECES = (
    t.TextMessageContent,
    t.TextMessageChunk,
    t.ToolCallArgs,
    t.ToolCallChunk,
    t.ReasoningMessageContent,
    t.ReasoningMessageChunk,
)


class CompactEvents:
    """A list of events that grows."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._empty: Event | None = None
        """What the pieces of the text that is coming are alike in."""
        self._first = 0
        """The index of its first piece."""
        self._text = StringIO()

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: Event) -> None:
        """Add an event."""
        empty, shared = _without_text(event), self._empty
        if empty is None or shared is None or empty != shared:
            self._close_text()
            self._empty, self._first = empty, len(self._events)
            self._events.append(event)
            if empty is not None:
                self._text.write(_text(event))
            return
        self._text.write(_text(event))
        self._events.append(shared)

    def all(self) -> list[Event]:
        """The events so far."""
        self._close_text()
        return self._events

    def _close_text(self) -> None:
        if self._empty is not None and len(self._events) - self._first > 1:
            first = self._events[self._first]
            self._events[self._first] = msgspec.structs.replace(first, delta=self._text.getvalue())
        self._empty, self._text = None, StringIO()


def _without_text(event: Event) -> Event | None:
    """A piece of a text without the text, to be compared with others; None for any other event."""
    if not isinstance(event, _PIECES) or event.sent is not None or event.delta is UNSET:
        return None
    return msgspec.structs.replace(event, delta="", timestamp=UNSET)


def _text(event: Event) -> str:
    return str(cast("t.TextMessageContent", event).delta)
