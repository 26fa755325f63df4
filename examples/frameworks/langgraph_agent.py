"""An agent of LangGraph: return the state that `graph.ainvoke` gives."""

import re
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

import seatrial as st


class Scripted(BaseChatModel):
    """In place of a model: looks for the order of the question, and says what it found."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            message = AIMessage(last.text)
        else:
            arguments = {"order": re.search(r"[A-Z]-\d+", last.text)[0]}
            message = AIMessage("", tool_calls=[{"name": "find_order", "args": arguments, "id": "c1"}])
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Any, **options: Any) -> "Scripted":
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


@tool
def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is on its way." if order == "A-1009" else f"There is no order {order}."


graph = create_agent(Scripted(), [find_order])


async def answer(instruction: str) -> dict[str, Any]:
    return await graph.ainvoke({"messages": [{"role": "user", "content": instruction}]})


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
