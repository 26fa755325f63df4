"""An agent of Pydantic AI: return the result of `agent.run`."""

import re

from pydantic_ai import Agent, AgentRunResult
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import seatrial as st


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """In place of a model: looks for the order of the question, and says what it found."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content))])
    return ModelResponse(parts=[ToolCallPart("find_order", {"order": re.search(r"[A-Z]-\d+", str(last.content))[0]})])


agent = Agent(FunctionModel(scripted))


@agent.tool_plain
def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is on its way." if order == "A-1009" else f"There is no order {order}."


async def answer(instruction: str) -> AgentRunResult[str]:
    return await agent.run(instruction)


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
