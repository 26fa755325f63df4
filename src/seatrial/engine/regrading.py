"""Grading stored runs again, without running them: only what changed is computed."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from itertools import islice

import msgspec

from seatrial.driver.redaction import Redaction
from seatrial.engine.grading import grade
from seatrial.engine.outbox import MAX_UNCONFIRMED
from seatrial.engine.stop import Stop
from seatrial.errors import first_error
from seatrial.graders import GradingPlan, Surroundings
from seatrial.runs import Case, Grade, Run, RunKey, Verdict
from seatrial.store import Receipt, Store
from seatrial.suites import Secrets

MAX_LOST_NAMED = 20


class Regrading(msgspec.Struct):
    """What grading again did."""

    outcomes: Counter[str]
    """Outcomes, after it."""
    changed: int = 0
    """Runs whose outcome is another one now."""
    computed: int = 0
    """Verdicts that had to be computed. On a run without an answer there is nothing to compute."""
    reused: int = 0
    """Verdicts that were known already, by their content key."""
    damaged: list[str] = []
    """Runs that the store cannot give any more, or whose cases it cannot: not graded, and counted as errored."""
    lost: int = 0
    """Runs that the experiment had when it was finished, and that have no end in the store any more: counted as
    errored."""
    lost_runs: list[str] = []
    """The first of them, in words, as far as it is known which they are."""
    stop_reason: str | None = None
    """Why it ended before all runs were graded."""


async def regrade(
    store: Store,
    experiment_id: str,
    plan: GradingPlan,
    surroundings: Surroundings,
    finished: Callable[[Run], None] | None = None,
    *,
    cases: Iterable[Case] = (),
    secrets: Secrets | None = None,
    concurrency: int = 1,
    stop: Stop | None = None,
) -> Regrading:
    """Grade every run of an experiment that has ended, so many at once; earlier verdicts stay known. A stop lets those
    be graded that were begun.

    What `cases` say of how they are graded counts before what was stored with the runs. Raises what the store
    fails with.
    """
    done = Regrading(Counter())
    redaction = Redaction(secrets)
    known_cases = {case.id: case for case in store.cases(experiment_id, damaged=[])}
    for case in cases:
        if (asked := known_cases.get(case.id)) is not None:
            known_cases[case.id] = _graded_as(asked, case)
    unconfirmed: deque[Receipt[None]] = deque()
    runs = store.whole_runs(experiment_id, to_grade=True)

    async def work() -> None:
        for run in runs:  # the next free task takes the next one
            if stop is not None and stop.reason is not None:
                done.stop_reason = stop.reason
                return
            if run.status in ("pending", "running", "cancelled"):
                continue
            case = known_cases.get(run.case_id or "")
            if case is None or (run.fault is not None and run.fault.error_class == "record_damaged"):
                damage = f"record_damaged: {_damage(run)}"
                # An earlier grade must not stand for what these graders would say.
                done.outcomes["errored"] += 1
                done.damaged.append(run.run_id)
                unconfirmed.append(store.record_verdicts(run.run_id, [], Grade(outcome="errored", reasons=[damage])))
                continue
            known = {key: verdict for key, verdict in store.known_verdicts(run.run_id).items() if _final(verdict)}
            before, grade_before = run.verdicts, run.grade
            given = await grade(run, case, plan, surroundings, redaction, known)
            if run.status == "completed":
                reused = sum(verdict.key in known for verdict in run.verdicts)
                done.reused += reused
                done.computed += len(run.verdicts) - reused
            done.outcomes[given.outcome] += 1
            if grade_before is None or given.outcome != grade_before.outcome:
                done.changed += 1
            if run.verdicts != before or given != grade_before:
                unconfirmed.append(store.record_verdicts(run.run_id, run.verdicts, given))
            if finished is not None:
                finished(run)
            while len(unconfirmed) > MAX_UNCONFIRMED or (unconfirmed and unconfirmed[0].done):
                await unconfirmed.popleft()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    for receipt in unconfirmed:
        await receipt
    if done.stop_reason is None:
        _count_lost(store, experiment_id, known_cases, done)
    return done


def _count_lost(store: Store, experiment_id: str, cases: Collection[str], done: Regrading) -> None:
    """Count the runs of a finished experiment that are missing: what is not there was not passed."""
    experiment = store.resolve_experiment(experiment_id)
    planned = experiment.planned_runs(store.case_count(experiment_id))
    done.lost = max(planned - done.outcomes.total(), 0) if experiment.status == "finished" else 0
    if not done.lost:
        return
    ended = store.done_keys(experiment_id)
    chosen = experiment.selected
    keys = (
        RunKey(agent, case_id, trial)
        for agent in experiment.suite.get("agents", ())
        for case_id in (cases if chosen is None else chosen.get(agent, ()))
        for trial in range(1, experiment.suite.get("trials", 1) + 1)
    )
    missing = islice((key for key in keys if key not in ended), MAX_LOST_NAMED)
    done.lost_runs = [f"{key.agent}, {key.case_id}, trial {key.trial}" for key in missing]
    done.outcomes["errored"] += done.lost


def _damage(run: Run) -> str:
    """Why a run cannot be graded any more."""
    if run.fault is not None and run.fault.error_class == "record_damaged":
        return run.fault.message
    return f"the stored case {run.case_id!r} cannot be read any more"


def _final(verdict: Verdict) -> bool:
    """Whether it need not be found again; what could not run may run now."""
    return verdict.outcome in ("passed", "failed")


def _graded_as(asked: Case, case: Case) -> Case:
    """The case as the agent was asked, with the expectations of another."""
    return msgspec.structs.replace(
        asked,
        graders=case.graders,
        threshold=case.threshold,
        expected=case.expected,
        expected_outcome=case.expected_outcome,
        expected_outcome_detail=case.expected_outcome_detail,
    )
