"""Steps of a run: where they came from, and how they compare with what was expected.

Taking them: `extract` (from a reading), `steps_from_trace`, `steps_from_transcript`, `steps_from_events`,
`steps_from_objects` (decoded messages), `steps_given` (objects that are steps already).
Matching them: `compile_expectation` or `expectation_from_steps`, then `match`; or `match_trajectory`, `match_messages`
and `match_lines` in one go. What is known of the calls of a run (`Completeness`) decides what a match can say of them.
Run against run: `compare`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.trajectory.comparison import Aligned as Aligned
    from seatrial.trajectory.comparison import Parting as Parting
    from seatrial.trajectory.comparison import RunDiff as RunDiff
    from seatrial.trajectory.comparison import compare as compare
    from seatrial.trajectory.completeness import Completeness as Completeness
    from seatrial.trajectory.completeness import Level as Level
    from seatrial.trajectory.expectation import MODES as MODES
    from seatrial.trajectory.expectation import Expectation as Expectation
    from seatrial.trajectory.expectation import Mode as Mode
    from seatrial.trajectory.expectation import compile_expectation as compile_expectation
    from seatrial.trajectory.expectation import expectation_from_steps as expectation_from_steps
    from seatrial.trajectory.expectation import expected_as_made as expected_as_made
    from seatrial.trajectory.extraction import FoundSteps as FoundSteps
    from seatrial.trajectory.extraction import Trajectory as Trajectory
    from seatrial.trajectory.extraction import extract as extract
    from seatrial.trajectory.extraction import find_steps as find_steps
    from seatrial.trajectory.extraction import resolve_trace_ref as resolve_trace_ref
    from seatrial.trajectory.match_batch import LineResult as LineResult
    from seatrial.trajectory.match_batch import match_line as match_line
    from seatrial.trajectory.match_batch import match_lines as match_lines
    from seatrial.trajectory.matching import match as match
    from seatrial.trajectory.matching import match_messages as match_messages
    from seatrial.trajectory.matching import match_trajectory as match_trajectory
    from seatrial.trajectory.result import Assertion as Assertion
    from seatrial.trajectory.result import ConstraintViolation as ConstraintViolation
    from seatrial.trajectory.result import Divergence as Divergence
    from seatrial.trajectory.result import MatchResult as MatchResult
    from seatrial.trajectory.result import Mismatch as Mismatch
    from seatrial.trajectory.result import Pair as Pair
    from seatrial.trajectory.result import Undecided as Undecided
    from seatrial.trajectory.sources import steps_from_events as steps_from_events
    from seatrial.trajectory.sources import steps_from_objects as steps_from_objects
    from seatrial.trajectory.sources import steps_from_trace as steps_from_trace
    from seatrial.trajectory.sources import steps_from_transcript as steps_from_transcript
    from seatrial.trajectory.step import Source as Source
    from seatrial.trajectory.step import Status as Status
    from seatrial.trajectory.step import Step as Step
    from seatrial.trajectory.step import StepSummary as StepSummary
    from seatrial.trajectory.step import duration as duration
    from seatrial.trajectory.step import steps_given as steps_given
    from seatrial.trajectory.step import summarise as summarise
    from seatrial.trajectory.values import Difference as Difference

__getattr__, __all__ = attach(
    __name__,
    {
        "comparison": "Aligned Parting RunDiff compare",
        "completeness": "Completeness Level",
        "expectation": "MODES Expectation Mode compile_expectation expectation_from_steps expected_as_made",
        "extraction": "FoundSteps Trajectory extract find_steps resolve_trace_ref",
        "match_batch": "LineResult match_line match_lines",
        "matching": "match match_messages match_trajectory",
        "result": "Assertion ConstraintViolation Divergence MatchResult Mismatch Pair Undecided",
        "sources": "steps_from_events steps_from_objects steps_from_trace steps_from_transcript",
        "step": "Source Status Step StepSummary duration steps_given summarise",
        "values": "Difference",
    },
)
