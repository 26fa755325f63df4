"""A server over the clerk's store, and a browser that looks at it.

The store is made once for all test processes. Each process has a server of its own over a copy, started as a user
starts it; a test gets a fresh browser context, with its own cookies, as `page`. Tests parametrise `view` to be run
in other widths and colours.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clerk_store import make_clerk_store
from playwright.sync_api import Browser, Page

from explorer.browser.addresses import ids
from explorer.browser.chromium import View, chromium_running, faults_of, opened_context
from seatrial.store import open_store

TRIALS = 3


@contextmanager
def server(store: Path, *options: str, port: int = 0) -> Iterator[str]:
    """`seatrial serve` over a store, for as long as the block lasts; gives its address."""
    command = [
        str(Path(sys.executable).with_name("seatrial")),
        "serve",
        "--store",
        str(store),
        "--rate",
        "0",
        "--drain-s",
        "1",
    ]
    with subprocess.Popen(
        [*command, "--port", str(port), "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        try:
            yield json.loads(running.stdout.readline() if running.stdout is not None else "")["url"]
        finally:
            running.terminate()


@pytest.fixture(scope="session")
def clerk_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the clerk, not to be written to."""
    base = tmp_path_factory.getbasetemp()
    # Test processes that run side by side share the parent of their directories.
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    store = shared / "clerk" / "store.db"
    with (shared / "clerk.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not store.exists():
            making = shared / "clerk-making"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            make_clerk_store(making / "store.db", TRIALS)
            making.rename(store.parent)
    return store


@pytest.fixture(scope="session")
def clerk_ids(clerk_store: Path) -> dict[str, str]:
    """What stands in braces in the list of addresses."""
    with open_store(clerk_store) as store:
        return ids(store)


@pytest.fixture(scope="session")
def site(clerk_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over a copy of the clerk's store."""
    copy = Path(shutil.copy(clerk_store, tmp_path_factory.mktemp("site") / "store.db"))
    with server(copy) as url:
        yield url


# Ended before tests of other folders come: while it runs, its thread has an event loop.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The browser of this test process."""
    with chromium_running() as browser:
        yield browser


@pytest.fixture
def view() -> View:
    """How the page of a test is looked at."""
    return View()


@pytest.fixture
def page(chromium: Browser, site: str, view: View) -> Iterator[Page]:
    """An empty page of a fresh browser context; addresses are relative to the site."""
    with opened_context(chromium, site, view) as context:
        yield context.new_page()


@pytest.fixture
def faults(page: Page) -> list[str]:
    """What goes wrong in the page while the test lasts."""
    return faults_of(page)
