from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.assignments import ascending, best, respects

from seatrial.errors import SeatrialError
from seatrial.trajectory import assign, partial_order

KEYS = st.sampled_from([b"a", b"b", b"c"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], int]:
    """Which of up to five items are compatible with which of up to five steps."""
    width = draw(st.integers(0, 5))
    return draw(st.lists(st.integers(0, 2**width - 1), max_size=5)), width


@st.composite
def orders(draw: st.DrawFn, size: int) -> list[int]:
    """A partial order of so many items, closed: for each one all those before it."""
    rank = draw(st.permutations(range(size)))
    before = [0] * size
    for place, item in enumerate(rank):
        for other in rank[:place]:
            if draw(st.booleans()):
                before[item] |= before[other] | 1 << other
    return before


def pairs(assignment: assign.Assignment) -> list[tuple[int, int]]:
    return list(zip(*assignment, strict=True))


@settings(max_examples=400)
@given(st.lists(KEYS, max_size=6), st.lists(KEYS, max_size=6))
def test_keys_are_assigned_as_the_definition_says_in_order_and_in_any(
    expected: list[bytes], actual: list[bytes]
) -> None:
    rows = [sum(1 << step for step, key in enumerate(actual) if key == wanted) for wanted in expected]
    assert pairs(assign.in_order_by_key(expected, actual)) == best(rows, len(actual), ascending)
    assert pairs(assign.any_order_by_key(expected, actual)) == best(rows, len(actual))


@settings(max_examples=400)
@given(tables())
def test_rows_are_assigned_as_the_definition_says_in_order_and_in_any(table: tuple[list[int], int]) -> None:
    rows, width = table
    assert pairs(assign.in_order(rows, width)) == best(rows, width, ascending)
    assert pairs(assign.any_order(rows, width)) == best(rows, width)


@settings(max_examples=400)
@given(st.data())
def test_rows_are_assigned_as_the_definition_says_in_partial_order(data: st.DataObject) -> None:
    rows, width = data.draw(tables())
    before = data.draw(orders(len(rows)))
    assert pairs(partial_order.in_partial_order(rows, before)) == best(rows, width, respects(before))


def test_leaving_an_early_item_out_can_give_smaller_steps() -> None:
    assert assign.in_order_by_key([b"x", b"y"], [b"y", b"x"]) == ([1], [0])


def test_a_table_too_large_to_be_kept_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(3)
    expected, actual = ([source.choice("abcdefgh") for _ in range(300)] for _ in range(2))
    wanted = assign.in_order_by_key(expected, actual)
    monkeypatch.setattr(assign, "_MAX_TABLE_BITS", 0)
    assert assign.in_order_by_key(expected, actual) == wanted


def test_an_assignment_in_any_order_of_hundreds_of_general_items_is_quick() -> None:
    source = random.Random(5)
    rows = [sum(1 << source.randrange(400) for _ in range(3)) for _ in range(500)]
    start = time.process_time()
    items, steps = assign.any_order(rows, 400)
    assert len(set(items)) == len(set(steps)) == len(items) > 350
    assert time.process_time() - start < 5


@pytest.mark.parametrize("seed", range(6))
def test_a_partial_order_of_twenty_items_over_a_hundred_steps_is_instant(seed: int) -> None:
    source = random.Random(seed)
    rows = [sum(1 << source.randrange(100) for _ in range(source.choice([1, 2, 20]))) for _ in range(20)]
    before = [0] * 20
    for item in range(20):
        for other in range(item):
            if source.random() < 0.15:
                before[item] |= before[other] | 1 << other
    start = time.process_time()
    items, steps = partial_order.in_partial_order(rows, before)
    assert respects(before)(list(zip(items, steps, strict=True)))
    assert time.process_time() - start < 1


def test_a_partial_order_search_past_its_budget_says_so() -> None:
    with pytest.raises(SeatrialError) as caught:
        partial_order.in_partial_order([0b11, 0b11, 0b11], [0, 0b1, 0b11], budget=1)
    assert caught.value.code == "search_budget"
