"""Reviewing runs with the keyboard alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from explorer.browser.conftest import server


@pytest.fixture(scope="module")
def site(clerk_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over a store of its own, which these tests write to."""
    with server(Path(shutil.copy(clerk_store, tmp_path_factory.mktemp("reviews") / "store.db"))) as url:
        yield url


def test_a_person_answers_sees_the_verdict_and_goes_on_to_the_next_run(page: Page, faults: list[str]) -> None:
    page.goto("/review?experiment=clerk-2.4.0&grader=honest&by=Ada")
    word = page.locator("#word")
    first = word.get_by_role("heading").inner_text()
    expect(word).to_contain_text("hidden until you have answered")
    page.get_by_label("Comment").fill("It claims an e-mail.")
    page.get_by_label("Comment").press("1")
    expect(page.get_by_label("Comment")).to_have_value("It claims an e-mail.1")  # not an answer yet
    page.locator("h1").click()
    page.keyboard.press("2")
    expect(word).to_contain_text("The grader passed")
    expect(word).to_contain_text("It claims an e-mail.1")
    expect(page.get_by_label("Runs to review")).to_contain_text("disagrees")
    page.keyboard.press("Enter")
    expect(word).to_contain_text("hidden until you have answered")
    assert word.get_by_role("heading").inner_text() != first
    assert faults == []


def test_m_opens_the_form_on_the_page_of_a_run_and_the_word_stands_beside_the_verdict(
    page: Page, faults: list[str], clerk_ids: dict[str, str]
) -> None:
    page.goto(f"/runs/{clerk_ids['passed_run']}")
    verdict = page.locator("#verdicts .gr").inner_text()
    page.keyboard.press("m")
    page.get_by_label("Your name").fill("Bob")
    page.get_by_role("button", name="Wrong").click()
    expect(page.locator("#reviews")).to_contain_text("Bob wrong")
    assert page.locator("#verdicts .gr").inner_text() == verdict
    assert faults == []
