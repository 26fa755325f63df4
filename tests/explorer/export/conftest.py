"""Stores with experiments to be exported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from strategies import exported

from seatrial.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with exported.varied_store(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def hostile_store(tmp_path: Path) -> Iterator[Store]:
    with exported.hostile_store(tmp_path / "hostile.db") as opened:
        yield opened
