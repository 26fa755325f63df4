"""Messages against messages: a run's against those of a reference run."""

from __future__ import annotations

from typing import Any

from seatrial.errors import SeatrialError
from seatrial.trajectory.completeness import COMPLETE, MAX_REASONS, Completeness
from seatrial.trajectory.expectation import Mode, expectation_from_steps
from seatrial.trajectory.matching import match
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.sources import steps_from_objects
from seatrial.transcript.arguments import ARGUMENTS_NOT_JSON


def match_messages(mode: Mode, expected: list[Any], actual: list[Any]) -> MatchResult:
    """Expect the calls of the reference messages, in every accepted shape, and match those of the others with them.

    Messages of which something was dropped are known in part; a reference that was not read whole is refused.
    """
    reference, lost = steps_from_objects(expected)
    for note in lost:
        # A call with such arguments is there, and equal to none.
        if note.serious and note.code != ARGUMENTS_NOT_JSON:
            raise SeatrialError(
                "invalid_document", f"the reference was not read whole: {note.message}", pointer=note.pointer
            )
    steps, notes = steps_from_objects(actual)
    dropped = [note for note in notes if note.serious]
    known = Completeness("partial", "messages", ["messages"], dropped[:MAX_REASONS]) if dropped else COMPLETE
    return match(expectation_from_steps(mode, reference), steps, known)
