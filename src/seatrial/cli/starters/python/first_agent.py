"""An agent to start from: it finds the order in the question, looks it up, and refunds it when it came damaged.

What it returns is text, or an object with `final_response` and, best, the `messages` of its conversation.
"""

import re

ORDERS = {"A-1009": {"status": "on its way", "amount": 23.8}}


def answer(instruction: str) -> dict:
    found = re.search(r"[A-Z]-\d+", instruction)
    order = found.group() if found else ""
    calls = [("find_order", {"order": order})]
    if order not in ORDERS:
        text = f"There is no order {order}."
    elif "damaged" in instruction:
        amount = ORDERS[order]["amount"]
        calls.append(("refund", {"order": order, "amount": amount}))
        text = f"I am sorry. {amount:.2f} will be back on your account in two days."
    else:
        text = f"Order {order} is {ORDERS[order]['status']}."
    made = [{"id": f"call-{number}", "name": name, "arguments": given} for number, (name, given) in enumerate(calls)]
    return {
        "final_response": text,
        "messages": [
            {"role": "user", "content": instruction},
            {"role": "assistant", "tool_calls": made},
            {"role": "assistant", "content": text},
        ],
    }
