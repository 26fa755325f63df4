"""Where a state is not as expected."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.states import OPERATIONS, carry_out, shop
from seatrial.ledger.comparison import EndState, Tolerances, compare_states
from seatrial.ledger.ledger import Ledger
from seatrial.ledger.transaction import LedgerTransaction


def refunding(*refunds: tuple[str, str, Any], status: str | None = "refunded", **more: Any) -> EndState:
    """The shop after refunds, each with the id that the world made for it, its order and its amount."""
    transaction = LedgerTransaction(shop())
    for row_id, order, amount in refunds:
        transaction.add("refund", row_id, {"order_id": order, "amount": amount, **more})
    if status is not None:
        transaction.update("order", "o-1", {"status": status})
    return EndState(transaction.committed(), frozenset(row_id for row_id, _, _ in refunds))


def texts(expected: EndState, actual: EndState, **tolerances: Any) -> list[str]:
    found = compare_states(expected, actual, shop(), Tolerances.of(**tolerances))
    return [difference.text for difference in found.differences]


def test_the_same_state_has_no_difference() -> None:
    match = compare_states(refunding(("r-1", "o-1", 30)), refunding(("r-1", "o-1", 30)), shop())
    assert (match.differences, match.score, match.changed) == ([], 1.0, 3)


def test_a_field_that_differs_is_named_with_both_values() -> None:
    expected, actual = refunding(("r-1", "o-1", 23.8)), refunding(("r-1", "o-1", 238), status=None)
    assert texts(expected, actual) == [
        "order o-1: status is paid, expected refunded",
        "refund r-1: amount is 238, expected 23.8",
    ]
    assert compare_states(expected, actual, shop()).score == pytest.approx(1 / 3)


def test_a_row_too_many_and_one_that_is_missing_are_named() -> None:
    one, two = refunding(("r-1", "o-1", 30)), refunding(("r-1", "o-1", 30), ("r-2", "o-1", 30))
    assert texts(one, two) == ["refund r-2 is one too many"]
    assert texts(two, one) == ["refund r-2 is missing"]
    assert compare_states(one, two, shop()).score == pytest.approx(3 / 5)


def test_made_ids_are_matched_by_content_whatever_the_order_of_creation() -> None:
    expected = refunding(("r-1", "o-1", 10), ("r-2", "o-1", 20))
    assert texts(expected, refunding(("r-1", "o-1", 20), ("r-2", "o-1", 10))) == []


def test_ids_that_nobody_made_are_matched_by_name() -> None:
    expected, actual = refunding(("r-1", "o-1", 30)), refunding(("r-2", "o-1", 30))
    named = EndState(expected.ledger), EndState(actual.ledger)
    assert texts(expected, actual) == []
    assert texts(*named) == ["refund r-1 is missing", "refund r-2 is one too many"]


def test_rows_that_refer_to_made_rows_are_compared_by_what_these_are() -> None:
    def sides(first: str, second: str) -> EndState:
        transaction = LedgerTransaction(shop())
        for row_id, amount in ((first, 10), (second, 20)):
            transaction.add("refund", row_id, {"amount": amount})
        for row_id, refund in ((f"m-{first}", first), (f"m-{second}", second)):
            transaction.add("mail", row_id, {"about": [refund]})
        return EndState(transaction.committed(), frozenset({first, second, f"m-{first}", f"m-{second}"}))

    assert texts(sides("r-1", "r-2"), sides("r-7", "r-3")) == []


def test_a_wrong_reference_to_a_made_row_is_a_difference() -> None:
    def side(about: str) -> EndState:
        transaction = LedgerTransaction(shop())
        transaction.add("refund", "r-1", {"amount": 10})
        transaction.add("refund", "r-2", {"amount": 20})
        transaction.add("mail", "m-1", {"about": about})
        return EndState(transaction.committed(), frozenset({"r-1", "r-2", "m-1"}))

    assert texts(side("r-1"), side("r-2")) == ["mail m-1: about is 'r-2', expected 'r-1'"]


def test_tolerances_leave_out_what_does_not_count() -> None:
    expected = refunding(("r-1", "o-1", 30), note="Sorry!")
    actual = refunding(("r-5", "o-1", 30.004), note="We are sorry.")
    assert len(texts(expected, actual)) == 2
    assert texts(expected, actual, ignore=["refund/*.note"], absolute=0.01) == []
    assert texts(expected, actual, match={"refund/*.note": {"$regex": "(?i)sorry"}}, absolute=0.01) == []
    assert texts(expected, actual, match={"refund/*.note": {"$regex": "thanks"}}, absolute=0.01) == [
        "refund r-1: note is 'We are sorry.', expected 'Sorry!'"
    ]
    assert texts(expected, actual, ignore=["refund/*"]) == []


def test_flags_are_compared_but_for_those_of_the_author() -> None:
    def side(*flags: str) -> EndState:
        return EndState(Ledger.of({}, flags))

    assert texts(side("a", "_x"), side("b", "_y")) == [
        "flag a is not set, expected it",
        "flag b is set, expected not",
    ]


@given(st.lists(OPERATIONS, max_size=10), st.lists(OPERATIONS, max_size=10))
def test_there_is_a_difference_exactly_when_the_roots_differ(one: list[Any], other: list[Any]) -> None:
    start = Ledger.of({"left": {"a-1": {"p": 1}}, "right": {"b-2": {"q": [1]}}})
    sides = []
    for operations in (one, other):
        transaction = LedgerTransaction(start)
        for operation in operations:
            carry_out(transaction, operation)
        sides.append(transaction.committed())
    match = compare_states(EndState(sides[0]), EndState(sides[1]), start)
    assert (not match.differences) == (sides[0].root == sides[1].root) == (match.score == 1.0)
