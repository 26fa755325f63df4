"""The page of all experiments."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from strategies import records

from explorer.test_compare_experiments import experiment
from explorer.test_experiment import words
from explorer.test_routes import fetched
from seatrial.explorer import experiments
from seatrial.store import Store


def page(store: Store, parameters: str = "") -> str:
    """The page as it came."""
    status, _, text = fetched(store, f"/experiments{parameters}")
    assert status == 200, text
    return text


def test_a_suite_opens_with_what_its_newest_experiment_says_against_the_one_before(store: Store) -> None:
    experiment(store, "monday", ["pp"] * 20)
    experiment(store, "tuesday", ["pp"] * 6 + ["ff"] * 14)
    text = words(page(store))
    assert "1 suite · 2 experiments" in text
    assert "refunds 20 cases · 1 agent" in text
    assert "crew is worse than in monday : −70.0 points" in text
    assert "▼ −70.0 points" in text


def test_nothing_is_worse_where_the_interval_includes_zero_and_nothing_is_compared_across_suites(store: Store) -> None:
    experiment(store, "monday", ["p", "p", "p"])
    experiment(store, "tuesday", ["p", "p", "f"])
    experiment(store, "wednesday", ["f", "f", "f"], suite_hash="another")
    text = words(page(store))
    assert "−33.3 no clear difference" in text
    assert "worse" not in text
    assert "▼" not in text


def test_errored_runs_are_counted_apart(store: Store) -> None:
    experiment(store, "monday", ["pe", "fe"])
    text = words(page(store))
    assert "crew passes 50.0% of 2 graded runs" in text
    assert "Not counted: 2 errored." in text


def test_the_trend_has_a_line_that_breaks_where_the_suite_changes(store: Store) -> None:
    for number, suite in enumerate(["one", "one", "two", "two"]):
        experiment(store, f"day-{number}", ["p", "f"], suite_hash=suite)
    text = page(store)
    assert text.count('class="ln1"') == 2
    assert "Pass rates of the last 4 experiments: crew from 50.0% to 50.0%" in text


def test_older_experiments_are_a_link_away_in_both_orders(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "BY_TIME", 2)
    monkeypatch.setattr(experiments, "SHOWN", 2)
    for number in range(5):
        experiment(store, f"day-{number}", ["p"])
    assert "3 older experiments" in words(page(store))
    seen: list[str] = []
    address = "?by=time"
    while address:
        text = page(store, address)
        seen += re.findall(r'<a href="/experiments/(day-\d)" ', text)
        found = re.search(r'href="/experiments(\?[^"]*)" rel="next"', text)
        address = found[1].replace("&amp;", "&") if found else ""
    assert seen == [f"day-{number}" for number in reversed(range(5))]


def test_a_filter_leaves_experiments_with_a_run_that_matches(store: Store) -> None:
    experiment(store, "monday", ["p"])
    experiment(store, "tuesday", ["f"])
    text = words(page(store, f"?q={quote('outcome:failed')}"))
    assert "tuesday" in text
    assert "monday" not in text
    assert "No experiment has a run that matches" in words(page(store, "?q=agent:nobody"))
    assert "Nothing is filtered until this is right." in words(page(store, "?q=agnt:nobody"))


def test_running_and_stopped_experiments_say_so_and_an_empty_store_what_to_do(store: Store) -> None:
    assert "No experiments yet" in words(page(store))
    store.create_experiment(records.experiment("monday", name="monday"), records.cases(2))
    assert "No runs yet." in words(page(store))
    store.record_run(records.run(0, experiment_id="monday")).wait()
    assert "So far, crew passes 100% of 1 graded run" in words(page(store))
    store.finish_experiment("monday", finished_at=records.CREATED_AT, stop_reason="the budget is used up").wait()
    assert "stopped: the budget is used up" in words(page(store))
