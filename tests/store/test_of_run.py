"""Parts of one run: its steps as lines, its failed calls, its gradings, and the other runs of its case."""

from __future__ import annotations

import pytest
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.store import Store
from seatrial.store.documents import MAX_TEXT
from seatrial.store.of_run import whole_arguments
from seatrial.trajectory.step import Step

STEPS = [
    Step(0, "find", {"order": 1}, "a", "messages", "ok", "x" * 3 * MAX_TEXT, started_at=5, duration_ms=2.5),
    Step(1, "pay", {"sum": 1}, "b", "messages", "error", error="away"),
    Step(2, "pay", {"sum": 1}, "c", "messages", "ok"),
    Step(3, "pay", {"sum": 2}, "d", "messages", "timeout"),
    Step(4, "find", None, "e", "messages", "unknown", arguments_text="{"),
]


def test_lines_of_steps_are_read_by_range_and_without_their_results(filled: Store) -> None:
    filled.record_run(records.run(run_id="r", steps=STEPS)).wait()
    lines = filled.step_lines("r", 0, 2)
    assert [(line.index, line.name, line.status, line.started_at, line.duration_ms) for line in lines] == [
        (0, "find", "ok", 5, 2.5),
        (1, "pay", "error", None, None),
    ]
    assert [line.arguments_text for line in filled.step_lines("r", 4, 100)] == ["{"]
    with pytest.raises(SeatrialError, match="no run"):
        filled.step_lines("nobody")


def test_failed_steps_and_calls_that_went_well_later_are_found(filled: Store) -> None:
    filled.record_run(records.run(run_id="r", steps=STEPS)).wait()
    assert [found.step.index for found in filled.failed_steps("r")] == [1, 3]
    assert [found.step.index for found in filled.failed_steps("r", limit=1)] == [1]
    assert [found.step.index for found in filled.good_calls("r", "pay", 0)] == [2]
    assert filled.good_calls("r", "pay", 2) == []


def test_long_arguments_are_told_apart_by_their_address(filled: Store) -> None:
    texts = ["a" * 2 * MAX_TEXT, "a" * 2 * MAX_TEXT, "a" * 2 * MAX_TEXT + "b"]
    filled.record_run(
        records.run(run_id="r", steps=[Step(at, "pay", {"to": text}, status="ok") for at, text in enumerate(texts)])
    ).wait()
    one, two, three = [whole_arguments(found) for found in filled.steps("r")]
    assert one.arguments == two.arguments
    assert one.arguments != three.arguments


def test_every_grading_of_a_run_can_be_seen(filled: Store) -> None:
    filled.record_run(records.run(run_id="r")).wait()
    filled.record_verdicts("r", [records.verdict("failed"), records.verdict()], records.grade("failed")).wait()
    found = filled.gradings("r")
    assert [grading.outcomes for grading in found] == [{"passed": 1}, {"failed": 1, "passed": 1}]
    assert [verdict.outcome for verdict in filled.verdicts_of("r", found[0].number)] == ["passed"]
    assert [verdict.outcome for verdict in filled.verdicts_of("r", found[1].number)] == ["failed", "passed"]
    assert filled.verdicts_of("r", 99) == []


def test_the_runs_of_a_case_are_those_of_all_agents_and_trials(filled: Store) -> None:
    for agent in ("crew", "boat"):
        for trial in (1, 2):
            filled.record_run(records.run(agent=agent, trial=trial)).wait()
    filled.record_run(records.run(1)).wait()
    found = [(run.agent, run.trial) for run in filled.case_runs("exp-1", "case-0")]
    assert found == [("boat", 1), ("boat", 2), ("crew", 1), ("crew", 2)]
    assert filled.case_runs("exp-1", "nobody") == []
