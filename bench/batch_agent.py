"""A program that answers a batch: a JSON line for each case in, a JSON line for each out."""

from __future__ import annotations

import json
import sys

CALL = {"id": "call_1", "tool": "search", "input": {"order": 17}, "output": "shipped"}

with open(sys.argv[1]) as prompts:
    for line in prompts:
        messages = [{"role": "assistant", "content": "It is on its way.", "tool_calls": [CALL]}]
        print(json.dumps({"id": json.loads(line)["id"], "output_messages": messages}))
