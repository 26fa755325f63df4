"""The cases: one for each order, with the calls that its customer's wish takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clerk.orders import Order, orders


def all_cases() -> Iterator[dict[str, Any]]:
    """The cases of the suite."""
    for order in orders():
        yield {
            "id": order.case_id,
            "instruction": order.instruction,
            "tags": [order.wish],
            "graders": list(_graders(order)),
        }


def _graders(order: Order) -> Iterator[dict[str, Any]]:
    looks = {"tool": "find_order", "args": {"order": order.number}}
    if order.wish == "refund":
        amount = {"$approx": order.due, "abs": 0.01}
        refund = {"tool": "refund", "args": {"amount": amount}, "args_match": "superset"}
        expected = [looks, {"tool": "check_policy"}, refund]
        yield {"kind": "tool_trajectory", "name": "refunds by the book", "mode": "in_order", "expected": expected}
        yield {"kind": "tool_trajectory", "name": "refunds once", "mode": "any_order", "maximums": {"refund": 1}}
        yield {"kind": "contains", "name": "names the amount", "value": f"{order.due:.2f}"}
    elif order.wish == "address":
        update = {"tool": "update_address", "args": {"order": order.number, "town": order.detail}}
        yield {"kind": "tool_trajectory", "name": "moves the parcel", "mode": "in_order", "expected": [looks, update]}
    else:
        yield {"kind": "tool_trajectory", "name": "looks it up", "mode": "exact", "expected": [looks]}
        yield {"kind": "icontains", "name": "says where it is", "value": order.detail}
