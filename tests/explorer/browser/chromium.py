"""The browser of the machine, and what is looked at in a page that is open in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from strategies.npm import installed

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 60_000
"""How long a test waits for a browser at most: the machine may be busy."""
expect.set_options(timeout=WAIT_MS)


Theme = Literal["light", "dark"]


class View(msgspec.Struct, frozen=True):
    """How wide a window is, and in which colours."""

    width: int = 1440
    theme: Theme = "light"

    def __str__(self) -> str:
        return f"{self.width}-{self.theme}"


VIEWS = [View(width, theme) for width in (1440, 400) for theme in get_args(Theme)]


@contextmanager
def chromium_running() -> Iterator[Browser]:
    """Debian's Chromium, without a window. The thread has an event loop meanwhile, so it cannot `asyncio.run`."""
    path = os.environ.get("SEATRIAL_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    if not Path(path).exists():
        pytest.fail("these tests need Chromium: `make chromium`, or `apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened_context(browser: Browser, site: str, view: View = View()) -> Iterator[BrowserContext]:  # noqa: B008 (frozen)
    """A browser of its own, with its own cookies, as wide as the view."""
    context = browser.new_context(
        base_url=site, viewport={"width": view.width, "height": 900}, color_scheme=view.theme, timezone_id="UTC"
    )
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(_WATCH)
    try:
        yield context
    finally:
        context.close()


_WATCH = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.violatedDirective} blocked ${event.blockedURI} ${event.sample}`);
});
"""


def faults_of(page: Page) -> list[str]:
    """What goes wrong in a page from now on: errors of scripts, of the console, of the policy; and dialogs."""
    faults: list[str] = []

    def dialog(opened: Any) -> None:
        faults.append(f"dialog: {opened.message}")
        opened.dismiss()

    page.on("dialog", dialog)
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on(
        "console", lambda said: faults.append(f"console: {said.text}") if said.type in ("error", "warning") else None
    )
    return faults


def sideways(page: Page) -> int:
    """How many pixels the page can be scrolled sideways; none is right."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def barriers(page: Page) -> list[str]:
    """What axe finds that is serious or critical: the rule, and where."""
    axe = installed(Path(__file__).parent / "axe", "axe") / "node_modules" / "axe-core" / "axe.min.js"
    page.evaluate(axe.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations)")
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node.get('failureSummary', '')}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
