"""What is known of a run's calls: all of them, some, or nothing (`verdicts.md` 1).

A run whose calls could not all be read must not look like one that made none. So every check on calls asks how much is
known before it says that something did not happen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from seatrial.trajectory.step import Source
from seatrial.transcript.note import Note, note_code

if TYPE_CHECKING:
    # Not at run time: matching needs to know what is known of calls, and none of the readers.
    from seatrial.formats.reading import Reading
    from seatrial.trajectory.extraction import FoundSteps

Level: TypeAlias = Literal["complete", "partial", "none"]
Basis: TypeAlias = Literal["observed", "reported"]
"""`observed`: our tool plane saw the calls. `reported`: the agent says so."""
ToolAccess: TypeAlias = Literal["none", "world", "own"]
"""Which tools an agent has: none at all, only those of the world that it is run in, or any."""

MAX_REASONS = 20

CALLS_NOT_LISTED = note_code(
    "calls_not_listed", "The agent gave an answer, and nothing that lists its tool calls.", "look"
)
CALL_WITHOUT_TOOLS = note_code(
    "call_without_tools", "The suite says that the agent has no tools, but it made a call.", "look"
)


class Completeness(msgspec.Struct, omit_defaults=True):
    """How much is known of the calls of a run."""

    level: Level
    """`complete`: a source that lists calls was there, and all of it was understood. `partial`: something that may be,
    or hold, a call was dropped or is missing. `none`: nothing lists calls."""
    source: Source | None = None
    """Where the steps are from."""
    sources: list[Source] = []
    """All sources that there were."""
    reasons: list[Note] = []
    """Why it is not complete, the first of them."""
    omitted: int = 0
    """How many reasons are left out."""

    @property
    def basis(self) -> Basis:
        """What a verdict on these calls rests on."""
        return "observed" if self.source == "observed" else "reported"


def assess(reading: Reading, found: FoundSteps, notes: Iterable[Note], tool_access: ToolAccess = "own") -> Completeness:
    """How complete the steps are that were found in a reading; `notes` are all notes of the run."""
    from seatrial.transcript import AssistantMessage

    sources: list[Source] = [source for source in ("observed", "trace", "events") if source in found.sources]
    listed = not reading.answer_only and any(type(message) is AssistantMessage for message in reading.transcript.done())
    if listed or "messages" in found.others:
        sources.append("messages")
    source = found.source if found.source in sources else None
    if source == "observed" and tool_access == "world":
        return Completeness("complete", source, sources)
    dropped = [note for note in notes if note.serious]
    if dropped:
        return Completeness("partial", source, sources, dropped[:MAX_REASONS], max(len(dropped) - MAX_REASONS, 0))
    if [*sources] not in ([], ["observed"]) or tool_access == "none":
        return Completeness("complete", source, sources)
    reason = Note(CALLS_NOT_LISTED, "", "the agent returned an answer and nothing that lists its calls")
    # What went through our tool plane is known, but the agent may have tools of its own.
    return Completeness("partial" if sources else "none", source, sources, [reason])
