from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.reported import HOSTILE, detail, hostile_report, joined, report, row, rows_of

from seatrial.reports.markdown import MAX_LISTED, code, fenced, markdown_report


def table_rows(text: str) -> list[list[str]]:
    return [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]


def test_the_summary_is_a_table() -> None:
    text = joined(markdown_report(report(rows_of(crew="p p p f e"))))
    head = "| agent | runs | passed | failed | errored | pass rate | left out | of all runs | 95% interval | score |"
    assert f"{head} median | p95 |\n" in text
    assert "| <code>crew</code> | 5 | 3 | 1 | 1 | 75.0% | 1 | 60.0% | 30.1–95.4% |" in text
    sentence = "1 of 5 runs is not counted: agent_unreachable (1); of all runs, 60.0% passed."
    assert f"\n⚠️ <code>crew</code>: {sentence}\n" in text
    assert "excluded from rates and scores" in text


def test_what_did_not_pass_is_listed_with_its_reason() -> None:
    text = joined(markdown_report(report([row("a", "failed", detail=detail("late"))])))
    assert "### Failed and errored (1)" in text
    assert "| ❌ failed | <code>crew</code> | <code>a</code> | <code>late</code> |" in text


def test_a_long_list_is_cut_and_counted() -> None:
    text = joined(markdown_report(report(rows_of(crew=" ".join("f" * (MAX_LISTED + 3))))))
    assert text.count("❌ failed") == MAX_LISTED
    assert "… and 3 more." in text


def test_runs_that_were_not_judged_are_counted_and_the_first_says_why() -> None:
    text = joined(markdown_report(report([row("a"), row("b", "skipped", detail=detail("no model"))])))
    assert "\n1 run was not judged. The first, <code>b</code>: <code>skipped&#58; no model</code>\n" in text
    assert "not judged" not in joined(markdown_report(report(rows_of(crew="p f e"))))


def test_agents_are_held_against_each_other_where_they_differ() -> None:
    text = joined(markdown_report(report(rows_of(crew="p f e pf", shop="p p p pp"))))
    assert "| <code>case-0</code> |" not in text
    assert "| <code>case-1</code> | ❌ | ✅ |" in text
    assert "| <code>case-2</code> | ⚠️ 1 errored | ✅ |" in text
    assert "| <code>case-3</code> | 〰️ 1/2 | ✅ 2/2 |" in text


def test_a_case_of_which_a_run_has_no_verdict_has_no_tick() -> None:
    text = joined(markdown_report(report(rows_of(crew="pe ps fe ppe pfe", shop="p p p p p"))))
    assert "| <code>case-0</code> | ⚠️ 1/1 1 errored | ✅ |" in text
    assert "| <code>case-1</code> | – 1/1 1 not graded | ✅ |" in text
    assert "| <code>case-2</code> | ❌ 0/1 1 errored | ✅ |" in text
    assert "| <code>case-3</code> | ⚠️ 2/2 1 errored | ✅ |" in text
    assert "| <code>case-4</code> | 〰️ 1/2 1 errored | ✅ |" in text


def test_one_agent_has_no_matrix() -> None:
    assert "Agents by case" not in joined(markdown_report(report(rows_of(crew="p f"))))


def test_no_runs_are_said() -> None:
    assert "There are no runs." in joined(markdown_report(report([])))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_makes_no_markup_mention_link_or_cell(text: str) -> None:
    shown = joined(markdown_report(hostile_report(text)))
    plain = joined(markdown_report(hostile_report("plain")))
    assert [len(cells) for cells in table_rows(shown)] == [len(cells) for cells in table_rows(plain)]
    assert set(re.findall(r"<[^>]*>", shown)) == {"<code>", "</code>"}
    without_code = re.sub(r"<code>[^<]*</code>", "", shown)
    assert "evil" not in without_code
    assert not re.search(r"<code>[^<]*[@`*\[\]|][^<]*</code>", shown)


@given(st.text(st.characters(), max_size=40))
def test_code_shows_the_text_and_nothing_but_text(text: str) -> None:
    inner = code(text).removeprefix("<code>").removesuffix("</code>")
    assert not re.search(r"[<>`*\[\]|@_~\\:\n]", inner)
    if text.isascii() and text.isprintable():
        assert unescape(inner) == " ".join(text.split())


@given(st.text("`~a\n", max_size=30))
def test_no_text_ends_its_fence(text: str) -> None:
    first, *lines, last = fenced(text).rstrip("\n").split("\n")
    assert first == last
    assert first.strip("`") == ""
    assert all(len(line) < len(first) or line.strip("`") for line in lines)
