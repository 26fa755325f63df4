"""A pass rate never stands alone when it leaves runs out."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree

import pytest
from strategies.exported import exported
from strategies.reported import joined, report, row, rows_of

from seatrial.reports import FORMS, summarise
from seatrial.reports.figures import differs, left_out_sentence
from seatrial.reports.report import Report
from seatrial.reports.summary import AgentSummary
from seatrial.reports.terminal import terminal_summary
from seatrial.reports.write import ReportForm


def agent_of(word: str) -> AgentSummary:
    (agent,) = summarise(rows_of(crew=word)).agents
    return agent


def unlike() -> Report:
    """Seven runs: three passed, and four say nothing of the agent, each for another reason."""
    rows = [row(f"case-{number}") for number in range(3)]
    rows.append(row("case-3", "errored", error_class="agent_unavailable"))
    rows.append(row("case-4", "errored", error_class="agent_unavailable"))
    rows.append(row("case-5", "errored", error_class=None, status="completed"))
    rows.append(row("case-6", "skipped"))
    return report(rows)


SENTENCE = "4 of 7 runs are not counted: agent_unavailable (2), errored (1), skipped (1); of all runs, 42.9% passed."
LEFT_OUT = {"agent_unavailable": 2, "errored": 1, "skipped": 1}


def test_what_is_left_out_is_counted_by_why() -> None:
    (agent,) = unlike().summary.agents
    assert agent.left_out == LEFT_OUT
    assert (agent.pass_rate, agent.rate_of_all) == (1.0, 3 / 7)
    assert left_out_sentence(agent) == SENTENCE


def test_every_page_with_a_rate_says_what_it_leaves_out() -> None:
    for text in (exported(unlike()), joined(FORMS["markdown"](unlike()))):
        assert SENTENCE in text
        assert "of all runs" in text


def test_the_terminal_says_it_under_the_table() -> None:
    assert f"crew: {SENTENCE} " in " ".join(terminal_summary(unlike()).split())


@pytest.mark.parametrize(
    ("failing", "sentence"),
    [(1, " 3 errored, of which 1 has a failed grader."), (2, " 3 errored, of which 2 have a failed grader.")],
)
def test_failed_graders_of_runs_that_errored_are_counted_everywhere(failing: int, sentence: str) -> None:
    found = report(rows_of(crew="p e e e"), errored_with_failure={"crew": failing})
    (agent,) = found.summary.agents
    assert str(left_out_sentence(agent)).endswith(sentence)
    assert sentence in " ".join(terminal_summary(found).split())
    for text in (exported(found), joined(FORMS["markdown"](found))):
        assert sentence in text
    (told,) = json.loads(joined(FORMS["json"](found)))["summary"]["agents"]
    assert (told["errored"], told["errored_with_failure"]) == (3, failing)
    assert "failed grader" not in str(left_out_sentence(agent_of("p e e e")))


@pytest.mark.parametrize("form", FORMS)
def test_an_experiment_that_was_stopped_says_after_how_many_of_how_many_runs(form: ReportForm) -> None:
    found = report(rows_of(crew="p e u"), status="stopped", stop_reason="interrupted", planned=1040)
    # A run that began and did not end is none of them.
    assert "2 of 1,040 runs" in joined(FORMS[form](found)) if form != "json" else found.planned == 1040
    assert "2 of 1,040 runs" in exported(found)
    assert "2 of 1,040 runs, stopped" in terminal_summary(found)
    assert "stopped after 2 of 1,040 runs: interrupted" in terminal_summary(found)
    assert " of " not in terminal_summary(report(rows_of(crew="p p"), planned=2)).splitlines()[0]


def test_junit_has_it_as_properties() -> None:
    root = ElementTree.fromstring(joined(FORMS["junit"](unlike())))
    found = {each.attrib["name"]: each.attrib["value"] for each in root.iter("property")}
    assert found["pass_rate"] == "100%"
    assert found["pass_rate_of_all_runs"] == "42.9%"
    assert found["runs_left_out_of_rates"] == "4"
    assert {name: int(found[f"runs_left_out_{name}"]) for name in LEFT_OUT} == LEFT_OUT


def test_json_and_ctrf_have_it_as_data() -> None:
    (agent,) = json.loads(joined(FORMS["json"](unlike())))["summary"]["agents"]
    rates = json.loads(joined(FORMS["ctrf"](unlike())))["results"]["summary"]["extra"]["agents"]["crew"]
    for found in (agent, rates):
        assert (found["pass_rate"], found["rate_of_all"], found["left_out"]) == (1.0, 3 / 7, LEFT_OUT)


def test_csv_says_of_each_run_why_it_is_in_no_rate() -> None:
    lines = csv.DictReader(joined(FORMS["csv"](unlike())).splitlines())
    assert [line["left_out"] for line in lines] == [
        *["", "", "", "agent_unavailable", "agent_unavailable", "errored", "skipped"],
    ]


def test_runs_that_are_all_left_out_are_said_too() -> None:
    sentence = left_out_sentence(agent_of("e e e"))
    assert sentence == "3 of 3 runs are not counted: agent_unreachable (3)."


def test_a_rate_that_leaves_nothing_out_needs_no_word() -> None:
    assert left_out_sentence(agent_of("p f p")) is None


@pytest.mark.parametrize(
    ("word", "is_another"),
    [
        (" ".join("p" * 99 + "e"), False),  # one point, and no more
        (" ".join("p" * 98 + "ee"), True),
        (" ".join("f" * 50 + "e"), False),  # none passed, of all runs or of these
    ],
)
def test_the_rate_of_all_runs_is_shown_when_it_is_more_than_a_point_away(word: str, is_another: bool) -> None:
    agent = agent_of(word)
    assert differs(agent) is is_another
    assert ("of all runs" in str(left_out_sentence(agent))) is is_another
