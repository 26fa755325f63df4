"""The page of two experiments side by side."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import to_builtins
from msgspec.structs import replace
from strategies import records

from explorer.test_routes import fetched
from seatrial.cli.main import main
from seatrial.explorer import compare_experiments
from seatrial.explorer.compare_experiments import CompareExperimentsPage, compare_experiments_page
from seatrial.reports import figures
from seatrial.runs import Case, Fault
from seatrial.store import Store, open_store
from seatrial.store.filter import parse_filter


def experiment(
    store: Store,
    name: str,
    outcomes: Sequence[str],
    *,
    agents: Sequence[str] = ("crew",),
    cases: list[Case] | None = None,
    suite_hash: str = "5u17e",
) -> None:
    """An experiment; of each case, the outcomes of its trials, as `pf` or `e`."""
    made = replace(records.experiment(name, name=name), suite={"name": "refunds"}, suite_hash=suite_hash)
    store.create_experiment(made, cases or records.cases(len(outcomes)))
    for agent in agents:
        for index, of_case in enumerate(outcomes):
            for trial, letter in enumerate(of_case, 1):
                outcome = {"p": "passed", "f": "failed"}.get(letter)
                fault = Fault(error_class="agent_unavailable", message="nobody answers", detail=None)
                store.record_run(
                    records.run(
                        index,
                        run_id=f"{name}-{agent}-{index}-{trial}",
                        experiment_id=name,
                        agent=agent,
                        trial=trial,
                        **({"outcome": outcome} if outcome else {"outcome": None, "status": "failed", "fault": fault}),
                    )
                )
    store.finish_experiment(name, finished_at=records.CREATED_AT).wait()


def words(store: Store, parameters: str, status: int = 200) -> str:
    """The words of the page."""
    answered, _, text = fetched(store, f"/compare?{parameters}")
    assert answered == status, text
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def cases_of(page: CompareExperimentsPage) -> list[str]:
    return [each.change.case_id for each in page.moved]


WORSE = ["ppp"] * 10
FELL = ["fff"] * 8 + ["ppf", "ppp"]


def test_the_page_says_what_the_command_says_to_the_digit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as store:
        experiment(store, "old", [*WORSE, "fff", "eee"])
        experiment(store, "new", [*FELL, "ppf", "ppp"])
        page = compare_experiments_page(store, "old", "new")
        shown = words(store, "a=old&b=new")
    assert main(["compare", "old", "new", "--store", str(path), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    same = to_builtins(page.comparison)
    for lists in (told, same):
        # The command reads whole runs for these; the page says the first wrong place of each.
        lists["worst"] = None
        for change in (*lists["regressions"], *lists["improvements"]):
            change["why"] = None
    assert same == told
    assert f"new is worse than old : {figures.points(told['difference'])} points" in shown
    assert f"{told['worse']} worse, {told['better']} better" in shown
    for side in (told["a"], told["b"]):
        assert figures.percent(side["summary"]["pass_rate"]) in shown
    assert "Regressions 9 case-0 3 of 3 0 of 3 −1.00" in shown
    assert "Improvements 1 case-10 0 of 3 2 of 3 +0.67" in shown
    assert "1 case without a graded run on one side" in shown


def test_each_case_that_moved_leads_to_the_pair_of_runs_that_differ_and_says_why(store: Store) -> None:
    experiment(store, "old", ["ppf", "fpf"])
    experiment(store, "new", ["pff", "ppf"])
    worse, better = compare_experiments_page(store, "old", "new").moved
    assert worse.compare == "/compare/runs?a=old-crew-0-1&b=new-crew-0-2"
    assert better.compare == "/compare/runs?a=old-crew-1-1&b=new-crew-1-1"
    assert worse.failure is not None
    assert worse.failure.words == "trajectory: 1 of 1 calls."
    assert (worse.failed_run, better.failed_run) == ("new-crew-0-2", "old-crew-1-1")


def test_an_experiment_is_not_compared_with_itself_but_two_of_its_agents_are(store: Store) -> None:
    experiment(store, "old", WORSE, agents=("big", "small"))
    assert "Nothing to compare : both sides are the experiment old" in words(store, "a=old&b=old")
    assert "Nothing to compare" in words(store, "a=old:big&b=old:big")
    shown = words(store, "a=old:big&b=old:small")
    assert "big → small two agents" in shown
    assert "No clear difference" in shown
    assert "No case passes more often on one side." in shown


def test_suites_that_differ_are_warned_of_with_the_cases_that_differ(store: Store) -> None:
    experiment(store, "old", ["p", "p"])
    edited = [Case(id="case-0", instruction="Do something else."), *records.cases(2)[1:]]
    experiment(store, "new", ["f", "p"], cases=edited, suite_hash="0ther")
    page = compare_experiments_page(store, "old", "new")
    assert page.warnings[0] == "The suites are not the same; cases are paired by their ids alone."
    assert "1 case is not the same on both sides" in page.warnings[-1]
    assert [case_id for case_id, _ in page.edited] == ["case-0"]
    assert page.moved[0].change.edited
    assert not set(page.warnings) & set(page.remarks)


def test_the_cases_can_be_ordered_filtered_and_paged(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_experiments, "ROWS", 2)
    experiment(store, "old", ["pp", "pp", "ff", "pp", "pp"])
    experiment(store, "new", ["pf", "ff", "pp", "pf", "pp"])
    first = compare_experiments_page(store, "old", "new")
    assert (cases_of(first), first.before) == (["case-1", "case-0"], None)
    assert first.after == "/compare?a=old&b=new&after=case-0"
    second = compare_experiments_page(store, "old", "new", after="case-0")
    assert (cases_of(second), second.after, second.before) == (["case-3", "case-2"], None, "/compare?a=old&b=new")
    assert cases_of(compare_experiments_page(store, "old", "new", order="better")) == ["case-2", "case-1"]
    assert cases_of(compare_experiments_page(store, "old", "new", order="case", after="case-0")) == ["case-1", "case-2"]
    terms = parse_filter("case:case-2,case-3", records.CREATED_AT)
    filtered = compare_experiments_page(store, "old", "new", terms, query="case:case-2,case-3")
    assert (cases_of(filtered), filtered.matching) == (["case-3", "case-2"], 2)
    assert compare_experiments_page(store, "old", "new", after="case-9").complaint is not None


def test_a_filter_that_cannot_be_read_filters_nothing_and_is_complained_of(store: Store) -> None:
    experiment(store, "old", ["p"])
    experiment(store, "new", ["f"])
    shown = words(store, "a=old&b=new&q=tol:refund")
    assert "Nothing is filtered until this is right." in shown
    assert "case-0 1 of 1 0 of 1" in shown


def test_several_agents_are_compared_one_at_a_time(store: Store) -> None:
    experiment(store, "old", WORSE, agents=("big", "small"))
    experiment(store, "new", WORSE, agents=("big", "small"))
    page = compare_experiments_page(store, "old", "new")
    assert [(pair.label, pair.href, pair.current) for pair in page.pairs] == [
        ("big", "/compare?a=old%3Abig&b=new%3Abig", True),
        ("small", "/compare?a=old%3Asmall&b=new%3Asmall", False),
    ]


def test_a_beginning_that_several_ids_have_is_a_mistake_of_the_address(store: Store) -> None:
    experiment(store, "old-1", ["p"])
    experiment(store, "old-2", ["p"])
    assert "The ids of several experiments begin with 'old'." in words(store, "a=old&b=old-2", 400)
    assert "The address lacks `b`" in words(store, "a=old-1", 400)
