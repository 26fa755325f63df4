"""What an engineer asks whose agent got worse, answered with the keyboard alone."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect


def test_the_nine_questions_are_answered_without_a_mouse(page: Page, faults: list[str]) -> None:
    press = page.keyboard.press
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/experiments")
    press("Control+k")
    page.keyboard.type("clerk-2.4.0")
    first = page.locator("dialog [role=option][aria-selected=true]")
    expect(first).to_contain_text("clerk-2.4.0")
    press("Enter")

    # Better or worse, and how sure; why, in general; which cases changed, and which are flaky.
    expect(page.locator(".say")).to_contain_text("clerk is worse than in clerk-2.3.2")
    expect(page.locator(".say")).to_contain_text("95% interval")
    expect(page.locator(".wy")).to_contain_text("refund: /amount differs")
    expect(page.locator(".ag")).to_contain_text("cost per run")
    expect(page.locator(".tabs").first).to_contain_text("Flaky")
    press("j")
    press("j")
    focused = page.locator("[data-row] a:focus")
    expect(focused).to_have_count(1)
    case = focused.inner_text()
    press("Enter")

    # One case: flaky or not, since when.
    expect(page.locator("h1")).to_have_text(case)
    press("n")
    expect(page.locator("[data-row] a:focus")).to_have_count(1)
    press("Enter")

    # One run: what went wrong, where, and whose doing it was; its cost and its time.
    expect(page.locator("h1")).to_contain_text("failed")
    expect(page.locator(".facts")).to_contain_text("cost")
    expect(page.locator(".find li").first).to_be_visible()
    press("n")
    expect(page).to_have_url(re.compile(r"[?&]at="))
    press("y")
    expect(page.get_by_role("status")).to_contain_text("copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    press("c")

    # What it did differently.
    expect(page.locator(".say")).to_contain_text(re.compile("diverge|same|equal"))
    press("n")
    press("u")
    expect(page.locator("h1")).to_have_text(case)
    press("u")

    # Can the graders be trusted?
    expect(page.locator("h1")).to_have_text("clerk-2.4.0")
    press("Control+k")
    page.keyboard.type("Review")
    expect(first).to_have_text("Review")
    press("Enter")
    expect(page.locator("h1")).to_contain_text("Can the graders be trusted?")
    assert faults == []
