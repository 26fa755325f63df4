"""Which call of a transcript a result belongs to: one rule for steps, events and readers.

An id alone does not tell: some models count their calls anew in each turn, and users and providers have ids of their
own. A result belongs to the latest message with a call of its id and its tool, else to the latest with one of its id;
where that has several, they get theirs in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

from seatrial.transcript.note import Note, note_code

T = TypeVar("T")

TOOL_RESULT_OF_ANOTHER_TOOL = note_code(
    "tool_result_of_another_tool",
    "A tool result has the id of a call and the name of another tool, of which there is no call; it was given to the "
    "call.",
    "serious",
)


def another_tool_note(at: str, tool: str, called: str) -> Note:
    """The note for a result of one tool that has the id of a call of another one."""
    text = f"a result of {tool[:40]!r} has the id of a call of {called[:40]!r}"
    return Note(TOOL_RESULT_OF_ANOTHER_TOOL, at, text)


class OpenCalls(Generic[T]):
    """The calls so far, each with what stands for it."""

    def __init__(self) -> None:
        self._alone: dict[str, tuple[str, str, T]] = {}
        """By id: the calls whose id no other one has, as almost always."""
        self._shared: dict[str | tuple[str, str], deque[_Entry[T]]] = {}
        """The others by id, and by id and tool: those of the latest message that has such."""

    def add(self, calls: Sequence[tuple[str, str, T]]) -> None:
        """Take the calls of one message: id, tool, and what stands for it."""
        if len(calls) == 1 and (call_id := calls[0][0]) not in self._alone and call_id not in self._shared:
            self._alone[call_id] = calls[0]
            return
        ids = {call[0] for call in calls}
        if len(ids) == len(calls) and ids.isdisjoint(self._alone) and ids.isdisjoint(self._shared):
            for call in calls:
                self._alone[call[0]] = call
            return
        for call_id in ids & self._alone.keys():
            self._share([self._alone.pop(call_id)])
        self._share(calls)

    def _share(self, calls: Sequence[tuple[str, str, T]]) -> None:
        made: dict[str | tuple[str, str], deque[_Entry[T]]] = {}
        for call_id, tool, value in calls:
            entry = _Entry(value)
            made.setdefault(call_id, deque()).append(entry)
            made.setdefault((call_id, tool), deque()).append(entry)
        self._shared |= made

    def take(self, call_id: str, tool: str | None) -> T | None:
        """What stands for the call that a result belongs to; None when there is none. `tool` is None where the result
        does not name one."""
        if (call := self._alone.get(call_id)) is not None:
            return call[2]
        waiting = self._shared.get((call_id, tool)) if tool is not None else None
        if waiting is None and (waiting := self._shared.get(call_id)) is None:
            return None
        while len(waiting) > 1 and waiting[0].answered:
            waiting.popleft()
        waiting[0].answered = True
        return waiting[0].value


class _Entry(Generic[T]):
    __slots__ = ("answered", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self.answered = False
