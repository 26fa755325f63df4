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
    from seatrial.trajectory.comparison import Aligned, Parting, RunDiff, compare
    from seatrial.trajectory.completeness import Completeness, Level
    from seatrial.trajectory.expectation import MODES, Expectation, Mode, compile_expectation, expectation_from_steps
    from seatrial.trajectory.extraction import FoundSteps, Trajectory, extract, find_steps, resolve_trace_ref
    from seatrial.trajectory.match_batch import LineResult, match_line, match_lines
    from seatrial.trajectory.matching import match, match_trajectory
    from seatrial.trajectory.messages import match_messages
    from seatrial.trajectory.result import (
        Assertion,
        ConstraintViolation,
        Divergence,
        MatchResult,
        Mismatch,
        Pair,
        Undecided,
    )
    from seatrial.trajectory.sources import (
        steps_from_events,
        steps_from_objects,
        steps_from_trace,
        steps_from_transcript,
    )
    from seatrial.trajectory.step import Source, Status, Step, StepSummary, duration, steps_given, summarise
    from seatrial.trajectory.values import Difference

__all__ = [
    "MODES",
    "Aligned",
    "Assertion",
    "Completeness",
    "ConstraintViolation",
    "Difference",
    "Divergence",
    "Expectation",
    "FoundSteps",
    "Level",
    "LineResult",
    "MatchResult",
    "Mismatch",
    "Mode",
    "Pair",
    "Parting",
    "RunDiff",
    "Source",
    "Status",
    "Step",
    "StepSummary",
    "Trajectory",
    "Undecided",
    "compare",
    "compile_expectation",
    "duration",
    "expectation_from_steps",
    "extract",
    "find_steps",
    "match",
    "match_line",
    "match_lines",
    "match_messages",
    "match_trajectory",
    "resolve_trace_ref",
    "steps_from_events",
    "steps_from_objects",
    "steps_from_trace",
    "steps_from_transcript",
    "steps_given",
    "summarise",
]

__getattr__ = attach(
    __name__,
    {
        "match_batch": (
            "LineResult",
            "match_line",
            "match_lines",
        ),
        "comparison": (
            "Aligned",
            "Parting",
            "RunDiff",
            "compare",
        ),
        "completeness": (
            "Completeness",
            "Level",
        ),
        "expectation": (
            "MODES",
            "Expectation",
            "Mode",
            "compile_expectation",
            "expectation_from_steps",
        ),
        "extraction": (
            "FoundSteps",
            "Trajectory",
            "extract",
            "find_steps",
            "resolve_trace_ref",
        ),
        "matching": (
            "match",
            "match_trajectory",
        ),
        "messages": ("match_messages",),
        "result": (
            "Assertion",
            "Divergence",
            "MatchResult",
            "Mismatch",
            "Pair",
            "Undecided",
            "ConstraintViolation",
        ),
        "sources": (
            "steps_from_events",
            "steps_from_objects",
            "steps_from_trace",
            "steps_from_transcript",
        ),
        "step": (
            "Source",
            "Status",
            "Step",
            "StepSummary",
            "duration",
            "steps_given",
            "summarise",
        ),
        "values": ("Difference",),
    },
)
