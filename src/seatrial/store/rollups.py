"""Rollups: what the runs of an experiment add up to, kept up to date by every transaction that changes a run.

Two tables. `cells` has a row for each case and agent. `tallies` has the rest, by agent: a row for every word that is
counted (an outcome, a class of fault, a bin of a histogram, a signature), and for every figure that is added up. Both
only ever have integers added to them or taken away, so it does not matter in which order runs come, and a run that is
graded again or replaced is taken out exactly as it went in. Fractions are added up as integers of a small unit.

Whatever is kept here can be computed from the rows of the runs: see `recount`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Literal, TypeAlias

import msgspec

from seatrial.runs import Judgement
from seatrial.store.rows import Outcome, RunColumns, RunSummary, calls_known
from seatrial.transcript import NoteCode, Weight
from seatrial.transcript.note import NOTE_CODES

SCORE_UNITS = 10**9
COST_UNITS = 10**9
DURATION_UNITS = 10**6
"""Parts of 1, of a dollar and of a millisecond that are counted."""

GRADER_ERRORED = "grader_errored"
"""Why a run errored that has an answer: a grader could not judge it."""

LIMIT = 2**53
"""What one run adds to a sum at most, in units: more is absurd, and would spoil the sum."""

BINS = 64
DURATION_RATIO = 1.05
"""Between two edges of durations: percentiles are read from them."""
Figure: TypeAlias = Literal["score", "duration_ms", "steps", "cost_usd"]
Kind: TypeAlias = Literal[
    "outcome", "left_out", "error_class", "calls", "sum", "bin", "trials", "note", "noted", "grader", "signature"
]
TallyKey: TypeAlias = tuple[Kind, str, str]
"""The kind of a tally, the agent, and what is counted: the word, the name of the figure, `duration_ms/17`."""
CellKey: TypeAlias = tuple[str, str]
"""The id of the case, and the agent."""

_UNKNOWN_CODE = NoteCode("", "serious")
_HEAVIER: dict[Weight, int] = {"harmless": 0, "look": 1, "serious": 2}


def _logarithmic(low: float, high: float, ratio: float | None = None) -> tuple[float, ...]:
    ratio = ratio or (high / low) ** (1 / (BINS - 2))
    # A few digits: the same on every machine, whatever its logarithm says about the last bit.
    return tuple(float(f"{low * ratio**index:.4g}") for index in range(round(log(high / low, ratio)) + 1))


EDGES: dict[Figure, tuple[float, ...]] = {
    # A score is between 0 and 1, and as likely near one as near the other.
    "score": tuple((index + 1) / BINS for index in range(BINS - 1)),
    "duration_ms": _logarithmic(1, 1e7, DURATION_RATIO),
    "steps": _logarithmic(1, 1e6),
    "cost_usd": _logarithmic(1e-6, 1e4),
}
"""Where the bins of a histogram meet: bin n has what is at least edge n - 1 and less than edge n. The first bin has
all that is less than the first edge, the last one all from the last edge on."""

_BIN_NAMES: dict[str, list[str]] = {
    figure: [f"{figure}/{index}" for index in range(len(edges) + 1)] for figure, edges in EDGES.items()
}


Countable: TypeAlias = RunColumns | RunSummary
"""A run with the figures that are counted."""


class Counted(msgspec.Struct, gc=False):
    """What of a run is counted."""

    experiment: int
    case_id: str
    agent: str
    columns: Countable
    graders: Sequence[tuple[str, Judgement, float | None]] = ()
    """What each grader said, in the grading that counts, and its score."""
    notes: Mapping[tuple[str, Weight], int] = {}
    """Notes by code and weight."""


class CellSums(msgspec.Struct, gc=False):
    """What one agent made of one case, as the columns of a row of `cells` have it."""

    runs: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    incomplete: int = 0
    """Runs with an answer whose calls are not all known."""
    scored: int = 0
    """Runs that passed or failed and have a score; like the next ones, the number of those that are in the sum."""
    score: int = 0
    stepped: int = 0
    steps: int = 0
    priced: int = 0
    cost: int = 0
    timed: int = 0
    duration: int = 0


class TallySums(msgspec.Struct, gc=False):
    """One row of `tallies`."""

    runs: int = 0
    """Runs that are counted here; for `trials`, cases."""
    counted: int = 0
    """How many numbers are in the total."""
    total: int = 0


class Changes:
    """What a transaction adds to the rollups of one experiment and takes away."""

    def __init__(self) -> None:
        self.cells: dict[CellKey, CellSums] = {}
        self.tallies: dict[TallyKey, TallySums] = {}

    def add(self, run: Counted, sign: Literal[1, -1] = 1) -> None:
        """Count a run; with -1, count it no more."""
        columns, agent = run.columns, run.agent
        outcome = columns.outcome
        graded = outcome == "passed" or outcome == "failed"
        known = calls_known(columns.status, columns.calls)
        # Where not all calls are known, that none was found says nothing.
        steps = columns.steps if columns.steps or known == "complete" else None
        # A run that errored may have scores of graders that could run; they would be half the truth.
        score = columns.score if graded else None
        cost, duration = columns.cost_usd, columns.duration_ms

        cell = self.cells.get((run.case_id, agent))
        if cell is None:
            cell = self.cells[run.case_id, agent] = CellSums()
        cell.runs += sign
        if outcome == "passed":
            cell.passed += sign
        elif outcome == "failed":
            cell.failed += sign
        elif outcome == "errored":
            cell.errored += sign
        if known != "complete" and known != "no answer":
            cell.incomplete += sign
        tally = self._tally
        tally("outcome", agent, outcome, sign)
        tally("calls", agent, known, sign)
        if not graded:
            tally("left_out", agent, left_out(outcome, columns.error_class), sign)
        if columns.error_class is not None:
            tally("error_class", agent, columns.error_class, sign)
        tally("sum", agent, "attempts", sign, sign, sign * columns.attempts)
        if score is not None:
            units = sign * _units(score, SCORE_UNITS)
            cell.scored += sign
            cell.score += units
            tally("sum", agent, "score", sign, sign, units)
            tally("bin", agent, _BIN_NAMES["score"][bisect_right(EDGES["score"], score)], sign)
        if steps is not None:
            cell.stepped += sign
            cell.steps += sign * steps
            tally("sum", agent, "steps", sign, sign, sign * steps)
            if graded:
                tally("bin", agent, _BIN_NAMES["steps"][bisect_right(EDGES["steps"], steps)], sign)
        if cost is not None:
            units = sign * _units(cost, COST_UNITS)
            cell.priced += sign
            cell.cost += units
            tally("sum", agent, "cost_usd", sign, sign, units)
            if graded:
                tally("bin", agent, _BIN_NAMES["cost_usd"][bisect_right(EDGES["cost_usd"], cost)], sign)
        if duration is not None:
            units = sign * _units(duration, DURATION_UNITS)
            cell.timed += sign
            cell.duration += units
            tally("sum", agent, "duration_ms", sign, sign, units)
            if is_timed(columns):
                tally("bin", agent, _BIN_NAMES["duration_ms"][bisect_right(EDGES["duration_ms"], duration)], sign)
        if columns.input_tokens is not None:
            tally("sum", agent, "input_tokens", sign, sign, sign * min(columns.input_tokens, LIMIT))
        if columns.output_tokens is not None:
            tally("sum", agent, "output_tokens", sign, sign, sign * min(columns.output_tokens, LIMIT))
        if columns.signature is not None:
            tally("signature", agent, columns.signature, sign)
        for grader, judgement, given in run.graders:
            if given is None:
                tally("grader", agent, f"{judgement}|{grader}", sign)
            else:
                tally("grader", agent, f"{judgement}|{grader}", sign, sign, sign * _units(given, SCORE_UNITS))
        if run.notes:
            heaviest: Weight = "harmless"
            for (code, weight), count in run.notes.items():
                tally("note", agent, f"{weight}|{code}", sign, sign * count, sign * count)
                if _HEAVIER[weight] > _HEAVIER[heaviest]:
                    heaviest = weight
            tally("noted", agent, heaviest, sign)

    def move(self, agent: str, runs: int, passed: int, failed: int, cases: Literal[1, -1] = 1) -> None:
        """Count a case that has so many runs of this agent; with -1, one that had so many."""
        if runs > 0:
            self._tally("trials", agent, f"{runs}/{passed + failed}/{passed}", cases)

    def close(self) -> None:
        """All runs of the experiment have been added: its cases are what the cells are now."""
        for (_, agent), cell in self.cells.items():
            self.move(agent, cell.runs, cell.passed, cell.failed)

    def _tally(self, kind: Kind, agent: str, name: str, runs: int, counted: int = 0, total: int = 0) -> None:
        key = (kind, agent, name)
        found = self.tallies.get(key)
        if found is None:
            self.tallies[key] = TallySums(runs, counted, total)
        else:
            found.runs += runs
            found.counted += counted
            found.total += total


def _units(value: float, parts: int) -> int:
    units = round(value * parts)
    return units if -LIMIT < units < LIMIT else LIMIT if units > 0 else -LIMIT


def is_timed(run: Countable) -> bool:
    """Whether how long a run took says how fast the agent is: not until a timeout or a crash."""
    return run.duration_ms is not None and run.error_class is None and run.outcome in ("passed", "failed")


def left_out(outcome: Outcome, error_class: str | None) -> str:
    """Why a run is in no rate: the class of its fault, `grader_errored`, or its outcome."""
    return (error_class or GRADER_ERRORED) if outcome == "errored" else outcome


def weight_of(code: str, weight: Weight | None) -> Weight:
    """The weight of a note as it is stored; a code that nobody knows may mean that something was dropped."""
    return weight or NOTE_CODES.get(code, _UNKNOWN_CODE).weight


def note_counts(notes: Iterable[tuple[str, Weight | None]]) -> dict[tuple[str, Weight], int]:
    """Notes by code and weight."""
    counts: dict[tuple[str, Weight], int] = {}
    for code, weight in notes:
        key = code, weight_of(code, weight)
        counts[key] = counts.get(key, 0) + 1
    return counts
