from __future__ import annotations

import json
from typing import Any

import pytest
from strategies.reported import HOSTILE, detail, hostile_report, joined, report, row, rows_of

from seatrial.reports.data_files import json_report
from seatrial.reports.report import Report
from seatrial.transcript import Note


def document(found: Report) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(joined(json_report(found)))
    return value


def test_the_document_has_summary_matrix_and_runs() -> None:
    found = document(report(rows_of(crew="p f", shop="e")))
    assert list(found) == ["experiment", "summary", "graders", "notes", "by_tag", "matrix", "runs"]
    assert found["experiment"]["experiment_id"] == "exp-1"
    assert found["summary"]["agents"][0]["pass_rate"] == 0.5
    assert found["matrix"][0] == {
        "case_id": "case-0",
        "agents": {
            "crew": {"passed": 1, "failed": 0, "errored": 0, "other": 0, "score": 1.0, "calls_incomplete": 0},
            "shop": {"passed": 0, "failed": 0, "errored": 1, "other": 0, "score": None, "calls_incomplete": 0},
        },
    }
    assert [run["outcome"] for run in found["runs"]] == ["passed", "errored", "failed"]


def test_a_run_that_did_not_pass_tells_why_but_not_what_was_said() -> None:
    (run,) = document(report([row("a", "failed", detail=detail("the amount is 200"))]))["runs"]
    assert run["detail"]["message"] == "the amount is 200"
    assert run["detail"]["verdicts"][0]["calls"][0]["state"] == "differs"
    assert "speech" not in run["detail"]


def test_what_belongs_to_no_run_is_told_with_the_experiment() -> None:
    notes = {"crew": [Note("batch_id_unknown", "/3", "the id is 'x'", "serious")]}
    (told,) = document(report(rows_of(crew="p"), notes=notes))["experiment"]["notes"]["crew"]
    assert told == {"code": "batch_id_unknown", "pointer": "/3", "message": "the id is 'x'", "weight": "serious"}


def test_nothing_is_a_document_too() -> None:
    found = document(report([]))
    assert (found["matrix"], found["runs"]) == ([], [])


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_as_it_was_but_for_what_is_no_text(text: str) -> None:
    assert document(hostile_report(text))["experiment"]["name"] == text.replace("\ud800", "\ufffd")
