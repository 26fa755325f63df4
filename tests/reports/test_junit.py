from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.reported import HOSTILE, detail, hostile_report, joined, report, row, rows_of

from seatrial.reports.ci_files import junit_xml
from seatrial.reports.findings import RunFinding
from seatrial.reports.rows import RunDetail


def parsed(pieces: str) -> ElementTree.Element:
    return ElementTree.fromstring(pieces.encode("utf-8"))


def test_an_agent_is_a_suite_and_a_run_a_case() -> None:
    root = parsed(joined(junit_xml(report(rows_of(crew="p f e s", shop="p p")))))
    assert root.tag == "testsuites"
    assert root.attrib["name"] == "refunds"
    assert [suite.attrib["name"] for suite in root] == ["crew", "shop"]
    crew = root[0]
    figures = {key: crew.attrib[key] for key in ("tests", "failures", "errors", "skipped", "time")}
    assert figures == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1", "time": "0.480"}
    assert crew.attrib["timestamp"] == "2026-09-21T14:13:20"
    cases = crew.findall("testcase")
    assert [case.attrib["name"] for case in cases] == ["case-0", "case-1", "case-2", "case-3"]
    assert [[child.tag for child in case] for case in cases] == [
        ["system-out"],
        ["failure", "system-out"],
        ["error", "system-out"],
        ["skipped", "system-out"],
    ]


def test_the_counts_are_those_of_the_elements() -> None:
    root = parsed(joined(junit_xml(report(rows_of(crew="pfe sug fff", shop="e p")))))
    for suite in root:
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        for tag, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.attrib[key]) == len(suite.findall(f"testcase/{tag}"))
    for key in ("tests", "failures", "errors"):
        assert int(root.attrib[key]) == sum(int(suite.attrib[key]) for suite in root)


def test_there_is_nothing_that_the_schema_of_jenkins_forbids() -> None:
    # junit-10.xsd of its xUnit plugin, which refuses a file that has others. It allows a few more that we do not write.
    attributes: dict[str, set[str]] = {
        "testsuites": {"name", "time", "tests", "failures", "errors"},
        "testsuite": {"name", "tests", "failures", "errors", "time", "skipped", "timestamp"},
        "properties": set(),
        "property": {"name", "value"},
        "testcase": {"name", "time", "classname"},
        "failure": {"type", "message"},
        "error": {"type", "message"},
        "skipped": {"type", "message"},
        "system-out": set(),
    }
    children: dict[str, set[str]] = {
        "testsuites": {"testsuite"},
        "testsuite": {"properties", "testcase", "system-out"},
        "properties": {"property"},
        "testcase": {"skipped", "error", "failure", "system-out"},
    }
    for found in (report(rows_of(crew="p f e s")), hostile_report("plain")):
        for element in parsed(joined(junit_xml(found))).iter():
            assert set(element.attrib) <= attributes[element.tag]
            assert {child.tag for child in element} <= children.get(element.tag, set())
            assert "name" in element.attrib or element.tag not in ("testsuite", "testcase", "property")


def test_an_unknown_time_is_left_out_and_not_zero() -> None:
    root = parsed(joined(junit_xml(report([row("a", duration_ms=None), row("b", duration_ms=5.0)]))))
    assert [case.attrib.get("time") for case in root.iter("testcase")] == [None, "0.005"]
    assert "time" not in parsed(joined(junit_xml(report([row("a", duration_ms=None)]))))[0].attrib


def test_an_error_is_typed_by_its_class_and_a_failure_tells_the_verdicts() -> None:
    rows = [
        row("a", "failed", detail=detail("the amount is 200")),
        row("b", "errored", error_class="agent_timeout", detail=detail("no answer")),
    ]
    (failure, _), (error, _) = parsed(joined(junit_xml(report(rows)))).findall("testsuite/testcase")
    assert (failure.attrib["message"], failure.attrib["type"]) == ("the amount is 200", "verdict")
    assert "failed (0.5)\n  the amount is 200" in str(failure.text)
    assert "run run-crew-a-1" in str(failure.text)
    assert (error.attrib["message"], error.attrib["type"]) == ("no answer", "agent_timeout")


def test_the_message_of_a_failure_is_the_sentence_of_the_run_and_its_findings_follow() -> None:
    found = RunFinding(kind="trajectory", title="Wrong argument", sentence="amount is 238.", place="/steps/4")
    told = RunDetail(message="refunds: 2 of 3", sentence="First wrong at step 4: amount is 238.", findings=[found])
    root = parsed(joined(junit_xml(report([row(outcome="failed", detail=told)]))))
    (failure,) = root.iter("failure")
    assert failure.attrib["message"] == "First wrong at step 4: amount is 238."
    assert "step 4: Wrong argument: amount is 238." in (failure.text or "")


def test_trials_have_names_of_their_own() -> None:
    root = parsed(joined(junit_xml(report(rows_of(crew="pp")))))
    assert [case.attrib["name"] for case in root.iter("testcase")] == ["case-0 (trial 1)", "case-0 (trial 2)"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    root = parsed(joined(junit_xml(hostile_report(text))))
    tags = {element.tag for element in root.iter()}
    ours = {"testsuites", "testsuite", "properties", "property", "testcase", "system-out"}
    assert tags == ours | {"failure", "error", "skipped"}


@given(st.text(st.characters(), max_size=30))
def test_any_text_makes_a_document_that_parses(text: str) -> None:
    root = parsed(joined(junit_xml(hostile_report(text))))
    if text.isascii() and text.isprintable():
        assert root.attrib["name"] == text


def test_an_experiment_that_was_stopped_has_a_test_that_errored() -> None:
    root = parsed(joined(junit_xml(report(rows_of(crew="p p"), status="stopped", stop_reason="Ctrl-C"))))
    assert (root.attrib["tests"], root.attrib["errors"]) == ("3", "1")
    (error,) = root.iter("error")
    assert error.attrib["message"] == "stopped before all was run: Ctrl-C"
