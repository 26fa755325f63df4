"""The page of all experiments."""

from __future__ import annotations

import msgspec

from seatrial.store import ExperimentSummary, Store


class ExperimentsPage(msgspec.Struct, frozen=True):
    """What the page shows."""

    experiments: list[ExperimentSummary]


def experiments_page(store: Store) -> ExperimentsPage:
    """The newest experiments."""
    return ExperimentsPage(store.experiments())
