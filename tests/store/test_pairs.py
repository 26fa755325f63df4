"""Cells of an agent beside those of a base, and pages of cases, on both databases."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from strategies import records

from seatrial.runs import Fault
from seatrial.store import CaseOrder, CellsOf, Store
from seatrial.store.filter import parse_filter

BASE = CellsOf("before", "crew")


def fill(store: Store, name: str, outcomes: list[str], agent: str = "crew") -> None:
    """An experiment with so many trials of each case, that ended as `pfe` says; one case more has no run."""
    store.create_experiment(
        records.experiment(name, name=name),
        [replace(case, tags=["odd"] if index % 2 else ["even", "all"]) for index, case in enumerate(records.cases(6))]
        + [replace(records.cases(1)[0], id="never-run")],
    )
    for index, letters in enumerate(outcomes):
        for trial, letter in enumerate(letters, 1):
            fault = Fault(error_class="agent_unavailable", message="away", detail=None)
            how = {"p": {"outcome": "passed"}, "f": {"outcome": "failed"}}.get(
                letter, {"outcome": None, "status": "failed", "fault": fault}
            )
            store.record_run(
                records.run(
                    index, run_id=f"{name}-{index}-{trial}", experiment_id=name, agent=agent, trial=trial, **how
                )
            ).wait()


@pytest.fixture
def both(store: Store) -> Store:
    """Two experiments of the same cases."""
    fill(store, "before", ["pp", "pp", "pf", "ff", "pe", "ee"])
    fill(store, "after", ["pp", "ff", "pp", "pf", "pe", "pp"])
    return store


def ids(store: Store, **order: object) -> list[str]:
    """The cases of a page, by their last letter."""
    given = CaseOrder(agent="crew", **{"base": BASE, **order})  # type: ignore[arg-type]
    places = store.case_page("after", given)
    assert store.matching_cases("after", given) == len(places)
    return [place.case_id.removeprefix("case-") for place in places]


def test_cases_are_counted_by_how_often_they_passed_on_both_sides(both: Store) -> None:
    found = both.case_tallies("after", "crew", BASE)
    assert found.pairs == {(2, 2, 2, 2): 1, (2, 2, 0, 2): 1, (1, 2, 2, 2): 1, (0, 2, 1, 2): 1, (1, 1, 1, 1): 1}
    assert (found.cases, found.flaky, found.errored) == (6, 1, 1)
    alone = both.case_tallies("after", "crew")
    assert (alone.pairs, alone.cases, alone.flaky, alone.errored) == ({}, 6, 1, 1)
    assert both.case_tallies("after", "nobody", BASE).cases == 0


def test_a_tab_has_only_its_cases_and_errored_runs_make_none_worse(both: Store) -> None:
    assert ids(both, tab="worse") == ["1"]
    assert ids(both, tab="better") == ["2", "3"]
    assert ids(both, tab="flaky") == ["3"]
    assert ids(both, tab="errored") == ["4"]
    assert ids(both, tab="worse", base=None) == []


def test_what_dropped_most_comes_first_and_what_cannot_be_compared_last(both: Store) -> None:
    assert ids(both) == ["1", "0", "4", "2", "3", "5", "never-run"]
    assert ids(both, base=None) == ["1", "3", "0", "2", "4", "5", "never-run"]
    assert ids(both, sort="suite") == ["0", "1", "2", "3", "4", "5", "never-run"]
    assert ids(both, sort="flaky")[0] == "3"
    assert ids(both, sort="score")[:2] == ["1", "3"]


def test_a_case_is_under_each_of_its_tags_and_one_without_comes_last(both: Store) -> None:
    places = both.case_page("after", CaseOrder(agent="crew", sort="suite", by_tag=True))
    assert [(place.tag, place.case_id[-1]) for place in places] == [
        *[("all", each) for each in "024"],
        *[("even", each) for each in "024"],
        *[("odd", each) for each in "135"],
        (None, "n"),
    ]


def test_pages_follow_each_other_without_a_gap(both: Store) -> None:
    order = CaseOrder(agent="crew", base=BASE)
    whole = both.case_page("after", order)
    assert [*both.case_page("after", order, limit=3), *both.case_page("after", order, first=3)] == whole


def test_a_filter_leaves_cases_with_a_run_that_matches(both: Store) -> None:
    terms = parse_filter("outcome:failed", 0)
    assert ids(both, terms=terms, agents=("crew",)) == ["1", "3"]
    assert ids(both, terms=terms, agents=("nobody",)) == []


def test_trials_and_cells_are_of_the_cases_and_agents_that_are_asked_for(both: Store) -> None:
    lines = both.trials_of("after", ["case-3", "case-4"], ["crew"], most=1)
    assert [(line.case_id, line.trial, line.run_id, line.outcome) for line in lines] == [
        ("case-3", 1, "after-3-1", "passed"),
        ("case-4", 1, "after-4-1", "passed"),
    ]
    assert {cell.case_id: cell.errored for cell in both.cells_of("after", ["case-4", "never-run"], ["crew"])} == {
        "case-4": 1
    }
    assert both.trials_of("after", ["case-3"], ["nobody"]) == []
