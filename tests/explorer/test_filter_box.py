"""The field that filters runs: mistakes with their place, what may follow, and what there would be without a term."""

from __future__ import annotations

import pytest
from strategies import records

from explorer.test_routes import BROWSER, fetched
from seatrial.explorer.filter_box import filter_box, without_terms
from seatrial.explorer.render import rendered
from seatrial.runs import Case
from seatrial.store import Store
from seatrial.trajectory.step import Step


@pytest.fixture
def filled(store: Store) -> Store:
    store.create_experiment(records.experiment(), [Case(id=f"case-{index}", instruction="") for index in range(3)])
    for index, tool in enumerate(("refund", "refund", "look<up")):
        steps = [Step(0, tool, {}, "c", "messages", "ok")]
        store.record_run(records.run(index, steps=steps, outcome="failed" if index == 0 else "passed")).wait()
    return store


def test_a_mistake_is_shown_with_its_place_and_filters_nothing() -> None:
    box = filter_box("outcome:failed tol:refund", "exp-1", {"tab": "all"})
    assert box.terms == ()
    assert box.mistake is not None
    assert (box.mistake.before, box.mistake.wrong, box.mistake.after) == ("outcome:failed ", "tol", ":refund")
    text = rendered("parts/filter.html", filter_box=box)
    assert "outcome:failed <u>tol</u>:refund" in text
    assert 'aria-invalid="true"' in text
    assert '<input type="hidden" name="tab" value="all">' in text


def test_what_was_typed_is_kept_as_it_is_and_shown_as_what_it_is() -> None:
    box = filter_box('x" onfocus="y \u202e', None)
    text = rendered("parts/filter.html", filter_box=box)
    assert 'value="x&#34; onfocus=&#34;y \u202e"' in text
    assert "\\u202e" in text  # in the mistake, which is to be read


def test_a_filter_that_nothing_matches_says_what_there_would_be_without_each_term(filled: Store) -> None:
    box = filter_box("outcome:failed tool:look* -tool:none", "exp-1", {"tab": "all"})
    found = without_terms(filled, "exp-1", box)
    assert [(each.term, each.runs, each.more) for each in found] == [
        ("outcome:failed", 1, False),
        ("tool:look*", 1, False),
    ]
    assert found[0].href == "?tab=all&q=tool%3Alook%2A+-tool%3Anone"
    text = rendered("parts/nothing_matches.html", filter_box=box, without=found)
    assert "there are 1; without" in text
    only = filter_box("tool:none", "exp-1")
    assert without_terms(filled, "exp-1", only) == []
    assert "Show all runs" in rendered("parts/nothing_matches.html", filter_box=only, without=[])


def test_suggestions_are_a_part_and_without_script_a_page_of_links(filled: Store) -> None:
    path = "/filter/suggest?q=outcome:passed+tool:&experiment=exp-1"
    _, headers, text = fetched(filled, path, {**BROWSER, "Seatrial-Fragment": "1"})
    assert headers["Cache-Control"] == "no-store"
    assert '<li role="option" id="suggestion-1" aria-selected="false" data-insert="tool:refund" data-start="15"' in text
    assert "2\N{NO-BREAK SPACE}runs" in text
    assert "look&lt;up" in text
    _, _, text = fetched(filled, path)
    assert "q=outcome%3Apassed+tool%3Arefund" in text
    status, _, text = fetched(filled, "/filter/suggest?q=tool:&experiment=nowhere")
    assert status == 404
    status, _, text = fetched(filled, "/filter/suggest?q=" + "(" * 3000)
    assert (status, "Nothing that is known here" in text) == (200, True)
