"""Texts that arrive in many pieces: secrets that no piece shows alone, and long streams kept small.

`CompactEvents` keeps a place for every event, so that notes point where they would: the first piece has all of the
text, and those behind it are empty. CUSTOM events that nothing is read from are all the same one. What the events add
up to is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import msgspec
from msgspec import UNSET

from seatrial.events import types as t
from seatrial.events.codec import amended
from seatrial.events.expand import CHUNKS, ENDS_ALL, ENDS_NONE

Split: TypeAlias = Callable[[str], tuple[str, str]]
"""Gives a text without secrets, and separately the end of it that may be the beginning of one."""
_Key: TypeAlias = tuple[type, object]

# After these a text cannot continue. Others that are about the run (its state, a custom event) may come within it.
_LAST_CALL = (*ENDS_ALL, t.SubagentFinished, t.SubagentError)

_PIECES = (
    t.TextMessageContent,
    t.TextMessageChunk,
    t.ToolCallArgs,
    t.ToolCallChunk,
    t.ReasoningMessageContent,
    t.ReasoningMessageChunk,
)


class Deltas:
    """Holds back the end of a streamed text for as long as it may be the beginning of a secret."""

    def __init__(self, split: Split) -> None:
        self.found = False
        """Whether there was a secret."""
        self._split = split
        self._held: dict[_Key, tuple[t.Event, str]] = {}
        self._building: dict[object, _Key] = {}
        """By agent: the text that its chunks are building. They need not say which, and anything else ends it."""

    def take(self, event: t.Event) -> list[t.Event]:
        """What may be recorded now that this event has come, in order."""
        agent = getattr(event, "subagent_run_id", UNSET)
        building = self._building.get(agent)
        key = _key(event, building)
        ready: list[t.Event] = []
        if building is not None and key != building and not isinstance(event, ENDS_NONE):
            del self._building[agent]
            if building in self._held:
                ready.append(_with(*self._held.pop(building)))
        if key is None:
            return [*ready, *self._due(event), event]
        if type(event) in CHUNKS:
            self._building[agent] = key
        # What begins a message may be said in its first piece only: it is that one which is passed on first.
        first, before = self._held.pop(key, (event, ""))
        text = before + str(getattr(event, "delta", ""))
        said, held = self._split(text)
        self.found = self.found or said + held != text
        if held:
            self._held[key] = (event if said else first, held)
        return [*ready, _with(first, said)] if said or not held else ready

    def rest(self) -> list[t.Event]:
        """What is still held back at the end."""
        return [_with(*self._held.pop(key)) for key in list(self._held)]

    def drop(self, length: int) -> int:
        """Forget the texts of which so many characters are held back; gives how many they are."""
        long = [key for key, (_, held) in self._held.items() if len(held) >= length]
        for key in long:
            del self._held[key]
        return len(long)

    def _due(self, event: t.Event) -> list[t.Event]:
        """What must not be held back any longer when this event comes."""
        if isinstance(event, _LAST_CALL):
            return self.rest()
        subject = _subject(event)
        due = [] if subject is None else [key for key in self._held if key[1] == subject]
        return [_with(*self._held.pop(key)) for key in due]


def _key(event: t.Event, building: _Key | None) -> _Key | None:
    """The text that an event adds to; None when it adds to none."""
    if not isinstance(getattr(event, "delta", None), str):
        return None
    subject = _subject(event)
    if subject is None and building is not None and building[0] is type(event):
        return building
    return type(event), subject


def _subject(event: t.Event) -> object:
    """The message or call that an event is about; None when it is about the run."""
    return getattr(event, "message_id", None) or getattr(event, "tool_call_id", None)


def _with(event: t.Event, delta: str) -> t.Event:
    # The agent's own event is not touched: it is read again at the end of the run.
    if event.sent is None or event.sent.get("delta") != getattr(event, "delta", None):
        # What was sent has the text in another place, where a piece of a secret would stay.
        copy: t.Event = msgspec.structs.replace(event, delta=delta)
        return copy
    return amended(event, delta=delta)


class CompactEvents:
    """A list of events that grows."""

    def __init__(self) -> None:
        self._events: list[t.Event] = []
        self._empty: t.Event | None = None
        """What the pieces of the text that is coming are alike in."""
        self._first = 0
        """The index of its first piece."""
        self._text = bytearray()
        """The text so far, as UTF-8: text in pieces takes many times as much."""

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: t.Event) -> None:
        """Add an event."""
        if _is_remark(event):
            event = _REMARK
        empty, shared = _without_text(event), self._empty
        if empty is None or shared is None or empty != shared:
            self._close_text()
            self._empty, self._first = empty, len(self._events)
            self._events.append(event)
            if empty is not None:
                self._text += _text(event)
            return
        self._text += _text(event)
        self._events.append(shared)

    def all(self) -> list[t.Event]:
        """The events so far."""
        self._close_text()
        return self._events

    def _close_text(self) -> None:
        if self._empty is not None and len(self._events) - self._first > 1:
            first = self._events[self._first]
            self._events[self._first] = msgspec.structs.replace(
                first, delta=self._text.decode("utf-8", "surrogatepass")
            )
        self._empty, self._text = None, bytearray()


def _without_text(event: t.Event) -> t.Event | None:
    """A piece of a text without the text, to be compared with others; None for any other event."""
    if not isinstance(event, _PIECES) or event.sent is not None or event.delta is UNSET:
        return None
    return msgspec.structs.replace(event, delta="", timestamp=UNSET)


def _is_remark(event: t.Event) -> bool:
    """Whether this is a CUSTOM event that neither changes anything nor has room for a call, as one on progress."""
    return (
        isinstance(event, t.CustomEvent)
        and not isinstance(event.value, dict | list | str)
        and event.metadata is UNSET
        and event.raw_event is UNSET
        and event.subagent_run_id is UNSET
        and event.sent is None
    )


_REMARK = t.CustomEvent(name="remark", value=None)


def _text(event: t.Event) -> bytes:
    return str(cast("t.TextMessageContent", event).delta).encode("utf-8", "surrogatepass")
