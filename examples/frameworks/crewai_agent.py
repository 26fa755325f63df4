"""A crew of CrewAI: return the result of `crew.kickoff`. Make the crew and its model anew for each run."""

import json
import os
import re
from typing import Any

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.crews import CrewOutput
from crewai.tools import tool

import seatrial as st


class Scripted(BaseLLM):
    """In place of a model: looks for the order of the question, and says what it found."""

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self._track_token_usage_internal({"prompt_tokens": 20, "completion_tokens": 5})
        last = messages[-1]
        if last["role"] == "tool":
            return last["content"]
        arguments = json.dumps({"order": re.search(r"[A-Z]-\d+", last["content"])[0]})
        return [{"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": arguments}}]

    def supports_function_calling(self) -> bool:
        return True


@tool
def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is on its way." if order == "A-1009" else f"There is no order {order}."


def answer(instruction: str) -> CrewOutput:
    clerk = Agent(role="clerk", goal="help", backstory="a clerk", llm=Scripted(model="scripted"), tools=[find_order])
    task = Task(description=instruction, expected_output="the status of the order", agent=clerk)
    return Crew(agents=[clerk], tasks=[task]).kickoff()


suite = st.Suite(
    agents={"clerk": answer},
    cases=[
        st.Case("on-its-way", "Where is order A-1009?", graders=[st.contains("on its way")]),
        st.Case("unknown", "Where is order B-1?", graders=[st.contains("no order B-1")]),
    ],
    graders=[st.tool_trajectory("exact", ["find_order"]), st.never_calls("refund*", "delete_*")],
)
result = st.run(suite, store="memory:")
print(result)
assert result.ok
