"""How small a drop a comparison can find, before anything runs.

The question: if some of the cases that pass today broke for good, how many would it take until `compare` calls the
later experiment worse in four of five experiments? That depends on the number of cases and trials, on the pass rate,
and on how much a case varies from trial to trial by chance alone. Nobody knows the last one before the run, so it is
asked of three kinds of agents: one that always ends a case alike, one whose outcomes are drawn anew each time, and one
half way (the correlation of two trials of a case is 1, 0, and 0.5).

With outcomes that only rise or fall by a whole (one trial, or cases that always end alike) the power is that of
McNemar's exact test, added up over all outcomes. Otherwise the sign-flip test is taken for its normal form, with the
variance of the statistic by the delta method. `tests/reports/test_power.py` holds both against simulation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import comb, erfc, exp, lgamma, log, log1p, sqrt
from typing import Literal, TypeAlias

import msgspec

from seatrial.reports import figures
from seatrial.reports.layout import prose, table
from seatrial.reports.statistics.intervals import normal_quantile
from seatrial.reports.statistics.paired import SIGNIFICANT, mcnemar
from seatrial.reports.tags import most_frequent

POWER = 0.8
"""The share of experiments in which the drop is to be found."""
MAX_EXACT = 60
"""Cases that are expected to change up to which whole outcomes are added up; with more, the normal form is as good."""
MAX_TRIALS = 50
"""More trials of a case than this are taken for so many: what they add is nothing."""
USUAL_TRIALS = (1, 3, 5, 10)
MAX_LISTED = 20
"""Tags that are listed."""

Kind: TypeAlias = Literal["steady", "mixed", "by chance"]
KINDS: dict[Kind, float] = {"steady": 1.0, "mixed": 0.5, "by chance": 0.0}
"""How much two trials of a case are alike."""

_Moves: TypeAlias = dict[int, float]
"""How likely the number of passed trials of a case changes by so many."""


class Detectable(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest drops that can be found, of so many cases."""

    cases: int
    trials: int
    tag: str | None = None
    drops: dict[Kind, float | None]
    """By how much an agent varies; None where not even a drop to 0% would be found."""


def detectable(cases: int, trials: int, rate: float, *, tag: str | None = None, tests: int = 1) -> Detectable:
    """The smallest drops from this pass rate that are found, where so many differences are tested at once."""
    drops = {kind: smallest_drop(cases, trials, rate, alike, tests) for kind, alike in KINDS.items()}
    return Detectable(cases=cases, trials=trials, tag=tag, drops=drops)


def smallest_drop(cases: int, trials: int, rate: float, alike: float, tests: int = 1) -> float | None:
    """To a tenth of a point; None when not even all of the rate is enough."""
    level = SIGNIFICANT / tests
    low, high = 0.0, rate
    if cases < 1 or power(cases, trials, rate, rate, alike, level) < POWER:
        return None
    while high - low > 0.0005:
        middle = (low + high) / 2
        if power(cases, trials, rate, middle, alike, level) < POWER:
            low = middle
        else:
            high = middle
    return high


def power(cases: int, trials: int, rate: float, drop: float, alike: float, level: float = SIGNIFICANT) -> float:
    """How likely such a drop is called worse."""
    trials = min(trials, MAX_TRIALS)
    moves = case_moves(trials, rate, drop, alike)
    whole = set(moves) <= {-trials, 0, trials}
    changes = 1 - moves.get(0, 0.0)
    if whole and cases * changes <= MAX_EXACT:
        return _exact(cases, moves.get(trials, 0.0), moves.get(-trials, 0.0), level)
    found = _normal(cases, 1 if whole else trials, {move / trials: chance for move, chance in moves.items()}, level)
    # Few cases may not be enough for any p-value below the level, which the normal form does not know.
    least = next(changed for changed in range(64) if mcnemar(0, changed) < level)
    return found * sum(_binomial(cases, changed, changes) for changed in _likely(cases, changes) if changed >= least)


def case_moves(trials: int, rate: float, drop: float, alike: float) -> _Moves:
    """How the passed trials of a case change from one experiment to the next, when a share of the cases breaks.

    What a case passes by is drawn from a beta distribution whose mean is the rate; a broken case passes never again.
    """
    broken = drop / rate
    moves: _Moves = {}
    for before in range(trials + 1):
        for after in range(trials + 1):
            chance = (1 - broken) * _both(trials, rate, alike, before, after)
            if after == 0:
                chance += broken * _one(trials, rate, alike, before)
            if chance:
                moves[after - before] = moves.get(after - before, 0.0) + chance
    return moves


def _both(trials: int, rate: float, alike: float, before: int, after: int) -> float:
    """The chance of so many passed trials in two experiments of the same case."""
    ways = comb(trials, before) * comb(trials, after)
    return ways * _share(2 * trials, before + after, rate, alike)


def _one(trials: int, rate: float, alike: float, passed: int) -> float:
    return comb(trials, passed) * _share(trials, passed, rate, alike)


def _share(trials: int, passed: int, rate: float, alike: float) -> float:
    """The chance that exactly these of the trials pass."""
    if alike >= 1:
        return rate if passed == trials else 1 - rate if passed == 0 else 0.0
    if alike <= 0:
        return float(rate**passed * (1 - rate) ** (trials - passed))
    if rate >= 1:
        return float(passed == trials)
    a, b = (share * (1 - alike) / alike for share in (rate, 1 - rate))
    return exp(_log_beta(a + passed, b + trials - passed) - _log_beta(a, b))


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _exact(cases: int, rises: float, falls: float, level: float) -> float:
    """McNemar's exact test, over all numbers of cases that change."""
    changes = rises + falls
    if not changes:
        return 0.0
    total = 0.0
    for changed in _likely(cases, changes):
        if (most := most_rises(changed, level)) >= 0:
            enough = sum(_binomial(changed, risen, rises / changes) for risen in range(most + 1))
            total += _binomial(cases, changed, changes) * enough
    return min(total, 1.0)


def _likely(total: int, chance: float) -> range:
    """The counts of so many that are not next to impossible."""
    mean, spread = total * chance, 8 * sqrt(total * chance * (1 - chance)) + 8
    return range(max(0, int(mean - spread)), min(total, int(mean + spread)) + 1)


@lru_cache(maxsize=4096)
def most_rises(changed: int, level: float) -> int:
    """Of so many cases that changed, how many may have become better for the others to be called worse; -1 for none."""
    most = -1
    while most + 1 < changed / 2 and mcnemar(most + 1, changed - most - 1) < level:
        most += 1
    return most


def _binomial(total: int, count: int, chance: float) -> float:
    if chance <= 0 or chance >= 1:
        return float(count == (total if chance >= 1 else 0))
    ways = lgamma(total + 1) - lgamma(count + 1) - lgamma(total - count + 1)
    return exp(ways + count * log(chance) + (total - count) * log1p(-chance))


def _normal(cases: int, trials: int, moves: dict[float, float], level: float) -> float:
    """The normal form of the sign-flip test: the sum of the differences over the root of that of their squares."""
    first, second, third, fourth = (
        sum(chance * move**degree for move, chance in moves.items()) for degree in (1, 2, 3, 4)
    )
    if second <= 0:
        return 0.0
    variance = (
        (second - first**2) / second
        - first / second**2 * (third - first * second)
        + first**2 / (4 * second**3) * (fourth - second**2)
    )
    # The sum moves in steps, and the test counts the step that was observed.
    shift = (-first * sqrt(cases) - 1 / (trials * sqrt(cases))) / sqrt(second) - normal_quantile(1 - level)
    if variance <= 1e-12:
        return float(shift > 0)
    return erfc(-shift / sqrt(2 * variance)) / 2


class PowerTable(msgspec.Struct, frozen=True, kw_only=True):
    """What a suite can find, for several numbers of trials, and tag by tag for its own."""

    rate: float
    """The pass rate that the drops are from."""
    rows: list[Detectable]
    omitted: int = 0
    """Tags of fewer cases, which are left out."""


def power_table(case_tags: Iterable[Sequence[str]], trials: int, rate: float) -> PowerTable:
    """What can be found with cases that have these tags."""
    every = list(case_tags)
    rows = [detectable(len(every), count, rate) for count in sorted({trials, *USUAL_TRIALS})]
    chosen, omitted = most_frequent(every)
    counts = Counter(tag for tags in every for tag in set(tags))
    tests = len(chosen)
    rows += [detectable(counts[tag], trials, rate, tag=tag, tests=tests) for tag in chosen[:MAX_LISTED]]
    return PowerTable(rate=rate, rows=rows, omitted=len(omitted) + len(chosen[MAX_LISTED:]))


def power_lines(found: PowerTable, width: int) -> list[str]:
    """The table for a terminal."""
    head = f"smallest drop of the pass rate, from {figures.percent(found.rate)}, that `seatrial compare` calls worse"
    lines = prose(f"{head} in {POWER:.0%} of experiments, in points", width)
    rows = [
        [
            "all cases" if row.tag is None else row.tag,
            f"{row.cases:,}",
            f"{row.trials:,}",
            *("–" if (drop := row.drops[kind]) is None else f"{drop * 100:.1f}" for kind in KINDS),
        ]
        for row in found.rows
    ]
    lines += table(["", "cases", "trials", *KINDS], rows, indent="  ", width=width)
    notes = [
        "steady: an agent that always ends a case alike; by chance: one whose every trial is drawn anew; mixed: half "
        "way. –: not even a drop to 0% would be found."
    ]
    tags = sum(row.tag is not None for row in found.rows)
    if tags:
        notes.append(f"Of a tag, corrected for looking at {figures.plural(tags + found.omitted, 'tag')}.")
    if found.omitted:
        notes.append(f"{figures.plural(found.omitted, 'more tag')} of fewer cases: even larger drops.")
    return [*lines, *(line for note in notes for line in prose(note, width, "  "))]
