"""`python -m bench.interval_coverage`: how often the interval of a comparison contains the true difference.

Prints the table of docs/comparing.md, in about two minutes. With one trial each, coverage is computed exactly: every
outcome is weighed with its probability. With three trials it is simulated, with cases of their own difficulty and a
fixed seed. The percentile bootstrap, which `compare` used before, stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import comb
from random import Random
from statistics import mean

import msgspec

from seatrial.reports.statistics.intervals import Interval
from seatrial.reports.statistics.paired import CaseCounts, paired_difference

SIZES = (5, 10, 30, 100)
CHANGED = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
"""The share of cases that change."""
BETTER = (0.5, 0.6, 0.75, 0.9, 1.0)
"""The share of these that become better."""
SHIFTS = ((0.0, 0.0), (0.0, 0.3), (0.1, 0.1), (0.2, 0.3), (0.4, 0.2))
"""By how much cases become better on average, and how much that varies between cases."""
EXPERIMENTS = 1000
RESAMPLES = 400
SEED = 20_200_229


class Coverage(msgspec.Struct, frozen=True):
    """How often an interval contains the true difference, and how wide it is, in several settings."""

    shares: list[float]
    widths: list[float]


def exact(size: int) -> tuple[Coverage, Coverage]:
    """One trial each: of our interval, and of the bootstrap."""
    ours, theirs = Coverage([], []), Coverage([], [])
    for changed in CHANGED:
        for better in BETTER:
            up, down = changed * better, changed * (1 - better)
            outcomes = [
                (chance, risen, fallen)
                for risen in range(size + 1)
                for fallen in range(size + 1 - risen)
                if (chance := _chance(size, risen, fallen, up, down)) > 1e-6
            ]
            for coverage, interval in ((ours, _ours), (theirs, _bootstrap)):
                held = [(chance, interval(size, risen, fallen)) for chance, risen, fallen in outcomes]
                coverage.shares.append(sum(chance for chance, found in held if _holds(found, up - down)))
                coverage.widths.append(sum(chance * (found.high - found.low) for chance, found in held))
    return ours, theirs


def simulated(size: int, trials: int) -> tuple[Coverage, Coverage]:
    """Several trials of cases, some of which are harder than others."""
    ours, theirs = Coverage([], []), Coverage([], [])
    draw = Random(SEED)
    for shift, spread in SHIFTS:
        true = _true_difference(draw, shift, spread)
        held: list[tuple[Interval, Interval]] = []
        for _ in range(EXPERIMENTS):
            pairs = []
            for _ in range(size):
                rate_a, rate_b = _rates(draw, shift, spread)
                passed = [sum(draw.random() < rate for _ in range(trials)) for rate in (rate_a, rate_b)]
                pairs.append(CaseCounts(passed[0], trials, passed[1], trials))
            differences = [(pair.passed_b - pair.passed_a) / trials for pair in pairs]
            means = sorted(sum(draw.choices(differences, k=size)) / size for _ in range(RESAMPLES))
            resampled = Interval(means[round(0.025 * (RESAMPLES - 1))], means[round(0.975 * (RESAMPLES - 1))])
            held.append((paired_difference(pairs).interval, resampled))
        for index, coverage in enumerate((ours, theirs)):
            coverage.shares.append(mean(_holds(found[index], true) for found in held))
            coverage.widths.append(mean(found[index].high - found[index].low for found in held))
    return ours, theirs


def _rates(draw: Random, shift: float, spread: float) -> tuple[float, float]:
    rate = draw.betavariate(1.5, 1.0)
    return rate, min(1.0, max(0.0, rate + draw.gauss(shift, spread)))


def _true_difference(draw: Random, shift: float, spread: float) -> float:
    return mean(b - a for a, b in (_rates(draw, shift, spread) for _ in range(200_000)))


def _holds(interval: Interval, true: float) -> bool:
    return interval.low - 1e-9 <= true <= interval.high + 1e-9


def _chance(size: int, risen: int, fallen: int, up: float, down: float) -> float:
    ways = comb(size, risen) * comb(size - risen, fallen)
    return ways * up**risen * down**fallen * max(0.0, 1 - up - down) ** (size - risen - fallen)


@cache
def _ours(size: int, risen: int, fallen: int) -> Interval:
    same = size - risen - fallen
    pairs = [*[CaseCounts(0, 1, 1, 1)] * risen, *[CaseCounts(1, 1, 0, 1)] * fallen, *[CaseCounts(1, 1, 1, 1)] * same]
    return paired_difference(pairs).interval


@cache
def _bootstrap(size: int, risen: int, fallen: int) -> Interval:
    """With as many resamples as there can be: the distribution of their sum, computed."""
    down, same, up = (count / size for count in (fallen, size - risen - fallen, risen))
    sums = [1.0]
    for _ in range(size):
        padded = [0.0, 0.0, *sums, 0.0, 0.0]
        sums = [
            up * padded[index] + same * padded[index + 1] + down * padded[index + 2] for index in range(len(sums) + 2)
        ]
    reached, low, high = 0.0, None, size
    for index, chance in enumerate(sums):
        reached += chance
        if low is None and reached > 0.025:
            low = index - size
        if reached >= 0.975:
            high = index - size
            break
    return Interval((low or 0) / size, high / size)


def table() -> Iterator[str]:
    """The lines of the table."""
    yield "| cases | trials | lowest | mean | width | bootstrap: lowest | mean | width |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for trials in (1, 3):
        for size in SIZES:
            cells = []
            for found in exact(size) if trials == 1 else simulated(size, trials):
                cells += [f"{min(found.shares):.1%}", f"{mean(found.shares):.1%}", f"{100 * mean(found.widths):.0f}"]
            yield f"| {size} | {trials} | {' | '.join(cells)} |"


if __name__ == "__main__":
    for line in table():
        print(line, flush=True)
