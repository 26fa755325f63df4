"""An agent of pydantic-ai (`pip install pydantic-ai-slim`).

With MODEL=openai:gpt-5-mini, or another name, it asks that model.
Without MODEL a scripted model answers, so that the suite runs before you have a key.
"""

import os
import re

from pydantic_ai import Agent, AgentRunResult
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

ORDERS = {"A-1009": "on its way"}


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content))])
    found = re.search(r"[A-Z]-\d+", str(last.content))
    return ModelResponse(parts=[ToolCallPart("find_order", {"order": found.group() if found else ""})])


agent = Agent(os.environ.get("MODEL") or FunctionModel(scripted), system_prompt="You answer customers of a shop.")


@agent.tool_plain
def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is {ORDERS[order]}." if order in ORDERS else f"There is no order {order}."


async def answer(instruction: str) -> AgentRunResult[str]:
    return await agent.run(instruction)
