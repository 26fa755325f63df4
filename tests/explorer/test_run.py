"""The page of one run."""

from __future__ import annotations

from strategies import records

from explorer.test_routes import fetched
from seatrial.store import Store


def test_a_run_is_shown_with_its_outcome_and_its_case(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(1))
    run = records.run()
    store.record_run(run).wait()
    status, _, text = fetched(store, f"/runs/{run.run_id}")
    assert status == 200
    assert "case-0" in text
    assert 'class="bd passed"' in text


def test_a_run_that_is_not_there_is_not_found(store: Store) -> None:
    assert fetched(store, "/runs/run-99")[0] == 404
