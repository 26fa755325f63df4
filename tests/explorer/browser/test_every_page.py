"""What holds of every page: it fits its window, nothing is blocked or broken, and its address is all of its state."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from urllib.parse import parse_qsl, urldefrag, urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from explorer.browser.addresses import ADDRESSES, MISSING, STATES, resolved
from explorer.browser.chromium import Theme, View, barriers, faults_of, opened_context, sideways

every_page = pytest.mark.parametrize("name", [name for name in ADDRESSES if name not in STATES])

_OTHER_THEME: dict[Theme, Theme] = {"light": "dark", "dark": "light"}
_TARGETS = "(links) => links.map((link) => new URL(link.getAttribute('href'), location.href).href)"
"""Not `link.href`, which is no text in an SVG."""
_ALIKE = 8
"""How many links are followed that differ in ids and values alone."""
_STATE_LINKS = 6
"""How many links that change the state of a page are followed at most: one of each kind."""


class Opened(NamedTuple):
    """A page of the list that is open, and what went wrong in it since."""

    name: str
    view: View
    page: Page
    faults: list[str]


# Loading a page costs most of a test: those that only look at it share it.
@pytest.fixture(scope="module")
def opened(request: pytest.FixtureRequest, chromium: Browser, site: str, clerk_ids: dict[str, str]) -> Iterator[Opened]:
    name, view = request.param
    with opened_context(chromium, site, view) as context:
        page = context.new_page()
        faults = faults_of(page)
        visit(page, name, clerk_ids)
        yield Opened(name, view, page, faults)


# Both widths, and a theme each: in the other one a page is looked at without loading it again.
in_both_widths = pytest.mark.parametrize(
    "opened",
    [
        pytest.param((name, view), id=f"{name}-{view}")
        for name in ADDRESSES
        for view in (View(1440, "light"), View(400, "dark"))
        if name not in STATES or view.width == 400
    ],
    indirect=True,
)


def visit(page: Page, name: str, known: dict[str, str]) -> None:
    """Open a page of the list."""
    answer = page.goto(resolved(ADDRESSES[name], known))
    assert answer is not None
    assert answer.status == (404 if name in MISSING else 200)


def expected(faults: list[str], name: str) -> list[str]:
    """The faults without the one that Chromium reports of a page that is meant to be missing."""
    return [each for each in faults if not (name in MISSING and "status of 404" in each)]


@in_both_widths
def test_a_page_fits_its_window_in_both_themes_and_nothing_of_it_fails_or_is_blocked(opened: Opened) -> None:
    page, theme = opened.page, opened.view.theme
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    assert sideways(page) == 0
    page.emulate_media(color_scheme=_OTHER_THEME[theme])
    assert sideways(page) == 0
    page.emulate_media(color_scheme=theme)
    assert expected(opened.faults, opened.name) == []


# Both widths and both themes, but not each with each: contrast is the same in all widths.
@in_both_widths
def test_axe_finds_no_serious_barrier(opened: Opened) -> None:
    assert barriers(opened.page) == []


@in_both_widths
def test_every_link_of_a_page_leads_somewhere(opened: Opened, site: str) -> None:
    page = opened.page
    missing = {page.url} if opened.name in MISSING else set()
    hrefs = page.eval_on_selector_all("a[href]", "(links) => links.map((link) => link.getAttribute('href'))")
    assert hrefs
    targets = {urldefrag(urljoin(page.url, href))[0] for href in hrefs}
    assert {target for target in targets if not target.startswith(site)} == set()
    followed = some_of_each_kind(targets)
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
    shown = []
    for address in states(page)[:_STATE_LINKS]:
        page.goto(address)
        shown.append((page.url, page.inner_text("main")))
    # The other browser comes the other way: what one of them remembers of the pages before, the other has not seen.
    with opened_context(chromium, site) as another:
        same = another.new_page()
        for url, text in reversed(shown):
            same.goto(url)
            assert same.inner_text("main") == text


def states(page: Page) -> list[str]:
    """The address of the page, and of its links that lead to it in another state one for each kind of change."""
    here, _, query = page.url.partition("?")
    now = Counter(parse_qsl(query, keep_blank_values=True))
    found = {frozenset[str](): page.url}
    for href in page.eval_on_selector_all("main a[href]", _TARGETS):
        target, _, query = urldefrag(href)[0].partition("?")
        if target == here:
            then = Counter(parse_qsl(query, keep_blank_values=True))
            changed = frozenset(name for name, _ in (now - then) | (then - now))
            found.setdefault(changed, urldefrag(href)[0])
    return list(found.values())


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


@cache
def status(address: str) -> int:
    """What an address is answered with, redirects followed."""
    request = urllib.request.Request(address, headers={"Accept": "text/html"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
