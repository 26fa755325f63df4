"""An experiment as one file."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies.exported import DROPPED, GUESSED, LONG, exported
from strategies.page import Page
from strategies.reported import HOSTILE, detail, hostile_report, joined, report, row, rows_of

from seatrial.errors import SeatrialError
from seatrial.explorer.export import one_file as module
from seatrial.explorer.export.one_file import one_file, write_file
from seatrial.explorer.export.overview import case_cell
from seatrial.reports import stored_report
from seatrial.reports.rows import matrix
from seatrial.store import GraderCounts, Store

OUTSIDE = {"link", "iframe", "object", "embed", "base", "form", "image", "foreignobject"}


def page_of(store: Store) -> str:
    return exported(stored_report(store, "exp-1"), store).replace("\u00a0", " ")


def part(html: str, run_id: str) -> str:
    """What the file has of one run."""
    return re.split(r'<(?:details class="run"|div class="rl") id="run-', html.split(f'id="run-{run_id}"')[1])[0]


def test_every_run_is_there_with_its_transcript_those_that_failed_before_the_others(store: Store) -> None:
    html = page_of(store)
    order = re.findall(r'<details class="run" id="run-run-crew-case-(\d)-1"', html)
    assert order == ["2", "3", "5", "1", "0", "4"]
    for run, words in (
        ("2", "no “pier”"),
        ("5", "agent_unreachable"),
        ("0", "At the quay."),
        ("1", "Behind the bollard."),
    ):
        assert words in part(html, f"run-crew-case-{run}-1")
    assert "is not passed" not in html


def test_the_notes_of_a_run_and_what_is_not_known_of_its_calls_stand_with_it(store: Store) -> None:
    html = page_of(store)
    own = part(html, "run-crew-case-1-1")
    for note in (DROPPED, GUESSED):
        assert note.message in own
        assert note.code in own
    assert '<span class="chip err">calls not all known</span>' in own
    assert '<span class="chip err">1 serious note</span>' in own
    assert "Not all calls are known" in own
    assert "line 7 has no id" in html  # it belongs to no run


def test_what_judges_said_is_in_the_file(store: Store) -> None:
    own = part(page_of(store), "run-crew-case-2-1")
    for words in ("judge-1", "too late", "too rude", "wrong_order"):
        assert words in own


def test_texts_are_whole_up_to_a_size_and_what_is_missing_is_said(store: Store) -> None:
    html = page_of(store)
    assert "The rest of it is not in this file." in part(html, "run-crew-case-3-1")
    assert html.count("line of a very long result") < LONG.count("\n")
    assert "Items 261" not in html  # of 131 turns, all are there
    assert part(html, "run-crew-case-2-1").count("look_up") > 130


def test_an_image_of_the_record_is_in_the_file(store: Store) -> None:
    assert '<img src="data:image/png;base64,' in part(page_of(store), "run-crew-case-4-1")


def test_the_file_asks_for_nothing_and_every_link_leads_to_a_place_in_it(store: Store) -> None:
    found = Page(page_of(store))
    assert not OUTSIDE & set(found.tags)
    inside = [link for link in found.links if not link.startswith("data:image/png;base64,")]
    assert [link for link in inside if not link.startswith("#")] == []
    assert {link[1:] for link in inside} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert not [name for name, _ in found.attributes if name == "style" or name.startswith("on")]
    assert [value for name, value in found.attributes if name == "src" and not str(value).startswith("data:")] == []


def test_the_policy_allows_the_style_and_the_script_of_the_file_and_nothing_else(store: Store) -> None:
    html = page_of(store)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    for element, rule in (("style", "style-src"), ("script", "script-src")):
        [text] = re.findall(rf"<{element}>(.*?)</{element}>", html, re.DOTALL)
        assert f"{rule} 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy[1]
        assert "@import" not in text
        assert "http" not in text
    assert policy[1].startswith("default-src 'none'; ")


@pytest.mark.parametrize("text", [text.encode("utf-8", "replace").decode() for text in HOSTILE])
def test_hostile_text_is_shown_and_never_markup(text: str) -> None:
    plain, found = Page(exported(hostile_report("plain"))), Page(exported(hostile_report(text)))
    assert found.tags == plain.tags
    assert [name for name, _ in found.attributes] == [name for name, _ in plain.attributes]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\ud800-\udfff]", found.text)


def test_hostile_runs_stay_text_with_all_that_is_in_them(hostile_store: Store) -> None:
    html = page_of(hostile_store)
    found = Page(html)
    assert "onerror" not in {name for name, _ in found.attributes}
    assert found.tags.count("script") == 1
    assert "img" not in found.tags
    assert not [link for link in found.links if not link.startswith("#")]
    assert not re.search("[\u200b\u202e]", html)
    assert "spy.example" in found.text


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_any_text_leaves_the_structure_as_it_is(text: str) -> None:
    assert Page(exported(hostile_report(text))).tags == Page(exported(hostile_report("plain"))).tags


@pytest.mark.parametrize(
    ("runs", "kind", "words"),
    [
        ("p", "passed", "passed"),
        ("ppp", "passed", "3/3"),
        ("f", "failed", "failed"),
        ("ff", "failed", "0/2"),
        ("pf", "flaky", "1/2"),
        ("e", "errored", "errored"),
        ("ppe", "errored", "2/2 passed · 1 errored"),
        ("fe", "failed", "0/1 · 1 errored"),
        ("pfe", "flaky", "1/2 · 1 errored"),
        ("ps", "ungraded", "1/1 passed · 1 not graded"),
        ("pse", "errored", "1/1 passed · 1 errored · 1 not graded"),
        ("s", "ungraded", "not graded"),
    ],
)
def test_a_case_is_passed_only_when_all_its_runs_were(runs: str, kind: str, words: str) -> None:
    [(_, cells)] = matrix(rows_of(crew=runs))
    cell = case_cell(cells["crew"])
    assert (cell.kind, cell.words) == (kind, words)
    folded = "1 case was passed by every agent, every time" in exported(report(rows_of(crew=runs)))
    assert folded is (kind == "passed")


def test_a_case_that_an_agent_never_ran_is_not_one_that_all_passed() -> None:
    html = exported(report(rows_of(crew="p p", shop="p")))
    assert "1 case was passed by every agent" in html
    assert "not run" in html


def test_what_failed_and_why_stands_above_the_graders_and_the_worst_comes_first() -> None:
    rows = [
        *rows_of(crew="p f f", shop="p p f"),
        row("case-3", "failed", signature="equals|answer", detail=detail("it is 4")),
        row("case-4", "failed", signature="equals|answer", detail=detail("it is 4")),
    ]
    html = exported(report(rows, graders=[GraderCounts("crew", "calls", 0.5, {"passed": 1, "failed": 1})]))
    places = [html.index(f'id="{name}"') for name in ("agents", "causes", "cases", "runs", "graders")]
    assert places == sorted(places)
    agents, cases = html[places[0] : places[1]], html[places[2] : places[3]]
    assert agents.index(">crew<") < agents.index(">shop<")
    assert cases.index("case-2") < cases.index("case-1") < cases.index("case-0")
    assert '<b>2</b> <span>runs</span> <span dir="auto">it is 4</span>' in html
    assert '<td class="r failed">1/2</td>' in html[places[4] :]


def test_an_experiment_without_runs_says_so() -> None:
    assert "There are no runs." in Page(exported(report([]))).text


def test_once_the_file_has_its_size_runs_are_a_line_and_after_these_they_are_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 1)
    monkeypatch.setattr(module, "MAX_LINES", 4)
    html = page_of(store)
    assert html.count('<details class="run"') == 1
    assert html.count('<div class="rl" id=') == 3
    assert "3 runs at the end of the list are without transcript." in html
    assert "2 more runs are not in this file, and not searched." in html
    assert 'data-more="2"' in html
    assert "seatrial export exp-1 --html FOLDER" in html


def test_a_run_that_cannot_be_read_says_so_and_hides_no_other() -> None:
    html = exported(report(rows_of(crew="p f")))
    assert html.count("This run cannot be read any more") == 2


def test_progress_is_told_of_every_run(store: Store) -> None:
    told: list[None] = []
    joined(one_file(store, stored_report(store, "exp-1"), lambda: told.append(None)))
    assert len(told) == 6


def test_a_file_that_cannot_be_finished_leaves_the_old_one(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")

    def stop() -> None:
        raise SeatrialError("store_unavailable", "gone")

    with pytest.raises(SeatrialError, match="gone"):
        write_file(store, stored_report(store, "exp-1"), path, stop)
    assert path.read_text() == "old"
    assert {found.name for found in tmp_path.glob("*page*")} == {"page.html"}


def test_more_runs_do_not_make_the_lines_of_a_file_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RUNS", 0)
    rows = [row(f"case-{index}", "failed" if index % 2 else "passed") for index in range(3000)]
    html = exported(report(rows))
    assert len(html.encode()) < 4_000_000
    assert html.count('data-o="failed"') == 1500


def test_an_experiment_that_has_not_ended_says_how_far_it_is() -> None:
    rows = rows_of(crew="p e u")
    assert "Running: 2 of 1,040 runs so far" in exported(report(rows, status="running", planned=1040))
    stopped = exported(report(rows, status="stopped", stop_reason="interrupted", planned=1040))
    assert "Stopped after 2 of 1,040 runs: interrupted" in stopped
