"""Which tool result belongs to which call."""

from __future__ import annotations

from collections import OrderedDict

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

    def called(self, call_id: str, name: str, *, answered: bool = False) -> None:
        """A call was made; an id that is used again means the new call from now on."""
        self._names[call_id] = name
        self._unanswered.pop(call_id, None)
        if not answered:
            self._unanswered[call_id] = name

    def answered(self, call_id: str | None, name: str | None, at: At, notes: list[Note]) -> ToolResultMessage:
        """An empty result for the call with that id; without an id, for the oldest call that has none yet."""
        if call_id:
            self._unanswered.pop(call_id, None)
            known = self._names.get(call_id)
            if known is None:
                notes.append(
                    Note(TOOL_RESULT_UNPAIRED, pointer(*at), f"no call with the id {call_id!r} came before this result")
                )
            return ToolResultMessage(call_id, known or name or "", [])
        if not self._unanswered:
            notes.append(
                Note(TOOL_RESULT_UNPAIRED, pointer(*at), "this result names no call, and no call is without a result")
            )
            return ToolResultMessage("", name or "", [])
        oldest, known = self._unanswered.popitem(last=False)
        notes.append(Note(TOOL_RESULT_PAIRED_BY_ORDER, pointer(*at), f"gave a result that names no call to {oldest!r}"))
        return ToolResultMessage(oldest, known, [])
