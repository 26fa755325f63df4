from __future__ import annotations

import re

import pytest
from strategies.reported import HOSTILE, detail, hostile_report, report, row, rows_of

from seatrial.reports.rows import RunDetail
from seatrial.reports.terminal import MAX_LISTED, terminal_summary
from seatrial.store import GraderCounts
from seatrial.transcript import Note

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\ud800-\udfff]")


def test_the_summary_says_rate_interval_and_errors_of_each_agent() -> None:
    text = terminal_summary(report(rows_of(crew="p p p f e", shop="p p p p p")))
    head, crew, shop = text.splitlines()[2:5]
    assert " ".join(head.split()) == (
        "agent runs passed failed errored pass rate left out of all runs 95% interval score median p95"
    )
    assert crew.split()[:7] == ["crew", "5", "3", "1", "1", "75.0%", "1"]
    assert shop.split()[:6] == ["shop", "5", "5", "0", "0", "100%"]
    assert "excluded from rates and scores" in text
    assert "faults by class\n  crew  agent_unreachable  1\n" in text
    assert "\ncrew: 1 of 5 runs is not counted: agent_unreachable (1); of all runs, 60.0% passed.\n" in text
    assert "shop:" not in text


def test_a_rate_of_all_runs_says_nothing_of_runs_left_out() -> None:
    text = terminal_summary(report(rows_of(crew="p p f")))
    assert "left out" not in text
    assert "of all runs" not in text


def test_trials_add_pass_at_k_pass_hat_k_and_flaky_cases() -> None:
    text = terminal_summary(report(rows_of(crew="pp pf")))
    assert "pass@2" in text
    assert "pass^2" in text
    assert "case-1  1 of 2 passed" in text


def test_what_did_not_pass_is_listed_with_its_reason() -> None:
    rows = [row("a", "failed", detail=detail("the amount is 200")), row("b", "errored", detail=detail("no answer"))]
    text = terminal_summary(report(rows))
    assert "  failed  crew  a\n          the amount is 200\n" in text
    assert "  errored  crew  b\n          no answer\n" in text


def test_a_fault_shows_the_last_line_of_what_it_left_unless_that_was_said() -> None:
    left = RunDetail(message="agent_exit: the program ended with code 2", fault_detail="Traceback:\n\nNo such file\n")
    said = RunDetail(message="agent_exception: ValueError: boom", fault_detail="line 1\nValueError: boom\n")
    text = terminal_summary(report([row("a", "errored", detail=left), row("b", "failed", detail=said)]))
    assert "  errored  crew  a\n          agent_exit: the program ended with code 2\n          No such file\n" in text
    assert "  failed  crew  b\n          agent_exception: ValueError: boom\n  errored" in text


def test_runs_that_were_not_judged_are_counted_and_the_first_says_why() -> None:
    rows = [row("a"), row("b", "skipped", detail=detail("no model is configured")), row("c", "ungraded")]
    text = terminal_summary(report(rows))
    assert text.endswith("\n\n2 runs were not judged. The first, crew on b: skipped: no model is configured\n")
    assert "not judged" not in terminal_summary(report(rows_of(crew="p f e")))


def test_a_long_list_is_cut_and_counted() -> None:
    text = terminal_summary(report(rows_of(crew=" ".join("f" * (MAX_LISTED + 7)))))
    assert "… and 7 more" in text
    assert text.count("  failed  crew") == MAX_LISTED


def test_what_graders_said_is_a_matrix_with_the_worst_grader_first() -> None:
    graders = [
        GraderCounts("crew", "judge", 0.5, {"passed": 3}),
        GraderCounts("crew", "calls", 0.0, {"failed": 2, "errored": 1}),
        GraderCounts("shop", "judge", 1.0, {"passed": 2, "skipped": 1}),
    ]
    lines = terminal_summary(report(rows_of(crew="p", shop="p"), graders=graders)).splitlines()
    at = lines.index("graders: runs passed of those judged, the worst first")
    assert [" ".join(line.split()) for line in lines[at + 1 : at + 4]] == [
        "grader crew shop",
        "calls 0/2, 1 errored –",
        "judge 3/3 ø 0.5 2/2, 1 skipped",
    ]


def test_a_matrix_of_many_agents_goes_on_below() -> None:
    graders = [GraderCounts(f"agent-{number}", "judge", 1.0, {"passed": 3}) for number in range(12)]
    text = terminal_summary(report(rows_of(crew="p"), graders=graders), width=50)
    assert text.count("\ngrader  agent-") > 1
    assert all(f"agent-{number}" in text for number in range(12))


def test_runs_that_fail_alike_are_told_once_and_counted() -> None:
    alike = [row(f"case-{n}", "failed", signature="equals|answer", detail=detail("it is 4")) for n in range(40)]
    other = row("other", "failed", signature="judge|tone", detail=detail("it is rude"))
    text = terminal_summary(report([other, *alike]))
    assert "\nfailed and errored: 41 runs, 2 kinds\n  failed  40 runs fail alike; the first:  crew  case-0\n" in text
    assert text.count("it is 4") == 1
    assert "also crew on case-1, crew on case-2, crew on case-3, crew on case-4, crew on case-5, and 34 more" in text
    assert text.index("it is rude") > text.index("it is 4")


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = " ".join(["The agent refunded twice what was asked for."] * 9)
    rows = [*rows_of(crew="pp pf ee", shop="pp pp ff"), row("late", "failed", detail=detail(long), agent="shop")]
    graders = [GraderCounts(agent, "tool_trajectory", 0.5, {"passed": 3}) for agent in ("crew", "shop")]
    text = terminal_summary(report(rows, graders=graders), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "pass rate" in text


def test_an_experiment_without_runs_says_so() -> None:
    assert "There are no runs." in terminal_summary(report([]))


def test_an_experiment_that_was_stopped_says_why() -> None:
    assert "stopped before all was run: budget" in terminal_summary(report(rows_of(crew="p"), stop_reason="budget"))


def test_there_is_no_escape_without_colour_and_some_with_it() -> None:
    found = report(rows_of(crew="p f"))
    assert "\x1b" not in terminal_summary(found)
    assert "\x1b[31mfailed\x1b[0m" in terminal_summary(found, colour=True)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_an_agent_says_steers_the_terminal_or_breaks_a_line(text: str) -> None:
    shown = terminal_summary(hostile_report(text))
    assert not UNSAFE.search(shown)
    assert terminal_summary(hostile_report("plain")).count("\n  failed") == shown.count("\n  failed") == 1


def test_what_belongs_to_no_run_is_told_with_its_agent() -> None:
    notes = [Note("batch_id_unknown", f"/{line}", f"the id is '{line}\x1b'") for line in range(5)]
    text = terminal_summary(report(rows_of(crew="pf"), notes={"crew": notes}))
    assert "notes that belong to no run\n  crew: serious: batch_id_unknown at /0: the id is '0" in text
    assert "  crew: … and 2 more\n" in text
    assert "\x1b" not in text
