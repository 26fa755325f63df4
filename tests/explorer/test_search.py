"""Search: its page in every state, and where one may go from anywhere."""

from __future__ import annotations

from typing import Literal

import pytest
from strategies import records

from explorer.test_routes import BROWSER, fetched
from seatrial.explorer.render import address
from seatrial.explorer.search import HITS_A_PAGE, destinations, search_page
from seatrial.runs import Case
from seatrial.store import Store

PART = {**BROWSER, "Seatrial-Fragment": "1"}


@pytest.fixture
def filled(store: Store) -> Store:
    cases = [Case(id=f"refund-{index}", instruction="") for index in range(HITS_A_PAGE + 5)]
    store.create_experiment(records.experiment(), cases)
    for index, case in enumerate(cases):
        outcome: Literal["failed", "passed"] = "failed" if index == 3 else "passed"
        said = ("Where is my order?", f"It <b>left</b> the harbour, number {index}.")
        store.record_run(records.run(case.id, said=said, outcome=outcome)).wait()
    return store


def test_hits_lead_to_their_place_and_show_the_words(filled: Store) -> None:
    page = search_page(filled, "harbour 3", None, None)
    [found] = page.found
    assert found.href == "/runs/run-crew-refund-3-1?at=%2Fmessages%2F1#messages-1"
    assert (found.outcome, found.title, found.experiment) == ("failed", "refund-3", "refunds")
    assert [text for text, is_hit in found.snippet if is_hit] == ["harbour", "3"]
    _, _, text = fetched(filled, "/search?q=harbour+3")
    assert "It &lt;b&gt;left&lt;/b&gt; the <mark" in text
    assert "1\N{NO-BREAK SPACE}run has all of it" in text


def test_older_hits_follow_by_a_cursor_until_none_is_left(filled: Store) -> None:
    first = search_page(filled, "harbour", None, None)
    assert len(first.found) == HITS_A_PAGE
    assert first.more is not None
    second = search_page(filled, "harbour", None, first.found[-1].run_id)
    assert len(second.found) == 5
    assert second.more is None
    shown = [each.title for each in [*first.found, *second.found]]
    assert shown == [f"refund-{index}" for index in reversed(range(HITS_A_PAGE + 5))]
    _, _, text = fetched(filled, first.more)
    assert "and the last" in text


def test_where_nothing_is_found_the_page_says_what_there_would_be_otherwise(filled: Store) -> None:
    page = search_page(filled, "harbour nowhere", "exp-1", None)
    assert page.found == []
    assert page.without == [("nowhere", "/search?q=harbour&experiment=exp-1")]
    filled.create_experiment(records.experiment("exp-2"), [Case(id="other", instruction="")])
    assert search_page(filled, "harbour", "exp-2", None).everywhere == "/search?q=harbour"
    status, _, text = fetched(filled, "/search?q=harbour+nowhere")
    assert (status, "No run has all of it" in text) == (200, True)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "Every word has to be there"),
        ("???", "There is no word here to look for"),
        ("x" * 501, "at most 500 characters"),
        ("harbour&before=run-crew-refund-0-1", "No older run"),
    ],
)
def test_a_page_without_hits_says_why(filled: Store, query: str, said: str) -> None:
    status, _, text = fetched(filled, f"/search?q={query}")
    assert (status, said in text) == (200, True)


def test_a_search_from_a_run_or_in_an_experiment_that_is_not_there_is_not_found(filled: Store) -> None:
    assert fetched(filled, "/search?q=harbour&before=nothing")[0] == 404
    assert fetched(filled, "/search?q=harbour&experiment=nothing")[0] == 404


def test_names_of_experiments_and_cases_and_beginnings_of_ids_are_found(filled: Store) -> None:
    assert [each.case_id for each in destinations(filled, "FUND-1", None).named.cases][:2] == ["refund-1", "refund-10"]
    assert [each.name for each in destinations(filled, "refunds", None).named.experiments] == ["refunds"]
    assert [each.run_id for each in destinations(filled, "run-crew-refund-3", None).named.runs] == [
        "run-crew-refund-3-1"
    ]
    assert destinations(filled, "run-crew-refund-3", "gone").named.cases == []
    assert list(destinations(filled, "key", None).pages) == ["/help/keys"]
    assert [each.experiment_id for each in destinations(filled, "", None).named.experiments] == ["exp-1"]
    # What is typed may be the beginning of a word.
    assert len(destinations(filled, "harb", None).found) > 0
    for hostile in ("%", "_", "\0", "\\", "'", '"', "\ud800", "*"):
        assert destinations(filled, hostile, None).named.runs == []


def test_the_palette_is_a_part_and_without_script_the_search(filled: Store) -> None:
    _, headers, text = fetched(filled, "/search/go?q=refund-3", PART)
    assert headers["Cache-Control"] == "no-store"
    assert 'href="/experiments/exp-1/cases/refund-3"' in text
    assert "<html" not in text
    status, headers, _ = fetched(filled, "/search/go?q=a+b")
    assert (status, headers["Location"]) == (303, "/search?q=a+b")


def test_a_case_with_slashes_in_its_id_has_a_page(store: Store) -> None:
    store.create_experiment(records.experiment(), [Case(id="billing/refund/ ?#1", instruction="")])
    store.record_run(records.run("billing/refund/ ?#1", run_id="run-1")).wait()
    href = address("experiments", "exp-1", "cases", "billing/refund/ ?#1")
    assert href == "/experiments/exp-1/cases/billing%2Frefund%2F%20%3F%231"
    for path in (href, href.replace("%2F", "/")):
        status, _, text = fetched(store, path)
        assert (status, "billing/refund/ ?#1" in text) == (200, True)
