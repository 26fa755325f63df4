"""A small agent as a program: its argument is the prompt, its output the answer with the messages."""

import json
import re
import sys

ORDERS = {"A-1009": "on its way"}

prompt = sys.argv[1]
found = re.search(r"[A-Z]-\d+", prompt)
order = found.group() if found else ""
status = ORDERS.get(order)
text = f"Order {order} is {status}." if status else f"There is no order {order}."
call = {"id": "call-1", "name": "find_order", "arguments": {"order": order}}
messages = [
    {"role": "user", "content": prompt},
    {"role": "assistant", "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call-1", "content": status or "not found"},
    {"role": "assistant", "content": text},
]
json.dump({"final_response": text, "messages": messages}, sys.stdout)
