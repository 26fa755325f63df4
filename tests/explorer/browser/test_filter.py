"""A filter as a person types it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from explorer.browser.chromium import barriers


def test_a_filter_is_typed_with_what_is_suggested(page: Page, faults: list[str], clerk_ids: dict[str, str]) -> None:
    page.goto(f"/filter/suggest?experiment={clerk_ids['new']}")
    field = page.get_by_role("combobox", name="Filter runs")
    field.focus()
    field.press_sequentially("x😀 tool")
    options = page.get_by_role("option")
    expect(options).to_have_count(2)
    expect(field).to_have_attribute("aria-expanded", "true")
    assert barriers(page) == []
    field.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", "suggestion-1")
    field.press("Tab")
    expect(field).to_have_value("x😀 tool:")
    field.press_sequentially("ref")
    expect(options).to_have_count(1)
    expect(options).to_contain_text("runs")
    field.press("ArrowDown")
    field.press("Enter")
    expect(field).to_have_value("x😀 tool:refund ")
    expect(options).to_have_count(0)
    field.press_sequentially("outc")
    expect(options).to_have_count(1)
    options.click()
    expect(field).to_have_value("x😀 tool:refund outcome:")
    expect(options).not_to_have_count(0)
    field.press("Escape")
    expect(options).to_have_count(0)
    expect(field).to_be_focused()
    field.press_sequentially("faild")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("“faild” is not a value of “outcome”")
    assert page.locator(".msg u").inner_text() == "faild"
    assert faults == []
