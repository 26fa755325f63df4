"""Rollups held against the rows that they are made of."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from msgspec.structs import astuple

from seatrial.store import Store, schema
from seatrial.store.counts import recount


def check_rollups(store: Store, experiment_id: str = "exp-1") -> None:
    """Fails unless the rollups of an experiment are what its rows add up to."""
    number = store._number(experiment_id)
    with store._dialect.reading.connect() as connection:
        counted = recount(connection, number)
        cells = connection.execute(sa.select(schema.cells).where(schema.cells.c.experiment == number)).all()
        tallies = connection.execute(sa.select(schema.tallies).where(schema.tallies.c.experiment == number)).all()
    assert _kept(cells, 2) == {key: astuple(sums) for key, sums in counted.cells.items() if any(astuple(sums))}
    assert _kept(tallies, 3) == {key: astuple(sums) for key, sums in counted.tallies.items() if any(astuple(sums))}


def _kept(rows: Any, key: int) -> dict[tuple[str, ...], tuple[int, ...]]:
    """The rows that are not 0, without the experiment, by so many columns."""
    found = {tuple(row[1 : 1 + key]): tuple(int(value) for value in row[1 + key :]) for row in rows}
    return {name: sums for name, sums in found.items() if any(sums)}
