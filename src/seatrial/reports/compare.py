"""Two versions of an agent, paired by case: what became better, what became worse, and how sure that is.

A case counts where both sides have a graded run of it. A side's rate of a case is the share of its graded trials that
passed; a case is worse when its rate is lower in b. Runs that errored are in no rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import asdict

from seatrial.errors import SeatrialError
from seatrial.reports.paired import CaseCounts, PairedDifference, paired_difference
from seatrial.reports.rows import ReportSource
from seatrial.reports.summary import AgentSummary, summary_of
from seatrial.runs import Experiment, Run
from seatrial.store import Cell
from seatrial.trajectory.comparison import RunDiff
from seatrial.trajectory.comparison import compare as compare_steps
from seatrial.trajectory.completeness import Level
from seatrial.trajectory.step import Step

MAX_LISTED = 1000
"""Cases of a list; all are counted."""

RunOf = Callable[[str], Run | None]
"""A run, by its id; None when it cannot be read."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared."""

    experiment_id: str
    name: str
    agent: str
    suite_hash: str
    summary: AgentSummary
    planned: int | None = None
    """How many runs of the agent there were to be, where that is known."""
    unfinished: str | None = None
    """Why runs of it are missing, in a sentence; None when all are there."""


class CaseChange(msgspec.Struct, frozen=True, kw_only=True):
    """A case that one side passes more often than the other."""

    case_id: str
    passed_a: int
    graded_a: int
    passed_b: int
    graded_b: int
    score_a: float | None
    score_b: float | None
    run_a: str | None
    """A run of a that ended otherwise than `run_b` of b: the pair to look at."""
    run_b: str | None

    @property
    def difference(self) -> float:
        """How much more often b passes it."""
        return self.passed_b / self.graded_b - self.passed_a / self.graded_a


class TrajectoryDiff(msgspec.Struct, frozen=True, kw_only=True):
    """How the calls of two runs of a case differ."""

    case_id: str
    run_a: str
    run_b: str
    diff: RunDiff
    steps_a: list[Step]
    steps_b: list[Step]
    calls_a: Level | None = None
    """How complete the calls of run a are: unless that is `complete`, it may have made more."""
    calls_b: Level | None = None


class Comparison(PairedDifference, frozen=True, kw_only=True):
    """Everything that is known about b against a."""

    a: Side
    b: Side
    unpaired: int
    """Cases that only one side has, or that errored on one."""
    lost: int
    """Cases that a could judge and b could not, or not in every trial that was planned: what became of them is not
    known. All that b was to run and has no run of are among them."""
    unselected: list[str] = msgspec.field(default_factory=list)
    """Cases that a could judge and b was not asked to run, by its selection."""
    regressions: list[CaseChange]
    """Cases that became worse, the worst first."""
    improvements: list[CaseChange]
    unpaired_cases: list[str]
    flaky_a: int
    flaky_b: int
    worst: TrajectoryDiff | None = None
    """The calls of the worst regression, where its runs are at hand."""


def compare(a: ReportSource, b: ReportSource, agent_a: str, agent_b: str, run_of: RunOf | None = None) -> Comparison:
    """Compare an agent of one experiment with an agent of another, or of the same."""
    side_a, cells_a = _side(a, agent_a)
    side_b, cells_b = _side(b, agent_b)
    changed: list[str] = []
    pairs: list[CaseCounts] = []
    unpaired: list[str] = [case_id for case_id in cells_b if case_id not in cells_a]
    for case_id, cell_a in cells_a.items():
        cell_b = cells_b.get(case_id)
        if cell_b is None or cell_a.rate is None or cell_b.rate is None:
            unpaired.append(case_id)
            continue
        pairs.append(CaseCounts(cell_a.passed, cell_a.graded, cell_b.passed, cell_b.graded))
        if cell_a.rate != cell_b.rate:
            changed.append(case_id)
    if not pairs:
        which = f"{agent_a!r} on both sides" if agent_a == agent_b else f"both {agent_a!r} and {agent_b!r}"
        raise SeatrialError(
            "empty_input",
            f"there is nothing to compare: no case has a graded run of {which}",
            hint="runs that errored cannot be compared; cases are paired by their ids",
        )
    chosen = b.experiment.selected
    selected = None if chosen is None else frozenset(chosen.get(agent_b, ()))
    unseen = [case_id for case_id, cell in cells_a.items() if cell.graded and case_id not in cells_b]
    unselected = [] if selected is None else [case_id for case_id in unseen if case_id not in selected]
    # An experiment that is finished and has all its runs was not to run them: its suite has no such case.
    lost = len(unseen) - len(unselected) if selected is not None or side_b.unfinished is not None else 0
    trials = _trials(b.experiment)
    lost += sum(
        cell.graded > 0 and case_id in cells_b and cells_b[case_id].graded < max(cells_b[case_id].runs, trials)
        for case_id, cell in cells_a.items()
    )
    changes = [_change(case_id, cells_a[case_id], cells_b[case_id]) for case_id in changed]
    # Stable, so that equals stay in the order of the suite.
    worse = sorted([change for change in changes if change.difference < 0], key=_badness)
    better = sorted([change for change in changes if change.difference > 0], key=_badness, reverse=True)
    listed = [change.case_id for change in worse[:MAX_LISTED] + better[:MAX_LISTED]]
    a.counts.add_examples([cells_a[case_id] for case_id in listed])
    b.counts.add_examples([cells_b[case_id] for case_id in listed])
    regressions, improvements = [
        [_change(change.case_id, cells_a[change.case_id], cells_b[change.case_id]) for change in some[:MAX_LISTED]]
        for some in (worse, better)
    ]
    return Comparison(
        a=side_a,
        b=side_b,
        **asdict(paired_difference(pairs)),
        unpaired=len(unpaired),
        lost=lost,
        unselected=unselected,
        regressions=regressions,
        improvements=improvements,
        unpaired_cases=unpaired[:MAX_LISTED],
        flaky_a=side_a.summary.flaky,
        flaky_b=side_b.summary.flaky,
        worst=_trajectory_diff(regressions[0], run_of) if regressions and run_of is not None else None,
    )


def agent_pairs(agents_a: Iterable[str], agents_b: Iterable[str]) -> list[tuple[str, str]]:
    """Which agents to compare: the only one with the only one, else those of the same name."""
    names_a, names_b = sorted(set(agents_a)), sorted(set(agents_b))
    if len(names_a) == len(names_b) == 1:
        return [(names_a[0], names_b[0])]
    pairs = [(name, name) for name in names_a if name in names_b]
    if not pairs:
        raise SeatrialError(
            "usage",
            f"no agent is in both experiments: {', '.join(names_a) or 'none'}; {', '.join(names_b) or 'none'}",
            hint="name one of each: `seatrial compare EXPERIMENT:AGENT EXPERIMENT:AGENT`",
        )
    return pairs


def _side(source: ReportSource, agent: str) -> tuple[Side, dict[str, Cell]]:
    experiment = source.experiment
    agents = summary_of(source.counts.totals(), source.errored_with_failure, source.judges).agents
    summary = next((found for found in agents if found.agent == agent), None)
    if summary is None:
        raise SeatrialError("not_found", f"the experiment {experiment.name!r} has no runs of an agent {agent!r}")
    side = Side(
        experiment_id=experiment.experiment_id,
        name=experiment.name,
        agent=agent,
        suite_hash=experiment.suite_hash,
        summary=summary,
        planned=(planned := _planned(source, agent)),
        unfinished=_unfinished(experiment, planned, summary),
    )
    return side, {cell.case_id: cell for cell in source.counts.cells(agent)}


def _trials(experiment: Experiment) -> int:
    trials: int = experiment.suite.get("trials", 1)
    return trials


def _planned(source: ReportSource, agent: str) -> int | None:
    """How many runs of an agent there were to be."""
    experiment = source.experiment
    if experiment.selected is not None:
        return _trials(experiment) * len(experiment.selected.get(agent, ()))
    agents = len(experiment.suite.get("agents", ()))
    return source.planned // agents if source.planned is not None and agents else None


def _unfinished(experiment: Experiment, planned: int | None, summary: AgentSummary) -> str | None:
    """Why runs of an agent are missing: `stopped after 1 of 6 runs: the budget is used up`."""
    ended = summary.runs - summary.left_out.get("unfinished", 0)
    if experiment.status == "finished":
        missing = planned is not None and ended < planned
        return f"has {ended:,} of its {planned:,} runs: the others are not in the store" if missing else None
    if planned is not None and ended >= planned:
        return None  # what is missing are runs of others
    progress = f"{ended:,} runs" if planned is None else f"{ended:,} of {planned:,} runs"
    word = "was not finished: it has" if experiment.status == "running" else "stopped after"
    return f"{word} {progress}" + (f": {experiment.stop_reason}" if experiment.stop_reason else "")


def _change(case_id: str, a: Cell, b: Cell) -> CaseChange:
    fell = a.passed * b.graded > b.passed * a.graded
    return CaseChange(
        case_id=case_id,
        passed_a=a.passed,
        graded_a=a.graded,
        passed_b=b.passed,
        graded_b=b.graded,
        score_a=a.score,
        score_b=b.score,
        run_a=a.passed_run if fell else a.failed_run,
        run_b=b.failed_run if fell else b.passed_run,
    )


def _badness(change: CaseChange) -> tuple[float, float]:
    # A score that there is not says nothing about which of two is worse.
    if change.score_a is None or change.score_b is None:
        return change.difference, 0.0
    return change.difference, change.score_b - change.score_a


def _trajectory_diff(change: CaseChange, run_of: RunOf) -> TrajectoryDiff | None:
    if change.run_a is None or change.run_b is None:
        return None
    a, b = run_of(change.run_a), run_of(change.run_b)
    if a is None or b is None:
        return None
    return TrajectoryDiff(
        case_id=change.case_id,
        run_a=change.run_a,
        run_b=change.run_b,
        diff=compare_steps(a.steps, b.steps),
        steps_a=a.steps,
        steps_b=b.steps,
        calls_a=a.completeness.level if a.completeness is not None else None,
        calls_b=b.completeness.level if b.completeness is not None else None,
    )
