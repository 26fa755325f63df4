from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb
from random import Random

import pytest

from seatrial.reports.statistics.paired import mcnemar, sign_flip
from seatrial.reports.statistics.power import (
    KINDS,
    POWER,
    case_moves,
    detectable,
    most_rises,
    power,
    power_lines,
    power_table,
    smallest_drop,
)


def simulated(cases: int, trials: int, rate: float, drop: float, alike: float, experiments: int) -> float:
    """How often such a drop is called worse, in experiments that are drawn."""
    draw = Random(20_261_118)
    called = 0
    for _ in range(experiments):
        moved: Counter[int] = Counter()
        for _ in range(cases):
            passes = rate
            if alike >= 1:
                passes = float(draw.random() < rate)
            elif alike > 0:
                passes = draw.betavariate(rate * (1 - alike) / alike, (1 - rate) * (1 - alike) / alike)
            after = 0.0 if draw.random() < drop / rate else passes
            moved[
                sum(draw.random() < after for _ in range(trials)) - sum(draw.random() < passes for _ in range(trials))
            ] += 1
        called += sum(move * count for move, count in moved.items()) < 0 and sign_flip(moved) < 0.05
    return called / experiments


@pytest.mark.parametrize("alike", KINDS.values())
@pytest.mark.parametrize(("cases", "trials", "rate"), [(12, 1, 0.8), (12, 3, 0.8), (40, 1, 0.95), (40, 5, 0.6)])
def test_the_smallest_drop_is_found_as_often_in_a_simulation(
    cases: int, trials: int, rate: float, alike: float
) -> None:
    drop = smallest_drop(cases, trials, rate, alike)
    assert drop is not None
    # Three standard errors of 500 experiments are 5.4%.
    assert simulated(cases, trials, rate, drop, alike, 500) == pytest.approx(POWER, abs=0.06)


@pytest.mark.parametrize("alike", [0.0, 0.3, 1.0])
def test_how_a_case_moves_is_a_distribution_with_the_right_mean(alike: float) -> None:
    moves = case_moves(4, 0.7, 0.21, alike)
    assert sum(moves.values()) == pytest.approx(1)
    assert sum(move * chance for move, chance in moves.items()) / 4 == pytest.approx(-0.21)


def test_with_one_trial_the_power_is_the_sum_over_all_outcomes() -> None:
    cases, moves = 9, case_moves(1, 0.8, 0.5, 0.0)
    exact = 0.0
    for better, worse in product(range(cases + 1), repeat=2):
        same = cases - better - worse
        if same >= 0 and worse > better and mcnemar(better, worse) < 0.05:
            ways = comb(cases, better) * comb(cases - better, worse)
            exact += ways * moves[1] ** better * moves[-1] ** worse * moves[0] ** same
    assert power(cases, 1, 0.8, 0.5, 0.0) == pytest.approx(exact, abs=1e-9)


def test_how_many_cases_may_rise_is_what_the_test_says() -> None:
    for changed in range(40):
        most = most_rises(changed, 0.05)
        assert all(
            (mcnemar(risen, changed - risen) < 0.05) == (risen <= most) for risen in range(changed // 2 + changed % 2)
        )


@pytest.mark.parametrize("trials", [1, 3])
def test_more_cases_and_more_trials_find_smaller_drops_and_more_tests_larger_ones(trials: int) -> None:
    drops = [smallest_drop(cases, trials, 0.8, 0.5) or 1.0 for cases in (10, 20, 40, 80, 1000)]
    assert drops == sorted(drops, reverse=True)
    assert (smallest_drop(40, 3, 0.8, 0.0) or 1) < (smallest_drop(40, 1, 0.8, 0.0) or 0)
    assert (smallest_drop(40, trials, 0.8, 0.5, tests=8) or 1) > (smallest_drop(40, trials, 0.8, 0.5) or 0)


def test_with_five_cases_nothing_would_be_found() -> None:
    assert detectable(5, 10, 1.0).drops == dict.fromkeys(KINDS)
    assert smallest_drop(6, 1, 1.0, 1.0) is not None
    assert detectable(0, 1, 0.8).drops == dict.fromkeys(KINDS)


def test_the_table_has_the_usual_trials_and_the_tags_with_their_correction() -> None:
    found = power_table([["account", "slow"], ["account"]] * 20 + [["few"]] * 3, 2, 0.8)
    assert [(row.tag, row.cases, row.trials) for row in found.rows] == [
        (None, 43, 1),
        (None, 43, 2),
        (None, 43, 3),
        (None, 43, 5),
        (None, 43, 10),
        ("account", 40, 2),
        ("slow", 20, 2),
        ("few", 3, 2),
    ]
    assert found.rows[5].drops == detectable(40, 2, 0.8, tests=3).drops
    lines = power_lines(found, 100)
    assert any(line.split() == ["few", "3", "2", "–", "–", "–"] for line in lines)
    assert any("corrected for looking at 3 tags" in line for line in lines)
