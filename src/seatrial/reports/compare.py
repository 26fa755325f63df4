"""Two versions of an agent, paired by case: what became better, what became worse, and how sure that is.

A case counts where both sides have a graded run of it. A side's rate of a case is the share of its graded trials that
passed; a case is worse when its rate is lower in b. Runs that errored are in no rate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import asdict, replace

from seatrial.errors import SeatrialError
from seatrial.reports.report import reason
from seatrial.reports.rows import ReportSource
from seatrial.reports.statistics.paired import CaseCounts, PairedDifference, paired_difference, paired_differences
from seatrial.reports.summary import AgentSummary, summary_of
from seatrial.reports.tags import UNJUDGED, most_frequent
from seatrial.runs import Case, Experiment, Run
from seatrial.store import Cell
from seatrial.trajectory.comparison import RunDiff
from seatrial.trajectory.comparison import compare as compare_steps
from seatrial.trajectory.completeness import Level
from seatrial.trajectory.step import Step

MAX_LISTED = 1000
"""Cases of a list; all are counted."""

MAX_EXPLAINED = 100
"""Cases of a list of which it is said why they moved."""

_NOT_MEASURED = frozenset({"name", "description", "agents", "cases", "trials", "concurrency", "budget"})
"""Keys of a suite that change nothing about what a result means."""
_ENCODER = msgspec.json.Encoder(order="sorted")

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
    suite: str = ""
    """The name of its suite, where it has one."""


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
    why: str | None = None
    """Why the one of these two runs that failed did."""
    edited: bool = False
    """Whether the case itself is not the same on both sides."""

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


class TagDifference(PairedDifference, frozen=True, kw_only=True):
    """The difference over the cases with a tag. Interval and p-value are corrected for looking at several tags."""

    tag: str
    unpaired: int
    """Cases with this tag that are left out: only one side has a graded run."""
    left_out: dict[str, int]
    """Why, with how many cases."""
    lost: int
    """As in the whole comparison."""


class IncomparableTag(msgspec.Struct, frozen=True, kw_only=True):
    """A tag of which no case has graded runs on both sides."""

    tag: str
    unpaired: int
    left_out: dict[str, int]
    lost: int


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
    left_out: dict[str, int]
    """Why cases are unpaired, with how many: `b: agent_timeout`, `not in a`, ..."""
    by_tag: list[TagDifference]
    """Tags that are worse, then the others, those that dropped most first."""
    incomparable_tags: list[IncomparableTag]
    untagged: int
    """Paired cases without a tag."""
    unread: int
    """Cases of a or b that are damaged: what tags they had is not known."""
    omitted_tags: list[str]
    """Tags of fewer cases than those in `by_tag`, which are not looked at."""
    edited_cases: list[str]
    """Paired cases that are not the same on both sides, apart from their tags and metadata."""
    edited: int
    """How many these are."""
    suite_changes: list[str]
    """Keys of the suite that are not as they were, such as `graders`."""
    flaky_a: int
    flaky_b: int
    worst: TrajectoryDiff | None = None
    """The calls of the worst regression, where its runs are at hand."""


def compare(
    a: ReportSource,
    b: ReportSource,
    agent_a: str,
    agent_b: str,
    run_of: RunOf | None = None,
    *,
    explained: bool = True,
) -> Comparison:
    """Compare an agent of one experiment with an agent of another, or of the same. Why cases moved is in their runs,
    which are only read where that is to be `explained`."""
    side_a, cells_a = _side(a, agent_a)
    side_b, cells_b = _side(b, agent_b)
    changed: list[str] = []
    pairs: dict[str, CaseCounts] = {}
    unpaired: list[str] = [case_id for case_id in cells_b if case_id not in cells_a]
    for case_id, cell_a in cells_a.items():
        cell_b = cells_b.get(case_id)
        if cell_b is None or cell_a.rate is None or cell_b.rate is None:
            unpaired.append(case_id)
            continue
        pairs[case_id] = CaseCounts(cell_a.passed, cell_a.graded, cell_b.passed, cell_b.graded)
        if cell_a.rate != cell_b.rate:
            changed.append(case_id)
    if not pairs:
        raise _nothing_to_compare(a.experiment, b.experiment, agent_a, agent_b, common=bool(cells_a.keys() & cells_b))
    chosen = b.experiment.selected
    selected = None if chosen is None else frozenset(chosen.get(agent_b, ()))
    unseen = [case_id for case_id, cell in cells_a.items() if cell.graded and case_id not in cells_b]
    unselected = [] if selected is None else [case_id for case_id in unseen if case_id not in selected]
    # An experiment that is finished and has all its runs was not to run them: its suite has no such case.
    lost = set(unseen).difference(unselected) if selected is not None or side_b.unfinished is not None else set()
    trials = _trials(b.experiment)
    lost.update(
        case_id
        for case_id, cell in cells_a.items()
        if cell.graded and case_id in cells_b and cells_b[case_id].graded < max(cells_b[case_id].runs, trials)
    )
    reasons = _unpaired_reasons(unpaired, cells_a, cells_b, _unjudged(a, agent_a), _unjudged(b, agent_b), selected)
    edited = _edited(a, b, pairs)
    tags_a, tags_b = a.tags().of, b.tags().of
    # A suite whose tags have changed is meant as it is now.
    tags = {case_id: (tags_b if case_id in cells_b else tags_a).get(case_id, ()) for case_id in (*cells_a, *cells_b)}
    by_tag, incomparable, omitted = _by_tag(tags, pairs, reasons, lost)
    regressions, improvements, worst = _changes(a, b, changed, cells_a, cells_b, edited, run_of, explained=explained)
    return Comparison(
        a=side_a,
        b=side_b,
        **asdict(paired_difference(list(pairs.values()))),
        unpaired=len(unpaired),
        lost=len(lost),
        unselected=unselected,
        regressions=regressions,
        improvements=improvements,
        unpaired_cases=unpaired[:MAX_LISTED],
        left_out=_counted(reasons.values()),
        by_tag=by_tag,
        incomparable_tags=incomparable,
        untagged=sum(not tags[case_id] for case_id in pairs) if by_tag else 0,
        unread=a.tags().unread + b.tags().unread,
        omitted_tags=omitted,
        edited_cases=edited[:MAX_LISTED],
        edited=len(edited),
        suite_changes=_suite_changes(a.experiment, b.experiment),
        flaky_a=side_a.summary.flaky,
        flaky_b=side_b.summary.flaky,
        worst=worst,
    )


def _nothing_to_compare(a: Experiment, b: Experiment, agent_a: str, agent_b: str, *, common: bool) -> SeatrialError:
    if not common:
        suites = " and ".join(repr(each.suite.get("name") or each.name) for each in (a, b))
        return SeatrialError(
            "empty_input",
            f"there is nothing to compare: no case is in both, they are of the suites {suites}",
            hint="cases are paired by their ids",
        )
    which = f"{agent_a!r} on both sides" if agent_a == agent_b else f"both {agent_a!r} and {agent_b!r}"
    return SeatrialError(
        "empty_input",
        f"there is nothing to compare: no case has a graded run of {which}",
        hint="runs that errored cannot be compared; cases are paired by their ids",
    )


def _unjudged(source: ReportSource, agent: str) -> dict[str, str]:
    """Of cases with runs that are in no rate, why the first of them is."""
    found: dict[str, str] = {}
    for row in source.rows(agent=agent, outcomes=UNJUDGED):
        found.setdefault(row.case_id, row.left_out or row.outcome)
    return found


def _unpaired_reasons(
    unpaired: Iterable[str],
    cells_a: Mapping[str, Cell],
    cells_b: Mapping[str, Cell],
    unjudged_a: Mapping[str, str],
    unjudged_b: Mapping[str, str],
    selected: Collection[str] | None,
) -> dict[str, str]:
    """Why each of these cases cannot be compared."""
    reasons: dict[str, str] = {}
    for case_id in unpaired:
        if case_id not in cells_a:
            reasons[case_id] = "not run in a"
        elif case_id not in cells_b:
            reasons[case_id] = "not run in b" if selected is None or case_id in selected else "not selected in b"
        else:
            sides = (("a", cells_a, unjudged_a), ("b", cells_b, unjudged_b))
            reasons[case_id] = " and ".join(
                f"{letter}: {unjudged.get(case_id, 'not judged')}"
                for letter, cells, unjudged in sides
                if not cells[case_id].graded
            )
    return reasons


def _counted(words: Iterable[str]) -> dict[str, int]:
    """How often each occurs, the most frequent first."""
    return dict(sorted(Counter(words).items(), key=lambda item: (-item[1], item[0])))


def _edited(a: ReportSource, b: ReportSource, pairs: Collection[str]) -> list[str]:
    """The paired cases that say something else in b than in a."""
    if a.experiment.suite_hash == b.experiment.suite_hash:
        return []
    before = {case.id: _content(case) for case in a.cases() if case.id in pairs}
    return [case.id for case in b.cases() if case.id in before and _content(case) != before[case.id]]


def asks_the_same(a: Experiment, b: Experiment, case_a: Case, case_b: Case) -> bool:
    """Whether what a case comes to means the same in both experiments; agents, tags and metadata may differ."""
    if a.suite_hash == b.suite_hash:
        return True
    same_suite = a.suite.get("name") == b.suite.get("name") and not _suite_changes(a, b)
    return same_suite and _content(case_a) == _content(case_b)


def _content(case: Case) -> bytes:
    return blake2b(_ENCODER.encode(replace(case, tags=[], metadata={})), digest_size=16).digest()


def _suite_changes(a: Experiment, b: Experiment) -> list[str]:
    """What of the suite, beside its cases and agents, is not as it was."""
    if a.suite_hash == b.suite_hash:
        return []
    keys = (a.suite.keys() | b.suite.keys()) - _NOT_MEASURED
    return sorted(key for key in keys if a.suite.get(key) != b.suite.get(key))


def _by_tag(
    tags: Mapping[str, Sequence[str]],
    pairs: Mapping[str, CaseCounts],
    reasons: Mapping[str, str],
    lost: Collection[str],
) -> tuple[list[TagDifference], list[IncomparableTag], list[str]]:
    """The difference on the cases of each tag, the tags without a case to compare, and those that are not looked at."""
    looked_at, omitted = most_frequent(tags.values())
    paired: defaultdict[str, list[CaseCounts]] = defaultdict(list)
    left_out: defaultdict[str, list[str]] = defaultdict(list)
    losses: Counter[str] = Counter()
    for case_id, of_case in tags.items():
        for tag in of_case:
            if case_id in pairs:
                paired[tag].append(pairs[case_id])
            elif case_id in reasons:
                left_out[tag].append(reasons[case_id])
            losses[tag] += case_id in lost
    names = [tag for tag in looked_at if paired[tag]]
    differences = [
        TagDifference(
            **asdict(found),
            tag=tag,
            unpaired=len(left_out[tag]),
            left_out=_counted(left_out[tag]),
            lost=losses[tag],
        )
        for tag, found in zip(names, paired_differences([paired[tag] for tag in names]), strict=True)
    ]
    incomparable = [
        IncomparableTag(tag=tag, unpaired=len(left_out[tag]), left_out=_counted(left_out[tag]), lost=losses[tag])
        for tag in looked_at
        if not paired[tag]
    ]
    by_badness = sorted(differences, key=lambda found: (not found.is_worse, found.difference, found.tag))
    return by_badness, sorted(incomparable, key=lambda found: found.tag), omitted


def _changes(
    a: ReportSource,
    b: ReportSource,
    changed: Sequence[str],
    cells_a: Mapping[str, Cell],
    cells_b: Mapping[str, Cell],
    edited: Collection[str],
    run_of: RunOf | None,
    *,
    explained: bool,
) -> tuple[list[CaseChange], list[CaseChange], TrajectoryDiff | None]:
    """Regressions and improvements, each with its reason, and the calls of the worst regression."""
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
    failed_b = [change.run_b for change in regressions if explained]
    failed_a = [change.run_a for change in improvements if explained]
    why = _reasons(b, failed_b) | _reasons(a, failed_a)
    of_edited = frozenset(edited)

    def told(change: CaseChange, run: str | None) -> CaseChange:
        return replace(change, why=why.get(run or ""), edited=change.case_id in of_edited)

    return (
        [told(change, change.run_b) for change in regressions],
        [told(change, change.run_a) for change in improvements],
        _trajectory_diff(regressions[0], run_of) if regressions and run_of is not None else None,
    )


def _reasons(source: ReportSource, runs: Iterable[str | None]) -> dict[str, str]:
    """Why these runs did not pass; of the first of them."""
    wanted = frozenset([run for run in runs if run is not None][:MAX_EXPLAINED])
    if not wanted:
        return {}
    rows = source.rows(detailed=True, run_ids=wanted)
    return {row.run_id: reason(row) for row in rows if row.detail is not None}


def refuse_itself(a: Experiment, b: Experiment, pairs: Iterable[tuple[str, str]]) -> None:
    """Raise `SeatrialError` where runs would be compared with themselves: nothing can have changed."""
    same = [agent_a for agent_a, agent_b in pairs if agent_a == agent_b]
    if a.experiment_id == b.experiment_id and same:
        agents = ", ".join(same)
        raise SeatrialError(
            "usage",
            f"both sides are the experiment {a.experiment_id} ({agents}): it cannot be compared with itself",
            hint="name two experiments, as `seatrial list` shows them, or two agents of one: `EXPERIMENT:AGENT`",
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
        suite=experiment.suite.get("name", ""),
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
