"""How sure we are of a pass rate, and what repeated trials say. Differences of two are in `paired`.

Everything here counts runs that passed or failed. Errored runs are in none of these numbers: what happened was not the
agent's doing, or could not be judged. Reports show how many they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb, sqrt
from typing import TypeAlias

import msgspec

Z_95 = 1.959963984540054

Tallies: TypeAlias = Mapping[tuple[int, int], int]
"""How many cases have so many graded trials of which so many passed: `{(graded, passed): cases}`."""


class Interval(msgspec.Struct, frozen=True):
    """Where the true value lies, with 95% confidence."""

    low: float
    high: float


class RepeatedTrials(msgspec.Struct, frozen=True):
    """What to expect of k trials of a case, estimated without bias from all its trials, averaged over cases."""

    k: int
    cases: int
    """Cases with at least k graded trials; only these count here."""
    pass_at_k: float
    """Chance that at least one of k trials passes."""
    pass_hat_k: float
    """Chance that all of k trials pass, written pass^k."""


def wilson(passed: float, total: float, z: float = Z_95) -> Interval:
    """The Wilson score interval of a pass rate; everything is possible when there is nothing to go by."""
    if total <= 0:
        return Interval(0.0, 1.0)
    rate = passed / total
    shrink = 1 + z * z / total
    centre = (rate + z * z / (2 * total)) / shrink
    reach = z * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total)) / shrink
    # The ends are exact where all or none passed; rounding must not move them past the rate.
    low = 0.0 if passed <= 0 else max(0.0, min(centre - reach, rate))
    high = 1.0 if passed >= total else min(1.0, max(centre + reach, rate))
    return Interval(low, high)


def normal_quantile(confidence: float) -> float:
    """How far from 0 a normal variable lies at most, with this probability."""
    from statistics import NormalDist  # only where it is needed: it takes longer to import than all of this

    return NormalDist().inv_cdf((1 + confidence) / 2)


def pass_rate_interval(tallies: Tallies, z: float = Z_95) -> Interval:
    """The Wilson interval of a pass rate, widened for trials of the same case being alike.

    Ten trials of a case tell less than a case each of ten. So the number of runs is replaced by the number of
    independent ones that would vary as much as the cases do: between the number of cases and the number of runs. With
    one trial each it is the plain interval.
    """
    cases = sum(tallies.values())
    runs = sum(graded * count for (graded, _), count in tallies.items())
    passed = sum(good * count for (_, good), count in tallies.items())
    if cases == runs:
        return wilson(passed, runs, z)
    rate = passed / runs
    spread = sum(count * (good - rate * graded) ** 2 for (graded, good), count in tallies.items())
    variance = spread / runs**2 * cases / (cases - 1) if cases > 1 else 0.0
    independent = min(max(rate * (1 - rate) / variance, cases), runs) if variance > 0 else cases
    return wilson(rate * independent, independent, z)


def pass_at_k(trials: int, passed: int, k: int) -> float:
    """Chance that at least one of k trials passes, drawn from these without putting back: 1 - C(n-c, k) / C(n, k)."""
    return (comb(trials, k) - comb(trials - passed, k)) / comb(trials, k)


def pass_hat_k(trials: int, passed: int, k: int) -> float:
    """Chance that all of k trials pass, drawn from these without putting back: C(c, k) / C(n, k)."""
    return comb(passed, k) / comb(trials, k)


def repeated_trials(tallies: Tallies) -> list[RepeatedTrials]:
    """pass@k and pass^k for k = 1, 2, 4, ... and for as many trials as there are."""
    most = max((graded for graded, _ in tallies), default=0)
    found = []
    for k in sorted({most, *(2**power for power in range(most.bit_length()))} if most else ()):
        enough = [(graded, good, count) for (graded, good), count in tallies.items() if graded >= k]
        cases = sum(count for *_, count in enough)
        found.append(
            RepeatedTrials(
                k,
                cases,
                sum(pass_at_k(graded, good, k) * count for graded, good, count in enough) / cases,
                sum(pass_hat_k(graded, good, k) * count for graded, good, count in enough) / cases,
            )
        )
    return found
