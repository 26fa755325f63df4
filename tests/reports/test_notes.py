"""Nothing silent: what was dropped, guessed or repaired, and what that leaves unknown, is in every report."""

from __future__ import annotations

import csv
import html
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from strategies import records
from strategies.exported import exported
from strategies.reported import incomplete, joined, report, row

from seatrial.reports import FORMS, Report, ReportForm, closing_line, stored_report, terminal_summary
from seatrial.reports.notes import calls_text, note_text, notes_text, remarks, shown_notes
from seatrial.reports.rows import NoteCount, NoteLine
from seatrial.runs import Attempt, Fault
from seatrial.store import NoteCounts, NoteTotals, Store, address, open_store
from seatrial.trajectory.completeness import Basis, Completeness
from seatrial.transcript import Note, Usage, Weight

DROPPED = Note("invalid_line", "/messages/3", "line 3 is not JSON", "serious")
GUESSED = Note("invalid_utf8_replaced", "/messages/1/content", "two bytes were replaced", "look")
MADE_UP = Note("bom_removed", "", "a byte order mark", "harmless")
APART = Note("batch_line_unusable", "/7", "line 7 has no id", "serious")
UNLISTED = Note("calls_not_listed", "", "the agent returned an answer and nothing that lists its calls", "look")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An experiment with notes of each weight, and each level of completeness, on runs that passed and on others."""
    partial = Completeness("partial", "messages", ["messages"], [DROPPED])
    answer = Completeness("none", None, [], [UNLISTED])
    body = json.dumps({"messages": [{}, {}, {}, "?"]}).encode()
    attempt = Attempt(number=1, started_at=1, duration_ms=1.0, body_hash=address(body))
    noted = records.reading("Where is it?", "Behind the bollard.", "Thanks.", notes=[MADE_UP, GUESSED, DROPPED])
    fault = Fault("agent_unreachable", "no answer")
    with open_store(tmp_path / "store.db") as opened:
        opened.create_experiment(records.experiment(), records.cases(6))
        for run in (
            records.run(0),
            records.run(1, reading=noted, completeness=partial),
            records.run(2, reading=noted, completeness=partial, outcome="failed", body=body, attempts=[attempt]),
            records.run(3, completeness=answer, steps=[]),
            records.run(4, completeness=None),
            records.run(5, status="failed", outcome=None, said=(), fault=fault, steps=[], duration_ms=None),
        ):
            opened.record_run(run)
        opened.add_notes("exp-1", "crew", [APART]).wait()
        opened.finish_experiment("exp-1", finished_at=records.CREATED_AT + 1000).wait()
        yield opened


def of_terminal(found: Report) -> str:
    return terminal_summary(found, harmless=True)


def of_form(form: ReportForm) -> Callable[[Report], str]:
    return lambda found: joined(FORMS[form](found))


ALL: dict[str, Callable[[Report], str]] = {"terminal": of_terminal, **{form: of_form(form) for form in FORMS}}


def plain(text: str) -> str:
    """The words of a report of any form: without its markup, escapes and line breaks."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.parametrize("form", ALL)
def test_every_report_counts_the_notes_by_code(form: str, store: Store) -> None:
    text = plain(ALL[form](stored_report(store, "exp-1")))
    for code in ("invalid_line", "invalid_utf8_replaced", "batch_line_unusable"):
        assert code in text
    assert "serious" in text


@pytest.mark.parametrize("form", FORMS)
def test_every_report_that_is_written_has_the_notes_of_each_run_with_place_and_sentence(
    form: ReportForm, store: Store
) -> None:
    text = plain(ALL[form](stored_report(store, "exp-1")))
    for note in (DROPPED, GUESSED, APART):
        assert note.message in text
        assert note.pointer in text
        assert str(note.weight) in text
    assert text.count(DROPPED.message) >= 2  # of a run that passed, and of one that failed


@pytest.mark.parametrize("form", ALL)
def test_every_report_says_whose_calls_are_not_all_known_and_why(form: str, store: Store) -> None:
    text = plain(ALL[form](stored_report(store, "exp-1")))
    if form in ("csv", "json", "ctrf"):
        assert '"partial"' in text or ",partial," in text
        assert '"none"' in text or ",none," in text
    else:
        assert "not all known" in text
        assert "unknown: the agent did not return them" in text or "calls_not_listed" in text
    if form != "terminal":
        assert UNLISTED.code in text or form == "markdown"


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_people_see_the_counts_by_code_and_what_each_run_has(form: str, store: Store) -> None:
    text = plain(ALL[form](stored_report(store, "exp-1")))
    row = r"\| crew \| serious \| invalid_line \| 2 \| 2 \|" if form == "markdown" else "crew serious invalid_line 2 2"
    assert re.search(row, text)
    assert text.count("1 serious note, 1 note to look at") == 1
    assert f"alls not all known: {DROPPED.message} ({DROPPED.code} at {DROPPED.pointer})" in text


def documents(store: Store) -> dict[str, Any]:
    found = stored_report(store, "exp-1")
    return {form: joined(render(found)) for form, render in FORMS.items()}


def test_csv_has_level_reason_and_notes_of_each_run_and_a_line_for_what_belongs_to_none(store: Store) -> None:
    lines = list(csv.DictReader(StringIO(documents(store)["csv"], newline="")))
    assert [line["calls"] for line in lines] == ["complete", "partial", "partial", "none", "", "", ""]
    assert [line["calls_basis"] for line in lines] == ["reported", "reported", "reported", "", "", "", ""]
    assert [line["steps"] for line in lines] == ["1", "1", "1", "", "1", "", ""]
    assert [(line["notes_serious"], line["notes_look"]) for line in lines] == [
        ("0", "0"), ("1", "1"), ("1", "1"), ("0", "0"), ("0", "0"), ("0", "0"), ("1", "0"),
    ]  # fmt: skip
    assert lines[0]["calls_reason"] == ""
    assert lines[1]["calls_reason"] == "line 3 is not JSON (invalid_line at /messages/3)"
    assert "did not check" in lines[4]["calls_reason"]
    assert "no answer" in lines[5]["calls_reason"]
    assert lines[1]["note_codes"] == "bom_removed, invalid_utf8_replaced, invalid_line"
    assert (lines[6]["run_id"], lines[6]["note_codes"]) == ("", "batch_line_unusable")


def test_json_has_everything(store: Store) -> None:
    found = json.loads(documents(store)["json"])
    run = found["runs"][1]
    assert (run["calls"], run["steps"]) == ("partial", 1)
    assert (run["completeness"]["basis"], run["completeness"]["source"]) == ("reported", "messages")
    assert run["completeness"]["reasons"][0]["pointer"] == "/messages/3"
    assert [note["weight"] for note in run["notes"]] == ["serious", "look", "harmless"]
    assert {counted["code"]: counted["count"] for counted in run["note_counts"]} == {
        "bom_removed": 1, "invalid_utf8_replaced": 1, "invalid_line": 1,
    }  # fmt: skip
    assert [run["steps"] for run in found["runs"]] == [1, 1, 1, None, 1, None]
    (agent,) = found["summary"]["agents"]
    assert agent["calls"] == {"complete": 1, "partial": 2, "none": 1, "not recorded": 1, "no answer": 1}
    assert agent["unknown"]["steps"] == 5
    assert (agent["input_tokens"], agent["cost_usd"], agent["unknown"]["cost_usd"]) == (None, None, 6)
    assert found["notes"]["runs"] == found["notes"]["serious_runs"] == 2
    assert found["notes"]["counts"][0] == {
        "agent": "crew", "code": "invalid_line", "weight": "serious", "notes": 2, "runs": 2,
    }  # fmt: skip
    assert found["experiment"]["notes"]["crew"][0]["code"] == "batch_line_unusable"


def test_ctrf_has_them_as_extra(store: Store) -> None:
    results = json.loads(documents(store)["ctrf"])["results"]
    extra = results["tests"][1]["extra"]
    assert (extra["calls"]["level"], extra["calls"]["completeness"]["basis"]) == ("partial", "reported")
    assert extra["notes"]["first"][0]["message"] == DROPPED.message
    assert extra["notes"]["more"] == 0
    assert results["tests"][5]["extra"]["duration_ms"] is None
    assert results["extra"]["notes"]["crew"][0]["message"] == APART.message
    assert results["summary"]["extra"]["notes"]["serious_runs"] == 2


def test_junit_has_them_as_output_of_each_case_and_as_properties_of_the_suite(store: Store) -> None:
    (suite,) = ElementTree.fromstring(documents(store)["junit"].encode())
    outputs = [case.findtext("system-out") or "" for case in suite.iter("testcase")]
    assert outputs[0] == "calls complete, reported by the agent in its messages"
    assert outputs[1].splitlines() == [
        "calls not all known: line 3 is not JSON (invalid_line at /messages/3)",
        "serious: invalid_line at /messages/3: line 3 is not JSON",
        "look: invalid_utf8_replaced at /messages/1/content: two bytes were replaced",
        "harmless: bom_removed: a byte order mark",
    ]
    assert outputs[3].startswith("calls unknown: the agent returned an answer")
    properties = {found.attrib["name"]: found.attrib["value"] for found in suite.iter("property")}
    assert properties["runs_with_calls_partial"] == "2"
    assert properties["notes_serious_invalid_line"] == "2"
    assert APART.message in (suite.findtext("system-out") or "")


def test_the_terminal_counts_harmless_notes_only_when_asked(store: Store) -> None:
    found = stored_report(store, "exp-1")
    assert re.search(r"crew +serious +invalid_line +2 +2\n", terminal_summary(found))
    assert re.search(r"crew +look +invalid_utf8_replaced +2 +2\n", terminal_summary(found))
    assert "bom_removed" not in terminal_summary(found)
    assert re.search(r"crew +harmless +bom_removed +2 +2\n", terminal_summary(found, harmless=True))


def test_an_outcome_whose_calls_are_not_all_known_is_marked_wherever_it_is_shown(store: Store) -> None:
    found = documents(store)
    failed = re.search(r"failed  crew  case-2\n(.*?)\n\n|$", terminal_summary(stored_report(store, "exp-1")), re.DOTALL)
    assert failed is not None
    assert "calls not all known: line 3 is not JSON" in terminal_summary(stored_report(store, "exp-1"))
    (line,) = [line for line in found["markdown"].splitlines() if "❌ failed" in line]
    assert "calls not all known" in plain(line)


@pytest.mark.parametrize("form", [form for form in ALL if form != "json"])
@pytest.mark.parametrize("basis", ["reported", "observed"])
def test_a_verdict_on_calls_says_what_it_rests_on(form: str, basis: Basis, store: Store) -> None:
    run = store.run("run-crew-case-2-1")
    verdict = records.verdict("failed")
    verdict.basis = basis
    run.run_id, run.verdicts = "again", [verdict]
    store.record_run(run, replace=True).wait()
    found = stored_report(store, "exp-1")
    assert f"trajectory (on {basis} calls)" in plain(ALL[form](found))
    (failed,) = [row for row in json.loads(ALL["json"](found))["runs"] if row["outcome"] == "failed"]
    assert failed["detail"]["verdicts"][0]["basis"] == basis


def counts(weight: Weight, notes: int, runs: int, code: str = "x") -> NoteCounts:
    return NoteCounts("crew", code, weight, notes, runs)


@pytest.mark.parametrize(
    ("totals", "notes", "line"),
    [
        (NoteTotals(), {}, None),
        (NoteTotals([counts("harmless", 9, 3)]), {}, None),
        (NoteTotals([counts("look", 1, 1)], 1), {}, "1 note on 1 run needs a look"),
        (NoteTotals([counts("look", 9, 4)], 4), {}, "9 notes on 4 runs need a look"),
        (
            NoteTotals([counts("serious", 3, 2), counts("look", 9, 4)], 5, 2),
            {},
            "12 notes on 5 runs need a look (3 serious: the calls of 1 run are not all known)",
        ),
        (
            NoteTotals(),
            {"crew": [APART]},
            "1 note that belongs to no run needs a look (1 serious: the calls of 1 run are not all known)",
        ),
        (
            NoteTotals([counts("look", 2, 1)], 1),
            {"crew": [APART, MADE_UP]},
            "2 notes on 1 run and 1 that belongs to no run need a look "
            "(1 serious: the calls of 1 run are not all known)",
        ),
    ],
)
def test_the_last_line_counts_what_needs_a_look(totals: NoteTotals, notes: Any, line: str | None) -> None:
    rows = [row("a", calls="partial"), row("b", calls="none"), row("c"), row("d", "errored")]
    assert closing_line(report(rows, note_totals=totals, notes=notes)) == line


def test_more_notes_than_are_shown_are_counted() -> None:
    notes = [NoteLine("x", "look", f"/{number}", "guessed") for number in range(100)]
    found = row("a", notes=notes, note_counts=[NoteCount("x", "look", 5000), NoteCount("x", "serious", 2)])
    shown, more = shown_notes(found)
    assert len(shown) + more == 5002
    assert notes_text(found) == "2 serious notes, 5,000 notes to look at"
    for form in ("junit", "csv", "markdown"):
        assert re.search(r"and 4,99\d more", ALL[form](report([found])))


def test_calls_say_what_they_rest_on_and_why_they_are_not_all_known() -> None:
    reasons = [NoteLine("x", "serious", f"/{number}", "dropped") for number in range(5)]
    assert calls_text(row()) == "calls complete, reported by the agent in its messages"
    many = row(calls="partial", completeness=incomplete("partial", *reasons, omitted=7))
    assert calls_text(many).startswith("calls not all known: dropped (x at /0); dropped (x at /1); dropped (x at /2)")
    assert calls_text(many).endswith("; and 9 more reasons")
    assert calls_text(row(calls=None, completeness=None)).endswith("recorded the run did not check")
    assert calls_text(row("a", "errored")) == "calls unknown: there was no answer to read"


def test_an_unknown_code_counts_as_serious() -> None:
    assert note_text(Note("of_a_later_version", "/x", "hm")) == "serious: of_a_later_version at /x: hm"


def test_figures_that_are_not_known_of_all_runs_say_so() -> None:
    rows = [row("a", cost_usd=0.5, duration_ms=None), row("b", score=None), row("c", calls="none", steps=None)]
    found = report(rows)
    assert remarks(found.summary.agents[0]) == (
        "the calls of 1 of 3 runs are unknown: the agent did not return them (if it has no tools, set "
        "`tool_access: none`); the score is the mean of 2 of 3 graded runs: the others have none; median and p95 are "
        "of 2 of 3 graded runs: the others gave no answer or no duration; the cost of 2 of 3 runs is unknown."
    )
    assert remarks(report([row(cost_usd=0.5)]).summary.agents[0]) == ""
    for text in (*[plain(ALL[form](found)) for form in ("terminal", "markdown")], plain(exported(found))):
        assert "≥ $0.50" in text
        assert "the cost of 2 of 3 runs is unknown" in text


@pytest.mark.parametrize("form", ALL)
def test_what_nobody_knows_is_nowhere_zero(form: str, tmp_path: Path) -> None:
    unknown = records.run(0, outcome="failed", duration_ms=None, steps=[], completeness=None, reading=None)
    known = records.run(1, reading=records.reading("a", "b", usage=Usage(7, 9), cost=0.25))
    with open_store(tmp_path / "store.db") as opened:
        opened.create_experiment(records.experiment(), records.cases(2))
        for run in (unknown, known):
            opened.record_run(run)
        opened.finish_experiment("exp-1", finished_at=records.CREATED_AT + 1000).wait()
        text = ALL[form](stored_report(opened, "exp-1"))
    assert not re.search(
        r"\b0 steps|\$0\.00|\b0 ms|\b0 tokens|time=\"0\.000\"|_tokens\":0|_usd\":0[,}]|steps\":0", text
    )
    assert "no calls" not in text
