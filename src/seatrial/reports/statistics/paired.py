"""The difference of two pass rates over the same cases: one test, the interval that belongs to it, and many at once.

The test is a sign-flip test. If nothing changed, the difference of a case was as likely to be the other way round, so
the observed mean difference is held against those of all ways to flip the signs. With one trial each this is McNemar's
exact test. The interval is the set of true differences that a score test does not reject; where it meets zero, the
sign-flip test decides. So a p-value below 0.05, an interval without zero, and a sentence that says better or worse
always come together. `docs/decisions/2026-11-18-intervals-that-invert-the-test.md` says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, erfc, inf, lcm, pi, sin, sqrt
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from seatrial.reports.statistics.intervals import Interval

SIGNIFICANT = 0.05
"""Below this p-value a difference is called one."""
MIN_CHANGED = 6
"""With fewer cases that changed, no p-value is below `SIGNIFICANT`, not even if all of them fell: 2/32 is not."""
MAX_GRID = 420
"""Differences are multiples of one part in so many. It divides by 1 to 7; where graded trials of cases vary more than
that, differences are rounded to it, equally in both directions, which keeps the test exact."""
MAX_EXACT_BITS = 4_000_000_000
"""How many bits the exact test may add up, about a tenth of a second; with more cases the normal curve is as good."""
MANY_DEGREES = 400
"""With so many degrees of freedom, Student's distribution is taken from the normal one."""
OFF_ZERO = 1e-9
"""How far from zero an end lies that only the exact test keeps off it: shown as 0.0."""

Test: TypeAlias = Literal["mcnemar", "sign_flip"]


class CaseCounts(NamedTuple):
    """The graded trials of a case on both sides, and how many passed."""

    passed_a: int
    graded_a: int
    passed_b: int
    graded_b: int


class PairedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """How much more often b passes than a, over cases that both have graded runs of."""

    paired: int
    """How many cases these are."""
    rate_a: float
    rate_b: float
    """Mean over the paired cases."""
    difference: float
    """`rate_b - rate_a`."""
    interval: Interval
    """Of the difference: 95%, or so that all of several hold at once. Without zero exactly when `p_value < 0.05`."""
    p_value: float
    """Two-sided. Of several differences that are looked at together: corrected by Holm's method."""
    better: int
    worse: int
    """Cases that b passes more often, or less often."""
    test: Test = "mcnemar"
    """What `p_value` is of: with one trial each the sign-flip test is McNemar's exact test."""

    @property
    def is_worse(self) -> bool:
        """Whether b is worse beyond doubt."""
        return self.p_value < SIGNIFICANT and self.difference < 0

    @property
    def is_better(self) -> bool:
        """Whether b is better beyond doubt."""
        return self.p_value < SIGNIFICANT and self.difference > 0


def paired_difference(pairs: Sequence[CaseCounts]) -> PairedDifference:
    """The difference over these cases, of which there is at least one, with its 95% interval."""
    [found] = paired_differences([pairs])
    return found


@lru_cache(maxsize=512)
def counted_difference(pairs: tuple[tuple[CaseCounts, int], ...]) -> PairedDifference:
    """The same over cases of which it is counted how many are alike. Remembered: with many cases the test takes a tenth
    of a second, and a page that shows it is looked at more than once."""
    return paired_difference([counts for counts, cases in pairs for _ in range(cases)])


def paired_differences(groups: Sequence[Sequence[CaseCounts]]) -> list[PairedDifference]:
    """The differences of several groups of cases, which may overlap, looked at together.

    The p-values are corrected, see `corrected`. The intervals hold together, too: each is of 1 - 0.05/groups
    (Bonferroni's), with the ends at zero where the corrected test says so.
    """
    steps = [_Steps.of(pairs) for pairs in groups]
    confidence = 1 - SIGNIFICANT / max(len(groups), 1)
    return [
        found.difference(pairs, p_value, confidence)
        for found, pairs, p_value in zip(steps, groups, corrected([found.cases for found in steps]), strict=True)
    ]


def corrected(groups: Sequence[dict[int, int]]) -> list[float]:
    """The p-values of several groups, of which it is said how often each number occurs, corrected by Holm's method: the
    chance that any group in which nothing changed is called better or worse is at most 5%.

    Groups in which too few cases changed to be called anything are not counted among those that are looked at. Which
    ones these are depends on the sizes of differences alone, and the test is about their signs, so that this favours no
    result.
    """
    p_values = [sign_flip(cases) for cases in groups]
    found = holm(p_values)
    tested = [
        index
        for index, cases in enumerate(groups)
        if sum(count for steps, count in cases.items() if steps) >= MIN_CHANGED
    ]
    for index, p_value in zip(tested, holm([p_values[index] for index in tested]), strict=True):
        found[index] = p_value
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: the smallest is multiplied by their number, the next by one less, and so on; none is smaller
    than one before it."""
    corrected = [1.0] * len(p_values)
    reached = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        reached = max(reached, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = reached
    return corrected


class _Steps(msgspec.Struct, frozen=True):
    """Differences of cases in whole steps of a grid."""

    grid: int
    """Steps from 0 to 1."""
    cases: dict[int, int]
    """How many cases have moved by so many steps."""

    @classmethod
    def of(cls, pairs: Sequence[CaseCounts]) -> _Steps:
        grid = 1
        for graded in {graded for pair in pairs for graded in (pair.graded_a, pair.graded_b)}:
            grid = min(lcm(grid, graded), MAX_GRID + 1)
        if grid > MAX_GRID:
            grid = MAX_GRID
        counted: Counter[int] = Counter()
        for a, of_a, b, of_b in pairs:
            risen = (b * of_a - a * of_b) * grid
            size = (2 * abs(risen) + of_a * of_b) // (2 * of_a * of_b)  # to the nearest, in both directions alike
            counted[size if risen > 0 else -size] += 1
        return cls(grid, dict(counted))

    def difference(self, pairs: Sequence[CaseCounts], p_value: float, confidence: float) -> PairedDifference:
        paired = len(pairs)
        rate_a = sum(pair.passed_a / pair.graded_a for pair in pairs) / paired
        rate_b = sum(pair.passed_b / pair.graded_b for pair in pairs) / paired
        moved = [pair.passed_b * pair.graded_a - pair.passed_a * pair.graded_b for pair in pairs]
        found = score_interval([(steps / self.grid, count) for steps, count in self.cases.items()], confidence)
        return PairedDifference(
            paired=paired,
            rate_a=rate_a,
            rate_b=rate_b,
            difference=rate_b - rate_a,
            interval=_decided(found, rate_b - rate_a, p_value),
            p_value=p_value,
            better=sum(change > 0 for change in moved),
            worse=sum(change < 0 for change in moved),
            test="mcnemar" if all(pair.graded_a == pair.graded_b == 1 for pair in pairs) else "sign_flip",
        )


def sign_flip(cases: dict[int, int]) -> float:
    """Two-sided p-value of the sum of whole numbers, if each were as likely to have the other sign.

    `cases` says how often each number occurs. Exact, except for very many cases.
    """
    sizes: Counter[int] = Counter()
    for steps, count in cases.items():
        if steps:
            sizes[abs(steps)] += count
    reach = sum(size * count for size, count in sizes.items())
    total = abs(sum(steps * count for steps, count in cases.items()))
    changed = sum(sizes.values())
    if not total:
        return 1.0
    if len(sizes) == 1:
        [size] = sizes
        return mcnemar((reach + total) // size // 2, (reach - total) // size // 2)
    # A number whose digit at each place says how many choices of positive signs add up to it. Digits cannot overflow.
    bits = changed + 2
    if reach * bits * changed > MAX_EXACT_BITS:
        squares = sum(size * size * count for size, count in sizes.items())
        return min(1.0, erfc((total - 1) / sqrt(2 * squares)))
    ways = 1
    for size, count in sizes.items():
        for _ in range(count):
            ways += ways << (size * bits)
    beyond = ways >> ((reach + total) // 2 * bits)
    # The sum of the digits, by casting out.
    return min(1.0, 2 * (beyond % ((1 << bits) - 1)) / (1 << changed))


def mcnemar(better: int, worse: int) -> float:
    """Two-sided p-value of McNemar's exact test: how likely a split at least this uneven is if nothing changed.

    Of the cases that changed, each would have become better or worse by the toss of a coin. Twice the binomial tail,
    at most 1: exact, and for few cases conservative, where the chi-squared approximation is neither.
    """
    changed = better + worse
    tail = term = 1
    for index in range(min(better, worse)):
        term = term * (changed - index) // (index + 1)
        tail += term
    return min(1.0, 2 * tail / (1 << changed))


def score_interval(differences: Sequence[tuple[float, int]], confidence: float = 0.95) -> Interval:
    """The true mean differences that a score test does not reject, from differences and how many cases have each.

    For every mean that is asked about, the variance is that of the likeliest distribution on the observed differences,
    -1 and 1 that has this mean. So it is not zero where nothing changed. With one trial each this is Tango's interval,
    with the quantile of Student's distribution in place of the normal one, which makes up for few cases.
    """
    size = sum(count for _, count in differences)
    if size < 2:
        return Interval(-1.0, 1.0)
    mean = sum(value * count for value, count in differences) / size
    bound = student_quantile(confidence, size - 1) ** 2

    def rejected(true: float) -> bool:
        return size * (mean - true) ** 2 > bound * _variance(differences, size, true)

    def end(limit: float) -> float:
        kept, lost = mean, limit
        for _ in range(40):
            middle = (kept + lost) / 2
            if middle in (-1.0, 1.0):  # no distribution but one has such a mean
                return middle
            if rejected(middle):
                lost = middle
            else:
                kept = middle
        return kept

    return Interval(end(-1.0), end(1.0))


def _variance(differences: Sequence[tuple[float, int]], size: int, mean: float) -> float:
    """Of the likeliest distribution with this mean, inside -1 and 1, on the observed differences, -1 and 1."""
    moved = [(value - mean, count) for value, count in differences]
    up, down = 1 - mean, -1 - mean
    # A difference gets the weight count / (size + tilt * moved). The tilt makes the mean right; where no tilt can, as
    # all differences are on one side, the rest of the weight is at the far end.
    least, most = -size / up, -size / down
    low, high = least, most
    for _ in range(50):
        tilt = (low + high) / 2
        if sum([count * value / (size + tilt * value) for value, count in moved]) > 0:
            low = tilt
        else:
            high = tilt
    tilt = (low + high) / 2
    weights = [(value, count / (size + tilt * value)) for value, count in moved]
    rest = 1 - sum(weight for _, weight in weights)
    far = up if tilt < 0 else down
    return sum(weight * value * value for value, weight in weights) + max(rest, 0.0) * far * far


def _decided(found: Interval, difference: float, p_value: float) -> Interval:
    """The interval with the end that is next to zero where the test wants it; the difference is always inside."""
    low, high = min(found.low, difference), max(found.high, difference)
    if p_value >= SIGNIFICANT:
        return Interval(min(low, 0.0), max(high, 0.0))
    if difference > 0:
        return Interval(max(low, min(OFF_ZERO, difference)), high)
    return Interval(low, min(high, max(-OFF_ZERO, difference)))


@lru_cache(maxsize=256)
def student_quantile(confidence: float, degrees: int) -> float:
    """How far from 0 Student's t lies at most, with this probability."""
    low, high = 0.0, 1.0
    while _within(high, degrees) < confidence:
        low, high = high, high * 2
        if high > 1e12:
            return inf
    for _ in range(80):
        middle = (low + high) / 2
        if _within(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(reach: float, degrees: int) -> float:
    """The chance that Student's t is in -reach to reach (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    if degrees > MANY_DEGREES:
        # A&S 26.7.8: as good as exact with so many.
        normal = reach * (1 - 1 / (4 * degrees)) / sqrt(1 + reach * reach / (2 * degrees))
        return 1 - erfc(normal / sqrt(2))
    angle = atan(reach / sqrt(degrees))
    even = degrees % 2 == 0
    total, term = 0.0, 1.0 if even else cos(angle)
    for index in range(0 if even else 1, degrees - 1, 2):
        total += term
        term *= cos(angle) ** 2 * (index + 1) / (index + 2)
    return sin(angle) * total if even else 2 / pi * (angle + sin(angle) * total)
