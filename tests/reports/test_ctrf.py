from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from strategies.reported import CREATED_AT, HOSTILE, detail, hostile_report, joined, report, row, rows_of

from seatrial.reports.ci_files import ctrf_json
from seatrial.reports.report import Report

# The keys that the schema of CTRF 1.0.0 knows at these places; it forbids others.
ROOT = {"reportFormat", "specVersion", "reportId", "runId", "timestamp", "generatedBy", "extra", "results"}
RESULTS = {"tool", "summary", "tests", "environment", "extra"}
SUMMARY = {"tests", "passed", "failed", "skipped", "pending", "other", "start", "stop"}
TEST = {"name", "status", "duration"}
TEST_OPTIONAL = {"start", "stop", "suite", "message", "trace", "rawStatus", "retries", "extra"}


def document(found: Report) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(joined(ctrf_json(found)))
    return value


def test_the_document_has_the_keys_that_the_schema_asks_for_and_no_others() -> None:
    found = document(report(rows_of(crew="p f e s c u g", shop="p")))
    assert (found["reportFormat"], found["specVersion"]) == ("CTRF", "1.0.0")
    assert set(found) <= ROOT
    assert set(found["results"]) <= RESULTS
    assert set(found["results"]["summary"]) >= SUMMARY
    for test in found["results"]["tests"]:
        assert set(test) >= TEST
        assert set(test) <= TEST | TEST_OPTIONAL
        assert type(test["duration"]) is int


def test_what_errored_is_other_and_never_failed() -> None:
    tests = document(report(rows_of(crew="p f e s c u g")))["results"]["tests"]
    assert [(test["rawStatus"], test["status"]) for test in tests] == [
        ("passed", "passed"),
        ("failed", "failed"),
        ("errored", "other"),
        ("skipped", "skipped"),
        ("cancelled", "skipped"),
        ("unfinished", "pending"),
        ("ungraded", "other"),
    ]


def test_the_counts_are_those_of_the_tests() -> None:
    results = document(report(rows_of(crew="pp f e s c u g", shop="f")))["results"]
    for status in ("passed", "failed", "skipped", "pending", "other"):
        assert results["summary"][status] == sum(test["status"] == status for test in results["tests"])
    assert results["summary"]["tests"] == len(results["tests"])
    assert results["summary"]["start"] == CREATED_AT
    assert results["summary"]["duration"] == 83_000


def test_a_test_tells_its_reason_its_retries_and_its_run() -> None:
    (test,) = document(report([row("a", "failed", attempts=3, detail=detail("the amount is 200"))]))["results"]["tests"]
    assert test["message"] == "the amount is 200"
    assert "the amount is 200" in test["trace"]
    assert test["retries"] == 2
    assert test["suite"] == ["refunds", "crew"]
    assert test["extra"]["run_id"] == "run-crew-a-1"


def test_a_traceback_of_the_agent_is_in_the_trace() -> None:
    raised = msgspec.structs.replace(detail("it raised"), fault_detail="Traceback ...\nValueError: no")
    (test,) = document(report([row("a", "failed", detail=raised)]))["results"]["tests"]
    assert test["trace"].endswith("\nTraceback ...\nValueError: no")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    assert len(document(hostile_report(text))["results"]["tests"]) == 4


def test_an_experiment_that_was_stopped_has_a_test_that_says_so() -> None:
    written = joined(ctrf_json(report(rows_of(crew="p p"), status="stopped", stop_reason="Ctrl-C")))
    results = json.loads(written)["results"]
    assert (results["summary"]["tests"], results["summary"]["passed"], results["summary"]["other"]) == (3, 2, 1)
    assert results["tests"][-1]["message"] == "stopped before all was run: Ctrl-C"
    assert results["extra"]["stop_reason"] == "Ctrl-C"
