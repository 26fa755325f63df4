"""Results of frameworks that keep their history in fields of their own: which of them are the record of the run.

No framework is imported: a result is known by the module and the name of its class. What is taken out here is converted
like everything else that a function returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

_OF_NO_INTEREST: Final = frozenset(
    {"add_to_agent_memory", "checkpoint_created_at", "checkpoint_status", "compressed_content", "created_at",
     "from_history", "metrics", "stop_after_tool_call", "temporary", "tool_args", "tool_call_error", "tool_name"}
)  # fmt: skip
"""Fields of agno's messages that say nothing of what was said or called, or say it a second time."""


def record_of(value: Any) -> dict[str, Any] | None:
    """What a framework's result says of its run, as a provider response; None for everything else."""
    for kind in type(value).__mro__:
        read = _RESULTS.get(f"{kind.__module__}.{kind.__qualname__}")
        if read is not None:
            return read(value)
    return None


def _strands(result: Any) -> dict[str, Any] | None:
    """An `AgentResult` of Strands has only the last message; all of its run are in the traces of its cycles."""
    metrics = result.metrics
    if not metrics.agent_invocations:
        return None
    invocation = metrics.agent_invocations[-1]
    # The agent's metrics go on from one invocation to the next.
    cycles = len(invocation.cycles)
    messages = [*_traced(metrics.traces[-cycles:] if cycles else ())]
    if not messages or messages[-1] != result.message:
        return None
    record = {"output_messages": messages, "token_usage": invocation.usage}
    if result.stop_reason == "cancelled":
        record["status"] = "cancelled"
    return record


def _traced(traces: Iterable[Any]) -> Iterator[Any]:
    for trace in traces:
        if trace.message is not None:
            yield trace.message
        yield from _traced(trace.children)


def _agno(result: Any) -> dict[str, Any] | None:
    """A `RunOutput` or `TeamRunOutput` of agno. Of what came before the run, its messages say so themselves."""
    if result.messages is None:
        return None
    record: dict[str, Any] = {
        "output_messages": [_agno_message(message) for message in result.messages if not message.from_history]
    }
    if isinstance(result.content, str):
        record["text"] = result.content
    # A count that nobody gave is 0 there.
    counts = {name: getattr(result.metrics, name, 0) for name in ("input_tokens", "output_tokens")}
    if all(counts.values()):
        record["token_usage"] = counts
    status = str(getattr(result.status, "value", result.status)).lower()
    if status != "completed":
        record["status"] = status
    for more in ("member_responses", "reasoning_messages", "requirements"):
        if found := getattr(result, more, None):
            record[more] = found
    return record


def _agno_message(message: Any) -> dict[str, Any]:
    fields = {name: value for name, value in message if value is not None and name not in _OF_NO_INTEREST}
    if message.tool_name is not None:
        fields["name"] = message.tool_name
    if message.tool_call_error is not None:
        fields["is_error"] = message.tool_call_error
    return fields


def _smolagents(result: Any) -> dict[str, Any] | None:
    """A `RunResult` of smolagents, which its agents give with `return_full_result=True`."""
    if result.steps is None:
        return None
    record: dict[str, Any] = {"output_messages": result.steps, "state": result.state}
    if isinstance(result.output, str):
        record["text"] = result.output
    if result.token_usage is not None:
        record["token_usage"] = result.token_usage
    return record


_RESULTS: Final[dict[str, Callable[[Any], dict[str, Any] | None]]] = {
    "agno.run.agent.RunOutput": _agno,
    "agno.run.team.TeamRunOutput": _agno,
    "smolagents.agents.RunResult": _smolagents,
    "strands.agent.agent_result.AgentResult": _strands,
}
