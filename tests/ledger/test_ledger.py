"""The ledger against plain dictionaries, and what its versions promise."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.states import OPERATIONS, SHOP, carry_out, carry_out_plainly, shop
from seatrial.errors import SeatrialError
from seatrial.ledger.changes import inverse
from seatrial.ledger.ledger import Ledger, State, open_flags, read_state
from seatrial.ledger.rows import Row, RowTree, differing
from seatrial.ledger.transaction import LedgerTransaction, Refusal
from seatrial.trajectory.values import key


def plain(state: State) -> bytes:
    return key({name: rows for name, rows in state.items() if rows})


@settings(max_examples=300)
@given(st.lists(st.lists(OPERATIONS, max_size=6), max_size=12))
def test_versions_hold_what_plain_dictionaries_hold(calls: list[list[Any]]) -> None:
    ledger = Ledger()
    state: State = {}
    flags: set[str] = set()
    versions = [(ledger, plain(state), open_flags(flags))]
    for operations in calls:
        transaction = LedgerTransaction(ledger)
        for operation in operations:
            carry_out(transaction, operation)
            carry_out_plainly(state, flags, operation)
        changes, before = transaction.changes(), ledger
        ledger = transaction.committed()
        assert (plain(ledger.state), set(ledger.flags)) == (plain(state), flags)
        assert before.after(changes).root == ledger.root
        assert ledger.after(inverse(changes)).root == before.root
        assert (ledger is before) == (not changes)
        # Built anew, whatever the order in which its rows came to be, it is the same tree.
        assert Ledger.of(deepcopy(state), flags).root == ledger.root
        versions.append((ledger, plain(state), open_flags(flags)))
    for one, state_of_one, flags_of_one in versions:
        for other, state_of_other, flags_of_other in versions:
            assert (one.root == other.root) == ((state_of_one, flags_of_one) == (state_of_other, flags_of_other))


@given(
    st.dictionaries(st.integers(0, 400).map(str), st.integers(0, 2)),
    st.dictionaries(st.integers(0, 400).map(str), st.integers(0, 2)),
)
def test_rows_that_differ_are_found_without_looking_at_the_others(one: dict[str, int], other: dict[str, int]) -> None:
    sides = [RowTree.of(Row.of(name, {"n": value}, 0) for name, value in side.items()) for side in (one, other)]
    assert differing(*sides) == {name for name in {**one, **other} if one.get(name) != other.get(name)}


def test_a_version_shares_what_did_not_change_and_a_change_costs_the_depth_of_the_tree() -> None:
    ledger = Ledger.of({"row": {f"r-{number}": {"n": number} for number in range(20_000)}})
    transaction = LedgerTransaction(ledger)
    transaction.update("row", "r-77", {"n": -1})
    after = transaction.committed()
    assert differing(ledger.entities["row"], after.entities["row"]) == {"r-77"}
    before, now = (set(map(id, nodes(each.entities["row"]))) for each in (ledger, after))
    assert len(now - before) < 8 < len(now) / 100


def nodes(rows: RowTree) -> list[Any]:
    found, waiting = [], [rows._root]
    while waiting:
        node = waiting.pop()
        if node is not None:
            found.append(node)
            waiting.extend(node.children)
    return found


def test_equal_numbers_are_equal_states_and_true_is_no_number() -> None:
    roots = [Ledger.of({"t": {"a": {"n": value}}}).root for value in (1, 1.0, True)]
    assert roots[0] == roots[1] != roots[2]


def test_an_empty_type_is_no_difference() -> None:
    assert Ledger.of({"order": {}}).root == Ledger().root


def test_flags_that_begin_with_an_underscore_are_in_no_comparison() -> None:
    assert Ledger.of({}, ["_phase"]).root == Ledger().root != Ledger.of({}, ["phase"]).root


def test_rows_are_listed_as_they_came_to_be() -> None:
    transaction = LedgerTransaction(shop())
    transaction.add("order", "o-0", {})
    transaction.update("order", "o-1", {"status": "refunded"})
    assert [row.id for row in transaction.committed().rows("order")] == ["o-1", "o-2", "o-0"]


def test_what_a_handler_gave_cannot_be_changed_afterwards() -> None:
    items = ["one"]
    transaction = LedgerTransaction(shop())
    transaction.add("order", "o-3", {"items": items})
    items.append("two")
    assert transaction.committed().state["order"]["o-3"] == {"items": ["one"]}


@pytest.mark.parametrize(
    ("act", "code", "message"),
    [
        (lambda transaction: transaction.add("order", "o-1", {}), 409, "order o-1 already exists"),
        (lambda transaction: transaction.update("order", "o-9", {}), 404, "order o-9 not found"),
        (lambda transaction: transaction.remove("parcel", "p-1"), 404, "parcel p-1 not found"),
    ],
)
def test_what_cannot_be_is_refused(act: Any, code: int, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        act(LedgerTransaction(shop()))
    assert (refused.value.code, refused.value.message) == (code, message)


def test_a_change_that_was_taken_back_is_no_change() -> None:
    transaction = LedgerTransaction(shop())
    transaction.update("order", "o-1", {"status": "refunded"})
    transaction.update("order", "o-1", {"status": "paid"})
    transaction.add("order", "o-3", {})
    transaction.remove("order", "o-3")
    assert transaction.changes() == []
    assert transaction.committed().version == 0


@pytest.mark.parametrize(
    ("given", "message", "pointer"),
    [
        ([], "a state maps entity types to rows by id, got list", None),
        ({"order": [{"id": 1}]}, "the rows of 'order' must be a mapping of id to fields, not a list", "/order"),
        ({"order": {"o-1": 3}}, "order o-1: a row has fields, got 3", "/order/o-1"),
    ],
)
def test_what_is_no_state_is_refused_with_its_place(given: Any, message: str, pointer: str | None) -> None:
    with pytest.raises(SeatrialError) as error:
        read_state(given)
    assert (error.value.message, error.value.pointer) == (message, pointer)


def test_the_shop_is_a_state() -> None:
    assert read_state(SHOP) is SHOP
