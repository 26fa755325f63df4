"""Reading runs, on both stores."""

from __future__ import annotations

import time
from typing import Any

import pytest
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.runs import Case, Fault, ModelCosts, Outcome, Run, RunKey, Verdict
from seatrial.store import NoteTotals, RunFilter, Store, open_store
from seatrial.trajectory.completeness import Completeness, Level
from seatrial.transcript import Note


@pytest.fixture
def crowded(store: Store) -> Store:
    """Cases in no alphabetical order, by two agents, in two trials."""
    cases = [Case(id=name, instruction="") for name in ("pear", "Apple", "äpfel", "fig")]
    store.create_experiment(records.experiment(), cases)
    outcomes: list[Outcome] = ["passed", "failed", "errored", "skipped"]
    for index, case in enumerate(reversed(cases)):
        for agent in ("zeta", "Alpha"):
            for trial in (2, 1):
                store.record_run(records.run(case.id, agent=agent, trial=trial, outcome=outcomes[index])).wait()
    return store


def test_runs_come_in_the_order_of_the_suite_then_by_agent_and_trial(crowded: Store) -> None:
    expected = [
        RunKey(agent, case_id, trial)
        for case_id in ("pear", "Apple", "äpfel", "fig")
        for agent in ("Alpha", "zeta")
        for trial in (1, 2)
    ]
    assert [run.key for run in crowded.runs("exp-1")] == expected
    assert [run.key for run in crowded.whole_runs("exp-1")] == expected


@pytest.mark.parametrize("limit", [1, 3, 16, 50])
def test_pages_put_together_are_the_whole(crowded: Store, limit: int) -> None:
    pages: list[RunKey] = []
    after = None
    while page := crowded.runs("exp-1", after=after, limit=limit):
        assert len(page) <= limit
        pages += [run.key for run in page]
        after = pages[-1]
    assert pages == [run.key for run in crowded.runs("exp-1")]


def test_runs_are_filtered_by_case_fault_and_tool(crowded: Store) -> None:
    fault = Fault("agent_timeout", "nothing for 30 s")
    crowded.record_run(
        records.run("fig", agent="beta", status="failed", fault=fault, outcome="failed", steps=[])
    ).wait()

    def found(where: RunFilter) -> set[tuple[str, str]]:
        runs = crowded.runs("exp-1", where)
        assert [run.run_id for run in crowded.whole_runs("exp-1", where)] == [run.run_id for run in runs]
        return {(run.key.case_id, run.key.agent) for run in runs}

    assert found(RunFilter(cases=frozenset({"pear", "nope"}))) == {("pear", "Alpha"), ("pear", "zeta")}
    assert found(RunFilter(error_classes=frozenset({"agent_timeout"}))) == {("fig", "beta")}
    called = RunFilter(cases=frozenset({"fig"}), tools=frozenset({"lookup_order"}))
    assert found(called) == {("fig", "Alpha"), ("fig", "zeta")}
    assert found(RunFilter(tools=frozenset({"refund"}))) == set()


def test_runs_are_filtered_by_outcome_agent_and_id(crowded: Store) -> None:
    def found(where: RunFilter) -> set[tuple[str, str]]:
        return {(run.key.case_id, run.key.agent) for run in crowded.runs("exp-1", where)}

    assert found(RunFilter(outcomes=frozenset({"passed"}))) == {("fig", "Alpha"), ("fig", "zeta")}
    assert found(RunFilter(outcomes=frozenset({"failed", "errored"}), agents=frozenset({"zeta"}))) == {
        ("äpfel", "zeta"),
        ("Apple", "zeta"),
    }
    pears = {run.run_id for run in crowded.runs("exp-1") if run.key.case_id == "pear"}
    assert found(RunFilter(run_ids=frozenset({*pears, "nope"}))) == {("pear", "Alpha"), ("pear", "zeta")}
    assert found(RunFilter(agents=frozenset({"nope"}))) == set()


def test_a_filter_and_a_page_go_together(crowded: Store) -> None:
    zeta = RunFilter(agents=frozenset({"zeta"}))
    assert [run.key.trial for run in crowded.runs("exp-1", zeta, after=RunKey("zeta", "Apple", 1), limit=2)] == [2, 1]
    assert len(list(crowded.whole_runs("exp-1", zeta))) == 8


def test_a_summary_says_what_a_table_shows(filled: Store) -> None:
    fault = Fault("agent_unreachable", "refused")
    run = records.run(3, status="failed", outcome=None, said=(), fault=fault)
    filled.record_run(run).wait()
    [found] = filled.runs("exp-1")
    assert (found.key, found.run_id, found.status, found.outcome) == (run.key, run.run_id, "failed", "errored")
    assert (found.score, found.error_class, found.attempts, found.steps) == (None, "agent_unreachable", 1, 1)
    assert (found.started_at, found.duration_ms, found.cost_usd) == (run.started_at, 12.5, None)


def test_whole_runs_are_read_across_pages(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(450))
    runs = [records.run(case) for case in range(450)]
    for run in runs:
        last = store.record_run(run)
    last.wait()
    for run in runs:
        run.body = None
    assert list(store.whole_runs("exp-1")) == runs


def test_agents_are_counted(filled: Store) -> None:
    fault = Fault("agent_unavailable", "503")
    for run in (
        records.run(0),
        records.run(1, outcome="failed"),
        records.run(2, status="failed", outcome=None, said=(), fault=fault),
        records.run(3, outcome=None),
        records.run(0, agent="other", status="cancelled", outcome=None),
    ):
        filled.record_run(run).wait()
    crew, other = filled.totals("exp-1").agents
    assert (crew.agent, crew.runs, crew.sums["attempts"].total) == ("crew", 4, 4)
    assert crew.outcomes == {"passed": 1, "failed": 1, "errored": 1, "ungraded": 1}
    assert crew.error_classes == {"agent_unavailable": 1}
    assert (other.agent, other.outcomes, other.error_classes) == ("other", {"cancelled": 1}, {})


def test_the_matrix_has_a_cell_for_every_case_and_agent(filled: Store) -> None:
    for trial, outcome in enumerate(["passed", "failed", "failed", "errored"], 1):
        filled.record_run(records.run(4, trial=trial, outcome=outcome)).wait()  # type: ignore[arg-type]
    filled.record_run(records.run(2)).wait()
    first, second = filled.matrix("exp-1")
    assert (first.case_id, first.passed, first.runs, first.score) == ("case-2", 1, 1, 1.0)
    assert (second.case_id, second.passed, second.failed, second.errored) == ("case-4", 1, 2, 1)
    assert second.score == pytest.approx(1 / 3)


def test_graders_are_counted(filled: Store) -> None:
    for case, outcome in enumerate(["passed", "failed", "skipped"]):
        verdicts = [records.verdict(outcome), records.verdict(grader="judge")]  # type: ignore[arg-type]
        filled.record_run(records.run(case, verdicts=verdicts)).wait()
    judge, trajectory = filled.grader_counts("exp-1")
    assert (judge.grader, judge.outcomes, judge.score) == ("judge", {"passed": 3}, 1.0)
    assert (trajectory.outcomes, trajectory.score) == ({"passed": 1, "failed": 1, "skipped": 1}, 0.5)


def judged_run(case: int, *judges: Verdict, agent: str = "crew") -> Run:
    return records.run(case, agent=agent, verdicts=[records.verdict(), *judges])


def judged_by(cost_usd: float | None, least_cost_usd: float | None = None, **more: Any) -> Verdict:
    return Verdict(
        grader="judge", kind="judge", outcome="passed", cost_usd=cost_usd, least_cost_usd=least_cost_usd, **more
    )


def test_what_judges_cost_is_added_up_by_agent_and_by_run_over_all_gradings(filled: Store) -> None:
    filled.record_run(judged_run(0, judged_by(0.5, tokens=10), judged_by(0.25, tokens=5))).wait()
    filled.record_run(judged_run(1, judged_by(1.0, tokens=7))).wait()
    filled.record_run(judged_run(2, judged_by(None, 0.125, least_tokens=3), agent="other")).wait()
    filled.record_run(judged_run(3, judged_by(None, None, tokens=4), agent="earlier")).wait()
    filled.record_run(judged_run(4, agent="unasked")).wait()
    # Its first verdict counts no more, and was paid for; the second was known already.
    again = [judged_by(2.0, tokens=1), judged_by(None)]
    filled.record_verdicts("run-crew-case-0-1", again, records.grade("passed")).wait()
    assert filled.agent_model_costs("exp-1") == {
        "crew": ModelCosts(asked=True, known_usd=3.75, known_tokens=23),
        "other": ModelCosts(True, 0.125, 3, usd_is_all=False, tokens_are_all=False),
        "earlier": ModelCosts(True, 0.0, 4, usd_is_all=False),
    }
    costs = filled.run_model_costs(["run-crew-case-0-1", "run-crew-case-1-1", "run-unasked-case-4-1"])
    assert {run_id: found.cost_usd for run_id, found in costs.items()} == {
        "run-crew-case-0-1": 2.75,
        "run-crew-case-1-1": 1.0,
    }


def noted_run(case: int, *notes: Note, agent: str = "crew", level: Level | None = None) -> Run:
    completeness = Completeness(level, "messages", ["messages"], list(notes)) if level is not None else None
    return records.run(case, agent=agent, reading=records.reading("a", "b", notes=notes), completeness=completeness)


def test_notes_are_counted_by_agent_code_and_weight_and_a_run_with_several_once(filled: Store) -> None:
    dropped, guessed = Note("invalid_line", "/messages/1", "dropped"), Note("invalid_utf8_replaced", "", "guessed")
    lighter = Note("invalid_line", "/messages/2", "not a message of the agent", "look")
    made_up = Note("id_made", "", "made up", "harmless")
    unheard = Note("of_a_later_version", "", "?")
    for run in (
        noted_run(0, dropped, dropped, guessed),
        noted_run(1, lighter, made_up),
        noted_run(2, made_up),
        noted_run(3, unheard, agent="other"),
        noted_run(4),
    ):
        filled.record_run(run).wait()
    totals = filled.note_totals("exp-1")
    assert [(c.agent, c.code, c.weight, c.notes, c.runs) for c in totals.counts] == [
        ("crew", "invalid_line", "serious", 2, 1),
        ("other", "of_a_later_version", "serious", 1, 1),
        ("crew", "invalid_line", "look", 1, 1),
        ("crew", "invalid_utf8_replaced", "look", 1, 1),
        ("crew", "id_made", "harmless", 2, 2),
    ]
    assert (totals.runs, totals.serious_runs) == (3, 2)


def test_the_notes_of_a_run_come_heaviest_first_and_no_more_than_asked_for_but_all_are_counted(filled: Store) -> None:
    notes = [Note("id_made", f"/{n}", "made up", "harmless") for n in range(30)]
    notes += [Note("guess", f"/{n}", "guessed", "look") for n in range(3)] + [Note("drop", "/9", "dropped", "serious")]
    filled.record_run(noted_run(0, *notes, level="partial")).wait()
    filled.record_run(noted_run(1)).wait()
    found = filled.run_notes(["run-crew-case-0-1", "run-crew-case-1-1", "ghost"], limit=4)
    noted, unnoted = found["run-crew-case-0-1"], found["run-crew-case-1-1"]
    assert len(found) == 2
    assert [note.pointer for note in noted.notes] == ["/9", "/0", "/1", "/2"]
    assert noted.counts == {("id_made", "harmless"): 30, ("guess", "look"): 3, ("drop", "serious"): 1}
    assert noted.completeness is not None
    assert noted.completeness.level == "partial"
    assert (unnoted.completeness, unnoted.notes, unnoted.counts) == (None, [], {})


def test_a_summary_says_how_complete_the_calls_are(filled: Store) -> None:
    for case, level in enumerate(("complete", "partial", "none", None)):
        filled.record_run(noted_run(case, level=level)).wait()  # type: ignore[arg-type]
    assert [run.calls for run in filled.runs("exp-1")] == ["complete", "partial", "none", None]


def test_an_experiment_without_runs_counts_nothing(filled: Store) -> None:
    assert filled.note_totals("exp-1") == NoteTotals()
    assert not any([filled.totals("exp-1").agents, filled.matrix("exp-1"), filled.grader_counts("exp-1")])
    assert filled.done_keys("exp-1") == {}


def test_what_another_store_wrote_is_seen_at_once(filled: Store, where: str) -> None:
    with open_store(where) as other:
        other.record_run(records.run()).wait()
        assert len(filled.done_keys("exp-1")) == 1


def test_unknown_experiments_are_not_found(filled: Store) -> None:
    for read in (filled.done_keys, filled.runs, filled.matrix, filled.totals, filled.grader_counts):
        with pytest.raises(SeatrialError) as caught:
            read("nope")
        assert caught.value.code == "not_found"


def test_references_that_make_no_sense_are_not_found(filled: Store) -> None:
    for ref in ("", "nope", "a\0b", "\ud800", "x" * 100_000, "'; --"):
        for read in (filled.run, filled.events, filled.resolve_experiment, filled.done_keys):
            with pytest.raises(SeatrialError) as caught:
                read(ref)
            assert caught.value.code in ("not_found", "unstorable")
        with pytest.raises(SeatrialError):
            filled.case("exp-1", ref)
        assert filled.known_verdicts("nope") == {}


def test_what_is_done_of_a_large_experiment_is_known_fast(tmp_path_factory: pytest.TempPathFactory) -> None:
    with open_store(tmp_path_factory.mktemp("large") / "store.db") as store:
        store.create_experiment(records.experiment(), records.cases(5000))
        for case in range(5000):
            last = store.record_run(records.run(case))
        last.wait()
        store.done_keys("exp-1")
        started = time.process_time()
        assert len(store.done_keys("exp-1")) == 5000
        assert time.process_time() - started < 0.25
