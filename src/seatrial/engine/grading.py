"""Grading a run that has ended: by what the agent really said, with no secret in what graders write or ask a model,
and without losing a run by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from seatrial.driver.redaction import Redaction
from seatrial.graders import GradingPlan, Subject, Surroundings, conclude
from seatrial.graders.grader import OpenWorkspace
from seatrial.runs import Case, Grade, Run, Verdict
from seatrial.runs.removed import is_redacted
from seatrial.trajectory.completeness import ScoreRange


async def grade(
    run: Run,
    case: Case,
    plan: GradingPlan,
    surroundings: Surroundings,
    redaction: Redaction,
    earlier: Mapping[str, Verdict] | None = None,
    *,
    kept: Run | None = None,
    workspace: OpenWorkspace | None = None,
) -> Grade:
    """Give a run its verdicts and its grade, and `kept`, which is stored of it, the same ones. `earlier` are verdicts
    by their content key, `workspace` is where the agent worked, if that is still there."""
    if surroundings.model is not None and redaction.active:
        surroundings = msgspec.structs.replace(surroundings, model=redaction.model(surroundings.model))
    try:
        graded = plan.grade(Subject(run, case, kept, workspace), surroundings, earlier)
        verdicts, given = graded if isinstance(graded, tuple) else await graded
        run.verdicts, run.grade = redaction.graded(verdicts, given)
    except Exception as error:  # noqa: BLE001 (a fault of ours in grading must not lose the run)
        message = redaction.text(f"{type(error).__name__}: {error}")
        run.verdicts, run.grade = [], Grade(outcome="errored", reasons=[f"could not be graded: {message}"])
    if kept is not None:
        kept.verdicts, kept.grade = run.verdicts, run.grade
    return run.grade


def hold_to(run: Run, before: Sequence[Verdict]) -> Grade:
    """The grade of a stored run that was graded again because less is known of it than `before`: nothing passes that
    did not, and where the stored run is not what was graded then, what failed stays failed."""
    if run.grade is None:
        raise ValueError("the run is not graded")
    if [verdict.grader for verdict in before] != [verdict.grader for verdict in run.verdicts]:
        return run.grade  # one of the two gradings could not be done, and is errored
    redacted = is_redacted(run)
    verdicts = []
    for was, now in zip(before, run.verdicts, strict=True):
        stands = (redacted and was.outcome == "failed") or (now.outcome == "passed" and was.outcome != "passed")
        verdicts.append(_standing(was, now.key) if stands else now)
    if verdicts != run.verdicts:
        run.verdicts, run.grade = verdicts, conclude(verdicts, run.grade.threshold)
    return run.grade


def _standing(was: Verdict, key: str) -> Verdict:
    """An earlier verdict in the place of a later one. Earlier versions did not store the range of a score, so that of
    a verdict on calls, or of several graders together, may not be exact."""
    inexact = was.score is not None and was.score_range is None and (was.basis is not None or was.kind == "composite")
    return msgspec.structs.replace(was, key=key, score_range=ScoreRange(0.0, 1.0) if inexact else was.score_range)
