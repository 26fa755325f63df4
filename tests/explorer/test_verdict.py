"""The page of one verdict."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
import yaml
from strategies import records

from explorer.test_routes import fetched
from seatrial.errors import SeatrialError
from seatrial.explorer.expected import ROWS
from seatrial.explorer.timeline import run_timeline
from seatrial.explorer.verdict import VerdictPage, verdict_page
from seatrial.graders import Subject, Surroundings, build_graders
from seatrial.reports.stored_findings import stored_findings
from seatrial.runs import Case, Run, Verdict
from seatrial.store import Store
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.expectation import compile_expectation
from seatrial.trajectory.matching import match
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.step import Step

BY_THE_BOOK = {
    "kind": "tool_trajectory",
    "name": "by the book",
    "mode": "in_order",
    "expected": [
        {"tool": "find_order", "args": {"order": "A-1"}},
        {"tool": "refund", "args": {"amount": {"$approx": 23.8, "abs": 0.01}}},
        {"tool": "send_email"},
    ],
    "forbidden": ["delete_order"],
}
CALLS = [
    ("find_order", {"order": "A-1"}),
    ("read_policy", {"topic": "<b>damaged</b>"}),
    ("refund", {"amount": 238}),
    ("delete_order", {"order": "A-1"}),
]


def steps_of(calls: Sequence[tuple[str, Any]]) -> list[Step]:
    return [Step(index, name, args, f"c{index}", "messages", "ok") for index, (name, args) in enumerate(calls)]


def graded(
    store: Store,
    config: Mapping[str, Any],
    calls: Sequence[tuple[str, Any]] = CALLS,
    *,
    suite: Mapping[str, Any] | None = None,
    completeness: Completeness | None = None,
    **fields: Any,
) -> Run:
    """A run in the store that a grader graded; `suite` is the grader that its suite has, where that is another one."""
    experiment = records.experiment()
    experiment.suite = {"graders": [config if suite is None else suite]}
    store.create_experiment(experiment, records.cases(1))
    run = records.run(steps=steps_of(calls))
    if completeness is not None:
        run.completeness = completeness
    (grader,) = build_graders([config])
    found = grader.prepare().find(Subject(run, Case("case-0", "Refund it.")), Surroundings())
    told = msgspec.structs.asdict(found)  # type: ignore[arg-type]
    known = {name: told[name] for name in ("outcome", "score", "reasons", "code", "evidence", "details", "basis")}
    given = {"grader": str(config.get("name") or config["kind"]), "kind": config["kind"], "required": True}
    run.verdicts = [Verdict(**{**given, **known, **fields})]
    store.record_run(run).wait()
    return run


def page_of(store: Store, run: Run, **wanted: Any) -> VerdictPage:
    return verdict_page(store, run.run_id, run.verdicts[0].grader, **wanted)


def relations(page: VerdictPage) -> list[tuple[str, str | None, int | None]]:
    assert page.expected is not None
    return [(row.relation, None if row.expected is None else row.expected.tool, row.step) for row in page.expected.rows]


def test_expected_calls_stand_beside_those_that_were_made_with_what_they_have_to_do_with_each_other(
    store: Store,
) -> None:
    page = page_of(store, graded(store, BY_THE_BOOK))
    assert relations(page) == [
        ("matches", "find_order", 0),
        ("extra_allowed", None, 1),
        ("differs", "refund", 2),
        ("extra_forbidden", None, 3),
        ("missing", "send_email", None),
    ]
    found = page.expected
    assert found is not None
    assert [row.first for row in found.rows] == [False, False, True, False, False]
    assert "238" in found.rows[2].told[0]
    assert {figure.name: figure.fraction for figure in found.figures}["recall"] == "1 of 3 expected"
    assert {figure.name: figure.fraction for figure in found.figures}["score"] == "a constraint is violated"
    assert found.complaint == ""
    assert "send_email" in found.suite


def test_the_step_that_a_grader_points_at_is_red_in_the_timeline_of_its_run(store: Store) -> None:
    run = graded(store, BY_THE_BOOK)
    record = store.run_record(run.run_id)
    spans = run_timeline(store, record, stored_findings(store, record).findings).spans
    assert {span.step: span.bad for span in spans if span.step is not None} == {0: False, 1: False, 2: True, 3: True}


def test_the_page_escapes_what_the_agent_wrote_and_links_to_each_step(store: Store) -> None:
    run = graded(store, BY_THE_BOOK, [*CALLS, ("<script>alert(1)</script>", {"<i>": "\u202eevil"})])
    status, _, text = fetched(store, f"/runs/{run.run_id}/verdicts/by%20the%20book?at=/steps/2")
    assert status == 200
    assert "<script>alert" not in text
    assert "<b>damaged" not in text
    assert "\u202e" not in text
    assert f"/runs/{run.run_id}?at=%2Fsteps%2F2" in text
    for words in ("matches", "differs", "missing", "extra, allowed", "extra, forbidden", "first divergence"):
        assert words in text


@pytest.mark.parametrize(
    "other",
    [
        {**BY_THE_BOOK, "expected": ["find_order", "refund"]},
        {**BY_THE_BOOK, "mode": "exact"},
        {**BY_THE_BOOK, "expected": [{"tool": "find_order", "args": {"order": "B-2"}}, "refund", "send_email"]},
        {**BY_THE_BOOK, "expected": ["find_order", "refund", "send_email"]},
    ],
    ids=["fewer", "mode", "arguments", "looser"],
)
def test_expected_calls_of_another_suite_than_the_verdict_was_found_with_are_not_shown(
    store: Store, other: dict[str, Any]
) -> None:
    found = page_of(store, graded(store, BY_THE_BOOK, suite=other)).expected
    assert found is not None
    assert "is not what this verdict was found with" in found.complaint
    assert {row.expected for row in found.rows} == {None}
    assert found.suite == ""


def test_the_copied_calls_are_a_grader_that_just_these_calls_meet(store: Store) -> None:
    found = page_of(store, graded(store, BY_THE_BOOK)).expected
    assert found is not None
    (grader,) = yaml.safe_load(found.copied)
    assert grader.pop("kind") == "tool_trajectory"
    expectation = compile_expectation(grader)
    assert match(expectation, steps_of(CALLS)).passed
    assert not match(expectation, steps_of(CALLS[:-1])).passed


def test_calls_of_which_not_all_are_known_are_not_offered_as_an_expectation(store: Store) -> None:
    some = Completeness("partial", "messages", ["messages"])
    page = page_of(store, graded(store, BY_THE_BOOK, CALLS[:1], completeness=some))
    assert page.verdict.outcome == "errored"
    assert page.expected is not None
    assert page.expected.copied == ""
    assert "Not all calls are known" in page.expected.not_copied
    assert [(check.passed, check.skipped) for check in page.expected.checked] == [(False, True), (False, True)]


def test_counts_are_shown_by_tool(store: Store) -> None:
    config = {"kind": "tool_trajectory", "mode": "any_order", "minimums": {"refund": 1}, "maximums": {"find_order": 0}}
    found = page_of(store, graded(store, config)).expected
    assert found is not None
    assert [(line.expected, line.actual, line.words) for line in found.counts] == [
        ("refund must be called at least once", "it was called once", "holds"),
        ("find_order must not be called", "it was called once", "broken"),
    ]
    assert found.rows == []
    assert found.checked == []


def test_a_search_that_passed_its_budget_says_so_and_shows_the_calls(store: Store) -> None:
    config = {**BY_THE_BOOK, "mode": "partial_order"}
    result = MatchResult("partial_order", False, 0.0, 0.0, 0.0, 0.0, [], [], [], [], [], [], "")
    result.errored, result.error_code = "the search for the best assignment was given up", "search_budget"
    run = graded(store, config, details=result, outcome="errored", score=None, code="search_budget")
    page = page_of(store, run)
    assert {relation for relation, _, _ in relations(page)} == {"open"}
    assert page.expected is not None
    assert page.expected.figures == []
    _, _, text = fetched(store, f"/runs/{run.run_id}/verdicts/by%20the%20book")
    assert "the search passed its budget" in text


def test_a_long_match_is_shown_a_page_at_a_time_around_the_place_that_is_asked_for(store: Store) -> None:
    run = graded(store, BY_THE_BOOK, [("find_order", {"order": "A-1"}), *[("poll", {})] * (3 * ROWS)])
    page = page_of(store, run, at=f"/steps/{2 * ROWS + 5}")
    found = page.expected
    assert found is not None
    assert (found.first_row, len(found.rows), found.before, found.after) == (2 * ROWS, ROWS, ROWS, 3 * ROWS)
    assert any(row.step == 2 * ROWS + 5 for row in found.rows)
    assert page_of(store, run, first=9_999).expected.rows[-1].relation == "missing"  # type: ignore[union-attr]


def test_the_ballots_of_a_judge_are_shown_with_the_reason_of_each_criterion(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(1))
    votes = [
        {"passed": False, "score": 0.2, "criteria": {"polite": {"score": 0.2, "reason": "It was <curt>."}}},
        {"problem": "the model refused"},
    ]
    judge = {"model": "gpt-5-mini", "votes": 3, "agreement": 0.5, "cost_usd": None, "prompt_hash": "h"}
    verdict = Verdict(
        grader="served/well", kind="judge", outcome="failed", score=0.2, details={"votes": votes, "judge": judge}
    )
    run = records.run(verdicts=[verdict])
    store.record_run(run).wait()
    status, _, text = fetched(store, f"/runs/{run.run_id}/verdicts/served%2Fwell")
    assert status == 200
    assert "It was &lt;curt&gt;." in text
    assert "none: the model refused" in text
    assert "1\u00a0more vote not shown" in text


def test_a_grader_that_did_not_grade_the_run_is_not_found_and_those_that_did_are_named(store: Store) -> None:
    run = graded(store, BY_THE_BOOK)
    with pytest.raises(SeatrialError) as caught:
        verdict_page(store, run.run_id, "by the bok")
    assert caught.value.code == "not_found"
    assert "by the book" in (caught.value.hint or "")
    assert "by the book" in html.unescape(fetched(store, f"/runs/{run.run_id}/verdicts/none")[2])


def test_a_verdict_of_an_earlier_grading_says_that_it_does_not_count(store: Store) -> None:
    run = graded(store, BY_THE_BOOK)
    latest = msgspec.structs.replace(run.verdicts[0], outcome="passed", score=1.0, key="again", details=None)
    store.record_verdicts(run.run_id, [latest], records.grade()).wait()
    assert page_of(store, run).verdict.outcome == "passed"
    first = store.gradings(run.run_id)[0].number
    assert page_of(store, run, grading=first).verdict.outcome == "failed"
    _, _, text = fetched(store, f"/runs/{run.run_id}/verdicts/by%20the%20book?grading={first}")
    assert "The latest</a> counts" in text
