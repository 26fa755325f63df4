"""Grading stored runs again, without running them: only what changed is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from seatrial.graders import GradingPlan, Subject, Surroundings
from seatrial.runs import Run
from seatrial.store import Receipt, Store


class Regrading(msgspec.Struct):
    """What grading again did."""

    outcomes: Counter[str]
    """Judgements, after it."""
    changed: int = 0
    """Runs whose judgement is another one now."""
    computed: int = 0
    """Verdicts that had to be computed."""
    reused: int = 0
    """Verdicts that were known already, by their content key."""


async def regrade(
    store: Store,
    experiment_id: str,
    plan: GradingPlan,
    surroundings: Surroundings,
    finished: Callable[[Run], None] | None = None,
) -> Regrading:
    """Grade every run of an experiment that has ended; earlier verdicts stay known."""
    done = Regrading(Counter())
    cases = {case.id: case for case in store.cases(experiment_id)}
    receipt: Receipt[None] | None = None
    for run in store.whole_runs(experiment_id):
        if run.status in ("pending", "running", "cancelled"):
            continue
        known = store.known_verdicts(run.run_id)
        graded = plan.grade(Subject(run, cases[run.key.case_id]), surroundings, known)
        verdicts, grade = await graded if isinstance(graded, Awaitable) else graded
        reused = sum(verdict.key in known for verdict in verdicts)
        done.reused += reused
        done.computed += len(verdicts) - reused
        done.outcomes[grade.judgement] += 1
        if run.grade is None or grade.judgement != run.grade.judgement:
            done.changed += 1
        if verdicts != run.verdicts or grade != run.grade:
            receipt = store.record_verdicts(run.run_id, verdicts, grade)
        run.verdicts, run.grade = verdicts, grade
        if finished is not None:
            finished(run)
    if receipt is not None:
        await receipt
    return done
