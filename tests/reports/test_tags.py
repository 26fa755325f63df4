from __future__ import annotations

import csv
import json
import re
from statistics import NormalDist
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.exported import exported
from strategies.reported import joined, report, rows_of

from seatrial.reports.ci_files import ctrf_json, junit_xml
from seatrial.reports.data_files import csv_lines, json_report
from seatrial.reports.markdown import markdown_report
from seatrial.reports.report import Report
from seatrial.reports.statistics.intervals import wilson
from seatrial.reports.tags import MAX_TAGS, TagSummary
from seatrial.reports.terminal import terminal_summary

TAGS = {"case-0": ["account"], "case-1": ["account", "refund"], "case-2": ["refund"]}


def tagged(**agents: str) -> Report:
    return report(rows_of(**agents), tags=TAGS)


def found(of: Report, tag: str, agent: str = "crew") -> TagSummary:
    (row,) = [row for row in of.by_tag.rows if (row.tag, row.agent) == (tag, agent)]
    return row


def test_a_case_counts_under_each_of_its_tags_and_one_without_is_counted_as_such() -> None:
    made = tagged(crew="p f p p")
    account, refund = found(made, "account"), found(made, "refund")
    assert (account.cases, account.passed, account.failed, account.pass_rate) == (2, 1, 1, 0.5)
    assert (refund.cases, refund.passed, refund.failed) == (2, 1, 1)
    assert made.by_tag.untagged == 1
    assert "1 case has no tag." in terminal_summary(made)


def test_the_lowest_pass_rate_comes_first_and_what_nobody_judged_last() -> None:
    made = report(rows_of(crew="p f e"), tags={"case-0": ["good"], "case-1": ["bad"], "case-2": ["unknown"]})
    assert [row.tag for row in made.by_tag.rows] == ["bad", "good", "unknown"]
    assert (found(made, "unknown").pass_rate, found(made, "unknown").interval) == (None, None)


def test_errored_runs_are_in_no_rate_and_are_shown_with_their_reasons() -> None:
    made = tagged(crew="pe ef ss u")
    account = found(made, "account")
    assert (account.runs, account.passed, account.failed, account.errored, account.other) == (4, 1, 1, 2, 0)
    assert account.left_out == {"agent_unreachable": 2}
    assert found(made, "refund").left_out == {"skipped": 2, "agent_unreachable": 1}
    text = terminal_summary(made)
    assert "account: 2 of 4 runs are not counted: agent_unreachable (2); of all runs, 25.0% passed." in text
    assert re.search(r"tag +cases +runs +passed +failed +errored +pass rate +left out +of all runs +interval", text)


def test_intervals_hold_for_all_rows_at_once() -> None:
    made = tagged(crew="p f p", shop="p p p")
    z = NormalDist().inv_cdf(1 - 0.05 / 4 / 2)  # Bonferroni's correction: two tags of two agents
    assert found(made, "refund").interval == wilson(1, 2, z)
    assert "The 4 intervals hold together, with 95% confidence." in terminal_summary(made)
    alone = report(rows_of(crew="p f"), tags={"case-0": ["one"], "case-1": ["one"]})
    assert found(alone, "one").interval == pytest.approx(wilson(1, 2))


@settings(max_examples=40)
@given(
    st.lists(st.text("pfesu", min_size=1, max_size=3), min_size=1, max_size=6),
    st.lists(st.sets(st.sampled_from("abc")), min_size=6, max_size=6),
)
def test_a_row_is_the_summary_of_the_runs_of_its_cases(words: list[str], of_cases: list[set[str]]) -> None:
    tags = {f"case-{index}": sorted(some) for index, some in enumerate(of_cases) if some and index < len(words)}
    made = report(rows_of(crew=" ".join(words)), tags=tags)
    assert {row.tag for row in made.by_tag.rows} == {tag for some in tags.values() for tag in some}
    for row in made.by_tag.rows:
        own = [run for run in rows_of(crew=" ".join(words)) if row.tag in tags.get(run.case_id, ())]
        (alone,) = report(own).summary.agents
        for field in ("runs", "passed", "failed", "errored", "other", "pass_rate", "rate_of_all", "left_out"):
            assert getattr(row, field) == getattr(alone, field)
        if row.interval is not None and alone.interval is not None:
            assert row.interval.low <= alone.interval.low + 1e-12
            assert row.interval.high >= alone.interval.high - 1e-12


def test_of_a_great_many_tags_those_of_the_most_cases_are_shown_and_the_others_counted() -> None:
    count = MAX_TAGS + 5
    tags = {f"case-{index}": [f"tag-{index:03}", "common"] for index in range(count)}
    made = report(rows_of(crew="f " * 3 + "p " * (count - 3)), tags=tags)
    assert len(made.by_tag.rows) == MAX_TAGS
    assert made.by_tag.omitted == [f"tag-{index:03}" for index in range(MAX_TAGS - 1, count)]
    text = terminal_summary(made)
    assert f"… and {MAX_TAGS - 10} more: `--group-by tag` shows them all" in text
    assert "6 more tags of fewer cases are not shown." in text
    assert "--group-by" not in terminal_summary(made, tags=MAX_TAGS)


def test_without_tags_nothing_is_said_of_them() -> None:
    made = report(rows_of(crew="p f"))
    assert made.by_tag.rows == []
    assert "tag" not in terminal_summary(made)
    assert "By tag" not in exported(made) + joined(markdown_report(made))


def test_every_form_of_a_report_has_the_tags() -> None:
    made = tagged(crew="p f p p")
    assert '<h2 id="tags">By tag</h2>' in exported(made)
    assert re.search(r"\| <code>account</code> \| 2 \| 2 \| 1 \| 1 \| 0 \| 50\.0% \|", joined(markdown_report(made)))
    whole = json.loads(joined(json_report(made)))
    assert [row["tag"] for row in whole["by_tag"]["rows"]] == ["account", "refund"]
    assert [run["tags"] for run in whole["runs"]] == [["account"], ["account", "refund"], ["refund"], []]
    lines = list(csv.DictReader(joined(csv_lines(made)).splitlines()))
    assert [line["tags"] for line in lines] == ["account", "account, refund", "refund", ""]
    ctrf = json.loads(joined(ctrf_json(made)))["results"]
    assert [test.get("tags", []) for test in ctrf["tests"]] == [["account"], ["account", "refund"], ["refund"], []]
    assert ctrf["summary"]["extra"]["by_tag"]["rows"][0]["pass_rate"] == 0.5
    root = ElementTree.fromstring(joined(junit_xml(made)).encode())
    properties = {each.attrib["name"]: each.attrib["value"] for each in root.iter("property")}
    assert properties["tag_account_pass_rate"] == "50.0%"
    assert properties["tag_refund_runs"] == "2"
    assert properties["tag_refund_runs_left_out_of_rates"] == "0"
    assert [("tags: account, refund" in (each.text or "")) for each in root.iter("system-out")] == [
        False,
        True,
        False,
        False,
    ]
