"""A store of each kind."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from strategies import records
from strategies.databases import database

from seatrial.store import Store, open_store


@pytest.fixture(scope="session")
def postgres_store(postgres_server: str) -> Iterator[str]:
    """URL of a store that is emptied for every test: that is quicker than making one."""
    with database(postgres_server) as url:
        open_store(url).close()
        yield url


@pytest.fixture
def postgres_url(postgres_store: str) -> str:
    """URL of an empty store in PostgreSQL."""
    with psycopg.connect(postgres_store, autocommit=True) as connection:
        connection.execute("TRUNCATE experiments, bodies, api_keys RESTART IDENTITY CASCADE")
    return postgres_store


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test of a store has one of each kind. A test that opens it again by its address has none in memory, which
    is gone with whoever opened it."""
    own = {name for mark in metafunc.definition.iter_markers("parametrize") for name in str(mark.args[0]).split(",")}
    if "where" in metafunc.fixturenames and "where" not in own:
        kinds = ["sqlite", "postgres", "memory"]
        opened_again = "where" in inspect.signature(metafunc.function).parameters
        metafunc.parametrize("where", kinds[:2] if opened_again else kinds, indirect=True)


@pytest.fixture
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store is: of all kinds, one after the other."""
    if request.param == "memory":
        return "memory:"
    if request.param == "sqlite":
        return str(shutil.copy(request.getfixturevalue("empty_store"), tmp_path / "store.db"))
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def nowhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a store can be made, of both kinds."""
    if request.param == "sqlite":
        yield str(tmp_path / "store.db")
    else:
        with database(request.getfixturevalue("postgres_server")) as url:
            yield url


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An empty store for the tests of one module together."""
    if request.param == "sqlite":
        with open_store(tmp_path_factory.mktemp("library") / "store.db") as store:
            yield store
    else:
        with database(request.getfixturevalue("postgres_server")) as url, open_store(url) as store:
            yield store


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    """An empty store."""
    with open_store(where) as opened:
        yield opened


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with the experiment `exp-1` of five cases, and no runs."""
    store.create_experiment(records.experiment(), records.cases(5))
    return store
