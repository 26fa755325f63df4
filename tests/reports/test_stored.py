from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from strategies import records
from strategies.exported import exported
from strategies.reported import HOSTILE, hostile_report

from seatrial.errors import SeatrialError
from seatrial.reports import FORMS, Report, stored, stored_report, terminal_summary, write_pieces, write_reports
from seatrial.reports.stored import DETAILS_AT_ONCE
from seatrial.runs import Fault, Run, Verdict
from seatrial.store import RunFilter, Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with an experiment of two agents, three trials, and a page and a half of runs."""
    with open_store(tmp_path / "store.db") as opened:
        opened.create_experiment(records.experiment(), records.cases(25))
        fault = Fault("agent_unreachable", "no answer")
        for case in range(25):
            for agent in ("crew", "shop"):
                for trial in (1, 2, 3):
                    if (case + trial) % 5 == 0:
                        run = records.run(case, agent=agent, trial=trial, outcome="failed")
                    elif case == 7 and trial == 1:
                        run = records.run(
                            case, agent=agent, trial=trial, status="failed", fault=fault, outcome=None, said=()
                        )
                    else:
                        run = records.run(case, agent=agent, trial=trial)
                    opened.record_run(run)
        opened.finish_experiment("exp-1", finished_at=records.CREATED_AT + 1000).wait()
        yield opened


def test_every_run_is_a_row_in_the_order_of_the_suite(store: Store) -> None:
    source = stored(store, store.resolve_experiment("exp-1"))
    keys = [(row.case_id, row.agent, row.trial) for row in source.rows()]
    expected = [(f"case-{c}", agent, trial) for c in range(25) for agent in ("crew", "shop") for trial in (1, 2, 3)]
    assert len(keys) > DETAILS_AT_ONCE
    assert keys == expected
    assert [(row.case_id, row.agent, row.trial) for row in source.rows(detailed=True)] == expected
    assert {row.agent for row in source.rows(agent="shop")} == {"shop"}


@pytest.mark.parametrize("form", ["terminal", "html", *FORMS])
@pytest.mark.parametrize(
    ("cost", "least", "shown"), [(1.25, None, ("$1.25", "1.25")), (None, 0.75, ("≥ $0.75", "0.75"))]
)
def test_every_report_has_what_judges_cost_and_a_part_of_it_never_looks_like_all(
    store: Store, form: str, cost: float | None, least: float | None, shown: tuple[str, str]
) -> None:
    judged = Verdict(grader="judge", kind="judge", outcome="passed", cost_usd=cost, least_cost_usd=least, tokens=5)
    store.record_run(records.run(1, agent="paid", verdicts=[records.verdict(), judged])).wait()
    report = stored_report(store, "exp-1")
    written: dict[str, Callable[[Report], Iterable[str]]] = {str(name): write for name, write in FORMS.items()}
    written |= {
        "html": lambda found: [exported(found, store)],
        "terminal": lambda found: [terminal_summary(found, width=160)],
    }
    text = "".join(written[form](report))
    if form in ("terminal", "markdown", "html"):
        assert shown[0] in text
        assert ("$1.25" in text) == (cost is not None)
        assert ("not all that the judges cost is known" in text) == (cost is None)
    else:
        keys = {"csv": "judges_least_cost_usd", "junit": "judges_least_cost_usd"}
        marks = {"csv": f",{shown[1]},", "junit": f'value="{shown[1]}"'}
        assert marks.get(form, f'"known_usd":{shown[1]}') in text
        if form in ("json", "ctrf"):
            assert ('"usd_is_all":false' in text) == (cost is None)
        elif form == "junit":
            assert (keys[form] in text) == (cost is None)
        else:
            assert (",,0.75," in text) == (cost is None)


def test_only_runs_that_did_not_pass_have_details_and_only_when_asked(store: Store) -> None:
    source = stored(store, store.resolve_experiment("exp-1"))
    assert all(row.detail is None for row in source.rows())
    for row in source.rows(detailed=True):
        assert (row.detail is None) == (row.outcome == "passed")
        if row.outcome == "failed" and row.detail is not None:
            assert row.detail.message == "trajectory: 1 of 1 calls"
            assert row.detail.instruction == f"Do the task number {row.case_id.removeprefix('case-')}."
            assert row.detail.speech[0].text == "Where is my order?"


def test_each_run_is_read_once_for_its_details_however_many_pages_its_case_has(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = 2 * DETAILS_AT_ONCE + 1
    for trial in range(4, trials + 1):
        store.record_run(records.run(5, agent="crew", trial=trial, outcome="failed"))
    store.finish_experiment("exp-1", finished_at=records.CREATED_AT + 1000).wait()
    whole_runs = store.whole_runs
    read: list[str] = []

    def counted(experiment_id: str, where: RunFilter) -> Iterator[Run]:
        for run in whole_runs(experiment_id, where):
            read.append(run.run_id)
            yield run

    monkeypatch.setattr(store, "whole_runs", counted)
    rows = list(stored(store, store.resolve_experiment("exp-1"), checked=False).rows(agent="crew", detailed=True))
    assert sorted(read) == sorted(row.run_id for row in rows if row.detail is not None)
    assert len(read) > 2 * DETAILS_AT_ONCE


def test_the_summary_is_what_the_store_counts(store: Store) -> None:
    report = stored_report(store, "exp-1")
    for summary, counts in zip(report.summary.agents, store.totals("exp-1").agents, strict=True):
        assert (summary.agent, summary.runs) == (counts.agent, counts.runs)
        assert summary.passed == counts.outcomes["passed"]
        assert summary.errored == counts.outcomes["errored"] == 1
    assert report.graders == store.grader_counts("exp-1")


def test_every_form_is_written_and_appears_whole(store: Store, tmp_path: Path) -> None:
    targets = {form: tmp_path / "new" / f"report.{form}" for form in FORMS}
    report = stored_report(store, "latest")
    write_reports(report, targets)
    assert report.summary.runs == 150
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(f"report.{form}" for form in FORMS)
    assert len(json.loads(targets["json"].read_text("utf-8"))["runs"]) == 150


@pytest.mark.parametrize("text", HOSTILE)
def test_every_form_can_be_written_whatever_was_said(text: str, tmp_path: Path) -> None:
    for form, render in FORMS.items():
        write_pieces(tmp_path / form, render(hostile_report(text)))
    write_pieces(tmp_path / "html", [exported(hostile_report(text.encode("utf-8", "replace").decode()))])


def test_a_report_that_breaks_off_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def breaking() -> Iterator[str]:
        yield "new"
        raise SeatrialError("store_unavailable", "gone")

    with pytest.raises(SeatrialError, match="gone"):
        write_pieces(path, breaking())
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path, Path(), Path("/")):
        with pytest.raises(SeatrialError, match="cannot be written") as caught:
            write_pieces(folder, ["x"])
        assert caught.value.code == "unwritable_file"


def test_an_experiment_that_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(SeatrialError) as caught:
        stored_report(store, "ghost")
    assert caught.value.code == "not_found"
