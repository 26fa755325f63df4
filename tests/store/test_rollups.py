"""Rollups: whatever is written, they are what the rows add up to."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import records
from strategies.rollups import check_rollups

from seatrial.errors import SeatrialError
from seatrial.runs import Fault, Grade, JudgedBy, JudgeDetails, Outcome, Run, RunKey, RunStatus, Verdict
from seatrial.store import EDGES, Admission, Store, open_store
from seatrial.store.rollups import quantile
from seatrial.trajectory.completeness import Completeness, Level
from seatrial.transcript import Note, Usage

CASES = 3
CODES = ("bom_removed", "invalid_line", "of_a_later_version")
_numbers = st.none() | st.floats(0, 100, allow_nan=False)
_outcomes: st.SearchStrategy[Outcome] = st.sampled_from(["passed", "failed", "errored", "skipped"])
_levels: st.SearchStrategy[Level] = st.sampled_from(["complete", "partial", "none"])
_statuses: st.SearchStrategy[RunStatus] = st.sampled_from(["completed", "failed", "cancelled"])
_faults = st.sampled_from(["agent_timeout", "agent_unreachable"])
_experiments = itertools.count()


@st.composite
def runs(draw: st.DrawFn, number: int) -> Run:
    """A run of one of a few cases, agents and trials: soon there is one of the same key."""
    status: RunStatus = "completed" if draw(st.booleans()) else draw(_statuses)
    answered = status == "completed"
    outcome = draw(st.none() | _outcomes) if answered else None
    notes = [Note(draw(st.sampled_from(CODES)), "", "") for _ in range(draw(st.integers(0, 3)))]
    usage = Usage(draw(st.integers(0, 10**6)), 7) if draw(st.booleans()) else None
    reading = records.reading("a", "b", notes=notes, usage=usage, cost=draw(_numbers)) if answered else None
    level = draw(st.none() | _levels)
    graders = draw(st.lists(st.sampled_from(["tone", "calls"]), max_size=2, unique=True))
    run = records.run(
        draw(st.integers(0, CASES - 1)),
        run_id=f"run-{number}",
        agent=draw(st.sampled_from(["crew", "other"])),
        trial=draw(st.integers(1, 2)),
        status=status,
        outcome=outcome,
        reading=reading,
        completeness=Completeness(level) if level is not None and reading is not None else None,
        duration_ms=draw(_numbers),
        fault=None
        if status in ("completed", "cancelled")
        else Fault(draw(st.sampled_from(["agent_timeout", "agent_unreachable"])), "late"),
        verdicts=[records.verdict(draw(_outcomes), grader=grader) for grader in graders],
    )
    if run.grade is not None:
        run.grade.score = draw(st.none() | st.floats(0, 1))
    return run


@given(data=st.data())
@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
def test_rollups_are_what_the_rows_add_up_to_after_any_sequence_of_writes(where: str, data: st.DataObject) -> None:
    experiment_id = f"exp-{next(_experiments)}"
    store = open_store(where)
    try:
        store.create_experiment(records.experiment(experiment_id), records.cases(CASES))
        made: list[str] = []
        for number in range(data.draw(st.integers(1, 12))):
            action = data.draw(st.sampled_from(["record", "record", "replace", "begin", "live", "grade", "resume"]))
            prefix = f"{experiment_id}-{number}"
            run = data.draw(runs(number))
            run.run_id, run.experiment_id = prefix, experiment_id
            assert isinstance(run.key, RunKey)
            if action in ("record", "replace"):
                store.record_run(run, replace=action == "replace")
                made.append(prefix)
            elif action in ("begin", "live"):
                store.begin_run(experiment_id, run.key, prefix)
                if action == "live":
                    store.append_events(prefix, [b"{}"])
                    store.record_run(run, first=1)
                    made.append(prefix)
            elif action == "grade" and made:
                outcome = data.draw(_outcomes)
                verdicts = [records.verdict(outcome, grader="tone")] * data.draw(st.integers(1, 2))
                score = data.draw(st.none() | st.floats(0, 1))
                grade = Grade(outcome=outcome, score=score)
                store.record_verdicts(data.draw(st.sampled_from(made)), verdicts, grade)
            elif action == "resume":
                store.close()
                store = open_store(where)
        store.resume_experiment(experiment_id).wait()
        check_rollups(store, experiment_id)
    finally:
        store.close()


def test_a_run_that_is_refused_is_not_counted(filled: Store) -> None:
    filled.record_run(records.run(0, run_id="same")).wait()
    for run in (records.run(1, run_id="same"), records.run("unknown")):
        with pytest.raises(SeatrialError):
            filled.record_run(run).wait()
    assert filled.record_run(records.run(0, run_id="other")).wait() is False
    assert filled.totals("exp-1").agents[0].runs == 1
    check_rollups(filled)


def test_several_stores_that_write_and_grade_at_once_lose_no_count(filled: Store, where: str) -> None:
    def write(agent: str) -> None:
        with open_store(where) as store:
            receipts: list[Any] = []
            for trial in range(1, 21):
                run = records.run(trial % 5, agent=agent, trial=trial, outcome="failed" if trial % 3 else "passed")
                receipts.append(store.record_run(run))
                receipts.append(store.record_verdicts(run.run_id, [], records.grade("passed")))
            for receipt in receipts:
                receipt.wait()

    threads = [threading.Thread(target=write, args=(f"agent-{number % 2}-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(agent.outcomes["passed"] for agent in filled.totals("exp-1").agents) == 80
    check_rollups(filled)


def test_two_gradings_of_one_run_by_two_processes_count_once(filled: Store, where: str) -> None:
    filled.record_run(records.run()).wait()
    with open_store(where) as other:
        receipts = [
            store.record_verdicts("run-crew-case-0-1", [], records.grade("failed"))
            for _ in range(10)
            for store in (filled, other)
        ]
        for receipt in receipts:
            receipt.wait()
    check_rollups(filled)


@pytest.mark.parametrize("absurd", [1e15, -1e15, 2**63 - 1])
def test_absurd_numbers_of_an_agent_spoil_no_transaction(filled: Store, absurd: float) -> None:
    for case in range(5):
        reading = records.reading("a", usage=Usage(2**63 - 1, 1), cost=float(absurd))
        grade = Grade(outcome="passed", score=absurd)
        run = records.run(case, reading=reading, duration_ms=float(absurd), grade=grade)
        assert filled.record_run(run).wait()
    assert filled.record_run(records.run(0, run_id="again"), replace=True).wait()
    [agent] = filled.totals("exp-1").agents
    assert agent.runs == 5
    check_rollups(filled)


def test_runs_of_the_run_service_are_in_no_rollup(filled: Store) -> None:
    presence = filled.begin_serving("server", 0)
    filled.admit_run(
        Admission(
            run_id="r", thread_id="t", agent="a", server_id="server", created_at=0, input=b"{}", request=b"{}",
            first_event=b'{"type":"RUN_STARTED"}',
        )
    ).wait()  # fmt: skip
    filled.record_verdicts("r", [records.verdict()], records.grade()).wait()
    presence.close()
    assert filled.totals("server").agents == []
    assert filled.unconverted() == 0


def test_the_totals_say_what_is_known_and_what_is_not(filled: Store) -> None:
    for case, cost in enumerate([0.1, 0.2, None]):
        reading = records.reading("a", "b", cost=cost)
        filled.record_run(records.run(case, reading=reading, duration_ms=10.0 * (case + 1)))
    filled.record_run(records.run(3, completeness=Completeness("none"), steps=[])).wait()
    [agent] = filled.totals("exp-1").agents
    assert agent.sums["cost_usd"].runs == 2
    assert agent.sums["cost_usd"].total == pytest.approx(0.3)
    assert agent.sums["steps"].runs == 3, "of the fourth nobody knows"
    assert agent.calls == {"complete": 3, "none": 1}
    assert agent.timed == 4
    assert agent.duration_p50_ms == pytest.approx(16.25)


def test_the_totals_count_cases_trials_and_flaky_cells(filled: Store) -> None:
    for trial, outcome in enumerate(["passed", "failed", "passed"], 1):
        filled.record_run(records.run(4, trial=trial, outcome=outcome))  # type: ignore[arg-type]
        filled.record_run(records.run(1, agent="other", trial=trial, outcome=outcome))  # type: ignore[arg-type]
    filled.record_run(records.run(2)).wait()
    totals = filled.totals("exp-1")
    assert (totals.cases, totals.most_trials) == (3, 3)
    assert [(cell.agent, cell.case_id, cell.passed, cell.graded) for cell in totals.flaky] == [
        ("other", "case-1", 2, 3),
        ("crew", "case-4", 2, 3),
    ]
    assert totals.agents[0].trials == {(3, 2): 1, (1, 1): 1}


def test_the_matrix_comes_in_pages_of_cases(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(120))
    for case in range(0, 120, 2):
        for agent in ("crew", "other"):
            store.record_run(records.run(case, agent=agent))
    store.resume_experiment("exp-1").wait()
    pages = [store.matrix("exp-1", first=first) for first in (0, 50, 100, 150)]
    assert [len(page) for page in pages] == [50, 50, 20, 0]
    assert [cell.case_id for cell in pages[1][:4]] == ["case-50", "case-50", "case-52", "case-52"]


def test_examples_are_the_first_trials(filled: Store) -> None:
    for trial, outcome in enumerate(["failed", "passed", "failed"], 1):
        filled.record_run(records.run(0, trial=trial, outcome=outcome)).wait()  # type: ignore[arg-type]
    cells = filled.agent_cells("exp-1", "crew")
    filled.add_examples("exp-1", cells)
    assert (cells[0].passed_run, cells[0].failed_run) == ("run-crew-case-0-2", "run-crew-case-0-1")


def test_ways_to_fail_are_counted_and_the_most_frequent_come_first(filled: Store) -> None:
    late = Fault("agent_timeout", "late")
    for case in range(3):
        filled.record_run(records.run(case, status="failed", outcome=None, fault=late))
    said = JudgeDetails(failure_mode="Too  blunt", judge=JudgedBy(model="m", votes=1, prompt_hash="00"))
    blunt = Verdict(grader="tone", kind="judge", outcome="failed", details=said)
    filled.record_run(records.run(3, outcome="failed", verdicts=[blunt])).wait()
    found = [(counted.signature, counted.runs) for counted in filled.signatures("exp-1")]
    assert found == [("fault|agent_timeout", 3), ("judge|too blunt", 1)]
    assert filled.runs("exp-1")[0].signature == "fault|agent_timeout"
    filled.record_verdicts("run-crew-case-3-1", [], records.grade("passed")).wait()
    assert len(filled.signatures("exp-1")) == 1


def test_histograms_have_the_runs_that_say_something_of_the_agent(filled: Store) -> None:
    filled.record_run(records.run(0, duration_ms=0.0))
    filled.record_run(records.run(1, duration_ms=1e9, outcome="failed"))
    filled.record_run(records.run(2, outcome="errored")).wait()
    [agent] = filled.totals("exp-1").agents
    assert agent.histograms["duration_ms"] == {0: 1, len(EDGES["duration_ms"]): 1}
    assert agent.histograms["score"] == {0: 1, 63: 1}


def test_percentiles_of_many_runs_are_nearly_those_of_all_durations(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    durations = [1.5 * 1.01**trial for trial in range(300)]
    for trial, duration in enumerate(durations, 1):
        last = filled.record_run(records.run(trial % 5, trial=trial, duration_ms=duration))
    last.wait()
    [exact] = filled.totals("exp-1").agents
    monkeypatch.setattr("seatrial.store.counts.EXACT_UP_TO", 0)
    [about] = filled.totals("exp-1").agents
    assert exact.duration_p95_ms == quantile(durations, 0.95)
    assert about.duration_p50_ms == pytest.approx(exact.duration_p50_ms, rel=0.025)
    assert about.duration_p95_ms == pytest.approx(exact.duration_p95_ms, rel=0.025)


def test_quantiles_lie_between_neighbours() -> None:
    assert quantile([], 0.5) is None
    assert quantile([7.0], 0.95) == 7
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert quantile([1.0, 2.0], 1.0) == 2


def test_an_unfinished_run_is_counted_until_it_is_replaced(filled: Store) -> None:
    filled.begin_run("exp-1", RunKey("crew", "case-0", 1), "left").wait()
    assert filled.totals("exp-1").agents[0].outcomes == {"unfinished": 1}
    filled.record_run(records.run(0)).wait()
    assert filled.totals("exp-1").agents[0].outcomes == {"passed": 1}
    check_rollups(filled)
