"""The page of one run: what came of it, where it went wrong, what it did."""

from __future__ import annotations

import msgspec

from seatrial.runs import RunKey
from seatrial.store import RunRecord, Store


class SingleRunPage(msgspec.Struct, frozen=True):
    """What the page shows beside the transcript."""

    run_id: str
    record: RunRecord
    title: str
    """The case; of a run of the run service, which has none, its thread."""
    experiment: str | None
    """The name of its experiment; None for a run of the run service."""


def run_page(store: Store, run_id: str) -> SingleRunPage:
    """One run, without what it may have any amount of."""
    record = store.run_record(run_id)
    key = record.key
    name = None if record.experiment_id is None else store.resolve_experiment(record.experiment_id).name
    return SingleRunPage(
        run_id=run_id,
        record=record,
        title=key.case_id if isinstance(key, RunKey) else key.thread_id,
        experiment=name,
    )
