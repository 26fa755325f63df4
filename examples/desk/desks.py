"""Two agents at a refund desk: one looks at what its tools answer, the other does not."""

from __future__ import annotations

import re

from seatrial.world.agent_tools import Tools


async def careful(instruction: str, tools: Tools) -> str:
    """Refund what can be refunded, and hand everything else to a person."""
    order_id = ordered(instruction)
    order = await tools.get_order(order_id=order_id)
    refund = await tools.issue_refund(order_id=order_id, amount=order["total"])
    if "error" in refund:
        await tools.escalate()
        return f"Order {order_id} cannot be refunded. A colleague will look at it."
    return f"Order {order_id} is refunded: {refund['refund_id']}."


async def hasty(instruction: str, tools: Tools) -> str:
    """Ask for the refund, and say that all went well."""
    order_id = ordered(instruction)
    await tools.issue_refund(order_id=order_id, amount=5)
    await tools.issue_refund(order_id=order_id, amount=25)
    return f"Order {order_id} is refunded."


def ordered(instruction: str) -> str:
    """The order that an instruction is about."""
    found = re.search(r"o-\d+", instruction)
    return found[0] if found else ""
