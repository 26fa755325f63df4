"""Rollups held against the rows that they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import asdict

from seatrial.store import Store, schema
from seatrial.store.counts import recount


def check_rollups(store: Store, experiment_id: str = "exp-1") -> None:
    """Fails unless the rollups of an experiment are what its rows add up to."""
    number = store._number(experiment_id)
    with store._dialect.reading.connect() as connection:
        counted = recount(connection, number)
        cells = _rows(connection, schema.cells, number)
        tallies = _rows(connection, schema.tallies, number)
    assert cells == _counted(schema.cells, counted.cells.values())
    assert tallies == _counted(schema.tallies, counted.tallies.values())


def _rows(connection: sa.Connection, table: sa.Table, experiment: int) -> dict[tuple[Any, ...], dict[str, int]]:
    """The rows that are not 0, by their keys."""
    found = connection.execute(sa.select(table).where(table.c.experiment == experiment))
    return _keyed(table, [row._asdict() for row in found])


def _counted(table: sa.Table, rows: Iterable[Struct]) -> dict[tuple[Any, ...], dict[str, int]]:
    return _keyed(table, [asdict(row) for row in rows])


def _keyed(table: sa.Table, rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, int]]:
    key = [column.name for column in table.primary_key]
    found = {
        tuple(row[name] for name in key): {name: int(value) for name, value in row.items() if name not in key}
        for row in rows
    }
    return {name: sums for name, sums in found.items() if any(sums.values())}
