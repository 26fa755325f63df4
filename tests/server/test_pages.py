"""What the store has of a run, page by page."""

from __future__ import annotations

import json
from pathlib import Path

from strategies import records

from seatrial.runs import RunKey
from seatrial.server.service import event_page
from seatrial.store import open_store


def test_an_event_that_is_not_what_it_says_is_listed_as_it_is_streamed(tmp_path: Path) -> None:
    broken = b'{"type":"SUBAGENT_STARTED"}'
    with open_store(tmp_path / "store.db") as store:
        store.create_experiment(records.experiment(), records.cases(1))
        store.begin_run("exp-1", RunKey("crew", "case-0", 1), "run-1")
        store.append_events("run-1", [broken]).wait()
        page = event_page(store, "run-1", None, 10)
    assert [json.loads(envelope)["event"] for envelope in map(bytes, page.events)] == [
        {"type": "CUSTOM", "name": "SUBAGENT_STARTED", "value": {}}
    ]
