"""What the runs of an experiment add up to, agent by agent, in one pass over its rows."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

import msgspec

from seatrial.reports.rows import CallsKnown, Cell, RunRow
from seatrial.reports.statistics import Interval, RepeatedTrials, pass_rate_interval, quantile, repeated_trials

SUMS = ("steps", "input_tokens", "output_tokens", "cost_usd", "duration_ms")
"""Figures of runs that are added up, where they are known."""
MAX_FLAKY = 100
"""Flaky cases that are listed; all are counted."""


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
    """Not the agent's doing, hence in no rate."""
    other: int
    """Skipped, ungraded, cancelled or unfinished."""
    pass_rate: float | None
    """Of the runs that passed or failed."""
    rate_of_all: float | None
    """Share of all runs that passed, those that the pass rate leaves out included."""
    left_out: dict[str, int]
    """Runs that are in no rate, by why: a class of fault, `grader_errored`, or an outcome."""
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


def summarise(rows: Iterable[RunRow]) -> Summary:
    """Add up. Rows of one case must follow each other."""
    sums: defaultdict[str, _Sum] = defaultdict(_Sum)
    flaky: list[FlakyCase] = []
    flaky_cases = cases = trials = 0
    for case_id, some in groupby(rows, attrgetter("case_id")):
        cases += 1
        cells: defaultdict[str, Cell] = defaultdict(Cell)
        for row in some:
            sums[row.agent].add(row)
            cells[row.agent].add(row)
        for agent, cell in cells.items():
            trials = max(trials, cell.runs)
            sums[agent].close(cell)
            if cell.flaky:
                flaky_cases += 1
                if len(flaky) < MAX_FLAKY:
                    flaky.append(FlakyCase(agent, case_id, cell.passed, cell.graded))
    agents = [sums[agent].summary(agent) for agent in sorted(sums)]
    return Summary(
        runs=sum(agent.runs for agent in agents),
        cases=cases,
        trials=trials,
        passed=sum(agent.passed for agent in agents),
        failed=sum(agent.failed for agent in agents),
        errored=sum(agent.errored for agent in agents),
        other=sum(agent.other for agent in agents),
        agents=agents,
        flaky_cases=flaky_cases,
        flaky=flaky,
    )


class _Sum:
    """The running sums of one agent."""

    def __init__(self) -> None:
        self.total = Cell()
        self.tallies: Counter[tuple[int, int]] = Counter()
        self.error_classes: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.durations = array("d")
        self.attempts = self.flaky = 0
        self.calls: Counter[CallsKnown] = Counter()
        self.sums: dict[str, float] = {}
        self.unknown: Counter[str] = Counter()

    def add(self, row: RunRow) -> None:
        if row.left_out is not None:
            self.left_out[row.left_out] += 1
        if row.error_class is not None:
            self.error_classes[row.error_class] += 1
        # How long it took until a timeout or a crash is not how fast the agent answers.
        if row.duration_ms is not None and row.error_class is None and row.outcome in ("passed", "failed"):
            self.durations.append(row.duration_ms)
        self.attempts += row.attempts
        self.calls[row.calls_known] += 1
        for figure in SUMS:
            value = getattr(row, figure)
            if value is not None:
                self.sums[figure] = self.sums.get(figure, 0) + value
            if value is None or (figure == "steps" and row.calls != "complete"):
                self.unknown[figure] += 1

    def close(self, cell: Cell) -> None:
        """All runs of a case have been added, to this cell, too."""
        self.total.join(cell)
        self.flaky += cell.flaky
        if cell.graded:
            self.tallies[cell.graded, cell.passed] += 1

    def summary(self, agent: str) -> AgentSummary:
        total = self.total
        durations = sorted(self.durations)
        return AgentSummary(
            agent=agent,
            runs=total.runs,
            passed=total.passed,
            failed=total.failed,
            errored=total.errored,
            other=total.other,
            pass_rate=total.rate,
            rate_of_all=total.passed / total.runs if total.runs else None,
            left_out=dict(self.left_out.most_common()),
            interval=pass_rate_interval(self.tallies) if total.graded else None,
            score=total.score,
            error_classes=dict(sorted(self.error_classes.items())),
            trials=repeated_trials(self.tallies),
            flaky=self.flaky,
            attempts=self.attempts,
            calls=dict(self.calls),
            steps=_whole(self.sums.get("steps")),
            input_tokens=_whole(self.sums.get("input_tokens")),
            output_tokens=_whole(self.sums.get("output_tokens")),
            cost_usd=self.sums.get("cost_usd"),
            duration_ms=self.sums.get("duration_ms"),
            unknown=dict(self.unknown),
            scored=total.scored,
            timed=len(durations),
            duration_p50_ms=quantile(durations, 0.5),
            duration_p95_ms=quantile(durations, 0.95),
        )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
