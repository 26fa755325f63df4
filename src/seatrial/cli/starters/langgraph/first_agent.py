"""An agent of LangGraph (`pip install langchain langgraph`).

With MODEL=openai:gpt-5-mini, or another name, it asks that model.
Without MODEL a scripted model answers, so that the suite runs before you have a key.
"""

import os
import re
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

ORDERS = {"A-1009": "on its way"}


@tool
def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is {ORDERS[order]}." if order in ORDERS else f"There is no order {order}."


class Scripted(BaseChatModel):
    """Calls `find_order` with the order of the question, and answers with what it returns."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            message = AIMessage(last.text)
        else:
            found = re.search(r"[A-Z]-\d+", last.text)
            call = {"name": "find_order", "args": {"order": found.group() if found else ""}, "id": "call-1"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Any, **options: Any) -> "Scripted":
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


graph = create_agent(os.environ.get("MODEL") or Scripted(), [find_order])


async def answer(instruction: str) -> dict[str, Any]:
    return await graph.ainvoke({"messages": [{"role": "user", "content": instruction}]})
