"""The record of a run: cases, attempts, faults, verdicts, experiments. Pure data."""

from seatrial.runs.case import Case, ExpectedOutcome
from seatrial.runs.fault import FAULT_CLASSES, Fault, FaultClass
from seatrial.runs.run import Attempt, Experiment, Run, RunKey, RunStatus
from seatrial.runs.served import ApiKey, RunHead, Scope, ServedRun
from seatrial.runs.verdict import Grade, Judgement, Verdict

__all__ = [
    "FAULT_CLASSES",
    "ApiKey",
    "Attempt",
    "Case",
    "ExpectedOutcome",
    "Experiment",
    "Fault",
    "FaultClass",
    "Grade",
    "Judgement",
    "Run",
    "RunHead",
    "RunKey",
    "RunStatus",
    "Scope",
    "ServedRun",
    "Verdict",
]
