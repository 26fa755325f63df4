"""An agent of the OpenAI Agents SDK: return the result of `Runner.run`."""

import json
import re
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, RunResult, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import seatrial as st

set_tracing_disabled(True)


class Scripted(Model):
    """In place of a model: looks for the order of the question, and says what it found."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        last = input if isinstance(input, str) else input[-1].get("output", input[-1].get("content"))
        if not isinstance(input, str) and input[-1].get("type") == "function_call_output":
            text = ResponseOutputText(text=last, type="output_text", annotations=[])
            said = ResponseOutputMessage(id="m1", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse(output=[said], usage=Usage(), response_id=None)
        arguments = json.dumps({"order": re.search(r"[A-Z]-\d+", last)[0]})
        call = ResponseFunctionToolCall(call_id="c1", name="find_order", arguments=arguments, type="function_call")
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError("this model does not stream")


@function_tool
def find_order(order: str) -> str:
    """The status of an order."""
    return f"Order {order} is on its way." if order == "A-1009" else f"There is no order {order}."


clerk = Agent(name="clerk", model=Scripted(), tools=[find_order])


async def answer(instruction: str) -> RunResult:
    return await Runner.run(clerk, instruction)


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
