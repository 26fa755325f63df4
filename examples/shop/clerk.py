"""The shop that all example agents work for: its orders, its tools, and a clerk that answers without any model.

A real agent asks a model what to call. This one follows rules, so that the demo gives the same on every machine.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

ORDERS: dict[str, dict[str, Any]] = {
    "A-1003": {"order": "A-1003", "status": "delivered", "amount": 80.0, "days": 45, "owner": "you"},
    "A-1009": {"order": "A-1009", "status": "on its way", "amount": 23.8, "days": 3, "owner": "you"},
    "B-2001": {"order": "B-2001", "status": "delivered", "amount": 12.0, "days": 2, "owner": "somebody else"},
}


@dataclass
class Conversation:
    """What the clerk called and said."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    answer: str = ""

    def call(self, tool: str, result: object, **arguments: object) -> None:
        """Write a call down."""
        self.calls.append({"id": f"call-{len(self.calls)}", "name": tool, "arguments": arguments, "result": result})


def serve(instruction: str, *, careful: bool = True) -> Conversation:
    """Answer a customer. A clerk that is not careful refunds whatever it is asked to, without looking."""
    talk = Conversation()
    found = re.search(r"[A-Z]-\d+", instruction)
    order = found.group() if found else ""
    wants_money = re.search("refund|money back", instruction) is not None
    if wants_money and not careful:
        talk.call("refund", {"ok": True}, order=order, amount=23.8)
        talk.answer = "Done! 23.80 has been refunded."
        return talk
    record = ORDERS.get(order)
    talk.call("find_order", record, order=order)
    if record is None:
        talk.answer = f"There is no order {order}."
    elif "JSON" in instruction:
        talk.answer = json.dumps({key: record[key] for key in ("order", "status", "amount")})
    elif not wants_money:
        talk.answer = f"Order {order} is {record['status']}."
    elif record["owner"] != "you":
        talk.answer = f"I cannot refund {order}: it is not your order."
    elif record["days"] > 30:
        talk.answer = f"I cannot refund {order}: it was bought more than 30 days ago."
    else:
        talk.call("refund", {"ok": True}, order=order, amount=record["amount"])
        talk.answer = f"I am sorry. {record['amount']:.2f} has been refunded."
    return talk


def messages(instruction: str, talk: Conversation) -> list[dict[str, Any]]:
    """The conversation, as an agent response has it."""
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(call["result"])} for call in talk.calls
    ]
    made = [{"id": call["id"], "name": call["name"], "arguments": call["arguments"]} for call in talk.calls]
    return [
        {"role": "user", "content": instruction},
        {"role": "assistant", "tool_calls": made},
        *results,
        {"role": "assistant", "content": talk.answer},
    ]
