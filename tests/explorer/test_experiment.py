"""The page of an experiment."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from strategies import records

from explorer.test_compare_experiments import experiment
from explorer.test_routes import BROWSER, fetched
from seatrial.cli.main import main
from seatrial.explorer import matrix
from seatrial.reports import figures
from seatrial.store import Store, open_store

WORSE = ["pp"] * 6 + ["ff"] * 14
BEFORE = ["pp"] * 20


def page(store: Store, address: str = "after", status: int = 200) -> str:
    """The page as it came."""
    answered, _, text = fetched(store, f"/experiments/{address}")
    assert answered == status, text
    return text


def words(text: str) -> str:
    """What it says."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.fixture
def both(store: Store) -> Store:
    """Two experiments of a suite, the second one worse."""
    experiment(store, "before", BEFORE)
    experiment(store, "after", WORSE)
    return store


def test_the_page_opens_with_the_sentence_against_the_last_finished_experiment_of_the_suite(both: Store) -> None:
    text = words(page(both))
    assert "crew is worse than in before : −70.0 points (95% interval" in text
    assert "14 of 20 cases pass less often, 0 more often." in text
    assert "▼ −70.0 points" in text
    assert "the same in both" in text


def test_figures_are_those_of_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(tmp_path / "runs.db") as store:
        experiment(store, "before", ["pp", "pf", "ff", "pp", "pe", "pp", "pp", "pp", "pp"])
        experiment(store, "after", ["pf", "pf", "pf", "ff", "pp", "ff", "ff", "ff", "ff"])
        text = words(page(store))
    main(["compare", "before", "after", "--json", "--store", str(tmp_path / "runs.db")])
    found = json.loads(capsys.readouterr().out)[0]
    assert f"{found['difference'] * 100:+.1f} points".replace("-", "−") in text
    ends = found["interval"]["low"], found["interval"]["high"]
    assert " to ".join(figures.points(end) if abs(end) > 0.001 else "below 0" for end in ends) in text
    assert f"{found['worse']} of {found['paired']} cases pass less often, {found['better']} more often" in text
    assert f"Worse {found['worse']} Better {found['better']}" in text


def test_nothing_is_called_worse_where_the_interval_includes_zero(store: Store) -> None:
    experiment(store, "before", ["p", "p", "p"])
    experiment(store, "after", ["p", "p", "f"])
    text = words(page(store))
    assert "No clear difference : −33.3 points" in text
    assert "is worse" not in text
    assert "▼" not in text


def test_errored_runs_are_in_no_rate_and_named_by_class(store: Store) -> None:
    experiment(store, "after", ["pe", "ee", "pf"])
    text = words(page(store))
    assert "66.7% of 3 graded runs" in text
    assert "3 errored: agent_unavailable × 3" in text
    assert "Not counted: 3 errored." in text


def test_without_a_base_there_is_no_change_and_no_tab_for_it(store: Store) -> None:
    experiment(store, "after", ["pp", "pf", "ff"])
    text = words(page(store))
    assert "crew passes 50.0% of 6 graded runs" in text
    assert "Worse" not in text
    assert "against the base" not in text
    # What passes least comes first.
    assert re.findall(r"case-\d", text)[:3] == ["case-2", "case-1", "case-0"]


def test_each_trial_is_a_link_to_its_run_with_words(both: Store) -> None:
    text = page(both)
    assert re.search(r'href="/runs/after-crew-6-2"><svg class="k" role="img" aria-label="trial 2 failed">', text)
    assert "/compare/runs?a=before-crew-6-1&amp;b=after-crew-6-1" in text


def test_a_cause_filters_by_its_signature(both: Store) -> None:
    text = page(both)
    (href,) = set(re.findall(r'href="([^"]*q=why[^"]*)#cases"', text))
    filtered = words(page(both, html.unescape(href).removeprefix("/experiments/")))
    assert "14 of 20 cases, 28 runs match" in filtered


def test_a_mistake_in_the_filter_is_shown_under_it_and_nothing_is_filtered(both: Store) -> None:
    text = words(page(both, f"after?tab=all&q={quote('tol:refund')}"))
    assert "There is no field “tol”" in text
    assert "Nothing is filtered until this is right." in text
    assert "20 cases" in text


def test_nothing_matches_says_what_there_would_be_without_each_term(both: Store) -> None:
    text = words(page(both, f"after?q={quote('outcome:failed duration>10m')}"))
    assert "No run matches" in text
    assert "Without duration>10m there are 28" in text


def test_the_next_cases_come_as_a_part_of_the_page_and_as_a_page(both: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "ROWS", 10)
    first = page(both, "after?tab=all")
    (more,) = re.findall(r'data-rows="([^"]*)"', first)
    status, headers, part = fetched(both, html.unescape(more), {**BROWSER, "Seatrial-Fragment": "1"})
    assert status == 200
    assert headers["Seatrial-Fragment"] == "1"
    assert "<html" not in part
    assert part.count("data-case") == 10
    shown = re.findall(r"case-\d+", words(first + part))
    assert len(set(shown)) == 20
    assert "<h1>" in fetched(both, html.unescape(more))[2]


def test_an_experiment_without_runs_says_what_will_be_there(store: Store) -> None:
    store.create_experiment(records.experiment("after"), records.cases(3))
    assert "No runs yet." in words(page(store))
    store.finish_experiment("after", finished_at=records.CREATED_AT).wait()
    assert "There are no runs." in words(page(store))


def test_a_running_experiment_says_so_far_and_shows_what_is_still_to_come(store: Store) -> None:
    made = replace(records.experiment("after"), suite={"trials": 3, "agents": {"crew": {}}})
    store.create_experiment(made, records.cases(2))
    store.record_run(records.run(0, experiment_id="after")).wait()
    text = page(store)
    assert "So far, crew passes 100% of 1 graded run" in words(text)
    assert "1 of 6 runs so far" in words(text)
    assert text.count('aria-label="not run yet"') == 2


def test_a_stopped_experiment_says_why(store: Store) -> None:
    store.create_experiment(records.experiment("after"), records.cases(2))
    store.record_run(records.run(0, experiment_id="after")).wait()
    store.finish_experiment("after", finished_at=records.CREATED_AT, stop_reason="the budget is used up").wait()
    assert "Stopped before all was run: the budget is used up." in words(page(store))


def test_many_trials_are_counted_and_many_agents_chosen(store: Store) -> None:
    experiment(store, "after", ["p" * 7 + "f" * 5], agents=[f"crew-{number:02}" for number in range(40)])
    text = page(store, "after?agents=crew-07,crew-03")
    assert "7/12" in words(text)
    assert "trial 1 passed" not in text
    assert "crew-07" in words(text)
    assert re.search(r"Not in the table: crew-00 .* and \d+ more", words(text))
    assert len(text) < 110_000


def test_a_base_can_be_an_agent_of_the_same_experiment_and_a_wrong_one_is_said(store: Store) -> None:
    experiment(store, "after", ["pp"] * 8, agents=["mate"])
    experiment(store, "mixed", ["pp"] * 8, agents=["crew", "mate"])
    text = words(page(store, "mixed?base=mixed:mate&agents=crew"))
    assert "No clear difference : 0.0 points" in text
    assert "No base: the experiment" in words(page(store, "mixed?base=mixed:nobody"))
    assert "an experiment is not compared with itself" in words(page(store, "mixed?base=mixed"))
    assert "against the base" not in words(page(store, "mixed?base=none"))


def test_runs_and_graders_are_views_of_the_same_page(both: Store) -> None:
    runs = words(page(both, f"after?view=runs&q={quote('outcome:failed')}"))
    assert "28 runs match" in runs
    assert "12/40" in words(page(both, "after?view=graders"))


def test_an_unknown_experiment_agent_or_parameter_is_said(both: Store) -> None:
    page(both, "nothing", 404)
    assert "There is no agent “nobody” in this experiment." in words(page(both, "after?agents=nobody"))
    assert "Did you mean “base”?" in words(page(both, "after?bas=before"))
    assert "is not a value of “tab”" in words(page(both, "after?tab=wors"))


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\u202egnp.exe", 'a"b,c|d', "a/b/c", "x" * 300])
def test_hostile_names_stay_text(store: Store, text: str) -> None:
    made = replace(records.experiment("before", name=text), suite={"name": text})
    for name in ("before", "after"):
        store.create_experiment(replace(made, experiment_id=name), [replace(records.cases(1)[0], id=text, tags=[text])])
        store.record_run(
            records.run(
                text,
                run_id=f"{name}-1",
                experiment_id=name,
                agent=text,
                outcome="failed",
                verdicts=[replace(records.verdict("failed"), grader=text, kind="python", reasons=[text])],
            )
        ).wait()
        store.finish_experiment(name, finished_at=records.CREATED_AT).wait()
    assert fetched(store, f"/experiments/after/cases/{quote(text, safe='')}")[0] == 200
    (grader,) = set(re.findall(r'href="(/experiments/after/graders/[^"]*)"', page(store, "after?view=graders")))
    assert fetched(store, html.unescape(grader))[0] == 200
    for view in ("cases&group=tag", "runs", "graders"):
        found = page(store, f"after?view={view}")
        assert "<script>alert" not in found
        assert "\u202e" not in found
