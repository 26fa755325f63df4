"""Keys, and the palette, as a person presses them."""

from __future__ import annotations

import re
import string

import pytest
from playwright.sync_api import Page, expect

from explorer.browser.addresses import resolved
from explorer.browser.chromium import barriers
from seatrial.explorer.keys import KEYS


def test_the_palette_goes_to_a_case_to_a_hit_and_does_what_the_page_can_do(
    page: Page, faults: list[str], clerk_ids: dict[str, str]
) -> None:
    page.goto(f"/runs/{clerk_ids['failed_run']}")
    page.get_by_role("link", name="Search or go to").click()
    palette = page.get_by_role("dialog", name="Search or go to")
    options = palette.get_by_role("option")
    expect(options.filter(has_text="clerk-2.4.0")).to_be_visible()
    assert barriers(page) == []
    page.keyboard.type(clerk_ids["failed_case"])
    expect(options.first).to_have_text(clerk_ids["failed_case"] + " clerk-2.4.0")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("the whole run")
    expect(options.filter(has_text="the whole run")).to_be_visible()
    page.keyboard.press("Control+a")
    page.keyboard.type("damag")
    expect(options.first).to_contain_text("damag")
    hit = options.filter(has_text="message").first
    expect(hit).to_be_visible()
    hit.click()
    expect(page.locator(".it.sel")).to_contain_text("damag")
    assert "at=" in page.url
    assert faults == []


def test_what_is_typed_in_the_palette_is_searched_for_when_nothing_is_listed_yet(page: Page) -> None:
    page.goto("/experiments")
    page.keyboard.press("/")
    page.route("**/search/go?*", lambda route: route.abort())
    page.keyboard.type("parcel")
    page.keyboard.press("Enter")
    expect(page.get_by_role("searchbox")).to_have_value("parcel")
    expect(page.locator(".lk")).to_contain_text("parcel")


def test_two_rows_are_marked_and_compared_and_a_link_is_copied(page: Page, faults: list[str]) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/search?q=please+tenth")
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator("[data-row]").first
    expect(first.locator("a").first).to_be_focused()
    page.keyboard.press("c")
    expect(page.get_by_role("status")).to_contain_text("A is marked")
    page.keyboard.press("n")
    expect(page.locator("[data-row]:focus-within [href='#m-failed']")).to_have_count(1)
    page.keyboard.press("y")
    expect(page.get_by_role("status")).to_contain_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.keyboard.press("G")
    expect(page.locator("[data-row]").last.locator("a").first).to_be_focused()
    page.keyboard.press("c")
    expect(page).to_have_url(re.compile(r"/compare/runs\?a=\w+&b=\w+"))
    assert faults == []


def test_keys_can_be_turned_off_and_letters_in_a_field_are_letters(page: Page) -> None:
    page.goto("/search?q=refund")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.type("j?")
    expect(page.get_by_role("searchbox")).to_have_value("refundj?")
    page.locator("h1").click()
    page.keyboard.press("?")
    page.get_by_label("Single keys are on").uncheck()
    page.get_by_role("button", name="Close").click()
    page.reload()
    page.locator("h1").click()
    page.keyboard.press("?")
    page.keyboard.press("j")
    assert page.locator("dialog[open]").count() == 0
    assert page.locator("[data-row]:focus-within").count() == 0
    page.goto("/help/keys")
    page.get_by_label("Single keys are on").check()
    page.keyboard.press("Tab")
    page.keyboard.press("u")
    page.goto("/search?q=refund")
    page.locator("h1").click()
    page.keyboard.press("j")
    expect(page.locator("[data-row]:focus-within")).to_have_count(1)


WATCHED = """
() => {
  let clicks = 0;
  // What a key presses is counted and not followed.
  addEventListener("click", (event) => { clicks += 1; event.preventDefault(); event.stopPropagation(); }, true);
  const here = location.href;
  window.reset = (at) => {
    for (const each of document.querySelectorAll("dialog[open]")) each.close();
    for (const each of document.querySelectorAll("main details[open]")) each.open = false;
    for (const each of document.querySelectorAll("[role=status]")) each.textContent = "";
    history.replaceState(null, "", here);
    document.activeElement.blur();
    const rows = [...document.querySelectorAll("[data-row] a, .it, .row[id], .eq > summary")];
    if (at !== null) rows.filter((each) => each.offsetParent).at(at).focus();
    else scrollTo(0, document.body.scrollHeight);
  };
  window.seen = () => JSON.stringify([
    location.href, clicks, document.querySelectorAll("dialog[open]").length,
    [...document.querySelectorAll("*")].indexOf(document.activeElement),
    [...document.querySelectorAll("[role=status]")].map((each) => each.textContent).join(),
    [...document.querySelectorAll("main details")].map((each) => each.open).join(),
  ]);
}
"""


@pytest.mark.parametrize(
    ("column", "address"),
    [
        ("lists", "/experiments/{new}?tab=all"),
        ("run", "/runs/{failed_run}"),
        ("compare", "/compare/runs?a={a}&b={b}"),
    ],
)
def test_the_table_of_keys_lists_exactly_what_works(
    page: Page, clerk_ids: dict[str, str], column: str, address: str
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 1440, "height": 400})
    page.goto(resolved(address, clerk_ids))
    page.evaluate(WATCHED)
    listed = {
        key
        for row in KEYS
        for key in row.keys
        # Those of reviews are on a page of their own; Enter and Esc are the browser's.
        if len(key) == 1 and (getattr(row, column) or (row.everywhere and "page of reviews" not in row.everywhere))
    }
    working = set()
    for key in string.ascii_letters + string.digits + "/?[]+-":
        for at in (0, 1, -1, None):
            page.evaluate("(at) => reset(at)", at)
            before = page.evaluate("seen()")
            page.keyboard.press(key)
            if key in "y?":  # they wait for the clipboard, and for the table
                page.wait_for_function("(before) => seen() !== before", arg=before)
            if page.evaluate("seen()") != before:
                working.add(key)
                break
    assert working - listed == set()
    assert listed - working == set()
