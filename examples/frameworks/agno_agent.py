"""An agent of agno: return the result of `agent.run` or `agent.arun`."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.run.agent import RunOutput

import seatrial as st


@dataclass
class Scripted(Model):
    """In place of a model: looks for the order of the question, and says what it found."""

    id: str = "scripted"

    def invoke(self, messages: Any, *args: Any, **options: Any) -> ModelResponse:
        last = messages[-1]
        if last.role == "tool":
            return ModelResponse(role="assistant", content=last.content)
        arguments = json.dumps({"order": re.search(r"[A-Z]-\d+", last.content)[0]})
        call = {"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": arguments}}
        return ModelResponse(role="assistant", tool_calls=[call])

    async def ainvoke(self, *args: Any, **options: Any) -> ModelResponse:
        return self.invoke(*args, **options)

    def invoke_stream(self, *args: Any, **options: Any) -> Iterator[ModelResponse]:
        yield self.invoke(*args, **options)

    async def ainvoke_stream(self, *args: Any, **options: Any) -> Any:
        yield self.invoke(*args, **options)

    def _parse_provider_response(self, response: Any, **options: Any) -> Any:
        return response

    def _parse_provider_response_delta(self, response: Any) -> Any:
        return response


def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is on its way." if order == "A-1009" else f"There is no order {order}."


async def answer(instruction: str) -> RunOutput:
    return await Agent(model=Scripted(), tools=[find_order], telemetry=False).arun(instruction)


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
