"""An experiment as a folder of pages."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from strategies import records
from strategies.exported import LONG
from strategies.page import Page

from seatrial.errors import SeatrialError
from seatrial.explorer.export import folder as module
from seatrial.explorer.export.folder import file_name, write_folder
from seatrial.reports import stored_report
from seatrial.store import Store


def written(store: Store, path: Path) -> dict[str, Page]:
    """The pages of an export, by their places in the folder."""
    write_folder(store, stored_report(store, "exp-1"), path)
    return {
        str(page.relative_to(path)): Page(page.read_text("utf-8").replace("\u00a0", " "))
        for page in path.rglob("*.html")
    }


def dead_links(path: Path, pages: dict[str, Page]) -> set[str]:
    """Links that lead to no file, or to no place in it."""
    dead: set[str] = set()
    for name, page in pages.items():
        for link in page.links:
            if link.startswith("#m-"):
                continue
            file, anchor = urldefrag(link)
            there = (path / name).parent / unquote(file) if file else path / name
            known = there.exists() and path in there.resolve().parents
            other = pages.get(str(there.resolve().relative_to(path.resolve()))) if known else None
            if not known or (anchor and other is not None and anchor not in other.ids):
                dead.add(f"{name}: {link}")
    return dead


def test_every_link_leads_to_a_file_of_the_folder_and_to_a_place_in_it(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "export"
    pages = written(store, path)
    assert dead_links(path, pages) == set()
    assert {"index.html", "runs.html", "cases-1.html", "runs/run-crew-case-0-1.html"} <= set(pages)
    for page in pages.values():
        assert len(page.ids) == len(set(page.ids))


def test_a_long_run_has_several_pages_with_all_of_its_items(store: Store, tmp_path: Path) -> None:
    pages = written(store, tmp_path / "export")
    own = [name for name in pages if name.startswith("runs/run-crew-case-2-1") and "verdict" not in name]
    assert len(own) > 1
    assert sum([pages[name].tags.count("li") for name in own]) >= 131
    text = "".join([pages[name].text for name in own])
    assert all(f"A-{number}" in text for number in range(130))


def test_long_texts_and_images_lie_beside_the_page(store: Store, tmp_path: Path) -> None:
    written(store, tmp_path / "export")
    [text] = (tmp_path / "export" / "runs").glob("run-crew-case-3-1.*.text.txt")
    assert text.read_text("utf-8-sig") == LONG
    [image] = (tmp_path / "export" / "runs").glob("run-crew-case-4-1.*.png")
    assert image.read_bytes().startswith(b"\x89PNG")


def test_what_judges_said_has_a_page(store: Store, tmp_path: Path) -> None:
    pages = written(store, tmp_path / "export")
    texts = [page.text for name, page in pages.items() if ".verdict-" in name]
    assert any("too late" in text and "too rude" in text for text in texts)


def test_hostile_text_is_no_markup_on_any_page(hostile_store: Store, tmp_path: Path) -> None:
    path = tmp_path / "export"
    pages = written(hostile_store, path)
    assert dead_links(path, pages) == set()
    for page in pages.values():
        assert "onerror" not in {name for name, _ in page.attributes}
        assert page.tags.count("script") == 1
        assert "img" not in page.tags


def test_an_export_is_replaced_and_nothing_else_is(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "export"
    path.mkdir()
    written(store, path)  # an empty folder may be used
    (path / "of-before.html").write_text("old")
    written(store, path)
    assert not (path / "of-before.html").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    for taken in (mine, mine / "thesis.txt"):
        with pytest.raises(SeatrialError, match="is not an export, and is not overwritten"):
            write_folder(store, stored_report(store, "exp-1"), taken)
    assert (mine / "thesis.txt").read_text() == "years of work"
    assert sorted(found.name for found in tmp_path.iterdir() if ".db" not in found.name) == ["export", "mine"]


def test_an_export_that_breaks_off_leaves_the_old_one_and_no_half(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "export"
    written(store, path)
    before = sorted(path.rglob("*"))

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(store, stored_report(store, "exp-1"), path, stop)
    assert sorted(path.rglob("*")) == before
    assert not list(tmp_path.glob(".export*"))


def test_fifty_cases_are_on_a_page_and_runs_past_the_list_are_counted(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CASES_AT_ONCE", 4)
    monkeypatch.setattr(module, "MAX_LINES", 4)
    pages = written(store, tmp_path / "export")
    assert "case-3" in pages["cases-1.html"].text
    assert "case-4" in pages["cases-2.html"].text
    assert "2 more runs are not in this list" in pages["runs.html"].text
    assert ("data-more", "2") in pages["runs.html"].attributes
    assert len([name for name in pages if name.startswith("runs/") and name.count(".") == 1]) == 6


def test_a_run_that_cannot_be_read_has_a_page_that_says_so(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(store: Store, run_id: str) -> None:
        raise SeatrialError("damaged", f"run {run_id} is damaged")

    monkeypatch.setattr(module, "run_parts", damaged)
    pages = written(store, tmp_path / "export")
    assert "is damaged" in pages["runs/run-crew-case-0-1.html"].text
    assert pages["runs.html"].text.count("cannot be read") == 6


def test_the_name_of_a_file_is_harmless_whatever_the_id_of_the_run() -> None:
    assert file_name("../../x y\u00e9") == "~2e~2e~2f~2e~2e~2fx~20y~e9.html"
    assert file_name("a", 2) == "a.2.html"
    assert records.run().run_id in file_name(records.run().run_id)
