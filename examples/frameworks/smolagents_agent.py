"""An agent of smolagents: return what `agent.run` gives with `return_full_result=True`, or only its answer is known."""

import re
from typing import Any

from smolagents import Model, ToolCallingAgent, tool
from smolagents.agents import RunResult
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

import seatrial as st


class Scripted(Model):
    """In place of a model: looks for the order of the question, and says what it found."""

    def generate(self, messages: list[ChatMessage], *args: Any, **options: Any) -> ChatMessage:
        last = messages[-1].content[0]["text"]
        if last.startswith("Observation:"):
            name, arguments = "final_answer", {"answer": last.removeprefix("Observation:").strip()}
        else:
            name, arguments = "find_order", {"order": re.search(r"[A-Z]-\d+", last)[0]}
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(id="c1", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, tool_calls=[call])


@tool
def find_order(order: str) -> str:
    """The status of an order.

    Args:
        order: its number
    """
    return f"Order {order} is on its way." if order == "A-1009" else f"There is no order {order}."


def answer(instruction: str) -> RunResult:
    agent = ToolCallingAgent(tools=[find_order], model=Scripted(), return_full_result=True, verbosity_level=0)
    return agent.run(instruction)


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
