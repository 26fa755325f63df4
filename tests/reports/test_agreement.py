from __future__ import annotations

from collections import Counter
from math import factorial, prod, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.reports.agreement import Agreement, Confusion, agreement, agreement_of, cohen_kappa
from seatrial.reports.statistics.intervals import Interval

few = st.integers(0, 60)
tables = st.builds(Confusion, both_passed=few, only_first_passed=few, only_second_passed=few, both_failed=few)


def counts(confusion: Confusion) -> tuple[int, int, int, int]:
    return (
        confusion.both_passed,
        confusion.only_first_passed,
        confusion.only_second_passed,
        confusion.both_failed,
    )


def table(both: int, first: int, second: int, neither: int) -> Confusion:
    return Confusion(both_passed=both, only_first_passed=first, only_second_passed=second, both_failed=neither)


def interval_of(found: Agreement) -> Interval:
    assert found.kappa_interval is not None
    return found.kappa_interval


@pytest.mark.parametrize(
    ("cells", "kappa"),
    # The worked examples of the usual textbooks: equal agreement, unequal margins.
    [((20, 5, 10, 15), 0.4), ((45, 15, 25, 15), 0.1304), ((25, 35, 5, 35), 0.2593), ((10, 0, 0, 10), 1.0)],
)
def test_kappa_has_the_published_values(cells: tuple[int, int, int, int], kappa: float) -> None:
    assert cohen_kappa(table(*cells)) == pytest.approx(kappa, abs=5e-5)


def test_raters_who_say_the_opposite_have_kappa_minus_one() -> None:
    assert cohen_kappa(table(0, 10, 10, 0)) == -1.0


@pytest.mark.parametrize("cells", [(0, 0, 0, 0), (12, 0, 0, 0), (0, 0, 0, 12)])
def test_kappa_is_unknown_where_both_said_one_and_the_same_of_all(cells: tuple[int, int, int, int]) -> None:
    found = agreement_of(table(*cells))
    assert found.kappa is None
    assert found.kappa_interval is None


def test_agreement_of_nothing_is_unknown() -> None:
    found = agreement([])
    assert found.agreed is None
    assert found.agreed_interval == Interval(0.0, 1.0)


def test_one_who_always_passes_agrees_with_nobody_beyond_chance() -> None:
    found = agreement_of(table(90, 10, 0, 0))
    assert found.agreed == 0.9
    assert found.kappa == pytest.approx(0.0)


def test_pairs_are_counted_by_who_said_what() -> None:
    found = agreement([(True, True), (True, False), (True, False), (False, True), (False, False)])
    assert counts(found.confusion) == (1, 2, 1, 1)
    assert found.pairs == 5
    assert found.agreed == 0.4


@given(tables)
def test_the_interval_encloses_kappa_within_minus_one_and_one(confusion: Confusion) -> None:
    found = agreement_of(confusion)
    if found.kappa is None:
        return
    interval = interval_of(found)
    assert -1 <= interval.low <= found.kappa <= interval.high <= 1
    assert interval.low < interval.high


@given(tables)
def test_it_does_not_matter_who_is_first_or_what_is_called_passed(confusion: Confusion) -> None:
    both, first, second, neither = counts(confusion)
    found = agreement_of(confusion)
    for other in (table(both, second, first, neither), table(neither, second, first, both)):
        swapped = agreement_of(other)
        assert swapped.kappa == (None if found.kappa is None else pytest.approx(found.kappa))
        if found.kappa is not None:
            assert interval_of(swapped).low == pytest.approx(interval_of(found).low)
            assert interval_of(swapped).high == pytest.approx(interval_of(found).high)


def delta_method(cells: tuple[int, int, int, int]) -> tuple[float, float]:
    """Kappa of these counts with a half added to each, and its standard error, from differences of kappa alone."""
    total = sum(cells) + 2.0
    shares = [(cell + 0.5) / total for cell in cells]

    def kappa(of: list[float]) -> float:
        both, first, second, neither = of
        size = sum(of)
        chance = ((both + first) * (both + second) + (neither + second) * (neither + first)) / size**2
        return ((both + neither) / size - chance) / (1 - chance)

    step = 1e-6
    slopes = []
    for cell in range(4):
        up, down = shares.copy(), shares.copy()
        up[cell] += step
        down[cell] -= step
        slopes.append((kappa(up) - kappa(down)) / (2 * step))
    mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
    square = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True))
    return kappa(shares), sqrt((square - mean**2) / total)


@pytest.mark.parametrize("cells", [(20, 5, 10, 15), (80, 4, 9, 7), (3, 1, 0, 6), (0, 7, 2, 30)])
def test_the_interval_is_that_of_the_delta_method_with_a_half_added(cells: tuple[int, int, int, int]) -> None:
    kappa, error = delta_method(cells)
    interval = interval_of(agreement_of(table(*cells)))
    assert interval.low == pytest.approx(max(kappa - 1.96 * error, -1), abs=1e-4)
    assert interval.high == pytest.approx(min(kappa + 1.96 * error, 1), abs=1e-4)


@pytest.mark.parametrize(
    "shares", [(0.45, 0.05, 0.05, 0.45), (0.65, 0.05, 0.05, 0.25), (0.8, 0.05, 0.05, 0.1), (0.25, 0.25, 0.25, 0.25)]
)
def test_the_interval_encloses_the_true_kappa_in_about_95_of_100_samples_of_20(shares: tuple[float, ...]) -> None:
    size = 20
    both, first, second, neither = shares
    chance = (both + first) * (both + second) + (neither + second) * (neither + first)
    true = (both + neither - chance) / (1 - chance)
    enclosed = total = 0.0
    # Every sample there can be, with its exact probability.
    for a in range(size + 1):
        for b in range(size + 1 - a):
            for c in range(size + 1 - a - b):
                cells = (a, b, c, size - a - b - c)
                found = agreement_of(table(*cells))
                if found.kappa_interval is None:
                    continue
                ways = factorial(size) / prod(factorial(cell) for cell in cells)
                chances = ways * prod(share**cell for share, cell in zip(shares, cells, strict=True))
                total += chances
                enclosed += chances * (found.kappa_interval.low <= true <= found.kappa_interval.high)
    assert 0.92 < enclosed / total < 0.995


def test_whoever_fails_more_is_stricter_when_chance_does_not_explain_it() -> None:
    judge_strict = agreement_of(table(30, 1, 9, 10))
    assert judge_strict.stricter == "first"
    assert judge_strict.stricter_p_value == pytest.approx(22 / 1024)
    assert agreement_of(table(30, 9, 1, 10)).stricter == "second"
    assert agreement_of(table(30, 1, 5, 10)).stricter is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30))
def test_agreement_is_the_share_of_pairs_that_are_equal(pairs: list[tuple[bool, bool]]) -> None:
    found = agreement(pairs)
    tally = Counter(first == second for first, second in pairs)
    assert found.agreed == (tally[True] / len(pairs) if pairs else None)
