"""Which tool result belongs to which call."""

from __future__ import annotations

from collections import OrderedDict, deque

from seatrial.formats.parts import At
from seatrial.transcript import Note, ToolResultMessage, note_code, pointer

TOOL_RESULT_UNPAIRED = note_code(
    "tool_result_unpaired", "A tool result belongs to no call that came before it.", "serious"
)
TOOL_RESULT_PAIRED_BY_ORDER = note_code(
    "tool_result_paired_by_order",
    "A tool result names no call; it was given to the oldest call without a result.",
    "look",
)


class Pairing:
    """The calls of a conversation so far."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        # Not a dict: taking the oldest entry out of one again and again is quadratic.
        self._unanswered: OrderedDict[str, str] = OrderedDict()
        """Names by id of the calls that have no result yet, oldest first."""
        self._of_name: dict[str, deque[str]] = {}
        """Ids of calls by name, oldest first; those that have a result are skipped when they are met."""

    def called(self, call_id: str, name: str, *, answered: bool = False) -> None:
        """A call was made; an id that is used again means the new call from now on."""
        self._names[call_id] = name
        self._unanswered.pop(call_id, None)
        if not answered:
            self._unanswered[call_id] = name
            self._of_name.setdefault(name, deque()).append(call_id)

    def name_of(self, call_id: str) -> str | None:
        """The name of a call, None when there was none of that id."""
        return self._names.get(call_id)

    def answered(
        self, call_id: str | None, name: str | None, at: At, notes: list[Note], *, by_name: bool = False
    ) -> ToolResultMessage:
        """An empty result for the call with that id; without an id, for the oldest call that has none yet.

        `by_name`: the format pairs by name and order, so a result without an id goes to the oldest call of its name,
        and nothing was guessed.
        """
        if call_id:
            self._unanswered.pop(call_id, None)
            known = self._names.get(call_id)
            if known is None:
                notes.append(
                    Note(TOOL_RESULT_UNPAIRED, pointer(*at), f"no call with the id {call_id!r} came before this result")
                )
            return ToolResultMessage(call_id, known or name or "", [])
        if by_name and name is not None:
            return self._of_that_name(name, at, notes)
        if not self._unanswered:
            notes.append(
                Note(TOOL_RESULT_UNPAIRED, pointer(*at), "this result names no call, and no call is without a result")
            )
            return ToolResultMessage("", name or "", [])
        oldest, known = self._unanswered.popitem(last=False)
        notes.append(Note(TOOL_RESULT_PAIRED_BY_ORDER, pointer(*at), f"gave a result that names no call to {oldest!r}"))
        return ToolResultMessage(oldest, known, [])

    def _of_that_name(self, name: str, at: At, notes: list[Note]) -> ToolResultMessage:
        waiting = self._of_name.get(name, deque())
        while waiting:
            call_id = waiting.popleft()
            if self._unanswered.get(call_id) == name:
                del self._unanswered[call_id]
                return ToolResultMessage(call_id, name, [])
        notes.append(Note(TOOL_RESULT_UNPAIRED, pointer(*at), f"no call of {name[:40]!r} waits for this result"))
        return ToolResultMessage("", name, [])
