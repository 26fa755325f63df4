"""What the runs of an experiment add up to, as those who ask are given it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from seatrial.runs import Judgement
from seatrial.store.rollups import (
    COST_UNITS,
    DURATION_UNITS,
    EDGES,
    SCORE_UNITS,
    CellSums,
    Figure,
    Kind,
    TallyKey,
    TallySums,
)
from seatrial.store.rows import CallsKnown, Outcome
from seatrial.transcript import Weight

UNITS = {"score": SCORE_UNITS, "cost_usd": COST_UNITS, "duration_ms": DURATION_UNITS}
OF_AGENTS: tuple[Kind, ...] = ("outcome", "left_out", "error_class", "calls", "sum", "bin", "trials")
"""Kinds of tallies that `agent_totals` needs."""


class Total(msgspec.Struct, frozen=True):
    """A figure, added up over the runs of which it is known."""

    runs: int
    total: float

    @property
    def mean(self) -> float | None:
        """The mean of those runs; None of none."""
        return self.total / self.runs if self.runs else None


class AgentTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one agent add up to."""

    agent: str
    runs: int
    outcomes: dict[Outcome, int]
    left_out: dict[str, int]
    """Runs that are in no rate, by why: a class of fault, `grader_errored`, or an outcome; the most frequent first."""
    error_classes: dict[str, int]
    calls: dict[CallsKnown, int]
    """How much is known of the calls, with the number of runs."""
    cases: int
    """Cases that it has a run of."""
    most_trials: int
    """The most runs that it has of one case."""
    trials: dict[tuple[int, int], int]
    """How many cases have so many graded trials of which so many passed: `{(graded, passed): cases}`."""
    sums: dict[str, Total]
    """`attempts`, `score`, `steps`, `input_tokens`, `output_tokens`, `cost_usd`, `duration_ms`."""
    histograms: dict[Figure, dict[int, int]]
    """Runs that passed or failed, by the bin of `EDGES` that their figure is in; empty bins are left out."""
    timed: int
    """Runs that passed or failed with an answer, and whose duration is known: the next two are of them. In a large
    experiment they are read from the histogram, and so about right: to 2.5%."""
    duration_p50_ms: float | None
    duration_p95_ms: float | None


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs of an experiment add up to."""

    agents: list[AgentTotals]
    """By name."""
    cases: int
    """Cases with at least one run."""
    most_trials: int
    """The most runs that one agent has of one case."""
    flaky: list[Cell]
    """The first cells in which some trials passed and some failed, in the order of the suite."""


class Cell(msgspec.Struct, gc=False, kw_only=True):
    """What one agent made of one case, over all trials."""

    case_id: str
    agent: str
    runs: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    incomplete: int = 0
    """Runs with an answer whose calls are not all known."""
    scored: int = 0
    score_sum: float = 0.0
    steps: int | None = None
    """Of all its runs together, like the next two; None when it is known of none of them."""
    cost_usd: float | None = None
    duration_ms: float | None = None
    passed_run: str | None = None
    failed_run: str | None = None
    errored_run: str | None = None
    """The first run that passed, failed, errored: examples to look at. Only where they were asked for."""

    @property
    def other(self) -> int:
        """Runs that were skipped, not graded, cancelled, or have not ended."""
        return self.runs - self.passed - self.failed - self.errored

    @property
    def graded(self) -> int:
        """Runs that say something of the agent."""
        return self.passed + self.failed

    @property
    def rate(self) -> float | None:
        """Share of the graded runs that passed."""
        return self.passed / self.graded if self.graded else None

    @property
    def score(self) -> float | None:
        """Mean score of the graded runs that have one."""
        return self.score_sum / self.scored if self.scored else None

    @property
    def flaky(self) -> bool:
        """Whether some trials passed and some failed."""
        return self.passed > 0 and self.failed > 0


class GraderCounts(msgspec.Struct, frozen=True):
    """What one grader said of one agent."""

    agent: str
    grader: str
    score: float | None
    """Mean of the verdicts that have one."""
    judgements: dict[Judgement, int]


class NoteCounts(msgspec.Struct, frozen=True):
    """Notes of one code and weight on the runs of one agent."""

    agent: str
    code: str
    weight: Weight
    notes: int
    runs: int
    """Runs that have at least one."""


class NoteTotals(msgspec.Struct, frozen=True):
    """All notes on the runs of an experiment."""

    counts: list[NoteCounts] = []
    """By weight, the most serious first, then by agent and code."""
    runs: int = 0
    """Runs with a note that needs a look."""
    serious_runs: int = 0
    """Runs with a serious one."""


class SignatureCount(msgspec.Struct, frozen=True):
    """A way in which runs of an agent fail."""

    agent: str
    signature: str
    runs: int


def agent_totals(tallies: Mapping[TallyKey, TallySums], durations: Mapping[str, Sequence[float]]) -> list[AgentTotals]:
    """What the runs of each agent add up to, from the tallies of `OF_AGENTS`.

    Percentiles are of these durations of its timed runs, in ascending order; without any, of the histogram.
    """
    found: defaultdict[str, defaultdict[Kind, dict[str, TallySums]]] = defaultdict(lambda: defaultdict(dict))
    for (kind, agent, name), tally in tallies.items():
        if tally.runs:
            found[agent][kind][name] = tally
    return [_agent_totals(agent, found[agent], durations.get(agent, ())) for agent in sorted(found)]


def _agent_totals(agent: str, found: Mapping[Kind, Mapping[str, TallySums]], durations: Sequence[float]) -> AgentTotals:
    counts: dict[Kind, dict[Any, int]] = {
        kind: {name: tally.runs for name, tally in sorted(some.items())} for kind, some in found.items()
    }
    trials: defaultdict[tuple[int, int], int] = defaultdict(int)
    cases = most_trials = 0
    for name, count in counts.get("trials", {}).items():
        ran, graded, passed = map(int, name.split("/"))
        cases += count
        most_trials = max(most_trials, ran)
        if graded:
            trials[graded, passed] += count
    histograms: defaultdict[Any, dict[int, int]] = defaultdict(dict)
    for name, count in counts.get("bin", {}).items():
        figure, _, index = name.partition("/")
        histograms[figure][int(index)] = count
    timed = sum(histograms["duration_ms"].values())
    bins = histograms["duration_ms"]
    p50, p95 = [quantile(durations, share) if durations else _quantile_of_bins(bins, share) for share in (0.5, 0.95)]
    return AgentTotals(
        agent=agent,
        runs=sum(counts["outcome"].values()),
        outcomes=counts["outcome"],
        left_out=dict(sorted(counts.get("left_out", {}).items(), key=lambda item: (-item[1], item[0]))),
        error_classes=counts.get("error_class", {}),
        calls=counts.get("calls", {}),
        cases=cases,
        most_trials=most_trials,
        trials=dict(trials),
        sums={name: Total(tally.counted, tally.total / UNITS.get(name, 1)) for name, tally in found["sum"].items()},
        histograms={figure: dict(sorted(bins.items())) for figure, bins in histograms.items() if bins},
        timed=timed,
        duration_p50_ms=p50,
        duration_p95_ms=p95,
    )


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The value below which this share of the sorted values lies, linear between neighbours; None of nothing."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _quantile_of_bins(bins: Mapping[int, int], share: float) -> float | None:
    """The same of durations of which only the bins are known: at most half a bin wrong, which is 2.5%."""
    place = share * (sum(bins.values()) - 1)
    edges = EDGES["duration_ms"]
    skipped = 0
    for index in sorted(bins):
        if skipped + bins[index] > place:
            low = edges[index - 1] if index else 0.0
            high = edges[index] if index < len(edges) else low
            return low + (high - low) * (place - skipped + 0.5) / bins[index]
        skipped += bins[index]
    return None


def cell_of(case_id: str, agent: str, sums: CellSums) -> Cell:
    """The cell with these sums, or with those of a row of `cells`."""
    return Cell(
        case_id=case_id,
        agent=agent,
        runs=sums.runs,
        passed=sums.passed,
        failed=sums.failed,
        errored=sums.errored,
        incomplete=sums.incomplete,
        scored=sums.scored,
        score_sum=int(sums.score) / SCORE_UNITS,
        steps=int(sums.steps) if sums.stepped else None,
        cost_usd=int(sums.cost) / COST_UNITS if sums.priced else None,
        duration_ms=int(sums.duration) / DURATION_UNITS if sums.timed else None,
    )
