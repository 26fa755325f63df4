"""Rollups: what the runs of an experiment add up to, kept up to date by every transaction that changes a run.

Two tables. `cells` has a row for each case and agent. `tallies` has the rest, by agent: a row for every word that is
counted (an outcome, a class of fault, a bin of a histogram, a signature), and for every figure that is added up. Both
only ever have integers added to them or taken away, so it does not matter in which order runs come, and a run that is
graded again or replaced is taken out exactly as it went in. Fractions are added up as integers of a small unit.

Whatever is kept here can be computed from the rows of the runs: see `recount`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any, Literal, TypeAlias

import msgspec

from seatrial.runs import Outcome
from seatrial.store.rows import (
    COST_UNITS,
    DURATION_UNITS,
    SCORE_UNITS,
    CallsKnown,
    Cell,
    CellRow,
    NoteRow,
    RunSummary,
    StoredOutcome,
    TallyKind,
    TallyRow,
)
from seatrial.transcript import NoteCode, Weight
from seatrial.transcript.note import NOTE_CODES

_WITHOUT_FAULT = "grader_errored"
"""What the table `tallies` calls runs that errored without a fault; everywhere else they are `errored`."""

LIMIT = 2**53
"""What one run adds to a sum at most, in units: more is absurd, and would spoil the sum."""

BINS = 64
DURATION_RATIO = 1.05
"""Between two edges of durations: percentiles are read from them."""
RollupFigure: TypeAlias = Literal["score", "duration_ms", "steps", "cost_usd"]
TallyKey: TypeAlias = tuple[TallyKind, str, str]
"""The kind of a tally, the agent, and what is counted: the word, the name of the figure, `duration_ms/17`."""
CellKey: TypeAlias = tuple[str, str]
"""The id of the case, and the agent."""

_UNKNOWN_CODE = NoteCode("", "serious")
_HEAVIER: dict[Weight, int] = {"harmless": 0, "look": 1, "serious": 2}


def _logarithmic(low: float, high: float, ratio: float | None = None) -> tuple[float, ...]:
    ratio = ratio or (high / low) ** (1 / (BINS - 2))
    # A few digits: the same on every machine, whatever its logarithm says about the last bit.
    return tuple(float(f"{low * ratio**index:.4g}") for index in range(round(log(high / low, ratio)) + 1))


EDGES: dict[RollupFigure, tuple[float, ...]] = {
    # A score is between 0 and 1, and as likely near one as near the other.
    "score": tuple((index + 1) / BINS for index in range(BINS - 1)),
    "duration_ms": _logarithmic(1, 1e7, DURATION_RATIO),
    "steps": _logarithmic(1, 1e6),
    "cost_usd": _logarithmic(1e-6, 1e4),
}
"""Where the bins of a histogram meet: bin n has what is at least edge n - 1 and less than edge n. The first bin has
all that is less than the first edge, the last one all from the last edge on."""

_GRADED = ("passed", "failed")
_UNITS = {"score": SCORE_UNITS, "cost_usd": COST_UNITS, "duration_ms": DURATION_UNITS}
OF_AGENTS: tuple[TallyKind, ...] = ("outcome", "left_out", "error_class", "calls", "sum", "bin", "trials")
"""Kinds of tallies that `agent_totals` needs."""


class Counted(msgspec.Struct, gc=False):
    """What of a run is counted."""

    run: RunSummary
    graders: Sequence[tuple[str, Outcome, float | None]] = ()
    """What each grader said, in the grading that counts, and its score."""
    notes: Mapping[tuple[str, Weight], int] = {}
    """Notes by code and weight."""
    has_all_verdicts: bool = True
    """Whether these are all verdicts that were counted when they were stored, and none has been lost since."""


class Changes:
    """What a transaction adds to the rollups of one experiment and takes away."""

    def __init__(self, experiment: int = 0) -> None:
        self._experiment = experiment
        self.cells: dict[CellKey, CellRow] = {}
        self.tallies: dict[TallyKey, TallyRow] = {}

    def add(self, runs: Iterable[Counted], sign: Literal[1, -1] = 1) -> None:
        """Count runs; with -1, count them no more."""
        of_agents: defaultdict[str, list[Counted]] = defaultdict(list)
        for counted in runs:
            of_agents[counted.run.agent].append(counted)
        for agent, some in of_agents.items():
            self._add_runs(agent, [counted.run for counted in some], sign)
            self._add_graders(agent, some, sign)
            self._add_notes(agent, some, sign)

    def move(self, agent: str, runs: int, passed: int, failed: int, cases: Literal[1, -1] = 1) -> None:
        """Count a case that has so many runs of this agent; with -1, one that had so many."""
        if runs > 0:
            self._tally("trials", agent, f"{runs}/{passed + failed}/{passed}", cases)

    def close(self) -> None:
        """All runs of the experiment have been added: its cases are what the cells are now."""
        for (_, agent), cell in self.cells.items():
            self.move(agent, cell.runs, cell.passed, cell.failed)

    def _add_runs(self, agent: str, runs: Sequence[RunSummary], sign: Literal[1, -1]) -> None:
        # Figure by figure, not run by run: of many runs that takes a third of the time.
        graded = [run for run in runs if run.outcome in _GRADED]
        self._words("outcome", agent, [run.outcome for run in runs], sign)
        self._words("calls", agent, [run.calls or run.calls_known for run in runs], sign)
        if len(graded) < len(runs):
            others = [_left_out(run.outcome, run.error_class) for run in runs if run.outcome not in _GRADED]
            self._words("left_out", agent, others, sign)
        self._words("error_class", agent, [run.error_class for run in runs if run.error_class is not None], sign)
        self._words("signature", agent, [run.signature for run in runs if run.signature is not None], sign)
        self._bins("score", agent, [run.score for run in graded if run.score is not None], sign)
        self._bins("steps", agent, [steps for run in graded if (steps := known_steps(run)) is not None], sign)
        self._bins("cost_usd", agent, [run.cost_usd for run in graded if run.cost_usd is not None], sign)
        # Until a timeout or a crash it says nothing of how fast the agent is.
        timed = [run.duration_ms for run in graded if run.duration_ms is not None and run.error_class is None]
        self._bins("duration_ms", agent, timed, sign)
        self._sum("attempts", agent, [run.attempts for run in runs], sign)
        self._sum("input_tokens", agent, [run.input_tokens for run in runs if run.input_tokens is not None], sign)
        self._sum("output_tokens", agent, [run.output_tokens for run in runs if run.output_tokens is not None], sign)
        self._add_cells(agent, runs, sign)

    def _add_cells(self, agent: str, runs: Sequence[RunSummary], sign: Literal[1, -1]) -> None:
        """Count runs in their cells. What is added up there is added up for the agent, too."""
        cells = self.cells
        scored = score_sum = stepped = step_sum = priced = cost_sum = timed = duration_sum = 0
        for run in runs:
            cell = cells.get((run.case_id, agent))
            if cell is None:
                cell = CellRow(experiment=self._experiment, case_id=run.case_id, agent=agent)
                cells[run.case_id, agent] = cell
            outcome = run.outcome
            cell.runs += sign
            if outcome == "passed":
                cell.passed += sign
            elif outcome == "failed":
                cell.failed += sign
            elif outcome == "errored":
                cell.errored += sign
            if run.calls != "complete" and run.calls_known != "no answer":
                cell.incomplete += sign
            # A run that errored may have scores of graders that could run; they would be half the truth.
            if run.score is not None and outcome in _GRADED:
                units = sign * _units(run.score, SCORE_UNITS)
                cell.scored += sign
                cell.score_sum += units
                scored += sign
                score_sum += units
            if (steps := known_steps(run)) is not None:
                units = sign * steps
                cell.stepped += sign
                cell.step_sum += units
                stepped += sign
                step_sum += units
            if run.cost_usd is not None:
                units = sign * _units(run.cost_usd, COST_UNITS)
                cell.priced += sign
                cell.cost_sum += units
                priced += sign
                cost_sum += units
            if run.duration_ms is not None:
                units = sign * _units(run.duration_ms, DURATION_UNITS)
                cell.timed += sign
                cell.duration_sum += units
                timed += sign
                duration_sum += units
        for name, count, total in (
            ("score", scored, score_sum),
            ("steps", stepped, step_sum),
            ("cost_usd", priced, cost_sum),
            ("duration_ms", timed, duration_sum),
        ):
            if count:
                self._tally("sum", agent, name, count, count, total)

    def _add_graders(self, agent: str, runs: Sequence[Counted], sign: Literal[1, -1]) -> None:
        scores: defaultdict[tuple[str, Outcome], list[float | None]] = defaultdict(list)
        for counted in runs:
            for grader, outcome, score in counted.graders:
                scores[grader, outcome].append(score)
        for (grader, outcome), given in scores.items():
            units = [sign * _units(score, SCORE_UNITS) for score in given if score is not None]
            self._tally("grader", agent, f"{outcome}|{grader}", sign * len(given), sign * len(units), sum(units))

    def _add_notes(self, agent: str, runs: Sequence[Counted], sign: Literal[1, -1]) -> None:
        for counted in runs:
            if counted.notes:
                for (code, weight), count in counted.notes.items():
                    self._tally("note", agent, f"{weight}|{code}", sign, sign * count, sign * count)
                heaviest = max([weight for _, weight in counted.notes], key=_HEAVIER.__getitem__)
                self._tally("noted", agent, heaviest, sign)

    def _words(self, kind: TallyKind, agent: str, words: Sequence[str], sign: Literal[1, -1]) -> None:
        if words:
            for word, count in Counter(words).items():
                self._tally(kind, agent, word, sign * count)

    def _bins(self, figure: RollupFigure, agent: str, values: Sequence[float], sign: Literal[1, -1]) -> None:
        if values:
            edges = EDGES[figure]
            for index, count in Counter([bisect_right(edges, value) for value in values]).items():
                self._tally("bin", agent, f"{figure}/{index}", sign * count)

    def _sum(self, name: str, agent: str, values: Sequence[int], sign: Literal[1, -1]) -> None:
        if values:
            count = sign * len(values)
            self._tally("sum", agent, name, count, count, sign * sum([min(value, LIMIT) for value in values]))

    def _tally(self, kind: TallyKind, agent: str, name: str, runs: int, counted: int = 0, total: int = 0) -> None:
        found = self.tallies.get((kind, agent, name))
        if found is None:
            found = TallyRow(experiment=self._experiment, kind=kind, agent=agent, name=name)
            self.tallies[kind, agent, name] = found
        found.runs += runs
        found.counted += counted
        found.total += total


def _units(value: float, parts: int) -> int:
    units = round(value * parts)
    return units if -LIMIT < units < LIMIT else LIMIT if units > 0 else -LIMIT


def known_steps(run: RunSummary) -> int | None:
    """How many steps a run took; where not all calls are known, that none was found says nothing."""
    return run.steps if run.steps or run.calls == "complete" else None


def is_timed(run: RunSummary) -> bool:
    """Whether how long a run took says how fast the agent is: not until a timeout or a crash."""
    return run.duration_ms is not None and run.error_class is None and run.outcome in ("passed", "failed")


def _left_out(outcome: StoredOutcome, error_class: str | None) -> str:
    """Why a run is in no rate, as it is stored: the class of its fault, or its outcome."""
    return (error_class or _WITHOUT_FAULT) if outcome == "errored" else outcome


def weight_of(code: str, weight: Weight | None) -> Weight:
    """The weight of a note as it is stored; a code that nobody knows may mean that something was dropped."""
    return weight or NOTE_CODES.get(code, _UNKNOWN_CODE).weight


def note_counts(notes: Iterable[NoteRow]) -> dict[tuple[str, Weight], int]:
    """Notes by code and weight."""
    counts: dict[tuple[str, Weight], int] = {}
    for note in notes:
        key = note.code, weight_of(note.code, note.weight)
        counts[key] = counts.get(key, 0) + 1
    return counts


class Total(msgspec.Struct, frozen=True):
    """A figure, added up over the runs of which it is known."""

    runs: int
    total: float

    @property
    def mean(self) -> float | None:
        """The mean of those runs; None when there are none."""
        return self.total / self.runs if self.runs else None


class AgentTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one agent add up to."""

    agent: str
    runs: int
    outcomes: dict[StoredOutcome, int]
    left_out: dict[str, int]
    """Runs that are in no rate, by why: a class of fault, or else their outcome; the most frequent first."""
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
    histograms: dict[RollupFigure, dict[int, int]]
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


class GraderCounts(msgspec.Struct, frozen=True):
    """What one grader said of one agent."""

    agent: str
    grader: str
    score: float | None
    """Mean of the verdicts that have one."""
    outcomes: dict[Outcome, int]


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


def agent_totals(tallies: Mapping[TallyKey, TallyRow], durations: Mapping[str, Sequence[float]]) -> list[AgentTotals]:
    """What the runs of each agent add up to, from the tallies of `OF_AGENTS`.

    Percentiles are of these durations of its timed runs, in ascending order; without any, of the histogram.
    """
    found: defaultdict[str, defaultdict[TallyKind, dict[str, TallyRow]]] = defaultdict(lambda: defaultdict(dict))
    for (kind, agent, name), tally in tallies.items():
        if tally.runs:
            found[agent][kind][name] = tally
    return [_agent_totals(agent, found[agent], durations.get(agent, ())) for agent in sorted(found)]


def _agent_totals(
    agent: str, found: Mapping[TallyKind, Mapping[str, TallyRow]], durations: Sequence[float]
) -> AgentTotals:
    counts: dict[TallyKind, dict[Any, int]] = {
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
    left_out = {"errored" if name == _WITHOUT_FAULT else name: n for name, n in counts.get("left_out", {}).items()}
    timed = sum(histograms["duration_ms"].values())
    bins = histograms["duration_ms"]
    p50, p95 = [
        quantile(durations, share) if durations else quantile_of_bins(bins, share, EDGES["duration_ms"])
        for share in (0.5, 0.95)
    ]
    return AgentTotals(
        agent=agent,
        runs=sum(counts["outcome"].values()),
        outcomes=counts["outcome"],
        left_out=dict(sorted(left_out.items(), key=lambda item: (-item[1], item[0]))),
        error_classes=counts.get("error_class", {}),
        calls=counts.get("calls", {}),
        cases=cases,
        most_trials=most_trials,
        trials=dict(trials),
        sums={name: Total(tally.counted, tally.total / _UNITS.get(name, 1)) for name, tally in found["sum"].items()},
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


def quantile_of_bins(bins: Mapping[int, int], share: float, edges: Sequence[float]) -> float | None:
    """The same of values of which only the bins are known; of durations at most half a bin wrong, which is 2.5%."""
    place = share * (sum(bins.values()) - 1)
    skipped = 0
    for index in sorted(bins):
        if skipped + bins[index] > place:
            low = edges[index - 1] if index else 0.0
            high = edges[index] if index < len(edges) else low
            return low + (high - low) * (place - skipped + 0.5) / bins[index]
        skipped += bins[index]
    return None


def cell_of(sums: Mapping[Any, Any]) -> Cell:
    """The cell with these columns of a row of `cells`. Of large sums PostgreSQL gives decimals."""
    values: dict[str, Any] = {name: value if isinstance(value, str) else int(value) for name, value in sums.items()}
    return Cell(**values)
