"""Grading a run that has ended: nothing that graders write has a secret in it, and no run is lost by it."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.driver.redaction import Redaction
from seatrial.graders import GradingPlan, Subject, Surroundings
from seatrial.runs import Case, Grade, Run, Verdict


async def grade(
    run: Run,
    case: Case,
    plan: GradingPlan,
    surroundings: Surroundings,
    redaction: Redaction,
    earlier: Mapping[str, Verdict] | None = None,
) -> Grade:
    """Give a run its verdicts and its grade. `earlier` are verdicts by their content key."""
    try:
        graded = plan.grade(Subject(run, case), surroundings, earlier)
        verdicts, given = graded if isinstance(graded, tuple) else await graded
        run.verdicts, run.grade = redaction.graded(verdicts, given)
    except Exception as error:  # noqa: BLE001 (a fault of ours in grading must not lose the run)
        told = redaction.text(f"{type(error).__name__}: {error}")
        run.verdicts, run.grade = [], Grade(judgement="errored", reasons=[f"could not be graded: {told}"])
    return run.grade
