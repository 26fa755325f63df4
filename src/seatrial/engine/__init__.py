"""Carrying an experiment out: scheduling, attempts, budgets, recording, resume."""

from seatrial.engine.executor import EXECUTORS, Assignment, Executor, RunEnd, Workers, executor
from seatrial.engine.experiment import ExperimentRunner, ExperimentTally, Observer
from seatrial.engine.judging import LabelledRun, Opinion, answered_run, judges_of, opinions
from seatrial.engine.launch import (
    cases_that,
    create_experiment,
    launch,
    resumable,
    total_runs,
)
from seatrial.engine.local import grading_plan, surroundings
from seatrial.engine.regrading import Regrading, regrade
from seatrial.engine.stop import Stop

__all__ = [
    "EXECUTORS",
    "Assignment",
    "Executor",
    "ExperimentRunner",
    "ExperimentTally",
    "LabelledRun",
    "Observer",
    "Opinion",
    "Regrading",
    "RunEnd",
    "Stop",
    "Workers",
    "answered_run",
    "cases_that",
    "create_experiment",
    "executor",
    "grading_plan",
    "judges_of",
    "launch",
    "opinions",
    "regrade",
    "resumable",
    "surroundings",
    "total_runs",
]
