"""The page of one case."""

from __future__ import annotations

import html
import re

from msgspec.structs import replace
from strategies import records

from explorer.test_compare_experiments import experiment
from explorer.test_routes import fetched
from seatrial.explorer import case as case_module
from seatrial.explorer.case import case_page
from seatrial.runs import Case
from seatrial.store import Store


def words(store: Store, path: str) -> str:
    status, _, text = fetched(store, path)
    assert status == 200, text
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_the_page_says_since_when_a_case_is_flaky_and_leads_to_the_pair_that_shows_it(store: Store) -> None:
    for number in range(4):
        experiment(store, f"old-{number}", ["p", "ppppp"])
    experiment(store, "new", ["p", "pfffe"])
    page = case_page(store, "new", "case-1")
    assert page.sentence.text.startswith("Flaky since new: 1 of 4 graded trials pass, before 20 of 20.")
    assert "1 trial is not counted: agent_unavailable (1)." in page.sentence.text
    assert [column.tally.name for column in page.columns] == ["old-0", "old-1", "old-2", "old-3", "new"]
    assert [column.here for column in page.columns] == [False] * 4 + [True]
    assert [row.run.outcome for row in page.rows] == ["passed", "failed", "failed", "failed", "errored"]
    assert page.rows[1].compare == "/compare/runs?a=new-crew-1-1&b=new-crew-1-2"
    assert [sum(way.counts) for way in page.ways] == [3, 1]
    assert (page.neighbours.before, page.neighbours.after) == ("case-0", None)
    shown = words(store, "/experiments/new/cases/case-1")
    assert "Flaky since new : 1 of 4 graded trials pass" in shown
    assert "trial 2 12.5 ms 1 – trajectory: 1 of 1 calls. compare with trial 1" in shown


def test_where_no_trial_passes_one_of_an_earlier_experiment_stands_beside(store: Store) -> None:
    experiment(store, "old", ["pp"])
    experiment(store, "new", ["ff"])
    (first, _) = case_page(store, "new", "case-0").rows
    assert (first.compare, first.compare_words) == (
        "/compare/runs?a=old-crew-0-1&b=new-crew-0-1",
        "compare with trial 1 of old",
    )


def test_history_is_of_experiments_that_ask_the_same_and_not_of_later_ones(store: Store) -> None:
    experiment(store, "other", ["p"], cases=[Case(id="case-0", instruction="Something else.")], suite_hash="0ther")
    # The suite is another one, since its agents are; the case is the same.
    experiment(store, "older", ["p"], cases=[replace(records.cases(1)[0], tags=["new"])], suite_hash="01der")
    experiment(store, "old", ["f"])
    experiment(store, "new", ["p"])
    page = case_page(store, "old", "case-0")
    assert [column.tally.name for column in page.columns] == ["older", "old"]
    assert page.other == 1
    assert "1 earlier one that asks something else by this case is left out" in words(
        store, "/experiments/old/cases/case-0"
    )


def test_an_agent_can_be_chosen_and_the_one_that_fails_most_comes_first(store: Store) -> None:
    experiment(store, "new", ["pp"], agents=("big",))
    for trial in (1, 2):
        store.record_run(
            records.run(0, run_id=f"s{trial}", experiment_id="new", agent="small", trial=trial, outcome="failed")
        ).wait()
    page = case_page(store, "new", "case-0")
    assert (page.agent, page.sentence.lead) == ("small", "Fails")
    assert page.agents[0] == ("big", "/experiments/new/cases/case-0?agents=big")
    assert case_page(store, "new", "case-0", "big").sentence.lead == "Passes"
    assert "No agent “huge” ran this case here." in words(store, "/experiments/new/cases/case-0?agents=huge")


def test_a_case_that_nobody_ran_and_one_that_there_is_not(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(1))
    assert "Not judged here" in words(store, "/experiments/exp-1/cases/case-0")
    assert fetched(store, "/experiments/exp-1/cases/case-9")[0] == 404


def test_older_experiments_are_a_link_away(store: Store) -> None:
    for number in range(3):
        experiment(store, f"e{number}", ["p"])
    page = case_page(store, "e2", "case-0", back=2)
    assert len(page.columns) == 2
    assert page.older == "/experiments/e2/cases/case-0?back=4"
    assert case_page(store, "e2", "case-0", back=4).older is None


def test_very_many_trials_are_counts_and_not_marks(store: Store) -> None:
    experiment(store, "new", ["p" * (case_module.MAX_MARKS + 1)])
    assert case_page(store, "new", "case-0").most == 0
    assert "passed of graded 13/13" in words(store, "/experiments/new/cases/case-0")
