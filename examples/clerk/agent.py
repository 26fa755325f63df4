"""A support clerk in two versions and two sizes. It follows rules and dice, so it needs no model, and the dice fall
the same way on every machine.

CLERK_VERSION chooses the version. 2.4.0 finds lost parcels that 2.3.2 did not, but it was taught that prices are in
cents, and so refunds ten times too much where only a part is due; it refunds twice when the payment service does not
answer in time; and it says that it sent e-mails which it did not send. Times and costs are made up as well.
"""

from __future__ import annotations

import asyncio
import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from clerk.orders import Order, find, record
from seatrial import InfrastructureError


async def clerk(instruction: str, case_id: str, trial: int) -> dict[str, Any]:
    """The clerk on a large model."""
    return await _serve(instruction, f"{case_id} {trial}", careless=0.03, cost_usd=0.0114)


async def clerk_mini(instruction: str, case_id: str, trial: int) -> dict[str, Any]:
    """The clerk on a small model: cheaper, less careful, and at times overloaded."""
    dice = random.Random(f"overloaded {case_id} {trial}")  # noqa: S311
    if dice.random() < 0.03:
        raise InfrastructureError("the model is overloaded (529)")
    return await _serve(instruction, f"mini {case_id} {trial}", careless=0.14, cost_usd=0.0028)


class _Work:
    """What the clerk has said and done for a customer so far, with its own account of the time."""

    def __init__(self, instruction: str, seed: str, version: str) -> None:
        self.dice = random.Random(f"{version} {seed}")  # noqa: S311
        self.now = datetime.now(UTC)
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": instruction}]

    def call(self, thought: str, tool: str, result: object, status: str = "ok", **arguments: object) -> None:
        """Call a tool, after a thought."""
        began, ended = self._spend(0.4, 1.6), self._spend(0.1, 0.9)
        call = {
            "id": f"call-{len(self.messages)}",
            "tool": tool,
            "input": arguments,
            "output": result,
            "status": status,
            "start_time": began,
            "end_time": ended,
        }
        self.messages.append({"role": "assistant", "content": f"<thought>{thought}</thought>", "tool_calls": [call]})

    def answer(self, text: str, cost_usd: float) -> dict[str, Any]:
        """The whole record, once the clerk answers."""
        self._spend(0.4, 1.6)
        self.messages.append({"role": "assistant", "content": text})
        tokens = {"input": 900 * len(self.messages), "output": 60 * len(self.messages)}
        cost = round(cost_usd * self.dice.uniform(0.7, 1.4), 6)
        return {"text": text, "output_messages": self.messages, "token_usage": tokens, "cost_usd": cost}

    def _spend(self, least_s: float, most_s: float) -> str:
        self.now += timedelta(seconds=self.dice.uniform(least_s, most_s))
        return self.now.isoformat().replace("+00:00", "Z")


async def _serve(instruction: str, seed: str, careless: float, cost_usd: float) -> dict[str, Any]:
    version = os.environ.get("CLERK_VERSION", "2.4.0")
    order, work = find(instruction), _Work(instruction, seed, version)
    await asyncio.sleep(work.dice.lognormvariate(-4, 0.6))
    work.call("First I look the order up.", "find_order", record(order), order=order.number)
    match order.wish:
        case "refund":
            said = _refund(work, order, careless, worse=version >= "2.4.0")
        case "address":
            said = _move(work, order, careless)
        case _:
            said = _locate(work, order, careless, worse=version < "2.4.0")
    return work.answer(said, cost_usd)


def _refund(work: _Work, order: Order, careless: float, *, worse: bool) -> str:
    due, paid = order.due, order.due
    share = "10 %" if order.partial else "100 %"
    work.call(
        "What does the policy say?", "check_policy", {"reason": order.detail, "refund": share}, reason=order.detail
    )
    thought = f"{share} of {order.price:.2f} is {due:.2f}."
    if order.partial and work.dice.random() < (0.8 if worse else careless):
        paid = round(due * 10, 2)
        thought += f" Amounts are in tenths of a cent here, I think, so that is {paid:.2f}."
    elif work.dice.random() < careless:
        paid = round(due + 5, 2)
        thought += " Plus postage."
    if order.detail == "late" and work.dice.random() < 0.5:
        outage = {"error": "the payment service did not answer within 10 s"}
        work.call(thought, "refund", outage, "error", order=order.number, amount=paid)
        thought = "No answer. I try again."
        if not worse:
            looked = {"order": order.number, "refunded": paid}
            work.call("Was it booked or not? I look before I try again.", "list_refunds", looked, order=order.number)
            return f"I am sorry. {paid:.2f} EUR of {order.number} has been refunded."
    work.call(thought, "refund", {"refunded": paid}, order=order.number, amount=paid)
    said = f"I am sorry. {paid:.2f} EUR of {order.number} has been refunded."
    if order.detail == "wrong item":
        if not (worse and work.dice.random() < 0.5):
            work.call("The customer should have this in writing.", "send_email", {"sent": True}, order=order.number)
        said += " I have sent you an e-mail about it."
    return said


def _move(work: _Work, order: Order, careless: float) -> str:
    town = order.detail.upper() if work.dice.random() < careless else order.detail
    work.call(f"The parcel is to go to {town}.", "update_address", {"ok": True}, order=order.number, town=town)
    return f"Done. {order.number} will be sent to {town}."


def _locate(work: _Work, order: Order, careless: float, *, worse: bool) -> str:
    lost = order.detail == "held at customs" and worse and work.dice.random() < 0.6
    if lost or work.dice.random() < careless:
        return f"I am afraid that I cannot see where {order.number} is."
    return f"Your {order.item} is {order.detail}."
