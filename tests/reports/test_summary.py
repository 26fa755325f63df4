from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.reported import row, rows_of

from seatrial.reports.rows import MAX_FLAKY, matrix
from seatrial.reports.statistics.intervals import wilson
from seatrial.reports.summary import FlakyCase, summarise

words = st.lists(st.text("pfescug", min_size=1, max_size=4), min_size=1, max_size=12)


def test_errored_runs_are_in_no_rate_and_no_score() -> None:
    (agent,) = summarise(rows_of(crew="p p p f e e e e")).agents
    assert agent.pass_rate == 0.75
    assert agent.interval == wilson(3, 4)
    assert agent.errored == 4
    assert agent.score == pytest.approx((1 + 1 + 1 + 0.25) / 4)
    assert agent.error_classes == {"agent_unreachable": 4}


def test_the_score_of_a_run_that_errored_does_not_count() -> None:
    (agent,) = summarise([row("a", "passed", score=1.0), row("b", "errored", score=0.0)]).agents
    assert agent.score == 1.0


def test_an_agent_with_only_errors_has_no_rate() -> None:
    (agent,) = summarise(rows_of(crew="e e")).agents
    assert (agent.pass_rate, agent.interval, agent.score, agent.trials) == (None, None, None, [])


def test_runs_that_were_skipped_or_never_finished_are_others() -> None:
    summary = summarise(rows_of(crew="s c u g p"))
    assert (summary.runs, summary.passed, summary.other) == (5, 1, 4)


def test_a_case_is_flaky_when_some_trials_pass_and_some_fail() -> None:
    summary = summarise(rows_of(crew="ppp pfp ffe epp", shop="pp ff pf"))
    assert summary.flaky == [FlakyCase("crew", "case-1", 2, 3), FlakyCase("shop", "case-2", 1, 2)]
    assert [agent.flaky for agent in summary.agents] == [1, 1]
    assert summary.trials == 3


def test_more_flaky_cases_than_are_listed_are_counted() -> None:
    summary = summarise(rows_of(crew=" ".join(["pf"] * (MAX_FLAKY + 5))))
    assert (len(summary.flaky), summary.flaky_cases) == (MAX_FLAKY, MAX_FLAKY + 5)


def test_cost_tokens_and_durations_are_added_up() -> None:
    rows = [
        row("a", cost_usd=0.5, input_tokens=10, output_tokens=1, duration_ms=100.0),
        row("b", cost_usd=None, input_tokens=None, output_tokens=None, duration_ms=None),
        row("c", cost_usd=0.25, input_tokens=5, output_tokens=2, duration_ms=300.0),
    ]
    (agent,) = summarise(rows).agents
    assert (agent.cost_usd, agent.input_tokens, agent.output_tokens) == (0.75, 15, 3)
    assert (agent.duration_p50_ms, agent.duration_ms) == (200, 400)


def test_the_time_until_an_error_is_no_speed_of_the_agent() -> None:
    (agent,) = summarise([row("a", duration_ms=100.0), row("b", "errored", duration_ms=30_000.0)]).agents
    assert (agent.duration_p50_ms, agent.duration_p95_ms, agent.duration_ms) == (100, 100, 30_100)


def test_a_cost_that_nobody_reported_is_not_zero() -> None:
    (agent,) = summarise([row()]).agents
    assert agent.cost_usd is None


def test_nothing_adds_up_to_nothing() -> None:
    summary = summarise([])
    assert (summary.runs, summary.cases, summary.agents) == (0, 0, [])


@given(words, words)
def test_every_run_is_counted_once(crew: list[str], shop: list[str]) -> None:
    rows = rows_of(crew=" ".join(crew), shop=" ".join(shop))
    summary = summarise(rows)
    assert summary.runs == len(rows) == summary.passed + summary.failed + summary.errored + summary.other
    assert summary.cases == max(len(crew), len(shop))
    for agent in summary.agents:
        of_agent = [row for row in rows if row.agent == agent.agent]
        assert agent.passed == sum(row.outcome == "passed" for row in of_agent)
        assert agent.runs == len(of_agent)


@given(words, words)
def test_the_matrix_adds_up_to_the_summary(crew: list[str], shop: list[str]) -> None:
    rows = rows_of(crew=" ".join(crew), shop=" ".join(shop))
    cells = list(matrix(rows))
    assert [case_id for case_id, _ in cells] == list(dict.fromkeys(row.case_id for row in rows))
    for agent in summarise(rows).agents:
        own = [found[agent.agent] for _, found in cells if agent.agent in found]
        assert sum(cell.passed for cell in own) == agent.passed
        assert sum(cell.errored for cell in own) == agent.errored
        assert sum(cell.flaky for cell in own) == agent.flaky


def test_a_cell_names_the_first_run_of_each_kind() -> None:
    ((_, cells),) = matrix(rows_of(crew="epfpf"))
    cell = cells["crew"]
    assert (cell.passed_run, cell.failed_run, cell.errored_run) == (
        "run-crew-case-0-2",
        "run-crew-case-0-3",
        "run-crew-case-0-1",
    )
    assert cell.rate == 0.5
    assert cell.score == 0.625


def test_how_fast_a_run_without_an_answer_ended_is_not_how_fast_the_agent_answers() -> None:
    crashed = row("b", "failed", error_class="agent_signal", duration_ms=1.0)
    late = row("c", "failed", error_class="deadline_exceeded", duration_ms=300_000.0)
    (agent,) = summarise([row("a", duration_ms=100.0), crashed, late]).agents
    assert (agent.duration_p50_ms, agent.duration_p95_ms, agent.timed) == (100, 100, 1)
