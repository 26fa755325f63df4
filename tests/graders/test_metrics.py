"""Graders of what a run took."""

from __future__ import annotations

from typing import Any

import pytest

from graders.subjects import attempts, calls, said, subject, verdict
from seatrial.errors import SeatrialError
from seatrial.formats.reading import TraceEvent
from seatrial.graders import Subject, build_graders
from seatrial.runs import Exchange, Fault
from seatrial.transcript.messages import Usage

RUN: dict[str, Any] = {
    "steps": calls("a", "b", "c"),
    "attempt_ms": [9000.0, 120.0],
    "reported_ms": 80.0,
    "cost_usd": 0.02,
    "usage": Usage(input_tokens=100, output_tokens=20),
}


@pytest.mark.parametrize(
    ("grader", "passes", "reason"),
    [
        ({"kind": "latency", "max_ms": 120}, True, "latency: 120 ms, at most 120 ms"),
        ({"kind": "latency", "max_ms": 119}, False, "latency: 120 ms > 119 ms allowed"),
        ({"kind": "latency", "max_ms": 100, "of": "reported"}, True, "latency: 80 ms, at most 100 ms"),
        ({"kind": "latency", "min_ms": 200}, False, "latency: 120 ms < 200 ms required"),
        ({"kind": "cost", "max_usd": 0.05}, True, "cost: 0.02 USD, at most 0.05 USD"),
        ({"kind": "cost", "max_usd": 0.01}, False, "cost: 0.02 USD > 0.01 USD allowed"),
        ({"kind": "tokens", "max": 120}, True, "tokens: 120, at most 120"),
        ({"kind": "tokens", "max": 99, "of": "input"}, False, "tokens: 100 > 99 allowed"),
        ({"kind": "tokens", "min": 5, "max": 20, "of": "output"}, True, "tokens: 20, at least 5 and at most 20"),
        ({"kind": "steps", "max": 2}, False, "steps: 3 > 2 allowed (basis: reported)"),
        ({"kind": "steps", "min": 3}, True, "steps: 3, at least 3 (basis: reported)"),
        ({"kind": "model_calls", "max": 1}, True, "model calls: 1, at most 1 (basis: reported)"),
    ],
)
def test_figures_are_held_to_their_bounds(grader: dict[str, Any], passes: bool, reason: str) -> None:
    found = verdict(subject(**RUN), grader)
    assert (found.outcome, found.reasons) == ("passed" if passes else "failed", [reason])


@pytest.mark.parametrize(
    ("grader", "reason"),
    [
        ({"kind": "tokens", "max": 1_000_000}, "tokens: 1000001 > 1000000 allowed"),
        ({"kind": "latency", "of": "reported", "max_ms": 1_234_567}, "latency: 1234567.8 ms > 1234567 ms allowed"),
    ],
)
def test_a_large_figure_can_be_told_from_its_bound(grader: dict[str, Any], reason: str) -> None:
    run = subject("done", usage=Usage(1_000_000, 1), reported_ms=1_234_567.8)
    assert verdict(run, grader).reasons == [reason]


@pytest.mark.parametrize(
    "grader",
    [
        {"kind": "latency", "max_ms": 1},
        {"kind": "latency", "max_ms": 1, "of": "reported"},
        {"kind": "cost", "max_usd": 1},
        {"kind": "tokens", "max": 1},
        {"kind": "model_calls", "max": 1},
    ],
)
def test_a_figure_that_nobody_gave_is_errored_or_skipped_and_never_passed(grader: dict[str, Any]) -> None:
    thin = subject("done", messages=[])
    assert verdict(thin, grader).outcome == "errored"
    found = verdict(thin, {**grader, "when_unknown": "skip"})
    assert found.outcome == "skipped"
    assert found.reasons[0].endswith("is not known")


def test_tokens_are_added_up_from_messages_when_the_run_has_no_sum() -> None:
    messages = [said("a", usage=Usage(10, 1)), said("b", usage=Usage(20, 2))]
    assert verdict(subject(messages=[*messages]), {"kind": "tokens", "max": 33}).outcome == "passed"
    assert verdict(subject(messages=[*messages]), {"kind": "tokens", "max": 32}).outcome == "failed"


def test_model_calls_are_those_of_the_trace_where_it_has_any() -> None:
    traced = subject(trace=[TraceEvent("model_step"), TraceEvent("tool_call"), TraceEvent("model_step")])
    assert verdict(traced, {"kind": "model_calls", "max": 1}).reasons == [
        "model calls: 2 > 1 allowed (basis: reported)"
    ]


@pytest.mark.parametrize("grader", [{"kind": "latency"}, {"kind": "steps", "min": 3, "max": 2}])
def test_bounds_that_check_nothing_or_exclude_everything_are_refused(grader: dict[str, Any]) -> None:
    (built,) = build_graders([grader])
    with pytest.raises(SeatrialError):
        built.prepare()


def test_tokens_of_messages_that_do_not_all_report_theirs_are_a_lower_bound() -> None:
    run = subject(messages=[said("a", usage=Usage(10, 1)), said("b")])
    assert verdict(run, {"kind": "tokens", "max": 10}).reasons == ["tokens: at least 11 > 10 allowed"]
    assert verdict(run, {"kind": "tokens", "min": 11}).outcome == "passed"
    assert verdict(run, {"kind": "tokens", "max": 11}).outcome == "errored"
    assert verdict(run, {"kind": "tokens", "min": 12}).outcome == "errored"


def test_what_the_run_was_given_is_no_model_call_and_no_usage_of_it() -> None:
    run = subject(messages=[said("earlier", usage=Usage(900, 9)), said("now", usage=Usage(10, 1))])
    assert run.run.reading is not None
    run.run.reading.transcript.given = [0]
    assert verdict(run, {"kind": "tokens", "max": 11}).outcome == "passed"
    assert verdict(run, {"kind": "model_calls", "max": 1}).outcome == "passed"


def test_an_answer_and_nothing_else_says_nothing_of_model_calls() -> None:
    run = subject("done", completeness="none")
    assert run.run.reading is not None
    run.run.reading.answer_only = True
    assert verdict(run, {"kind": "model_calls", "max": 1}).outcome == "errored"
    assert verdict(run, {"kind": "model_calls", "min": 1}).outcome == "errored"


def test_time_that_is_not_the_agents_is_not_measured() -> None:
    # A batch and a replay have attempts, whose time is that of something else.
    timed = subject(**RUN)
    timed.run.duration_ms = None
    found = verdict(timed, {"kind": "latency", "max_ms": 120})
    assert (found.outcome, found.reasons) == ("errored", ["latency is not known"])


def test_the_latency_of_several_exchanges_is_the_time_of_their_replies() -> None:
    run = subject(attempt_ms=[500, 100])
    run.run.exchanges.append(Exchange(number=2, attempts=attempts([30])))
    assert verdict(run, {"kind": "latency", "max_ms": 130}).outcome == "passed"
    assert verdict(run, {"kind": "latency", "max_ms": 129}).outcome == "failed"


def test_tokens_of_a_cache_count_as_input() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cache_creation_input_tokens=100, cache_read_input_tokens=1000)
    assert verdict(subject(usage=usage), {"kind": "tokens", "max": 1114}).outcome == "failed"
    assert verdict(subject(usage=usage), {"kind": "tokens", "max": 1115}).outcome == "passed"


def retried(error_class: str, **fields: Any) -> Subject:
    """A run of two attempts, of which the first met a fault."""
    run = subject("done", attempt_ms=[500, 100], **fields)
    run.run.attempts[0].fault = Fault(error_class, "no answer")
    return run


@pytest.mark.parametrize(
    ("grader", "outcome"),
    [
        ({"kind": "cost", "max_usd": 0.05}, "errored"),
        ({"kind": "cost", "max_usd": 0.01}, "failed"),
        ({"kind": "cost", "min_usd": 0.01}, "passed"),
        ({"kind": "tokens", "max": 500}, "errored"),
        ({"kind": "tokens", "max": 100}, "failed"),
        ({"kind": "tokens", "min": 100}, "passed"),
    ],
)
def test_what_an_attempt_used_up_before_it_met_a_fault_is_unknown(grader: dict[str, Any], outcome: str) -> None:
    used: dict[str, Any] = {"cost_usd": 0.02, "usage": Usage(input_tokens=100, output_tokens=20)}
    assert verdict(retried("connection_lost", **used), grader).outcome == outcome
    # No request had reached the agent.
    unreached = verdict(retried("agent_unreachable", **used), grader).outcome
    assert unreached == ("passed" if outcome == "errored" else outcome)
