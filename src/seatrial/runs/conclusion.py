"""What a run comes to once its answer is read: given and done apart, the steps, and how complete they are."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.formats.chat import messages_from_objects
from seatrial.formats.reading import Reading
from seatrial.runs.case import Case
from seatrial.runs.run import Run
from seatrial.trajectory.completeness import CALL_WITHOUT_TOOLS, ToolAccess, assess
from seatrial.trajectory.extraction import find_steps
from seatrial.transcript import Message, Note, UserMessage
from seatrial.transcript.given import mark_given


def given_messages(case: Case) -> list[Message]:
    """What every run of a case starts from: its earlier conversation, then the instruction."""
    messages = messages_from_objects(case.messages, []) if case.messages else []
    if case.instruction:
        messages.append(UserMessage(case.instruction))
    return messages


def conclude(
    run: Run,
    reading: Reading,
    given: Sequence[Message] = (),
    *,
    trace_file: bytes | Note | None = None,
    tool_access: ToolAccess = "own",
) -> None:
    """Give a run its reading, and what follows from that."""
    notes = list(reading.notes)
    mark_given(reading.transcript, given, notes)
    found = find_steps(reading, trace_file=trace_file)
    notes += found.notes
    if tool_access == "none" and found.steps:
        text = f"the suite says that the agent has no tools, but it called {found.steps[0].name[:60]!r}"
        notes.append(Note(CALL_WITHOUT_TOOLS, "/steps/0", text))
    reading.notes = notes
    run.reading = reading
    run.steps = found.steps
    run.completeness = assess(reading, found, notes, tool_access)
    run.steps_source = found.source
