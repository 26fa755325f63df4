"""Every page, over a store in which every text is hostile: nothing of it runs, loads, hides, or breaks the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from explorer.browser.addresses import ADDRESSES, MISSING, resolved
from explorer.browser.chromium import View, faults_of, opened_context, sideways
from explorer.browser.conftest import server
from explorer.browser.hostile import ALL, make_hostile_store

MORE = {
    "text": "/runs/{failed_run}/text/messages/0/content",
    "items-raw": "/runs/{failed_run}?show=raw",
    "items-calls": "/runs/{failed_run}?show=calls&axis=steps",
    "events": "/runs/{failed_run}/events",
    "downloads": "/runs/{failed_run}/download",
    "losses": "/runs/{failed_run}/download?format=openai",
    "find": "/runs/{failed_run}/find?q=alert",
    "search-hits": "/search?q=alert",
    "search-hostile": "/search?q={hostile}",
    "filter-hostile": "/filter/suggest?experiment={new}&q={hostile}",
    "filter-values": "/filter/suggest?experiment={new}&q=tool:",
    "find-hostile": "/runs/{failed_run}/find?q={hostile}",
    "not-there": "/runs/{hostile}",
}
"""Besides the pages of the list: parts of a run, and hostile text in the address itself."""

_FOREIGN = r"""
() => {
  const found = [];
  for (const each of document.querySelectorAll("*")) {
    for (const {name, value} of each.attributes) {
      // A style in a page is blocked, which is a fault; those that scripts of ours set are attributes, too.
      if (name.startsWith("on") || name === "srcdoc") found.push(`${each.tagName} ${name}`);
      if (!["href", "src", "action", "xlink:href", "formaction"].includes(name)) continue;
      const url = new URL(value, location.href);
      const isMarked = each.tagName === "A" && each.rel.includes("noopener") && /^(https?|mailto):$/.test(url.protocol);
      if (url.origin !== location.origin && !isMarked) found.push(`${each.tagName} leads to ${value.slice(0, 80)}`);
    }
  }
  const active = "style, iframe, object, embed, base, meta[http-equiv], script:not([src])";
  for (const each of document.querySelectorAll(active)) found.push(each.tagName);
  if (document.head.querySelectorAll("title").length !== 1) found.push("titles");
  if (!document.title.endsWith(" · Seatrial")) found.push(`title: ${document.title}`);
  const shown = document.title + document.body.innerText;
  const hidden = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/.exec(shown);
  if (hidden) found.push(`hidden: ${JSON.stringify(shown.slice(Math.max(0, hidden.index - 40), hidden.index + 40))}`);
  return found;
}
"""
"""What in a page is not its own, or hides."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a server over the hostile store, and what stands in the braces of addresses."""
    path: Path = tmp_path_factory.mktemp("hostile") / "store.db"
    ids = {**make_hostile_store(path), "hostile": ALL[:400]}
    with server(path) as url:
        yield url, ids


def problems(page: Page, faults: list[str], address: str, statuses: tuple[int, ...]) -> list[str]:
    """What is wrong with a page."""
    faults.clear()
    answer = page.goto(address, wait_until="load")
    found = list(page.evaluate(_FOREIGN))
    if answer is None or answer.status not in statuses:
        found.append(f"answered {answer and answer.status}: {page.inner_text('main')[:300]}")
    if sideways(page):
        found.append(f"{sideways(page)} pixels sideways")
    if page.locator("h1").count() != 1:
        found.append("h1")
    return found + [fault for fault in faults if "status of 404" not in fault]


@pytest.mark.parametrize("view", [View(1440, "light"), View(400, "dark")], ids=str)
def test_hostile_text_does_nothing_on_any_page(
    chromium: Browser, hostile: tuple[str, dict[str, str]], view: View
) -> None:
    site, ids = hostile
    with opened_context(chromium, site, view) as context:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        faults = faults_of(page)
        found = {}
        for name, address in (ADDRESSES | MORE).items():
            statuses = (404,) if name in MISSING else (200, 404) if name == "not-there" else (200,)
            if wrong := problems(page, faults, resolved(address, ids), statuses):
                found[name] = wrong
        assert found == {}
        assert [url for url in asked if not url.startswith(site)] == []


def test_hostile_text_does_nothing_in_what_opens_on_a_page(
    chromium: Browser, hostile: tuple[str, dict[str, str]]
) -> None:
    site, ids = hostile
    with opened_context(chromium, site) as context:
        page = context.new_page()
        faults = faults_of(page)
        page.goto(f"/runs/{ids['failed_run']}")
        page.keyboard.press("Control+k")
        page.keyboard.type("alert")
        page.locator("dialog [role=option]", has_text="Search for").wait_for()
        assert page.evaluate(_FOREIGN) == []
        page.keyboard.press("Escape")
        page.keyboard.press("Shift+O")
        for opener in page.locator("a[data-open]").all()[:20]:
            if opener.is_visible():
                opener.click()
        page.wait_for_load_state("networkidle")
        assert page.evaluate(_FOREIGN) == []
        assert sideways(page) == 0
        assert faults == []
