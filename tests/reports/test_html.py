from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.page import OUTSIDE, Page
from strategies.reported import HOSTILE, detail, hostile_report, joined, report, row, rows_of

from seatrial.reports import html
from seatrial.reports.html import html_page
from seatrial.reports.report import Report
from seatrial.store import GraderCounts


def page(found: Report) -> Page:
    return Page(joined(html_page(found)))


def test_the_page_shows_agents_cases_and_what_did_not_pass() -> None:
    rows = [row("greet", detail=None), row("refund", "failed", detail=detail("the amount is 200"))]
    text = page(report(rows)).text
    for part in ("refunds", "exp-1", "crew", "50.0%", "greet", "refund", "the amount is 200", "Transcript", "differs"):
        assert part in text


def test_the_page_is_one_file_that_asks_for_nothing() -> None:
    found = page(report([row("a", "failed", detail=detail())]))
    assert not OUTSIDE & set(found.tags)
    assert all(link.startswith("#") for link in found.links)
    assert not [name for name, _ in found.attributes if name == "src" or name == "style" or name.startswith("on")]


def test_the_policy_allows_the_style_sheet_and_nothing_else() -> None:
    source = joined(html_page(report(rows_of(crew="p"))))
    match = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', source)
    style = re.search(r"<style>(.*?)</style>", source, re.DOTALL)
    assert match is not None
    assert style is not None
    digest = b64encode(sha256(style.group(1).encode()).digest()).decode()
    assert match.group(1) == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style.group(1)
    assert "@import" not in style.group(1)


def test_a_cell_that_failed_or_errored_links_to_its_run() -> None:
    found = page(report([row("a", "failed", detail=detail()), row("b", "errored", detail=detail()), row("c")]))
    assert set(found.links) - {"#runs"} == {"#run-run-crew-a-1", "#run-run-crew-b-1"}
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))


@pytest.mark.parametrize(
    ("runs", "kind", "label"),
    [
        ("p", "passed", "✓ passed"),
        ("ppp", "passed", "✓ 3/3"),
        ("f", "failed", "✕ failed"),
        ("ff", "failed", "✕ 0/2"),
        ("pf", "flaky", "± 1/2"),
        ("e", "errored", "! errored"),
        ("ppe", "errored", "! 2/2 passed · 1 errored"),
        ("pe", "errored", "! 1/1 passed · 1 errored"),
        ("fe", "failed", "✕ 0/1 · 1 errored"),
        ("pfe", "flaky", "± 1/2 · 1 errored"),
        ("ps", "other", "– 1/1 passed · 1 not graded"),
        ("pse", "errored", "! 1/1 passed · 1 errored · 1 not graded"),
        ("s", "other", "not graded"),
    ],
)
def test_a_cell_is_green_only_when_all_its_runs_passed(runs: str, kind: str, label: str) -> None:
    source = joined(html_page(report(rows_of(crew=runs))))
    cell = source.split(f'<td class="{kind}-cell">')[1].split("</td>")[0]
    assert re.sub("<[^>]*>", "", cell).strip() == label
    assert source.count('-cell">') == 1
    folded = "was passed by every agent, every time" in source
    assert folded is (kind == "passed")


def test_cases_that_all_passed_are_folded_away() -> None:
    source = joined(html_page(report(rows_of(crew="p p f", shop="p f p"))))
    folded = source.split("1 case was passed by every agent, every time</summary>")[1].split("</details>")[0]
    assert "case-0" in folded
    assert "case-1" not in folded


def test_a_case_that_an_agent_never_ran_is_not_one_that_all_passed() -> None:
    source = joined(html_page(report(rows_of(crew="p p", shop="p"))))
    assert "1 case was passed by every agent" in source
    assert '<th scope="row">case-1</th><td class="passed-cell">✓ passed</td><td class="other-cell">–</td>' in source


def test_failed_and_errored_can_be_told_apart_without_a_script() -> None:
    source = joined(html_page(report(rows_of(crew="f e"))))
    assert 'id="only-failed"' in source
    assert "main:has(#only-failed:checked) .run.errored" in source
    assert "only-failed:checked" in source
    assert '<fieldset class="filter">' not in joined(html_page(report(rows_of(crew="f f"))))


def test_expected_and_actual_calls_stand_below_each_other_on_a_narrow_screen() -> None:
    source = joined(html_page(report([row("a", "failed", detail=detail())])))
    narrow = source.split("@media (max-width: 40rem) {")[1].split("\n}")[0]
    assert ".calls tr, .calls th, .calls td { display: block;" in narrow


def test_when_all_passed_the_page_says_so() -> None:
    assert "All passed." in page(report(rows_of(crew="p p"))).text


def test_an_experiment_without_runs_says_so() -> None:
    assert "There are no runs." in page(report([])).text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_never_markup(text: str) -> None:
    plain, found = page(hostile_report("plain")), page(hostile_report(text))
    assert found.tags == plain.tags
    assert [name for name, _ in found.attributes] == [name for name, _ in plain.attributes]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\ud800-\udfff]", found.text)


@pytest.fixture(scope="module")
def plain_tags() -> list[str]:
    """The structure of the page when no text in it is hostile."""
    return page(hostile_report("plain")).tags


@settings(max_examples=50)
@given(text=st.text(st.characters(), min_size=1, max_size=30))
def test_any_text_leaves_the_structure_as_it_is(text: str, plain_tags: list[str]) -> None:
    assert page(hostile_report(text)).tags == plain_tags


def test_five_thousand_cases_stay_below_ten_megabytes() -> None:
    long = detail("x" * 2000)
    rows = [
        row(f"case-{index}", "failed" if index % 2 else "passed", agent=agent, detail=long if index % 2 else None)
        for index in range(5000)
        for agent in ("crew", "shop")
    ]
    source = joined(html_page(report(rows)))
    assert len(source.encode()) < 10_000_000
    assert source.count("<details class=") > 100
    assert 'id="run-run-shop-case-4999-1"' in source


def test_runs_past_the_size_of_the_page_are_lines_and_then_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MAX_DETAILS", 1)
    monkeypatch.setattr(html, "MAX_LINES", 1)
    rows = [row(f"case-{index}", "failed", detail=detail()) for index in range(5)]
    found = page(report(rows))
    assert found.text.count("Transcript") == 1
    assert "… and 3 more" in found.text


def test_causes_and_cases_stand_above_the_graders_and_the_worst_come_first() -> None:
    rows = [
        *rows_of(crew="p f f", shop="p p f"),
        row("case-3", "failed", signature="equals|answer", detail=detail("it is 4")),
        row("case-4", "failed", signature="equals|answer", detail=detail("it is 4")),
    ]
    page = joined(html_page(report(rows, graders=[GraderCounts("crew", "calls", 0.5, {"passed": 1, "failed": 1})])))
    places = [page.index(f'id="{name}"') for name in ("agents", "causes", "cases", "runs", "graders")]
    assert places == sorted(places)
    agents = page[places[0] : places[1]]
    assert agents.index(">crew<") < agents.index(">shop<")
    cases = page[places[2] : places[3]]
    assert cases.index("case-2") < cases.index("case-1") < cases.index("case-0")
    assert '<strong>2</strong> runs: <span dir="auto">it is 4</span>' in page
    assert page.count('<h3 class="alike">2 runs fail alike</h3>') == 1
    assert '<td class="failed-cell">1/2</td>' in page[places[4] :]


def test_cells_of_many_agents_are_signs_whose_words_can_be_heard() -> None:
    page = joined(html_page(report(rows_of(**{f"agent-{number}": "f p" for number in range(12)}))))
    assert '<table class="matrix dense">' in page
    assert 'title="✕ failed" aria-label="✕ failed">✕</a>' in page


def test_a_wide_table_shows_that_it_can_be_scrolled() -> None:
    style = joined(html_page(report([]))).partition("<style>")[2].partition("</style>")[0]
    assert "local" in style.partition(".wide {")[2].partition("}")[0]
    assert ".wide th:first-child { position: sticky;" in style
