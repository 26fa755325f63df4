"""What the runs of an experiment add up to, agent by agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from seatrial.reports.rows import totals_of
from seatrial.reports.statistics.intervals import Interval, RepeatedTrials, pass_rate_interval, repeated_trials
from seatrial.runs import ModelCosts
from seatrial.store import AgentTotals, CallsKnown, RunSummary, Total, Totals

SUMS = ("steps", "input_tokens", "output_tokens", "cost_usd", "duration_ms")
"""Figures of runs that are added up, where they are known."""

_JUDGED: tuple[Literal["passed", "failed", "errored"], ...] = ("passed", "failed", "errored")
_NOTHING = Total(0, 0)


class FlakyCase(msgspec.Struct, frozen=True):
    """A case that an agent sometimes passes and sometimes fails."""

    agent: str
    case_id: str
    passed: int
    graded: int


class AgentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one agent. Rates and scores are of the runs that passed or failed."""

    agent: str
    runs: int
    passed: int
    failed: int
    errored: int
    """Not the agent's doing, or without a verdict, hence in no rate."""
    errored_with_failure: int
    """Those of them that a grader failed, while another one could not decide."""
    other: int
    """Skipped, ungraded, cancelled or unfinished."""
    pass_rate: float | None
    """Of the runs that passed or failed."""
    rate_of_all: float | None
    """Share of all runs that passed, those that the pass rate leaves out included."""
    left_out: dict[str, int]
    """Runs that are in no rate, by why: a class of fault, or else their outcome."""
    interval: Interval | None
    """95% of the pass rate; Wilson, by cases where there are several trials."""
    score: float | None
    error_classes: dict[str, int]
    trials: list[RepeatedTrials]
    flaky: int
    attempts: int
    calls: dict[CallsKnown, int]
    """How much is known of the calls, with the number of runs."""
    steps: int | None
    """Of all runs together, like the next four; None when it is known of none of them."""
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    duration_ms: float | None
    judges: ModelCosts | None
    """What asking models to grade its runs cost, in all gradings; None where none was asked."""
    unknown: dict[str, int]
    """Runs of which one of these five is not known, or not all of it: the sum is at least what it says."""
    scored: int
    """Runs that the score is the mean of."""
    timed: int
    """Runs that passed or failed with an answer, and whose duration is known: the next two are of them."""
    duration_p50_ms: float | None
    duration_p95_ms: float | None

    @property
    def graded(self) -> int:
        """Runs that passed or failed."""
        return self.passed + self.failed

    @property
    def incomplete(self) -> int:
        """Runs with an answer whose calls are not all known."""
        return sum(self.calls.get(known, 0) for known in ("partial", "none", "not recorded"))


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of an experiment."""

    runs: int
    cases: int
    trials: int
    """The most runs that one agent has of one case."""
    passed: int
    failed: int
    errored: int
    other: int
    agents: list[AgentSummary]
    flaky_cases: int
    flaky: list[FlakyCase]
    """The first of them."""


def summarise(rows: Iterable[RunSummary]) -> Summary:
    """The summary of rows that are at hand."""
    return summary_of(totals_of(rows))


def summary_of(
    totals: Totals,
    errored_with_failure: Mapping[str, int] | None = None,
    judges: Mapping[str, ModelCosts] | None = None,
) -> Summary:
    """The summary of what the runs add up to. The others say of agents how many runs errored that a grader failed, and
    what judges cost."""
    failing, judged = errored_with_failure or {}, judges or {}
    agents = [_agent(found, failing.get(found.agent, 0), judged.get(found.agent)) for found in totals.agents]
    return Summary(
        runs=sum(agent.runs for agent in agents),
        cases=totals.cases,
        trials=totals.most_trials,
        passed=sum(agent.passed for agent in agents),
        failed=sum(agent.failed for agent in agents),
        errored=sum(agent.errored for agent in agents),
        other=sum(agent.other for agent in agents),
        agents=agents,
        flaky_cases=sum(agent.flaky for agent in agents),
        flaky=[FlakyCase(cell.agent, cell.case_id, cell.passed, cell.graded) for cell in totals.flaky],
    )


def _agent(found: AgentTotals, errored_with_failure: int, judges: ModelCosts | None) -> AgentSummary:
    passed, failed, errored = [found.outcomes.get(word, 0) for word in _JUDGED]
    graded = passed + failed
    score = found.sums.get("score", _NOTHING)
    sums = {figure: total.total for figure in SUMS if (total := found.sums.get(figure)) is not None}
    unknown = {figure: found.runs - found.sums.get(figure, _NOTHING).runs for figure in SUMS}
    # Unless all calls are known, there may be more steps.
    unknown["steps"] = found.runs - found.calls.get("complete", 0)
    return AgentSummary(
        agent=found.agent,
        runs=found.runs,
        passed=passed,
        failed=failed,
        errored=errored,
        errored_with_failure=errored_with_failure,
        other=found.runs - graded - errored,
        pass_rate=passed / graded if graded else None,
        rate_of_all=passed / found.runs if found.runs else None,
        left_out=found.left_out,
        interval=pass_rate_interval(found.trials) if graded else None,
        score=score.mean,
        error_classes=found.error_classes,
        trials=repeated_trials(found.trials),
        flaky=sum(cases for (of_case, good), cases in found.trials.items() if 0 < good < of_case),
        attempts=int(found.sums.get("attempts", _NOTHING).total),
        calls=found.calls,
        steps=_whole(sums.get("steps")),
        input_tokens=_whole(sums.get("input_tokens")),
        output_tokens=_whole(sums.get("output_tokens")),
        cost_usd=sums.get("cost_usd"),
        duration_ms=sums.get("duration_ms"),
        judges=judges,
        unknown={figure: count for figure, count in unknown.items() if count},
        scored=score.runs,
        timed=found.timed,
        duration_p50_ms=found.duration_p50_ms,
        duration_p95_ms=found.duration_p95_ms,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
