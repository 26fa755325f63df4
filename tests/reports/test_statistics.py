from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from math import comb, isclose
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.reports.statistics import (
    Interval,
    mcnemar,
    paired_bootstrap,
    pass_at_k,
    pass_hat_k,
    pass_rate_interval,
    repeated_trials,
    wilson,
)

counts = st.integers(1, 500).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
trials = st.lists(st.booleans(), min_size=1, max_size=7)


@given(counts)
def test_wilson_encloses_the_rate_within_zero_and_one(count: tuple[int, int]) -> None:
    passed, total = count
    interval = wilson(passed, total)
    assert 0 <= interval.low <= passed / total <= interval.high <= 1


@given(counts)
def test_wilson_is_symmetric_in_passed_and_failed(count: tuple[int, int]) -> None:
    passed, total = count
    one, other = wilson(passed, total), wilson(total - passed, total)
    assert isclose(one.low, 1 - other.high, abs_tol=1e-12)
    assert isclose(one.high, 1 - other.low, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    # Worked by hand from the closed form with z = 1.96.
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (50, 100, 0.4038, 0.5962)],
)
def test_wilson_gives_the_published_values(passed: int, total: int, low: float, high: float) -> None:
    interval = wilson(passed, total)
    assert interval.low == pytest.approx(low, abs=5e-5)
    assert interval.high == pytest.approx(high, abs=5e-5)


def test_wilson_of_nothing_is_everything() -> None:
    assert wilson(0, 0) == Interval(0.0, 1.0)


@given(counts)
def test_one_trial_each_gives_the_plain_interval(count: tuple[int, int]) -> None:
    passed, total = count
    tallies = {(1, 1): passed, (1, 0): total - passed}
    assert pass_rate_interval(tallies) == wilson(passed, total)


def test_trials_that_always_agree_tell_no_more_than_one() -> None:
    interval = pass_rate_interval({(10, 10): 40, (10, 0): 10})
    plain = wilson(40, 50)
    assert interval.low == pytest.approx(plain.low)
    assert interval.high == pytest.approx(plain.high)


def test_trials_that_differ_within_cases_tell_as_much_as_cases() -> None:
    interval = pass_rate_interval({(10, 5): 100})
    assert interval == wilson(50, 100)
    # As even as independent runs would be: all of them count.
    mixed = pass_rate_interval({(2, 0): 25, (2, 1): 50, (2, 2): 25})
    assert mixed.low == pytest.approx(wilson(100, 200).low, abs=1e-3)


@given(st.dictionaries(st.tuples(st.integers(1, 5), st.integers(0, 5)), st.integers(1, 30), min_size=1))
def test_the_interval_by_cases_is_never_narrower_than_that_by_runs(given_: dict[tuple[int, int], int]) -> None:
    tallies = {(graded, min(graded, good)): count for (graded, good), count in given_.items()}
    runs = sum(graded * count for (graded, _), count in tallies.items())
    passed = sum(good * count for (_, good), count in tallies.items())
    by_cases, by_runs = pass_rate_interval(tallies), wilson(passed, runs)
    assert by_cases.low <= by_runs.low + 1e-12
    assert by_cases.high >= by_runs.high - 1e-12


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


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=30))
def test_the_bootstrap_is_repeatable_and_stays_within_what_was_seen(differences: list[float]) -> None:
    interval = paired_bootstrap(differences, resamples=200)
    assert interval == paired_bootstrap(differences, resamples=200)
    assert min(differences) <= interval.low <= interval.high <= max(differences)


def test_the_bootstrap_agrees_with_all_resamples_there_are() -> None:
    differences = [-1.0, 0.0, 0.0, 1.0, 1.0]
    means = sorted(fmean(drawn) for drawn in product(differences, repeat=5))
    interval = paired_bootstrap(differences, resamples=4000)
    assert interval.low == pytest.approx(means[round(0.025 * (len(means) - 1))], abs=0.201)
    assert interval.high == pytest.approx(means[round(0.975 * (len(means) - 1))], abs=0.201)


def test_the_bootstrap_finds_a_clear_drop_and_not_a_doubtful_one() -> None:
    assert paired_bootstrap([-1.0] * 30 + [0.0] * 70).high < 0
    doubtful = paired_bootstrap([-1.0] * 6 + [1.0] * 5 + [0.0] * 89)
    assert doubtful.low < 0 < doubtful.high


def test_the_bootstrap_of_nothing_says_nothing() -> None:
    assert paired_bootstrap([]) == Interval(-1.0, 1.0)


@given(trials, st.integers(1, 7))
def test_pass_at_k_and_pass_hat_k_are_averages_over_all_choices_of_k_trials(results: list[bool], k: int) -> None:
    k = min(k, len(results))
    choices = list(combinations(results, k))
    assert isclose(pass_at_k(len(results), sum(results), k), fmean(any(choice) for choice in choices), abs_tol=1e-12)
    assert isclose(pass_hat_k(len(results), sum(results), k), fmean(all(choice) for choice in choices), abs_tol=1e-12)


@given(st.lists(trials, min_size=1, max_size=10))
def test_repeated_trials_average_over_the_cases_that_have_enough(cases: list[list[bool]]) -> None:
    tallies = Counter((len(results), sum(results)) for results in cases)
    found = repeated_trials(tallies)
    assert found[0].k == 1
    assert found[-1].k == max(map(len, cases))
    for line in found:
        enough = [results for results in cases if len(results) >= line.k]
        assert line.cases == len(enough)
        assert isclose(line.pass_at_k, fmean(pass_at_k(len(some), sum(some), line.k) for some in enough))
        assert 0 <= line.pass_hat_k <= line.pass_at_k + 1e-12 <= 1 + 1e-12


def test_repeated_trials_of_nothing_are_none() -> None:
    assert repeated_trials({}) == []
