"""Waits that grow, are never shorter than asked for, and end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.client.patience import Patience, PatienceLeft

PATIENCE = Patience(seconds=100.0, first_wait_s=1.0, longest_wait_s=8.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def waits(budget: PatienceLeft, clock: Clock, count: int) -> list[float | None]:
    """The waits of so many failures in a row, each of them waited out."""
    found = []
    for _ in range(count):
        wait_s = budget.wait_s()
        clock.now += wait_s or 0.0
        found.append(wait_s)
    return found


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    clock = Clock()
    assert waits(PatienceLeft(PATIENCE, clock, lambda: 1.0), clock, 6) == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def test_chance_makes_a_wait_shorter_by_up_to_a_half() -> None:
    clock = Clock()
    assert waits(PatienceLeft(PATIENCE, clock, lambda: 0.0), clock, 3) == [0.5, 1.0, 2.0]


def test_progress_starts_everything_anew() -> None:
    clock = Clock()
    budget = PatienceLeft(PATIENCE, clock, lambda: 1.0)
    waits(budget, clock, 8)
    clock.now += 90.0
    budget.refill()
    assert waits(budget, clock, 2) == [1.0, 2.0]


def test_it_ends_when_the_next_attempt_would_come_too_late() -> None:
    clock = Clock()
    found = waits(PatienceLeft(PATIENCE, clock, lambda: 1.0), clock, 20)
    ended = found.index(None)
    assert sum(wait for wait in found[:ended] if wait is not None) <= 100.0
    assert found[ended:] == [None] * (20 - ended)


def test_the_time_that_attempts_take_counts_too() -> None:
    clock = Clock()
    budget = PatienceLeft(PATIENCE, clock, lambda: 1.0)
    assert budget.wait_s() == 1.0
    clock.now += 99.5
    assert budget.wait_s() is None


def test_the_time_before_the_first_failure_does_not_count() -> None:
    clock = Clock()
    budget = PatienceLeft(PATIENCE, clock, lambda: 1.0)
    clock.now += 10_000.0
    assert budget.wait_s() == 1.0


def test_no_patience_is_no_second_attempt() -> None:
    assert (
        PatienceLeft(Patience(seconds=0.0, first_wait_s=1.0, longest_wait_s=1.0), Clock(), lambda: 0.0).wait_s() is None
    )


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_a_server_that_asks_for_a_wait_gets_it(chance: float) -> None:
    wait_s = PatienceLeft(PATIENCE, Clock(), lambda: chance).wait_s(30.0)
    assert wait_s is not None
    assert 30.0 <= wait_s <= 37.5


def test_a_server_that_asks_for_more_than_the_patience_is_not_waited_for() -> None:
    assert PatienceLeft(PATIENCE, Clock(), lambda: 0.0).wait_s(101.0) is None


@given(st.floats(0, 1), st.lists(st.none() | st.floats(0, 50), max_size=30))
def test_the_waits_never_add_up_to_more_than_the_patience(chance: float, asked: list[float | None]) -> None:
    clock = Clock()
    budget = PatienceLeft(PATIENCE, clock, lambda: chance)
    for asked_s in asked:
        wait_s = budget.wait_s(asked_s)
        if wait_s is None:
            break
        assert wait_s >= (asked_s or 0.0)
        clock.now += wait_s
    assert clock.now - 1000.0 <= 100.0 + 1e-6
