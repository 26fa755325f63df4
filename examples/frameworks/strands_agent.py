"""An agent of Strands: return the result of calling it. It must be a new agent each time: Strands keeps the history."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.agent.agent_result import AgentResult
from strands.models.model import Model

import seatrial as st


class Scripted(Model):
    """In place of a model: looks for the order of the question, and says what it found."""

    def update_config(self, **config: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise RuntimeError("this model has no structured output")
        yield

    async def stream(self, messages: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        last = messages[-1]["content"][-1]
        yield {"messageStart": {"role": "assistant"}}
        if "toolResult" in last:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": last["toolResult"]["content"][0]["text"]}}}
        else:
            arguments = json.dumps({"order": re.search(r"[A-Z]-\d+", last["text"])[0]})
            yield {"contentBlockStart": {"start": {"toolUse": {"name": "find_order", "toolUseId": "c1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if "toolResult" in last else "tool_use"}}


@tool
def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is on its way." if order == "A-1009" else f"There is no order {order}."


async def answer(instruction: str) -> AgentResult:
    return await Agent(model=Scripted(), tools=[find_order], callback_handler=None).invoke_async(instruction)


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
