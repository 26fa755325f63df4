"""What holds of every page: it fits its window, nothing is blocked or broken, and its address is all of its state."""

from __future__ import annotations

import urllib.error
import urllib.request
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from explorer.browser.addresses import ADDRESSES, COMING, MISSING, resolved
from explorer.browser.chromium import VIEWS, View, barriers, faults_of, opened_context, sideways

every_page = pytest.mark.parametrize("name", ADDRESSES)
every_view = pytest.mark.parametrize("view", VIEWS, ids=str)
# Both widths and both themes, but not each with each: contrast is the same in all widths.
narrow_and_dark = pytest.mark.parametrize("view", [View(1440, "light"), View(400, "dark")], ids=str)

_TARGETS = "(links) => links.map((link) => new URL(link.getAttribute('href'), location.href).href)"
"""Not `link.href`, which is no text in an SVG."""
_ALIKE = 8
"""How many links are followed that differ in ids and values alone."""
_STATE_LINKS = 12
"""How many links that change the state of a page are followed at most."""


def visit(page: Page, name: str, known: dict[str, str]) -> None:
    """Open a page of the list."""
    answer = page.goto(resolved(ADDRESSES[name], known))
    assert answer is not None
    assert answer.status == (404 if name in MISSING else 200)


def expected(faults: list[str], name: str) -> list[str]:
    """The faults without the one that Chromium reports of a page that is meant to be missing."""
    return [each for each in faults if not (name in MISSING and "status of 404" in each)]


@every_view
@every_page
def test_a_page_fits_its_window_and_nothing_of_it_fails_or_is_blocked(
    page: Page, faults: list[str], name: str, clerk_ids: dict[str, str]
) -> None:
    visit(page, name, clerk_ids)
    assert sideways(page) == 0
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    assert expected(faults, name) == []


@narrow_and_dark
@every_page
def test_axe_finds_no_serious_barrier(page: Page, name: str, clerk_ids: dict[str, str]) -> None:
    visit(page, name, clerk_ids)
    assert barriers(page) == []


@every_page
def test_every_link_of_a_page_leads_somewhere(page: Page, site: str, name: str, clerk_ids: dict[str, str]) -> None:
    visit(page, name, clerk_ids)
    missing = {page.url} if name in MISSING else set()
    hrefs = page.eval_on_selector_all("a[href]", "(links) => links.map((link) => link.getAttribute('href'))")
    assert hrefs
    targets = {urldefrag(urljoin(page.url, href))[0] for href in hrefs}
    assert {target for target in targets if not target.startswith(site)} == set()
    followed = some_of_each_kind({target for target in targets if not COMING.match(target.removeprefix(site))})
    answers = {target: status(target) for target in followed}
    assert {target: code for target, code in answers.items() if code != (404 if target in missing else 200)} == {}
    anchors = {urldefrag(href)[1] for href in hrefs if href.startswith("#")} - {""}
    assert {anchor for anchor in anchors if page.locator(f'[id="{anchor}"]').count() != 1} == set()


def some_of_each_kind(targets: set[str]) -> list[str]:
    """The first few of those addresses that differ in ids and values alone: a page may have hundreds of runs."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for target in sorted(targets):
        path, _, query = urlsplit(target).path, *target.partition("?")[1:]
        first, *rest = path.strip("/").split("/")
        kind = (first, str(len(rest)), *rest[1:], *sorted(each.partition("=")[0] for each in query.split("&")))
        kinds.setdefault(kind, []).append(target)
    return [target for alike in kinds.values() for target in alike[:_ALIKE]]


@every_page
def test_the_address_of_a_page_holds_all_of_its_state(
    page: Page, chromium: Browser, site: str, name: str, clerk_ids: dict[str, str]
) -> None:
    visit(page, name, clerk_ids)
    here = page.url.partition("?")[0]
    addresses = [page.url] + [
        target
        for href in page.eval_on_selector_all("main a[href]", _TARGETS)
        if (target := urldefrag(href)[0]).partition("?")[0] == here and target != page.url
    ]
    for address in list(dict.fromkeys(addresses))[:_STATE_LINKS]:
        page.goto(address)
        shown = page.inner_text("main")
        with opened_context(chromium, site) as another:
            same = another.new_page()
            same.goto(page.url)
            assert same.inner_text("main") == shown


def test_what_is_wrong_with_a_page_would_be_found(page: Page, faults: list[str]) -> None:
    page.goto("/experiments")
    page.evaluate("document.querySelector('main').insertAdjacentElement('beforeend', document.createElement('img'))")
    assert any("image-alt" in barrier for barrier in barriers(page))
    page.evaluate(
        "document.querySelector('main').append(Object.assign(document.createElement('pre'), "
        "{textContent: 'x'.repeat(10000)}))"
    )
    assert sideways(page) > 0
    assert faults == []
    page.evaluate("document.querySelector('h1').setAttribute('style', 'color: red')")
    assert any("style-src" in fault for fault in faults)


def test_a_dialog_would_be_found(chromium: Browser, site: str) -> None:
    with opened_context(chromium, site, View(400, "dark")) as context:
        page = context.new_page()
        faults = faults_of(page)
        page.goto("/experiments")
        page.evaluate("alert('here')")
        assert faults == ["dialog: here"]


def status(address: str) -> int:
    """What an address is answered with, redirects followed."""
    request = urllib.request.Request(address, headers={"Accept": "text/html"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
