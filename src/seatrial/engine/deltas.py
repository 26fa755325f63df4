"""Secrets that an agent streams piece by piece: no piece is one, and all of them together are."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from seatrial.engine.redaction import Redaction
from seatrial.events.types import Event

_Key: TypeAlias = tuple[type, object]


class Deltas:
    """Holds back the end of a streamed text for as long as it may be the beginning of a secret."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._held: dict[_Key, tuple[Event, str]] = {}

    def take(self, event: Event) -> list[Event]:
        """What may be recorded now that this event has come, in order."""
        delta = getattr(event, "delta", None)
        if not isinstance(delta, str):
            return [*self._release(_subject(event)), event]
        key = (type(event), _subject(event))
        # What begins a message may be said in its first piece only: it is that one which goes on first.
        first, before = self._held.pop(key, (event, ""))
        said, held = self._redaction.split(before + delta)
        if held:
            self._held[key] = (event if said else first, held)
        return [_with(first, said)] if said or not held else []

    def rest(self) -> list[Event]:
        """What is still held back, when nothing more comes."""
        return self._release(None)

    def _release(self, subject: object) -> list[Event]:
        due = [key for key in self._held if subject is None or key[1] == subject]
        return [_with(*self._held.pop(key)) for key in due]


def _subject(event: Event) -> object:
    """The message or call that an event is about; None when it is about the run."""
    return getattr(event, "message_id", None) or getattr(event, "tool_call_id", None)


def _with(event: Event, delta: str) -> Event:
    # The agent's own event is not touched: it is read again at the end of the run.
    copy: Event = msgspec.structs.replace(event, delta=delta)
    return copy
