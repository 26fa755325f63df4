"""`make screenshots`: every page of the explorer in `docs/screenshots/`, 1440 and 400 pixels wide, light and dark.

The pages are those of the browser tests, over the store of the clerk. Two pictures are in the README, and those alone
are kept by Git; the others are for looking at: `make screenshots NAMES="experiment run-failed"` makes some of them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from clerk_store import HISTORY, make_clerk_store  # noqa: E402
from explorer.browser.addresses import ADDRESSES, ids, resolved  # noqa: E402
from explorer.browser.chromium import VIEWS, View, chromium_running, faults_of, opened_context, sideways  # noqa: E402
from explorer.browser.conftest import server  # noqa: E402
from playwright.sync_api import Browser, Page  # noqa: E402

from seatrial.explorer.export import write_file  # noqa: E402
from seatrial.reports import stored_report  # noqa: E402
from seatrial.store import open_store  # noqa: E402

FOLDER = ROOT / "docs" / "screenshots"
README = {"experiment": 960, "run-failed": 960}
"""The pages of the README, and how high their pictures are."""
MAX_HEIGHT = 4000
"""Pixels of a picture; a longer page is cut off."""
EXPORT = "export"


def main(names: list[str]) -> int:
    if unknown := set(names) - {*ADDRESSES, EXPORT}:
        print(
            f"no page is called {', '.join(sorted(unknown))}; one of {', '.join([*ADDRESSES, EXPORT])}", file=sys.stderr
        )
        return 2
    FOLDER.mkdir(exist_ok=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, chromium_running() as browser:
        store = Path(folder) / "store.db"
        make_clerk_store(store, versions=HISTORY)
        addresses = prepared(store, Path(folder) / "export.html")
        with server(store) as site:
            for name in names or addresses:
                for view in VIEWS:
                    with shown(browser, site, view) as (page, faults):
                        page.goto(addresses[name])
                        page.wait_for_load_state("networkidle")
                        height = int(page.evaluate("document.documentElement.scrollHeight"))
                        page.set_viewport_size({"width": view.width, "height": min(max(height, 600), MAX_HEIGHT)})
                        page.screenshot(path=FOLDER / f"{name}-{view}.png")
                        if view == View() and name in README:
                            page.set_viewport_size({"width": view.width, "height": README[name]})
                            page.screenshot(path=FOLDER / f"{name}.png")
                        # A page that is meant to be missing is reported, too.
                        left = [fault for fault in faults if "status of 404" not in fault]
                        if (wide := sideways(page)) or left:
                            wrong += 1
                            print(f"{name}, {view}: {wide} pixels sideways; {left}", file=sys.stderr)
                print(name, flush=True)
    return 1 if wrong else 0


def prepared(store: Path, export: Path) -> dict[str, str]:
    """The addresses of all pages in this store, and of an export of it, which is written here."""
    with open_store(store) as opened:
        known = ids(opened)
        write_file(opened, stored_report(opened, known["new"]), export)
    return {**{name: resolved(address, known) for name, address in ADDRESSES.items()}, EXPORT: export.as_uri()}


@contextmanager
def shown(browser: Browser, site: str, view: View) -> Iterator[tuple[Page, list[str]]]:
    """A fresh page, and what goes wrong in it."""
    with opened_context(browser, site, view) as context:
        page = context.new_page()
        yield page, faults_of(page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
