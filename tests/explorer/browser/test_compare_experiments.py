"""Two experiments side by side, as a person walks through them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from explorer.browser.chromium import VIEWS, View, sideways


@pytest.mark.parametrize("view", [VIEWS[0], View(400, "light")], ids=str)
def test_the_sides_can_be_replaced_and_swapped_and_nothing_leaves_the_window(
    page: Page, faults: list[str], clerk_ids: dict[str, str]
) -> None:
    page.goto(f"/compare?a={clerk_ids['old']}&b={clerk_ids['new']}")
    expect(page.locator(".say")).to_contain_text("clerk-2.4.0 is worse than clerk-2.3.2")
    for letter in "ab":
        page.get_by_text(f"Another {letter}").click()
        assert sideways(page) == 0
        page.get_by_text(f"Another {letter}").click()
    page.get_by_text("Another b").click()
    page.get_by_role("link", name="clerk-mini in clerk-2.4.0").click()
    expect(page.get_by_label("Both sides")).to_contain_text("clerk-mini")
    page.go_back()
    page.locator("h1").click()
    page.keyboard.press("x")
    expect(page.locator(".say")).to_contain_text("clerk-2.3.2 is better than clerk-2.4.0")
    assert faults == []


def test_a_case_that_became_worse_is_two_clicks_from_where_it_goes_wrong(
    page: Page, faults: list[str], clerk_ids: dict[str, str]
) -> None:
    page.goto(f"/compare?a={clerk_ids['old']}&b={clerk_ids['new']}")
    row = page.get_by_role("row").filter(has_text="refund has /amount").first
    case = row.get_by_role("rowheader").inner_text()
    row.get_by_role("link", name="compare").click()
    expect(page.locator(".say")).to_contain_text("They diverge at step")
    page.go_back()
    page.get_by_role("link", name=case, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(case)
    page.keyboard.press("J")
    expect(page.get_by_role("heading", level=1)).not_to_have_text(case)
    page.keyboard.press("K")
    expect(page.get_by_role("heading", level=1)).to_have_text(case)
    assert faults == []
