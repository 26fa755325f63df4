"""A damaged row costs what it belongs to, is named, and nothing else is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from strategies import records
from strategies.rollups import check_rollups
from strategies.served import NOW, admission

from seatrial.engine.regrading import regrade
from seatrial.errors import SeatrialError
from seatrial.graders import GradingPlan, Surroundings
from seatrial.reports import FORMS, stored_report
from seatrial.reports.report import RECORD_DAMAGED
from seatrial.store import RunFilter, Store, schema
from seatrial.trajectory.step import Step

LONG = "word " * 1000  # enough to be compressed


def damage(store: Store, statement: sa.Executable) -> None:
    """Change what is stored behind the store's back."""
    with store._dialect.migrating() as connection:
        connection.execute(statement)


def number_of(run_id: str) -> sa.ScalarSelect[int]:
    return sa.select(schema.runs.c.id).where(schema.runs.c.run_id == run_id).scalar_subquery()


@pytest.fixture
def five(filled: Store, request: pytest.FixtureRequest) -> Store:
    """Five runs that passed, each with all its parts."""
    for index in range(5):
        run = records.run(index, run_id=f"run-{index}", body=f"{index} {LONG}".encode())
        run.reading = records.reading("Refund", f"Done {index}. {LONG}")
        run.steps = [Step(0, "look", {}), Step(1, "refund", {})]
        if "earlier version" not in request.node.name:
            assert run.grade is not None
            run.grade.verdicts = len(run.verdicts)
        filled.record_run(run, events=[b'{"type":"CUSTOM","name":"%d"}' % index] * 200, first=0).wait()
    return filled


ANSWERED = GradingPlan([{"kind": "contains", "value": "Done"}])
BROKEN = b"\x28\xb5\x2f\xfd broken"

PARTS: dict[str, Callable[[], sa.Executable]] = {
    "a reading that cannot be unpacked": lambda: (
        sa.update(schema.readings).where(schema.readings.c.run == number_of("run-2")).values(data=BROKEN)
    ),
    "a reading packed in an unknown way": lambda: (
        sa.update(schema.readings).where(schema.readings.c.run == number_of("run-2")).values(packed=9)
    ),
    "a step that is no JSON": lambda: (
        sa.update(schema.steps)
        .where(schema.steps.c.run == number_of("run-2"), schema.steps.c.position == 1)
        .values(data=b'{"name": ')
    ),
    "a step that is missing": lambda: sa.delete(schema.steps).where(
        schema.steps.c.run == number_of("run-2"), schema.steps.c.position == 1
    ),
    "a verdict of another shape": lambda: (
        sa.update(schema.verdicts).where(schema.verdicts.c.run == number_of("run-2")).values(data=b"[1, 2]")
    ),
    "a verdict that is missing": lambda: sa.delete(schema.verdicts).where(
        schema.verdicts.c.run == number_of("run-2"), schema.verdicts.c.position == 0
    ),
    "verdicts that are missing, of an earlier version": lambda: sa.delete(schema.verdicts).where(
        schema.verdicts.c.run == number_of("run-2")
    ),
    "an attempt that is no JSON": lambda: (
        sa.update(schema.attempts).where(schema.attempts.c.run == number_of("run-2")).values(data=b'{"number": ')
    ),
    "an attempt that is missing": lambda: sa.delete(schema.attempts).where(schema.attempts.c.run == number_of("run-2")),
    "a grade that is no text": lambda: (
        sa.update(schema.runs).where(schema.runs.c.run_id == "run-2").values(grade=b"\xff\xfe\x00")
    ),
    "data that is empty": lambda: sa.update(schema.runs).where(schema.runs.c.run_id == "run-2").values(data=b""),
}
GRADING = [part for part in PARTS if "verdict" in part or "grade" in part]
"""Parts without which a run can be graded anew."""


@pytest.mark.parametrize("part", PARTS)
def test_a_run_that_cannot_be_read_is_errored_and_named_and_the_others_are_whole(five: Store, part: str) -> None:
    damage(five, PARTS[part]())
    runs = list(five.whole_runs("exp-1"))
    assert [run.status for run in runs] == ["completed", "completed", "failed", "completed", "completed"]
    assert runs[2].fault is not None
    assert runs[2].fault.error_class == "record_damaged"
    assert "run-2" in runs[2].fault.message
    assert runs[2].grade is not None
    assert runs[2].grade.outcome == "errored"
    assert runs[2].steps == []
    assert five.run("run-2").errored
    assert five.run("run-3").status == "completed"
    assert [len(five.runs("exp-1")), len(five.search("refund"))] == [5, 5]


@pytest.mark.parametrize("part", [part for part in PARTS if part not in GRADING])
def test_grading_again_errors_a_damaged_run_and_grades_the_others(five: Store, part: str) -> None:
    damage(five, PARTS[part]())
    done = asyncio.run(regrade(five, "exp-1", ANSWERED, Surroundings()))
    assert done.outcomes == {"passed": 4, "errored": 1}
    assert done.damaged == ["run-2"]
    # The pass of the earlier grading must not stand for this one.
    assert [row.outcome for row in five.runs("exp-1", RunFilter(run_ids=frozenset({"run-2"})))] == ["errored"]
    report = stored_report(five, "exp-1")
    assert (report.summary.passed, report.summary.errored) == (4, 1)
    (row,) = [row for row in report.rows(detailed=True) if row.detail is not None]
    assert row.run_id == "run-2"
    assert row.detail is not None
    assert "damaged" in row.detail.message


@pytest.mark.parametrize("part", GRADING)
def test_grading_again_grades_a_run_of_which_only_verdicts_are_damaged_and_counts_it_once(
    five: Store, part: str
) -> None:
    damage(five, PARTS[part]())
    for _ in range(2):
        done = asyncio.run(regrade(five, "exp-1", ANSWERED, Surroundings()))
        assert (done.outcomes, done.damaged) == ({"passed": 5}, [])
        check_rollups(five)
        report = stored_report(five, "exp-1")
        assert (report.summary.passed, report.summary.errored) == (5, 0)
        assert [(line.grader, line.outcomes) for line in five.grader_counts("exp-1")] == [("contains", {"passed": 5})]


def test_a_run_that_takes_the_place_of_one_without_its_verdicts_is_counted_once(five: Store) -> None:
    damage(five, PARTS["a verdict that is missing"]())
    five.record_run(records.run(2, run_id="again"), replace=True).wait()
    check_rollups(five)


def test_a_run_of_which_more_than_the_verdicts_is_damaged_is_errored_and_its_verdicts_count_no_more(
    five: Store,
) -> None:
    damage(five, PARTS["a verdict that is missing"]())
    damage(five, PARTS["a step that is missing"]())
    done = asyncio.run(regrade(five, "exp-1", ANSWERED, Surroundings()))
    assert (done.outcomes, done.damaged) == ({"passed": 4, "errored": 1}, ["run-2"])
    check_rollups(five)


@pytest.mark.parametrize("part", PARTS)
def test_the_table_of_graders_has_no_verdict_on_a_damaged_run(five: Store, part: str) -> None:
    whole = {line.grader: sum(line.outcomes.values()) for line in five.grader_counts("exp-1")}
    damage(five, PARTS[part]())
    shown = stored_report(five, "exp-1").graders
    assert {line.grader: sum(line.outcomes.values()) for line in shown} == {
        grader: count // 5 * 4 for grader, count in whole.items()
    }


@pytest.mark.parametrize("part", PARTS)
def test_a_report_names_a_damaged_run_that_had_passed_and_does_not_count_it_as_passed(five: Store, part: str) -> None:
    damage(five, PARTS[part]())
    report = stored_report(five, "exp-1")
    assert (report.summary.passed, report.summary.errored) == (4, 1)
    rows = {row.run_id: row for row in report.rows(detailed=True)}
    assert [row.run_id for row in rows.values() if row.outcome != "passed"] == ["run-2"]
    row = rows["run-2"]
    assert (row.outcome, row.error_class, row.score) == ("errored", "record_damaged", None)
    assert row.detail is not None
    part_name = next(name for name in ("reading", "step", "verdict", "grade", "data", "attempt") if name in part)
    assert "the stored record of run run-2 is damaged: it" in row.detail.message
    assert part_name in row.detail.message


def test_a_case_that_cannot_be_read_costs_its_runs_alone(five: Store) -> None:
    damage(five, sa.update(schema.cases).where(schema.cases.c.case_id == "case-2").values(data=b"{", packed=0))
    with pytest.raises(SeatrialError, match="the stored case 'case-2' is damaged") as caught:
        list(five.cases("exp-1"))
    assert caught.value.code == "damaged"
    errors: list[SeatrialError] = []
    assert [case.id for case in five.cases("exp-1", damaged=errors)] == ["case-0", "case-1", "case-3", "case-4"]
    assert len(errors) == 1
    done = asyncio.run(regrade(five, "exp-1", ANSWERED, Surroundings()))
    assert done.outcomes == {"passed": 4, "errored": 1}
    rows = list(stored_report(five, "exp-1").rows(detailed=True))
    assert [row.outcome for row in rows] == ["passed", "passed", "errored", "passed", "passed"]
    assert rows[2].detail is not None
    assert "case-2" in rows[2].detail.message


def test_a_suite_that_cannot_be_read_costs_its_experiment_alone(five: Store) -> None:
    five.create_experiment(records.experiment("exp-2"), records.cases(1))
    damage(five, sa.update(schema.experiments).where(schema.experiments.c.experiment_id == "exp-2").values(suite=b"{"))
    with pytest.raises(SeatrialError, match="experiment exp-2 is damaged"):
        five.resolve_experiment("latest")
    assert [found.experiment_id for found in five.experiments()] == ["exp-2", "exp-1"]
    assert five.resolve_experiment("exp-1").experiment_id == "exp-1"


def test_bytes_that_cannot_be_unpacked_cost_themselves_alone(five: Store) -> None:
    held = sa.select(schema.runs.c.body).where(schema.runs.c.run_id == "run-2").scalar_subquery()
    damage(five, sa.update(schema.bodies).where(schema.bodies.c.hash == held).values(data=BROKEN, packed=2))
    run = five.run("run-2")
    assert run.status == "completed"
    assert run.body is None
    assert run.reading is not None
    assert run.reading.notes[-1].code == "body_damaged"
    damage(
        five, sa.update(schema.events).where(schema.events.c.run == number_of("run-2")).values(data=BROKEN, packed=2)
    )
    with pytest.raises(SeatrialError) as caught:
        five.events("run-2")
    assert caught.value.code == "damaged"
    assert len(five.events("run-1")) == 200


def test_a_list_of_served_runs_is_not_lost_with_one_of_them(store: Store) -> None:
    with_server = store.begin_serving("server", NOW)
    for index in range(3):
        store.admit_run(admission(f"run-{index}", f"thread-{index}", server_id="server")).wait()
    damage(store, sa.update(schema.served_runs).where(schema.served_runs.c.run == number_of("run-1")).values(data=b"{"))
    page, _ = store.served_runs()
    assert sorted(run.run_id for run in page) == ["run-0", "run-1", "run-2"]
    assert [run.error_code for run in page if run.run_id == "run-1"] == ["record_damaged"]
    with_server.close()


COLUMNS: dict[str, Any] = {
    **dict.fromkeys(
        (
            *("position", "agent", "trial", "status", "outcome", "score", "error_class", "started_at"),
            *("duration_ms", "attempts", "steps", "calls", "input_tokens", "output_tokens", "cost_usd", "signature"),
        ),
        b"",
    ),
    "position, to another place": 4,
    "score, to another one": 0.25,
    "outcome, to another one": "failed",
    "calls, to another level": "none",
}


@pytest.mark.parametrize("column", list(COLUMNS))
def test_a_run_with_a_damaged_column_is_errored_and_named_in_every_report(five: Store, column: str) -> None:
    if five.address() is not None:
        pytest.skip("PostgreSQL lets no column have a value of another type")
    name = column.partition(",")[0]
    statement = sa.text(f"UPDATE runs SET {name} = :value WHERE run_id = 'run-2'")
    damage(five, statement.bindparams(value=COLUMNS[column]))
    report = stored_report(five, "exp-1")
    rows = list(report.rows(detailed=True))
    assert sorted(row.run_id for row in rows) == [f"run-{number}" for number in range(5)]
    assert {row.run_id: row.error_class for row in rows if row.outcome != "passed"} == {"run-2": "record_damaged"}
    assert (report.damaged, report.summary.passed, report.summary.errored) == (1, 4, 1)
    for form, written in FORMS.items():
        assert RECORD_DAMAGED in "".join(written(report)), form
