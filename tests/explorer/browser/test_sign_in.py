"""Sign-in as a person does it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from explorer.browser.chromium import VIEWS, View, barriers, faults_of, opened_context, sideways
from explorer.browser.conftest import server
from seatrial.store import open_store

NOW = time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a server that needs keys, and a key."""
    path = tmp_path_factory.mktemp("guarded") / "store.db"
    with open_store(path) as store:
        _, secret = store.keyring.add("reader", ["read"], now=NOW)
    with server(path) as url:
        yield url, secret


@pytest.fixture
def page(chromium: Browser, guarded: tuple[str, str], view: View) -> Iterator[Page]:
    with opened_context(chromium, guarded[0], view) as context:
        yield context.new_page()


def test_a_person_signs_in_sees_the_page_that_was_asked_for_and_signs_out(page: Page, guarded: tuple[str, str]) -> None:
    page.goto("/experiments?by=time")
    expect(page.get_by_label("Key")).to_be_focused()
    page.get_by_label("Key").fill(guarded[1])
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{guarded[0]}/experiments?by=time")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{guarded[0]}/sign-in")
    page.goto("/experiments")
    assert page.url.startswith(f"{guarded[0]}/sign-in")


def test_a_wrong_key_is_said_to_be_wrong_and_the_form_stays(page: Page) -> None:
    page.goto("/sign-in?next=/experiments")
    page.get_by_label("Key").fill("st_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown, revoked or expired")
    expect(page.locator("input[name=next]")).to_have_value("/experiments")


def test_a_link_on_another_site_does_not_ask_somebody_who_is_signed_in(page: Page, guarded: tuple[str, str]) -> None:
    url, secret = guarded
    page.goto("/sign-in")
    page.get_by_label("Key").fill(secret)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{url}/experiments")
    page.route(
        "http://elsewhere.test/",
        lambda route: route.fulfill(content_type="text/html", body=f"<a href='{url}/experiments?by=time'>look</a>"),
    )
    page.goto("http://elsewhere.test/")
    page.get_by_text("look").click()
    expect(page).to_have_url(f"{url}/experiments?by=time")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_the_form_fits_its_window_and_has_no_barrier(page: Page) -> None:
    faults = faults_of(page)
    page.goto("/sign-in")
    assert sideways(page) == 0
    assert page.locator("h1").count() == 1
    assert barriers(page) == []
    assert faults == []
