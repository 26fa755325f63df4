"""Results of frameworks that a function returns: stand-ins with the module, the name and the fields of the real ones.

`make frameworks` runs the programs of docs/frameworks.md with the real packages.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from seatrial.agents.python.returned import read_returned
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract


def named(module: str, name: str, **fields: Any) -> Any:
    """An object of a class with this module and name."""
    kind = dataclasses.make_dataclass(name, [(field, Any) for field in fields])
    kind.__module__ = module
    return kind(**fields)


def reading_of(value: Any) -> Reading:
    reply = read_returned(value)
    assert reply.fault is None
    assert reply.reading is not None
    return reply.reading


def calls_of(reading: Reading) -> list[tuple[str, Any, str]]:
    return [(step.name, step.arguments, step.status) for step in extract(reading).steps]


# Strands


def used(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}]}


def gave(call_id: str, status: str, text: str) -> dict[str, Any]:
    result = {"toolUseId": call_id, "status": status, "content": [{"text": text}]}
    return {"role": "user", "content": [{"toolResult": result}]}


def trace(message: Any = None, *children: Any) -> Any:
    return named("strands.telemetry.metrics", "Trace", message=message, children=[*children])


SAID = {"role": "assistant", "content": [{"text": "It was sent."}]}
EARLIER = trace(None, trace(used("t0", "delete_account")), trace(gave("t0", "success", "gone")))
CYCLES = [
    trace(None, trace(used("t1", "find_order", order="A-1")), trace(gave("t1", "success", "sent")), trace()),
    trace(None, trace(used("t2", "refund")), trace(gave("t2", "error", "not allowed"))),
    trace(None, trace(SAID)),
]


def strands(traces: list[Any], cycles: int, message: Any = SAID, stop_reason: str = "end_turn") -> Any:
    invocation = named("s", "AgentInvocation", cycles=[{}] * cycles, usage={"inputTokens": 30, "outputTokens": 15})
    metrics = named("s", "EventLoopMetrics", agent_invocations=[invocation], traces=traces)
    result = {"stop_reason": stop_reason, "message": message, "metrics": metrics, "state": {}}
    return named("strands.agent.agent_result", "AgentResult", **result)


def test_a_result_of_strands_has_the_calls_of_its_own_invocation() -> None:
    reading = reading_of(strands([EARLIER, *CYCLES], cycles=3))
    assert calls_of(reading) == [("find_order", {"order": "A-1"}, "ok"), ("refund", {}, "error")]
    assert extract(reading).completeness.level == "complete"
    assert reading.transcript.final_text() == "It was sent."
    assert reading.transcript.usage is not None
    assert reading.transcript.usage.output_tokens == 15


def test_a_result_of_strands_whose_traces_do_not_end_with_its_message_is_not_taken_for_whole() -> None:
    reply = read_returned(strands(CYCLES[:2], cycles=2))
    assert reply.reading is None or extract(reply.reading).completeness.level != "complete"


def test_a_run_of_strands_that_was_cancelled_is_not_whole() -> None:
    reading = reading_of(strands(CYCLES, cycles=3, stop_reason="cancelled"))
    assert extract(reading).completeness.level == "partial"


# agno

_FIELDS = {"content": None, "tool_calls": None, "tool_call_id": None, "tool_name": None, "tool_call_error": None}


class AgnoMessage:
    def __init__(self, role: str, *, from_history: bool = False, **fields: Any) -> None:
        self._fields = {**_FIELDS, "role": role, "from_history": from_history, "metrics": object(), **fields}

    def __getattr__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Any:
        return iter(self._fields.items())


def function(call_id: str, name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


EARLIER_MESSAGES = [
    AgnoMessage("assistant", tool_calls=[function("c0", "delete_account")], from_history=True),
    AgnoMessage("tool", tool_call_id="c0", content="gone", from_history=True),
]
MESSAGES = [
    AgnoMessage("user", content="Where is A-1?"),
    AgnoMessage("assistant", tool_calls=[function("c1", "find_order", '{"order": "A-1"}')]),
    AgnoMessage("tool", tool_call_id="c1", tool_name="find_order", tool_call_error=False, content="sent"),
    AgnoMessage("assistant", tool_calls=[function("c2", "refund")]),
    AgnoMessage("tool", tool_call_id="c2", tool_name="refund", tool_call_error=True, content="not allowed"),
    AgnoMessage("assistant", content="It was sent."),
]


def agno(messages: list[Any] | None, status: str = "COMPLETED", tokens: int = 0, **more: Any) -> Any:
    metrics = named("agno.metrics", "RunMetrics", input_tokens=tokens, output_tokens=tokens)
    fields = {"messages": messages, "content": "It was sent.", "status": status, "metrics": metrics}
    return named("agno.run.agent", "RunOutput", **fields, **more)


def test_a_result_of_agno_has_its_own_calls_and_none_of_its_history() -> None:
    reading = reading_of(agno([*EARLIER_MESSAGES, *MESSAGES], tokens=7))
    assert calls_of(reading) == [("find_order", {"order": "A-1"}, "ok"), ("refund", {}, "error")]
    assert extract(reading).completeness.level == "complete"
    assert reading.transcript.final_text() == "It was sent."
    assert reading.transcript.usage is not None


def test_tokens_that_agno_did_not_count_are_unknown_and_not_zero() -> None:
    assert reading_of(agno(MESSAGES)).transcript.usage is None


@pytest.mark.parametrize(
    "more", [{"status": "CANCELLED"}, {"member_responses": [{"tool_calls": [function("c", "x")]}]}]
)
def test_a_run_of_agno_of_which_not_all_is_known_is_partial(more: dict[str, Any]) -> None:
    assert extract(reading_of(agno(MESSAGES, **more))).completeness.level == "partial"


# smolagents


def test_a_result_of_smolagents_has_its_steps_and_its_answer() -> None:
    calls = [{"id": "c0", "type": "function", "function": {"name": "refund", "arguments": {"order": "A-1"}}}]
    step = {"step_number": 1, "model_output_message": {"role": "assistant", "tool_calls": calls}, "observations": "ok"}
    usage = named("smolagents.monitoring", "TokenUsage", input_tokens=40, output_tokens=20)
    fields = {"steps": [step], "output": "Done.", "state": "success", "token_usage": usage}
    reading = reading_of(named("smolagents.agents", "RunResult", **fields))
    assert calls_of(reading) == [("refund", {"order": "A-1"}, "ok")]
    assert extract(reading).completeness.level == "complete"
    assert reading.transcript.final_text() == "Done."
