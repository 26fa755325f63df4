"""Forgetting the events of runs that ended long ago."""

from __future__ import annotations

import asyncio
from pathlib import Path

from seatrial.runs import Run, RunKey
from seatrial.server.maintenance import forget_before
from seatrial.store import Store, open_store
from seatrial.store.served import Admission, Ending

FINISHED = b'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}'


def ended(store: Store, run_id: str, ended_at: int) -> None:
    """A run of three events that ended at a time."""
    store.admit_run(
        Admission(
            run_id=run_id,
            thread_id=f"thread of {run_id}",
            agent="a",
            server_id="server",
            created_at=0,
            input=b"{}",
            first_event=b'{"type":"RUN_STARTED"}',
            request=b"{}",
        )
    ).wait()
    store.append_events(run_id, [b'{"type":"RAW"}'], first=1).wait()
    run = Run(run_id=run_id, experiment_id="server", key=RunKey("a", run_id, 1), status="completed")
    store.end_run(Ending(run=run, status="completed", events=[FINISHED], first=2, ended_at=ended_at)).wait()


def test_only_events_of_runs_that_ended_before_are_forgotten_and_the_last_word_is_kept(tmp_path: Path) -> None:
    with open_store(tmp_path / "kept.db") as store:
        claim = store.begin_serving("server", 0)
        ended(store, "old", 1000)
        ended(store, "new", 5000)
        assert asyncio.run(forget_before(store, 3000)) == 1
        assert [sequence for sequence, _ in store.events("old")] == [2]
        assert [sequence for sequence, _ in store.events("new")] == [0, 1, 2]
        assert store.run_head("old").first == 2
        assert store.served_run("old").status == "completed"
        assert asyncio.run(forget_before(store, 3000)) == 0
        claim.close()
