"""Carrying an experiment out: scheduling, attempts, budgets, recording, resume."""

from seatrial.engine.executor import EXECUTORS, Assignment, Executor, RunEnd, Workers, executor
from seatrial.engine.experiment import ExperimentRunner, ExperimentTally, Observer
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
    "Observer",
    "Regrading",
    "RunEnd",
    "Stop",
    "Workers",
    "cases_that",
    "create_experiment",
    "executor",
    "grading_plan",
    "launch",
    "regrade",
    "resumable",
    "surroundings",
    "total_runs",
]
