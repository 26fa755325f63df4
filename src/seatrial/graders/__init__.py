"""Graders: from a run to verdicts.

A grader is a small configuration (`Grader`, by its `kind` in `GRADERS`) from which a `Check` is prepared. `GradingPlan`
grades the runs of an experiment with the graders of its suite and its cases.
"""

from seatrial.graders.chat_model import ChatMessage, ChatModel, Completion
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings
from seatrial.graders.grading import Graded, GradingPlan, conclude, grade_run
from seatrial.graders.prepared import Prepared, prepare_all
from seatrial.graders.registry import GRADERS, build_graders

__all__ = [
    "GRADERS",
    "ChatMessage",
    "ChatModel",
    "Check",
    "Completion",
    "Finding",
    "Graded",
    "Grader",
    "GradingPlan",
    "Prepared",
    "Subject",
    "Surroundings",
    "build_graders",
    "conclude",
    "grade_run",
    "prepare_all",
]
