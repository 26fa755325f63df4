"""The least that a runner can do, as a program: `python -m bench.peer_loop CASES`.

An asyncio loop that calls the agent, looks for the expected tool, and writes a line of JSON for each case.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from typing import TextIO

from bench.trial_agents import answer
from bench.trial_suites import prompt


async def main(cases: int, file: TextIO) -> None:
    numbers = iter(range(cases))
    async with asyncio.TaskGroup() as group:
        for _ in range(16):
            group.create_task(_work(numbers, file))


async def _work(numbers: Iterator[int], file: TextIO) -> None:
    for number in numbers:
        response = await answer(prompt(number))
        called = [call["name"] for message in response["messages"] for call in message.get("tool_calls", ())]
        file.write(json.dumps({"id": f"case-{number}", "passed": "search" in called, "response": response}) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryFile("w") as results:
        asyncio.run(main(int(sys.argv[1]), results))
