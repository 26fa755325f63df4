"""An agent of Google's ADK: return the events of a run, or yield them as they come."""

import re
from collections.abc import AsyncIterator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import seatrial as st


class Scripted(BaseLlm):
    """In place of a model: looks for the order of the question, and says what it found."""

    model: str = "scripted"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(text=last.function_response.response["result"])
        else:
            order = re.search(r"[A-Z]-\d+", last.text)[0]
            part = types.Part(function_call=types.FunctionCall(id="c1", name="find_order", args={"order": order}))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is on its way." if order == "A-1009" else f"There is no order {order}."


clerk = LlmAgent(name="clerk", model=Scripted(), tools=[find_order])


async def answer(instruction: str) -> list[Event]:
    return await InMemoryRunner(agent=clerk).run_debug(instruction, quiet=True)


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
