"""Stores for the run service."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.store import Store, open_store


@pytest.fixture(scope="module")
def shared(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for all examples of a property."""
    with open_store(shutil.copy(empty_store, tmp_path_factory.mktemp("shared") / "store.db")) as opened:
        yield opened
