from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import isclose
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.reports.statistics.intervals import (
    Interval,
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
