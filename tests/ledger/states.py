"""Small states, and random changes of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from seatrial.ledger.ledger import Ledger, State
from seatrial.ledger.transaction import LedgerTransaction

SHOP: State = {
    "order": {
        "o-1": {"customer": "c-9", "total": 30, "status": "paid"},
        "o-2": {"customer": "c-7", "total": 12.5, "status": "refunded"},
    },
    "refund": {"r-0": {"order_id": "o-2", "amount": 12.5}},
}

IDS = st.sampled_from([f"{letter}-{number}" for letter in "ab" for number in range(12)])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -0.0, 2.0]),
    st.sampled_from(["", "x", "é"]),
)
FIELDS = st.dictionaries(st.sampled_from(["p", "q", "r"]), st.one_of(VALUES, st.lists(VALUES, max_size=2)), max_size=3)
TYPES = st.sampled_from(["left", "right"])
OPERATIONS = st.one_of(
    st.tuples(st.sampled_from(["put", "update"]), TYPES, IDS, FIELDS),
    st.tuples(st.just("remove"), TYPES, IDS, st.none()),
    st.tuples(st.sampled_from(["set", "clear"]), st.sampled_from(["f", "g", "_h"]), st.none(), st.none()),
)


def shop() -> Ledger:
    return Ledger.of(SHOP)


def carry_out(transaction: LedgerTransaction, operation: tuple[str, str, Any, Any]) -> None:
    """One random operation; one that is not possible is left out."""
    op, name, row_id, fields = operation
    if op == "set":
        transaction.set_flag(name)
    elif op == "clear":
        transaction.clear_flag(name)
    elif op == "put":
        transaction.add(name, row_id, fields, upsert=True)
    elif transaction.row(name, row_id) is not None:
        if op == "remove":
            transaction.remove(name, row_id)
        else:
            transaction.update(name, row_id, fields)


def carry_out_plainly(state: State, flags: set[str], operation: tuple[str, str, Any, Any]) -> None:
    """The same on plain dictionaries."""
    op, name, row_id, fields = operation
    if op == "set":
        flags.add(name)
    elif op == "clear":
        flags.discard(name)
    elif op == "remove":
        state.get(name, {}).pop(row_id, None)
    elif op == "put" or row_id in state.get(name, {}):
        rows = state.setdefault(name, {})
        rows[row_id] = {**rows.get(row_id, {}), **fields}
