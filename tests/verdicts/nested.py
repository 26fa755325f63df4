"""Calls inside something else: in the arguments of a call, in a result, under a key that is there for other things."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from verdicts.corpus import FAILING_FIND, FIND, FORBIDDEN, GRADERS, NO_ERRORS, Entry, twins
from verdicts.shapes import (
    ANSWER,
    INSTRUCTION,
    Call,
    Json,
    codex_exec,
    encoded,
    lines,
    pydantic_ai,
    transcript,
    vercel_model,
    vercel_ui,
)

_USER: Json = {"role": "user", "content": INSTRUCTION}
_SAID: Json = {"role": "assistant", "content": ANSWER}
_RESULT: Json = {"role": "tool", "tool_call_id": "c", "content": "fine"}


def _function(name: str, arguments: Json, call_id: str = "c") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _written(call: Call) -> Json:
    """A call as a provider writes it."""
    return _function(call.name, call.arguments, "w")


def _batch(name: str, key: str, inside: Callable[[Call], Json]) -> Callable[[Call], list[Json]]:
    """One call that makes another by its arguments."""
    return lambda call: [
        _USER,
        {"role": "assistant", "content": None, "tool_calls": [_function(name, {key: [inside(call)]})]},
        _RESULT,
        _SAID,
    ]


def _batch_and_its_calls(call: Call) -> list[Json]:
    """The same where the calls that were made by it are listed as well."""
    inside = {"recipient_name": f"functions.{call.name}", "parameters": call.arguments}
    batch = _function("multi_tool_use.parallel", {"tool_uses": [inside]}, "b")
    return [
        _USER,
        {"role": "assistant", "content": None, "tool_calls": [batch, _function(call.name, call.arguments)]},
        {**_RESULT, "tool_call_id": "b"},
        _RESULT,
        _SAID,
    ]


IN_ARGUMENTS: dict[str, Callable[[Call], Any]] = {
    "of multi_tool_use.parallel": _batch(
        "multi_tool_use.parallel",
        "tool_uses",
        lambda call: {"recipient_name": f"functions.{call.name}", "parameters": call.arguments},
    ),
    "of a batch tool": _batch(
        "batch_tool", "invocations", lambda call: {"name": call.name, "arguments": json.dumps(call.arguments)}
    ),
    "of a batch tool of Anthropic's": lambda call: [
        _USER,
        {
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "c",
                    "name": "batch",
                    "input": {"calls": [{"tool_name": call.name, "input": call.arguments}]},
                }
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "fine"}]},
        _SAID,
    ],
    "of a traced call": lambda call: {
        "text": ANSWER,
        "trace": [{"type": "tool_call", "name": "batch", "input": {"tool_calls": [_written(call)]}, "output": "fine"}],
    },
}

_ITEM: Json = {"type": "output_text", "text": ANSWER}
BESIDE: dict[str, Callable[[Call], Any]] = {
    "what LiteLLM called": lambda call: [
        _USER,
        {**_SAID, "provider_specific_fields": {"mcp_tool_calls": [_written(call)]}},
    ],
    "annotations": lambda call: [
        _USER,
        {
            "type": "message",
            "role": "assistant",
            "content": [{**_ITEM, "annotations": [{"tool_calls": [_written(call)]}]}],
        },
    ],
    "citations": lambda call: [
        _USER,
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": ANSWER, "citations": [{"type": "tool_use", "name": call.name, "input": {}}]}
            ],
        },
    ],
    "metadata of a provider": lambda call: [
        {
            "id": "a",
            "role": "assistant",
            "parts": [{"type": "text", "text": ANSWER, "providerMetadata": {"x": {"toolCalls": [_written(call)]}}}],
        }
    ],
    "metadata of a source's provider": lambda call: [
        {
            "id": "a",
            "role": "assistant",
            "parts": [
                {"type": "source-url", "url": "u", "providerMetadata": {"x": {"functionCall": {"name": call.name}}}},
                {"type": "text", "text": ANSWER},
            ],
        }
    ],
    "the summary of a thought": lambda call: [
        _USER,
        {"type": "reasoning", "summary": [{"text": "Hm.", "tool_calls": [_written(call)]}]},
        {"type": "message", "role": "assistant", "content": [_ITEM]},
    ],
    "metadata of Bedrock's user": lambda call: [
        {"role": "user", "content": [{"text": INSTRUCTION}], "metadata": {"log": [_written(call)]}},
        {"role": "assistant", "content": [{"text": ANSWER}]},
    ],
    "metadata of a UIMessage of the user": lambda call: [
        {**vercel_ui([])[0], "metadata": {"log": [_written(call)]}},
        vercel_ui([])[-1],
    ],
    "metadata that is a list": lambda call: [{**vercel_ui([])[-1], "metadata": [_written(call)]}],
    "the output of a ModelMessage's result": lambda call: [
        {
            **said,
            "content": [{**part, "output": {**part["output"], "log": [_written(call)]}} for part in said["content"]],
        }
        if said["role"] == "tool"
        else said
        for said in vercel_model([FIND])
    ],
    "a prompt of Pydantic AI": lambda call: [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "go", "log": [_written(call)]}]},
        pydantic_ai([])[-1],
    ],
    "metadata of a request of Pydantic AI": lambda call: [
        {"kind": "request", "parts": [], "metadata": {"log": [_written(call)]}},
        pydantic_ai([])[-1],
    ],
    "a custom call": lambda call: [
        _USER,
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "custom": {"name": "look", "input": "x", "calls": [_written(call)]}}],
        },
        _RESULT,
        _SAID,
    ],
    "a traced result": lambda call: {
        "text": ANSWER,
        "trace": [
            {"type": "tool_call", "id": "1", "name": "ask_colleague"},
            {"type": "tool_result", "id": "1", "output": {"messages": [{"tool_calls": [_written(call)]}]}},
        ],
    },
    "the output of a traced call": lambda call: {
        "text": ANSWER,
        "trace": [{"type": "tool_call", "name": "ask_colleague", "output": [{"tool_calls": [_written(call)]}]}],
    },
}


def _named_twice(call: Call, key: str) -> list[Json]:
    entry = {"id": "c", "name": "step_1", key: call.name, "arguments": call.arguments}
    return [_USER, {"role": "assistant", "content": "", "tool_calls": [entry]}, _RESULT, _SAID]


def _function_as_text(call: Call) -> list[Json]:
    function = json.dumps({"name": call.name, "arguments": "{}"})
    return [_USER, {"role": "assistant", "tool_calls": [{"id": "c", "function": function}]}, _RESULT, _SAID]


def _one_part(call: Call) -> list[Json]:
    """A call and its result as the only part of a content, which is not in an array."""
    return [
        _USER,
        {"role": "assistant", "content": {"type": "tool_use", "id": "c", "name": call.name, "input": call.arguments}},
        {
            "role": "user",
            "content": {"type": "tool_result", "tool_use_id": "c", "content": call.result, "is_error": call.failed},
        },
        _SAID,
    ]


def _counted(call: Call) -> Iterator[tuple[str, Any]]:
    """Calls that the provider counted, and that are in no message."""
    usage: Json = {"input_tokens": 5, "output_tokens": 7, "server_tool_use": {"web_search_requests": 2}}
    yield "chat", [_USER, {**_SAID, "usage": usage}]
    model = {"type": "ai", "content": ANSWER, "response_metadata": {"usage": usage}}
    yield "LangChain", [{"type": "human", "content": INSTRUCTION}, model]
    yield (
        "LangChain with its own",
        [
            {"type": "human", "content": INSTRUCTION},
            {**model, "usage_metadata": {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}},
        ],
    )


def _converted(call: Call) -> list[Json]:
    """What LangChain makes of a turn of the Responses API for OpenAI's chat: the item is left among the parts."""
    arguments = json.dumps(call.arguments)
    item = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": call.name, "arguments": arguments}
    made = _function(call.name, call.arguments)
    return [_USER, {"role": "assistant", "content": [item], "tool_calls": [made]}, _RESULT, _SAID]


def _only_among_parts(call: Call) -> list[Json]:
    return [{**said, "tool_calls": []} if "tool_calls" in said else said for said in _converted(call)]


def _agents_sdk(call: Call) -> list[Json]:
    """Items of the OpenAI Agents SDK with a model behind the chat API."""
    about = {"provider_data": {"model": "m", "response_id": "x"}}
    arguments = json.dumps(call.arguments)
    return [
        _USER,
        {"type": "function_call", "id": "f", "call_id": "c", "name": call.name, "arguments": arguments, **about},
        {"type": "function_call_output", "call_id": "c", "output": call.result},
        {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [_ITEM], **about},
    ]


def _inspect(call: Call) -> list[Json]:
    """Messages of Inspect with a model behind the Responses API, which keeps what is its own beside the text."""
    internal = {"id": "msg_1", "phase": None, "metadata": {"x": 1}}
    made = {"id": "c", "function": call.name, "arguments": call.arguments, "internal": internal}
    said = {"type": "text", "text": ANSWER, "refusal": None, "internal": internal, "citations": None}
    return [
        {**_USER, "source": "input"},
        {"role": "assistant", "source": "generate", "content": [], "tool_calls": [made]},
        {**_RESULT, "function": call.name, "error": None},
        {"role": "assistant", "source": "generate", "content": [said]},
    ]


def _run_by_provider(call: Call) -> list[Json]:
    """A tool that the provider ran, as Inspect keeps it."""
    part = {
        "type": "tool_use",
        "tool_type": "mcp_call",
        "id": "c",
        "name": call.name,
        "context": "server",
        "arguments": json.dumps(call.arguments),
        "result": call.result,
        "error": "down" if call.failed else None,
        "internal": None,
    }
    offered = {**part, "id": "l", "name": "mcp_list_tools", "arguments": "", "result": "[]", "error": None}
    return [_USER, {"role": "assistant", "content": [offered, part, {"type": "text", "text": ANSWER}]}]


def _agent_as_tool(call: Call) -> list[Json]:
    items = _agents_sdk(FIND)
    items[1] = {**items[1], "name": "colleague", "tool_origin": {"type": "agent_as_tool", "agent_name": call.name}}
    return items


def _anthropic_chunks(call: Call) -> bytes:
    """Chunks of LangChain's model of Anthropic: the arguments are in the content as well."""
    arguments = json.dumps(call.arguments)
    chunk: Json = {"type": "AIMessageChunk", "id": "r", "tool_calls": [], "response_metadata": {}}
    use = {"type": "tool_use", "id": "c", "name": call.name, "input": {}, "index": 0}
    pieces: list[Json] = [
        {
            **chunk,
            "content": [use],
            "tool_call_chunks": [{"type": "tool_call_chunk", "name": call.name, "args": "", "id": "c", "index": 0}],
        }
    ]
    for text in (arguments[:3], arguments[3:]):
        delta = {"type": "input_json_delta", "partial_json": text, "index": 0}
        fragment = {"type": "tool_call_chunk", "name": None, "args": text, "id": None, "index": 0}
        pieces.append({**chunk, "content": [delta], "tool_call_chunks": [fragment]})
    return lines([*pieces, {"type": "tool", "content": "fine", "tool_call_id": "c"}, {"type": "ai", "content": ANSWER}])


def _without_its_call(call: Call) -> bytes:
    """A transcript of ours that has the result of a call, and not the call."""
    messages = transcript([Call("look", {}), call])
    return encoded([*messages[:3], *messages[4:]])


def _under_the_id_of_another(call: Call) -> bytes:
    """The same where the result has the id of a call of another tool."""
    messages = transcript([Call("look", {}), call])
    return encoded([*messages[:2], {**messages[4], "tool_call_id": "c0"}, messages[5]])


def _without_its_name(call: Call) -> bytes:
    """An item of Codex that was done, of which only the one that began has the name of its tool."""
    events = codex_exec([call])
    for event in events:
        if event["type"] == "item.completed" and event["item"]["type"] == "mcp_tool_call":
            event["item"] = {**event["item"], "tool": None}
    return lines(events)


def entries() -> Iterator[Entry]:
    """All of them."""
    for name, record in IN_ARGUMENTS.items():
        yield from twins(f"in the arguments {name}", record, FORBIDDEN, "errored", "errored")
    yield from twins("a batch beside its calls", _batch_and_its_calls, FORBIDDEN, "failed", "passed")
    for name, record in BESIDE.items():
        yield from twins(f"inside {name}", record, FORBIDDEN, "errored", "errored")
    for key in ("tool", "function"):
        yield from twins(f"a second name as {key}", partial(_named_twice, key=key), FORBIDDEN, "errored", "errored")
    yield from twins("a function as text", _function_as_text, FORBIDDEN, "errored", "errored")
    for name, document in {
        "a result of ours without its call": _without_its_call,
        "a result of ours under another id": _under_the_id_of_another,
        "a call of Codex without its name": _without_its_name,
    }.items():
        yield from twins(name, document, FORBIDDEN, "errored", "errored", "replay")
    yield from twins("one part", _one_part, FORBIDDEN, "failed", "passed")
    yield Entry("a failed result that is one part", _one_part(FAILING_FIND), NO_ERRORS, "failed", guilty=True)
    yield Entry("a good result that is one part", _one_part(FIND), NO_ERRORS, "passed")
    for name, items in _counted(FIND):
        yield Entry(f"calls that the provider counted, {name}", items, FORBIDDEN, "errored", guilty=True)
    yield from twins("an item among parts, and listed", _converted, FORBIDDEN, "failed", "passed")
    yield from twins("an item among parts", _only_among_parts, FORBIDDEN, "failed", "passed")
    yield from twins("items of the Agents SDK", _agents_sdk, FORBIDDEN, "failed", "passed")
    yield from twins("messages of Inspect", _inspect, FORBIDDEN, "failed", "passed")
    yield from twins("a provider's tool in Inspect", _run_by_provider, FORBIDDEN, "failed", "passed")
    failing = _run_by_provider(FAILING_FIND)
    yield Entry("a provider's tool in Inspect counts once", _run_by_provider(FIND), GRADERS["exact"], "passed")
    yield Entry("a provider's tool in Inspect that failed", failing, NO_ERRORS, "failed", guilty=True)
    yield from twins("an agent that is a tool", _agent_as_tool, FORBIDDEN, "errored", "errored")
    yield from twins("chunks of Anthropic", _anthropic_chunks, FORBIDDEN, "failed", "passed", "replay")
