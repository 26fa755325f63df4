"""Carrying an experiment out: scheduling, attempts, budgets, recording, resume."""

from seatrial.engine.experiment import ExperimentRunner, ExperimentTally, Observer
from seatrial.engine.launch import (
    cases_that,
    create_experiment,
    grading_plan,
    launch,
    resumable,
    surroundings,
    total_runs,
)
from seatrial.engine.regrading import Regrading, regrade
from seatrial.engine.stop import Stop

__all__ = [
    "ExperimentRunner",
    "ExperimentTally",
    "Observer",
    "Regrading",
    "Stop",
    "cases_that",
    "create_experiment",
    "grading_plan",
    "launch",
    "regrade",
    "resumable",
    "surroundings",
    "total_runs",
]
