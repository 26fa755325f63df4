"""Graders: from a run to verdicts.

A grader is a small configuration (`Grader`, by its `kind` in `GRADERS`) from which a `Check` is prepared. `GradingPlan`
grades the runs of an experiment with the graders of its suite and its cases. `@grader("name")` registers a class of
one's own.
"""

from seatrial.graders.chat_model import ChatMessage, ChatModel, Completion
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored, passed_if, skipped
from seatrial.graders.grading import Graded, GradingPlan, conclude, grade_run
from seatrial.graders.prepared import Prepared, prepare_all
from seatrial.graders.registry import GRADERS, GraderConfig, build_graders, grader, grader_config

__all__ = [
    "GRADERS",
    "ChatMessage",
    "ChatModel",
    "Check",
    "Completion",
    "Finding",
    "Graded",
    "Grader",
    "GraderConfig",
    "GradingPlan",
    "Prepared",
    "Subject",
    "Surroundings",
    "build_graders",
    "conclude",
    "errored",
    "grade_run",
    "grader",
    "grader_config",
    "passed_if",
    "prepare_all",
    "skipped",
]
