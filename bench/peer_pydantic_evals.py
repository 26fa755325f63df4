"""pydantic-evals as a program: `python -m bench.peer_pydantic_evals CASES`. It keeps its results in memory only."""

from __future__ import annotations

import sys
from typing import Any

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected

from bench.trial_agents import answer
from bench.trial_suites import prompt


async def called_tools(instruction: str) -> list[Any]:
    response = await answer(instruction)
    return [call["name"] for message in response["messages"] for call in message.get("tool_calls", ())]


def main(count: int) -> None:
    cases: list[Any] = [
        Case(name=f"case-{number}", inputs=prompt(number), expected_output=["search"]) for number in range(count)
    ]
    dataset: Any = Dataset(name="bench", cases=cases, evaluators=[EqualsExpected()])
    report = dataset.evaluate_sync(called_tools, max_concurrency=16, progress=False)
    if len(report.cases) != count or report.failures:
        sys.exit("some cases were not evaluated")


if __name__ == "__main__":
    main(int(sys.argv[1]))
