"""Stores for the run service."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.store import Store, open_store


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that is an empty store: copying it is quicker than making one."""
    path = tmp_path_factory.mktemp("empty") / "store.db"
    open_store(path).close()
    return path


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with open_store(shutil.copy(empty_store, tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for all examples of a property."""
    with open_store(shutil.copy(empty_store, tmp_path_factory.mktemp("shared") / "store.db")) as opened:
        yield opened
