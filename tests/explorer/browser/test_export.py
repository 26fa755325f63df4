"""Exports in a browser, opened from a disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from strategies.exported import hostile_store, varied_store

from explorer.browser.chromium import VIEWS, View, barriers, opened_context, sideways
from seatrial.explorer.export import write_file, write_folder
from seatrial.reports import stored_report

PAGES = (
    "file.html",
    "folder/index.html",
    "folder/runs.html",
    "folder/cases-1.html",
    "folder/runs/run-crew-case-2-1.html",
)


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both forms of an export, and of one with hostile text."""
    path = tmp_path_factory.mktemp("exports")
    with varied_store(path / "store.db") as store:
        report = stored_report(store, "exp-1")
        write_file(store, report, path / "file.html")
        write_folder(store, report, path / "folder")
    with hostile_store(path / "hostile.db") as store:
        report = stored_report(store, "exp-1")
        write_file(store, report, path / "hostile.html")
        write_folder(store, report, path / "hostile")
    return path


@pytest.fixture
def page(chromium: Browser, exports: Path, view: View) -> Iterator[Page]:
    """An empty page; whatever it asks for beside files of the export is a fault."""
    with opened_context(chromium, exports.as_uri(), view) as context:
        yield context.new_page()


@pytest.fixture
def asked(page: Page) -> list[str]:
    """What the page asks for that is no file."""
    asked: list[str] = []
    page.on(
        "request", lambda request: asked.append(request.url) if not request.url.startswith(("file:", "data:")) else None
    )
    return asked


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("name", PAGES)
def test_an_exported_page_fits_its_window_and_nothing_fails_or_leaves(
    page: Page, faults: list[str], asked: list[str], exports: Path, name: str
) -> None:
    page.goto((exports / name).as_uri())
    assert sideways(page) == 0
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    assert (faults, asked) == ([], [])


@pytest.mark.parametrize("view", [View(1440, "light"), View(400, "dark")], ids=str)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_barrier(page: Page, exports: Path, name: str) -> None:
    page.goto((exports / name).as_uri())
    page.eval_on_selector_all("details.run", "(runs) => runs.slice(0, 2).forEach((run) => { run.open = true; })")
    assert barriers(page) == []


def test_runs_are_searched_and_sorted_inside_the_file(page: Page, exports: Path, faults: list[str]) -> None:
    page.goto((exports / "file.html").as_uri())
    runs, field, said = page.locator("details.run:visible"), page.get_by_role("searchbox"), page.get_by_role("status")
    assert runs.count() == 6

    def shown(text: str) -> list[str | None]:
        field.fill(text)
        page.wait_for_function("(text) => document.querySelector('[data-look]').dataset.shown === text", arg=text)
        return [run.get_attribute("data-c") for run in runs.all()]

    assert shown("verdict:failed") == ["case-2", "case-3"]
    assert shown("verdict:failed -case:*-2") == ["case-3"]
    assert shown('"behind the bollard"') == ["case-1"]  # of its transcript
    assert shown("duration<1h") == ["case-2", "case-3", "case-1", "case-0", "case-4"]  # of one it is not known
    assert shown("-duration>1h") == ["case-2", "case-3", "case-1", "case-0", "case-4"]
    assert shown("verdict:passed,errored case:case-?") == ["case-5", "case-1", "case-0", "case-4"]
    assert said.inner_text() == "4 of 6 runs"
    assert shown("tol:refund") == ["case-5", "case-1", "case-0", "case-4"]  # nothing is filtered until it is right
    assert "There is no field" in said.inner_text()
    shown("")
    page.get_by_label("sort by").select_option("case")
    assert [run.get_attribute("data-c") for run in runs.all()] == [f"case-{number}" for number in range(6)]
    assert faults == []


def test_a_link_into_a_run_opens_it(page: Page, exports: Path) -> None:
    page.goto((exports / "file.html").as_uri() + "#run-run-crew-case-0-1")
    assert page.locator("#run-run-crew-case-0-1").evaluate("(run) => run.open")
    page.locator("#causes").scroll_into_view_if_needed()
    page.locator(".why a").first.click()
    assert page.locator("#run-run-crew-case-2-1").evaluate("(run) => run.open")
    assert page.get_by_text("too rude").count() == 1


def test_one_walks_from_the_first_page_to_the_end_of_a_long_run(page: Page, exports: Path, faults: list[str]) -> None:
    page.goto((exports / "folder/index.html").as_uri())
    page.get_by_role("link", name="All runs, with search").click()
    page.get_by_role("searchbox").fill("case:case-2")
    page.locator("a.rl[data-c=case-2]").click()
    assert "case-2" in page.locator("h1").inner_text()
    page.get_by_role("link", name="Show more items").click()
    page.get_by_role("link", name="Go to the end").click()
    assert page.get_by_text("At the quay.").last.is_visible()
    page.get_by_role("link", name="refunds", exact=True).click()
    assert page.url.endswith("index.html")
    assert faults == []


@pytest.mark.parametrize("name", ["hostile.html", *[f"hostile/{page}.html" for page in ("index", "runs", "cases-1")]])
def test_hostile_text_does_nothing(page: Page, faults: list[str], asked: list[str], exports: Path, name: str) -> None:
    page.goto((exports / name).as_uri())
    title = page.title()
    page.eval_on_selector_all("details", "(all) => all.forEach((one) => { one.open = true; })")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert (faults, asked) == ([], [])
    assert page.title() == title
    assert sideways(page) == 0


def test_hostile_text_does_nothing_on_the_pages_of_runs(
    page: Page, faults: list[str], asked: list[str], exports: Path
) -> None:
    found = sorted((exports / "hostile/runs").glob("*.html"))
    assert len(found) > 2
    for path in found:
        page.goto(path.as_uri())
        assert sideways(page) == 0
    assert (faults, asked) == ([], [])
