"""Grading stored runs again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from engine.setting import Scripted, a_suite, run_suite, say_ok
from seatrial.engine.regrading import regrade
from seatrial.errors import SeatrialError
from seatrial.graders import GradingPlan, Subject, Surroundings
from seatrial.runs import Grade, Verdict
from seatrial.store import Receipt, Store


def test_a_verdict_that_cannot_be_stored_is_an_error_whichever_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, _ = run_suite(store, a_suite(3), {"crew": Scripted(say_ok)})
    record = store.record_verdicts
    asked: list[str] = []

    def lose_the_first(run_id: str, verdicts: Sequence[Verdict], grade: Grade) -> Receipt[None]:
        asked.append(run_id)
        return record(run_id if len(asked) > 1 else "no run of this store", verdicts, grade)

    monkeypatch.setattr(store, "record_verdicts", lose_the_first)
    other = GradingPlan([{"kind": "equals", "value": "ok"}])
    with pytest.raises(SeatrialError, match="there is no run"):
        asyncio.run(regrade(store, experiment.experiment_id, other, Surroundings()))


def test_a_fault_in_grading_one_run_is_told_of_that_run_alone(store: Store) -> None:
    class Faulty(GradingPlan):
        def grade(self, subject: Subject, *given: Any) -> Any:
            if subject.case.id == "case-1":
                raise ZeroDivisionError("ours")
            return super().grade(subject, *given)

    experiment, _ = run_suite(store, a_suite(3), {"crew": Scripted(say_ok)})
    plan = Faulty([{"kind": "equals", "value": "ok"}])
    done = asyncio.run(regrade(store, experiment.experiment_id, plan, Surroundings()))
    assert done.outcomes == {"passed": 2, "errored": 1}
    (run,) = [run for run in store.whole_runs(experiment.experiment_id) if run.case_id == "case-1"]
    assert run.verdicts == []
    assert run.grade is not None
    assert run.grade.reasons == ["could not be graded: ZeroDivisionError: ours"]
