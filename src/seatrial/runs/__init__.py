"""The record of a run: cases, exchanges, attempts, faults, verdicts, experiments. Pure data."""

from seatrial.events.types import RunStatus
from seatrial.runs.case import Case, ExpectedOutcome
from seatrial.runs.fault import FAULT_CLASSES, MOVABLE, Blame, Fault, FaultClass, FaultRules, class_of_status
from seatrial.runs.model_costs import ModelCosts, model_costs
from seatrial.runs.run import Attempt, Exchange, Experiment, Run, RunKey, ServedKey
from seatrial.runs.served import ApiKey, RunHead, Scope, ServedRun
from seatrial.runs.verdict import CriterionScore, Grade, JudgedBy, JudgeDetails, JudgeVote, Outcome, Verdict
from seatrial.runs.workspace import ChangedFile, WorkspaceDiff, WorkspaceSource

__all__ = [
    "FAULT_CLASSES",
    "MOVABLE",
    "ApiKey",
    "Attempt",
    "Blame",
    "Case",
    "ChangedFile",
    "CriterionScore",
    "Exchange",
    "ExpectedOutcome",
    "Experiment",
    "Fault",
    "FaultClass",
    "FaultRules",
    "Grade",
    "JudgeDetails",
    "JudgeVote",
    "JudgedBy",
    "ModelCosts",
    "Outcome",
    "Run",
    "RunHead",
    "RunKey",
    "RunStatus",
    "Scope",
    "ServedKey",
    "ServedRun",
    "Verdict",
    "WorkspaceDiff",
    "WorkspaceSource",
    "class_of_status",
    "model_costs",
]
