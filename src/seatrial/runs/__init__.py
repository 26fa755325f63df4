"""The record of a run: cases, attempts, faults, verdicts, experiments. Pure data."""

from seatrial.runs.case import Case, ExpectedOutcome
from seatrial.runs.fault import FAULT_CLASSES, MOVABLE, Blame, Fault, FaultClass, FaultRules, class_of_status
from seatrial.runs.run import Attempt, Experiment, Run, RunKey, RunStatus
from seatrial.runs.served import ApiKey, RunHead, Scope, ServedRun
from seatrial.runs.verdict import Grade, Judgement, Verdict

__all__ = [
    "FAULT_CLASSES",
    "MOVABLE",
    "ApiKey",
    "Attempt",
    "Blame",
    "Case",
    "ExpectedOutcome",
    "Experiment",
    "Fault",
    "FaultClass",
    "FaultRules",
    "Grade",
    "Judgement",
    "Run",
    "RunHead",
    "RunKey",
    "RunStatus",
    "Scope",
    "ServedRun",
    "Verdict",
    "class_of_status",
]
