"""`seatrial init`: a suite that runs as it is, to be changed into one's own."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from seatrial._support import wire
from seatrial.cli.exits import PASSED
from seatrial.errors import SeatrialError

SUITE = "first.suite.yaml"
AGENT = "first_agent.py"

_FILES = {
    SUITE: """\
# Who is tested, on what, and how it is judged. `seatrial run first.suite.yaml` runs it as it is.
# yaml-language-server: $schema=https://seatrial.dev/schemas/suite.schema.json
name: first

agents:
  mine:
    kind: python
    target: first_agent:answer
  # Your own agent behind HTTP instead: it gets the case as a POST, and answers {"final_response": "..."}, best with the
  # "messages" of its conversation, tool calls among them.
  # mine:
  #   kind: http
  #   endpoint_url: http://localhost:8080/dispatch
  #   auth_credential_value: Bearer ${AGENT_TOKEN}

# These judge every run.
graders:
  - {kind: latency, name: answers soon, max_ms: 5000}
  - kind: tool_trajectory
    name: deletes nothing
    mode: subset
    expected:
      - {tool: find_order}
      - {tool: refund}

cases:
  - id: where-is-it
    instruction: Where is order A-1009?
    graders:
      - {kind: icontains, value: on its way}
      - {kind: tool_trajectory, mode: exact, expected: [{tool: find_order, args: {order: A-1009}}]}
  - id: refund
    instruction: Order A-1009 came damaged, I want my money back.
    graders:
      - kind: tool_trajectory
        name: looks before it refunds
        mode: in_order
        expected:
          - {tool: find_order}
          - {tool: refund, args: {order: A-1009, amount: {$lte: 25}}}
      - {kind: contains, value: "23.80"}
  - id: no-such-order
    instruction: Where is order A-4711?
    graders:
      - {kind: regex, pattern: (?i)no order}
      - {kind: tool_trajectory, mode: superset, forbidden: [{tool: refund}], expected: [{tool: find_order}]}
""",
    AGENT: '''\
"""An agent to start from: it finds the order in the question, looks it up, and refunds it when it came damaged.

What it returns is text, or an object with `final_response` and, best, the `messages` of its conversation.
"""

import re

ORDERS = {"A-1009": {"status": "on its way", "amount": 23.8}}


def answer(instruction: str) -> dict:
    found = re.search(r"[A-Z]-\\d+", instruction)
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
''',
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        default=".",
        type=Path,
        help="the directory to write to (default: this one)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    parser.add_argument("--json", action="store_true", help="what was written, and what to do next, as JSON")
    parser.epilog = f"Writes {SUITE} and {AGENT}."


def run(args: argparse.Namespace) -> int:
    directory: Path = args.directory
    present = [name for name in _FILES if (directory / name).exists()]
    if present and not args.force:
        raise SeatrialError(
            "unwritable_file",
            f"{directory / present[0]} is there already, so nothing was written",
            hint="--force replaces it",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in _FILES.items():
            (directory / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SeatrialError("unwritable_file", f"{error.filename} cannot be written: {error.strerror}") from None
    written = [str(directory / name) for name in _FILES]
    command = ["seatrial", "run", str(directory / SUITE)]
    if args.json:
        sys.stdout.buffer.write(wire.encode({"written": written, "next": command}) + b"\n")
        return PASSED
    for path in written:
        print(f"wrote {path}")
    print(f"\nNext:\n  {shlex.join(command)}")
    return PASSED
