from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb, isclose, sqrt
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seatrial.reports.statistics import paired
from seatrial.reports.statistics.paired import (
    MAX_GRID,
    MIN_CHANGED,
    SIGNIFICANT,
    CaseCounts,
    corrected,
    holm,
    mcnemar,
    paired_difference,
    paired_differences,
    score_interval,
    sign_flip,
    student_quantile,
)

WORSE, BETTER, SAME = CaseCounts(1, 1, 0, 1), CaseCounts(0, 1, 1, 1), CaseCounts(1, 1, 1, 1)
graded = st.integers(1, 11).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
pairs = st.tuples(graded, graded).map(lambda both: CaseCounts(*both[0], *both[1]))
single = st.sampled_from([WORSE, BETTER, SAME])


@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_is_the_share_of_coin_tosses_at_least_as_uneven(better: int, worse: int) -> None:
    changed = better + worse
    uneven = abs(better - worse)
    brute = sum(comb(changed, heads) for heads in range(changed + 1) if abs(2 * heads - changed) >= uneven) / 2**changed
    assert isclose(mcnemar(better, worse), min(1.0, brute))
    assert mcnemar(better, worse) == mcnemar(worse, better)


def test_mcnemar_of_no_change_is_one_and_of_thousands_is_quick_and_tiny() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(4000, 6000) < 1e-80
    assert mcnemar(5000, 5000) == 1


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9))
def test_the_sign_flip_test_is_the_share_of_signs_with_a_sum_at_least_as_far_from_zero(steps: list[int]) -> None:
    total = abs(sum(steps))
    sums = [sum(sign * step for sign, step in zip(signs, steps, strict=True)) for signs in _signs(len(steps))]
    assert isclose(sign_flip(dict(Counter(steps))), sum(abs(some) >= total for some in sums) / len(sums))


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(product((1, -1), repeat=count))


def test_with_one_trial_each_the_sign_flip_test_is_mcnemars() -> None:
    found = paired_difference([WORSE] * 7 + [BETTER] * 2 + [SAME] * 11)
    assert found.p_value == mcnemar(2, 7)
    assert found.test == "mcnemar"
    assert paired_difference([CaseCounts(2, 3, 1, 3), SAME]).test == "sign_flip"


def test_with_very_many_cases_the_sign_flip_test_is_taken_from_the_normal_curve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = Random(1)
    moved = [draw.randint(-7, 7) for _ in range(600)]
    exact = sign_flip(dict(Counter(moved)))
    monkeypatch.setattr(paired, "MAX_EXACT_BITS", 0)
    approximate = sign_flip(dict(Counter(moved)))
    assert approximate != exact
    assert approximate == pytest.approx(exact, abs=0.003)


@settings(deadline=None)
@given(st.lists(single, min_size=1, max_size=40) | st.lists(pairs, min_size=1, max_size=15))
@example([BETTER] * 6)
@example([WORSE] * 5)
@example([SAME] * 30)
@example([CaseCounts(0, 11, 1, 11)] * 8)
@example([CaseCounts(2, 9, 2, 9)])
def test_sentence_interval_and_p_value_always_agree(given_: list[CaseCounts]) -> None:
    found = paired_difference(given_)
    excludes_zero = found.interval.low > 0 or found.interval.high < 0
    assert excludes_zero == (found.p_value < SIGNIFICANT) == (found.is_better or found.is_worse)
    assert -1 <= found.interval.low <= found.difference <= found.interval.high <= 1


@settings(deadline=None, max_examples=50)
@given(st.lists(single, min_size=1, max_size=40) | st.lists(pairs, min_size=1, max_size=15))
def test_the_other_way_round_everything_is_mirrored(given_: list[CaseCounts]) -> None:
    one = paired_difference(given_)
    other = paired_difference([CaseCounts(b, of_b, a, of_a) for a, of_a, b, of_b in given_])
    assert other.difference == pytest.approx(-one.difference, abs=1e-12)
    assert other.p_value == one.p_value
    assert (other.better, other.worse) == (one.worse, one.better)
    assert other.interval.low == pytest.approx(-one.interval.high, abs=1e-6)


@pytest.mark.parametrize(
    ("better", "worse", "size", "low", "high"),
    [
        # By hand: n d^2 = t^2 d (1 - d), so that d = t^2 / (n + t^2), with t of n - 1 degrees of freedom.
        (0, 0, 30, -0.12237, 0.12237),
        (0, 0, 5, -0.60657, 0.60657),
        # Of a demo in which a bootstrap gave +14.3 to +71.4 beside p = 0.25.
        (3, 0, 7, -0.23002, 0.79912),
        (20, 5, 100, 0.05494, 0.25012),
    ],
)
def test_the_interval_of_some_outcomes(better: int, worse: int, size: int, low: float, high: float) -> None:
    found = paired_difference([BETTER] * better + [WORSE] * worse + [SAME] * (size - better - worse)).interval
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-5)


def test_with_many_cases_the_interval_is_tangos() -> None:
    """At both ends, the score with the closed form of the restricted estimate is the quantile."""
    size, better, worse = 9900, 500, 300
    found = score_interval([(1.0, better), (-1.0, worse), (0.0, size - better - worse)])
    for end in (found.low, found.high):
        # The restricted estimate of the share that became worse, as Tango gives it.
        a = 2 * size
        b = -better - worse + (2 * size - better + worse) * end
        c = -worse * end * (1 - end)
        share = (sqrt(b * b - 4 * a * c) - b) / (2 * a)
        score = (better - worse - size * end) / sqrt(size * (2 * share + end * (1 - end)))
        assert abs(score) == pytest.approx(student_quantile(0.95, size - 1), abs=1e-4)


def test_one_case_says_nothing_of_the_difference() -> None:
    assert paired_difference([BETTER]).interval.low == -1
    assert paired_difference([BETTER]).interval.high == 1


def test_trials_narrow_the_interval_and_cases_that_differ_widen_it() -> None:
    def width(given_: list[CaseCounts]) -> float:
        found = paired_difference(given_).interval
        return found.high - found.low

    steady = width([CaseCounts(5, 10, 5, 10)] * 20 + [CaseCounts(5, 10, 6, 10)] * 5)
    assert steady < width([CaseCounts(5, 10, 0, 10)] * 12 + [CaseCounts(5, 10, 10, 10)] * 13)
    assert steady == pytest.approx(width([SAME] * 20 + [CaseCounts(1, 2, 1, 2)] * 5), abs=0.1)


def test_uneven_numbers_of_trials_are_rounded_alike_in_both_directions() -> None:
    mirrored = [CaseCounts(3, 11, 5, 7), CaseCounts(5, 7, 3, 11), CaseCounts(4, 9, 7, 13), CaseCounts(7, 13, 4, 9)]
    assert MAX_GRID < 11 * 7 * 9 * 13
    assert paired_difference(mirrored).p_value == 1


def test_holm_multiplies_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_of_several_groups_that_are_looked_at_each_needs_more_evidence() -> None:
    changed = [WORSE] * 7 + [SAME] * 20
    assert paired_difference(changed).is_worse
    [first, *others] = paired_differences([changed, *[[WORSE] * 3 + [BETTER] * 3 + [SAME] * 20] * 9])
    assert first.p_value == pytest.approx(10 * mcnemar(0, 7))
    assert not first.is_worse
    assert first.interval.low < 0 <= first.interval.high
    assert all(found.p_value == 1 for found in others)


def test_groups_in_which_too_few_cases_changed_to_be_called_anything_make_no_other_group_need_more_evidence() -> None:
    changed = [WORSE] * 7 + [SAME] * 20
    few = [WORSE] * (MIN_CHANGED - 1) + [SAME] * 20
    [first, *others] = paired_differences([changed, *[few] * 9])
    assert first.p_value == mcnemar(0, 7)
    assert first.is_worse
    assert all(found.p_value >= mcnemar(0, MIN_CHANGED - 1) > SIGNIFICANT for found in others)
    assert mcnemar(0, MIN_CHANGED) < SIGNIFICANT


@pytest.mark.parametrize(
    "groups",
    [
        [range(12)],
        [range(6), range(6, 12)],
        [range(8), range(4, 12), range(3)],
        [range(7), range(5, 12), range(2, 9), range(5), range(12)],
    ],
)
def test_where_nothing_changed_the_chance_that_any_group_is_called_one_is_at_most_five_percent(
    groups: list[range],
) -> None:
    """Exactly: over all ways in which twelve differences of several sizes can have their signs."""
    sizes = [1, 1, 2, 1, 3, 1, 1, 2, 1, 1, 3, 1]
    called = 0
    for signs in product((1, -1), repeat=12):
        moved = [sign * size for sign, size in zip(signs, sizes, strict=True)]
        found = corrected([dict(Counter(moved[index] for index in group)) for group in groups])
        called += min(found) < SIGNIFICANT
    assert called / 2**12 <= SIGNIFICANT


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(single, min_size=1, max_size=30), min_size=1, max_size=6))
def test_intervals_and_corrected_p_values_of_several_groups_agree(groups: list[list[CaseCounts]]) -> None:
    for found, alone in zip(paired_differences(groups), map(paired_difference, groups), strict=True):
        assert (found.interval.low > 0 or found.interval.high < 0) == (found.p_value < SIGNIFICANT)
        assert found.p_value >= alone.p_value
        assert found.interval.high - found.interval.low >= alone.interval.high - alone.interval.low - 1e-6


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.7062), (2, 4.3027), (9, 2.2622), (30, 2.0423), (400, 1.9659), (10_000, 1.9602)]
)
def test_students_quantiles_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert student_quantile(0.95, degrees) == pytest.approx(quantile, abs=1e-4)


@pytest.mark.parametrize("changed", [0.1, 0.3, 0.9])
def test_the_interval_holds_the_true_difference_as_often_as_it_says_with_ten_cases(changed: float) -> None:
    """Exactly: every outcome of ten cases, with its probability. `bench/interval_coverage.py` does more of this."""
    size, up, down = 10, changed * 0.75, changed * 0.25
    covered = 0.0
    for better in range(size + 1):
        for worse in range(size + 1 - better):
            same = size - better - worse
            ways = comb(size, better) * comb(size - better, worse)
            found = paired_difference([BETTER] * better + [WORSE] * worse + [SAME] * same).interval
            if found.low <= up - down <= found.high:
                covered += ways * up**better * down**worse * (1 - changed) ** same
    assert covered >= 0.95
