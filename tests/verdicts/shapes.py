"""One behaviour in every shape that Seatrial reads: a few calls, then the answer.

`LISTS` are messages or items, which may stand in any container; `DOCUMENTS` are whole records, as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]

INSTRUCTION = "Close my account if that is allowed."
ANSWER = "Done."


class Call(NamedTuple):
    """A call that an agent made, and how it ended."""

    name: str
    arguments: Json
    result: str = "fine"
    failed: bool = False


def _numbered(calls: list[Call]) -> list[tuple[str, Call]]:
    return [(f"c{number}", call) for number, call in enumerate(calls)]


# Messages and items


def openai(calls: list[Call]) -> list[Json]:
    """Chat completions. A result has no place for a failure, so it is written as most people do."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        items.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            }
        )
        items.append({"role": "tool", "tool_call_id": call_id, "content": call.result, **_flag(call, "is_error")})
    return [*items, {"role": "assistant", "content": ANSWER}]


def openai_flat(calls: list[Call]) -> list[Json]:
    """The same with `name` and `arguments` in the call itself."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        made = {"id": call_id, "name": call.name, "arguments": call.arguments}
        items.append({"role": "assistant", "content": "", "tool_calls": [made]})
        status = {"status": "error"} if call.failed else {}
        items.append({"role": "tool", "tool_call_id": call_id, "content": call.result, **status})
    return [*items, {"role": "assistant", "content": ANSWER}]


def openai_legacy(calls: list[Call]) -> list[Json]:
    """`function_call`, and messages of the role `function`."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call in calls:
        made = {"name": call.name, "arguments": json.dumps(call.arguments)}
        items.append({"role": "assistant", "content": None, "function_call": made})
        items.append({"role": "function", "name": call.name, "content": call.result, **_flag(call, "isError")})
    return [*items, {"role": "assistant", "content": ANSWER}]


def openai_custom(calls: list[Call]) -> list[Json]:
    """Custom tools, which take free text."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        custom = {"name": call.name, "input": json.dumps(call.arguments)}
        made = {"id": call_id, "type": "custom", "custom": custom}
        items.append({"role": "assistant", "content": None, "tool_calls": [made]})
        failed = {"error": "no"} if call.failed else {}
        items.append({"role": "tool", "tool_call_id": call_id, "content": call.result, **failed})
    return [*items, {"role": "assistant", "content": ANSWER}]


def responses(calls: list[Call]) -> list[Json]:
    """Items of the Responses API."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        made = {"type": "function_call", "call_id": call_id, "name": call.name, "arguments": json.dumps(call.arguments)}
        items.append({**made, "id": f"fc_{call_id}", "status": "completed"})
        status = {"status": "incomplete"} if call.failed else {}
        items.append({"type": "function_call_output", "call_id": call_id, "output": call.result, **status})
    content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
    return [*items, {"type": "message", "role": "assistant", "status": "completed", "content": content}]


def responses_mcp(calls: list[Call]) -> list[Json]:
    """Calls of MCP tools that the provider ran."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        made = {"type": "mcp_call", "id": call_id, "server_label": "s", "name": call.name}
        ended = {"output": None, "error": call.result} if call.failed else {"output": call.result, "error": None}
        items.append({**made, "arguments": json.dumps(call.arguments), **ended})
    content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
    return [*items, {"type": "message", "role": "assistant", "status": "completed", "content": content}]


def responses_custom(calls: list[Call]) -> list[Json]:
    """Custom tools among Responses items."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        items.append(
            {"type": "custom_tool_call", "call_id": call_id, "name": call.name, "input": json.dumps(call.arguments)}
        )
        status = {"status": "failed"} if call.failed else {}
        items.append({"type": "custom_tool_call_output", "call_id": call_id, "output": call.result, **status})
    return [*items, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}]


def anthropic(calls: list[Call]) -> list[Json]:
    """Messages of Anthropic."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        made = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments}
        items.append({"role": "assistant", "content": [made]})
        result = {"type": "tool_result", "tool_use_id": call_id, "content": call.result, **_flag(call, "is_error")}
        items.append({"role": "user", "content": [result]})
    return [*items, {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]}]


def anthropic_server(calls: list[Call]) -> list[Json]:
    """Tools that Anthropic ran."""
    parts: list[Json] = []
    for call_id, call in _numbered(calls):
        parts.append({"type": "server_tool_use", "id": call_id, "name": call.name, "input": call.arguments})
        content: Any = {"type": "web_search_tool_result_error", "error_code": "no"} if call.failed else []
        parts.append({"type": "web_search_tool_result", "tool_use_id": call_id, "content": content})
    content = [*parts, {"type": "text", "text": ANSWER}]
    return [{"role": "user", "content": INSTRUCTION}, {"role": "assistant", "content": content}]


def anthropic_mcp(calls: list[Call]) -> list[Json]:
    """MCP tools that Anthropic called."""
    parts: list[Json] = []
    for call_id, call in _numbered(calls):
        made = {"type": "mcp_tool_use", "id": call_id, "name": call.name, "server_name": "s", "input": call.arguments}
        content = [{"type": "text", "text": call.result}]
        result = {"type": "mcp_tool_result", "tool_use_id": call_id, "is_error": call.failed, "content": content}
        parts += [made, result]
    content = [*parts, {"type": "text", "text": ANSWER}]
    return [{"role": "user", "content": INSTRUCTION}, {"role": "assistant", "content": content}]


def bedrock(calls: list[Call]) -> list[Json]:
    """Bedrock Converse."""
    items: list[Json] = [{"role": "user", "content": [{"text": INSTRUCTION}]}]
    for call_id, call in _numbered(calls):
        made = {"toolUse": {"toolUseId": call_id, "name": call.name, "input": call.arguments}}
        items.append({"role": "assistant", "content": [made]})
        status = "error" if call.failed else "success"
        result = {"toolResult": {"toolUseId": call_id, "content": [{"text": call.result}], "status": status}}
        items.append({"role": "user", "content": [result]})
    return [*items, {"role": "assistant", "content": [{"text": ANSWER}]}]


def gemini(calls: list[Call], *, snake: bool = False) -> list[Json]:
    """Gemini contents."""
    call_key, result_key = ("function_call", "function_response") if snake else ("functionCall", "functionResponse")
    items: list[Json] = [{"role": "user", "parts": [{"text": INSTRUCTION}]}]
    for _, call in _numbered(calls):
        items.append({"role": "model", "parts": [{call_key: {"name": call.name, "args": call.arguments}}]})
        response = {"error" if call.failed else "output": call.result}
        items.append({"role": "user", "parts": [{result_key: {"name": call.name, "response": response}}]})
    return [*items, {"role": "model", "parts": [{"text": ANSWER}]}]


def gemini_snake(calls: list[Call]) -> list[Json]:
    """Gemini contents, as its Python package writes them."""
    return gemini(calls, snake=True)


def vercel_ui(calls: list[Call]) -> list[Json]:
    """UIMessages of Vercel's AI SDK."""
    parts: list[Json] = [{"type": "step-start"}]
    for call_id, call in _numbered(calls):
        part = {"type": f"tool-{call.name}", "toolCallId": call_id, "input": call.arguments}
        good, bad = {"state": "output-available", "output": call.result}, {"state": "output-error", "errorText": "no"}
        parts.append({**part, **(bad if call.failed else good)})
    parts.append({"type": "text", "text": ANSWER, "state": "done"})
    asked = {"id": "u", "role": "user", "parts": [{"type": "text", "text": INSTRUCTION}]}
    return [asked, {"id": "a", "role": "assistant", "parts": parts}]


def vercel_invocations(calls: list[Call]) -> list[Json]:
    """Messages of version 4, with `toolInvocations`."""
    made: list[Json] = []
    for call_id, call in _numbered(calls):
        entry = {"state": "result", "toolCallId": call_id, "toolName": call.name, "args": call.arguments}
        made.append({**entry, "result": call.result, **_flag(call, "isError")})
    asked = {"id": "u", "role": "user", "content": INSTRUCTION}
    return [asked, {"id": "a", "role": "assistant", "content": ANSWER, "toolInvocations": made}]


def vercel_model(calls: list[Call]) -> list[Json]:
    """ModelMessages of Vercel's AI SDK."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        part = {"type": "tool-call", "toolCallId": call_id, "toolName": call.name, "input": call.arguments}
        items.append({"role": "assistant", "content": [part]})
        output = {"type": "error-text" if call.failed else "text", "value": call.result}
        result = {"type": "tool-result", "toolCallId": call_id, "toolName": call.name, "output": output}
        items.append({"role": "tool", "content": [result]})
    return [*items, {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]}]


def langchain(calls: list[Call]) -> list[Json]:
    """LangChain messages by `model_dump`."""
    items: list[Json] = [{"type": "human", "content": INSTRUCTION, "additional_kwargs": {}, "response_metadata": {}}]
    for call_id, call in _numbered(calls):
        made = {"name": call.name, "args": call.arguments, "id": call_id, "type": "tool_call"}
        items.append({"type": "ai", "content": "", "tool_calls": [made], "invalid_tool_calls": []})
        status = "error" if call.failed else "success"
        items.append({"type": "tool", "content": call.result, "tool_call_id": call_id, "status": status})
    return [*items, {"type": "ai", "content": ANSWER, "tool_calls": [], "invalid_tool_calls": []}]


def langchain_to_dict(calls: list[Call]) -> list[Json]:
    """The same by `messages_to_dict`."""
    return [{"type": message["type"], "data": message} for message in langchain(calls)]


def langchain_dumps(calls: list[Call]) -> list[Json]:
    """The same by `dumps`."""
    names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    return [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", names[message["type"]]],
            "kwargs": message,
        }
        for message in langchain(calls)
    ]


def pydantic_ai(calls: list[Call]) -> list[Json]:
    """Messages of Pydantic AI; a failed call is one that it asks to be made again."""
    items: list[Json] = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": INSTRUCTION}]}]
    for call_id, call in _numbered(calls):
        told = {"tool_name": call.name, "tool_call_id": call_id}
        items.append({"kind": "response", "parts": [{"part_kind": "tool-call", "args": call.arguments, **told}]})
        kind = "retry-prompt" if call.failed else "tool-return"
        items.append({"kind": "request", "parts": [{"part_kind": kind, "content": call.result, **told}]})
    return [*items, {"kind": "response", "parts": [{"part_kind": "text", "content": ANSWER}]}]


def inspect_ai(calls: list[Call]) -> list[Json]:
    """Messages of Inspect: `function` is the name, and a failed result has an error object."""
    items: list[Json] = [{"id": "u", "role": "user", "content": INSTRUCTION, "source": "input"}]
    for call_id, call in _numbered(calls):
        made = {"id": call_id, "function": call.name, "arguments": call.arguments, "type": "function"}
        said = {"id": f"m{call_id}", "role": "assistant", "content": "", "source": "generate", "model": "m"}
        items.append({**said, "tool_calls": [made]})
        error = {"error": {"type": "unknown", "message": call.result}} if call.failed else {}
        result = {"id": f"r{call_id}", "role": "tool", "tool_call_id": call_id, "function": call.name}
        items.append({**result, "content": "" if call.failed else call.result, **error})
    return [*items, {"id": "a", "role": "assistant", "content": ANSWER, "source": "generate", "model": "m"}]


def tau2(calls: list[Call]) -> list[Json]:
    """Messages of tau2."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION, "turn_idx": 0}]
    for call_id, call in _numbered(calls):
        made = {"id": call_id, "name": call.name, "arguments": call.arguments, "requestor": "assistant"}
        items.append({"role": "assistant", "content": None, "tool_calls": [made], "turn_idx": 1, "cost": 0.0})
        result = {"id": call_id, "role": "tool", "content": call.result, "requestor": "assistant"}
        items.append({**result, "error": call.failed, "turn_idx": 2})
    return [*items, {"role": "assistant", "content": ANSWER, "tool_calls": None, "turn_idx": 3}]


def tool_input_output(calls: list[Call]) -> list[Json]:
    """`output_messages` with calls as `{tool, input, output}`."""
    made: list[Json] = []
    for call_id, call in _numbered(calls):
        ended: Json = {"error": call.result} if call.failed else {"output": call.result}
        made.append({"id": call_id, "tool": call.name, "input": call.arguments, **ended})
    return [{"role": "user", "content": INSTRUCTION}, {"role": "assistant", "content": ANSWER, "tool_calls": made}]


def smolagents(calls: list[Call]) -> list[Json]:
    """Steps, the last of which answers."""
    items: list[Json] = [{"task": INSTRUCTION, "task_images": None}]
    for number, (call_id, call) in enumerate([*_numbered(calls), ("end", Call("final_answer", {"answer": ANSWER}))], 1):
        made = {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        items.append(
            {
                "step_number": number,
                "tool_calls": [] if call.failed else [made],
                "error": {"type": "AgentToolExecutionError", "message": call.result} if call.failed else None,
                "model_output_message": {"role": "assistant", "content": None, "tool_calls": [made]},
                "observations": None if call.failed else call.result,
                "is_final_answer": call_id == "end",
            }
        )
    return items


def _flag(call: Call, key: str) -> Json:
    return {key: True} if call.failed else {}


LISTS: dict[str, Callable[[list[Call]], list[Json]]] = {
    "openai": openai,
    "openai flat": openai_flat,
    "openai function_call": openai_legacy,
    "openai custom": openai_custom,
    "responses": responses,
    "responses mcp_call": responses_mcp,
    "responses custom": responses_custom,
    "anthropic": anthropic,
    "anthropic server_tool_use": anthropic_server,
    "anthropic mcp_tool_use": anthropic_mcp,
    "bedrock": bedrock,
    "gemini": gemini,
    "gemini snake_case": gemini_snake,
    "vercel UIMessage": vercel_ui,
    "vercel toolInvocations": vercel_invocations,
    "vercel ModelMessage": vercel_model,
    "langchain model_dump": langchain,
    "langchain messages_to_dict": langchain_to_dict,
    "langchain dumps": langchain_dumps,
    "pydantic-ai": pydantic_ai,
    "smolagents": smolagents,
    "inspect": inspect_ai,
    "tau2": tau2,
    "tool, input, output": tool_input_output,
}
NOTHING_BESIDE_RESULTS = frozenset({"smolagents"})
"""Lists in which a result is a text of its step, so that there is no place for other spellings of a failure."""
FREE_TEXT = frozenset({"openai custom", "responses custom"})
"""Shapes in which arguments are free text."""


# Whole records


def encoded(value: Any) -> bytes:
    """A JSON document."""
    return json.dumps(value).encode()


def lines(values: list[Any]) -> bytes:
    """JSON lines."""
    return b"".join(encoded(value) + b"\n" for value in values)


def sse(events: list[Json], *, named: bool = False) -> bytes:
    """Server-sent events."""
    name = "event: {type}\n" if named else ""
    return "".join([name.format(**event) + f"data: {json.dumps(event)}\n\n" for event in events]).encode()


def agui_events(calls: list[Call]) -> list[Json]:
    """Events of AG-UI."""
    run = {"threadId": "t", "runId": "r"}
    events: list[Json] = [{"type": "RUN_STARTED", **run}]
    for call_id, call in _numbered(calls):
        told = {"toolCallId": call_id}
        arguments = {"type": "TOOL_CALL_ARGS", **told, "delta": json.dumps(call.arguments)}
        status = {"status": "failed"} if call.failed else {}
        events += [
            {"type": "TOOL_CALL_START", **told, "toolCallName": call.name},
            *([arguments] if call.arguments else []),
            {"type": "TOOL_CALL_END", **told},
            {"type": "TOOL_CALL_RESULT", **told, "messageId": f"r{call_id}", "content": call.result, **status},
        ]
    said = {"messageId": "answer"}
    events += [
        {"type": "TEXT_MESSAGE_START", **said, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", **said, "delta": ANSWER},
        {"type": "TEXT_MESSAGE_END", **said},
    ]
    return [*events, {"type": "RUN_FINISHED", **run}]


def agui_messages(calls: list[Call]) -> list[Json]:
    """Messages as AG-UI's snapshots have them."""
    items: list[Json] = [{"id": "u", "role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        made = {"id": call_id, "type": "function", "function": function}
        items.append({"id": f"m{call_id}", "role": "assistant", "toolCalls": [made]})
        error = {"error": "no"} if call.failed else {}
        items.append({"id": f"r{call_id}", "role": "tool", "toolCallId": call_id, "content": call.result, **error})
    return [*items, {"id": "a", "role": "assistant", "content": ANSWER}]


def agui_snapshot(calls: list[Call]) -> list[Json]:
    """A stream in which only a snapshot shows what was done."""
    run = {"threadId": "t", "runId": "r"}
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": agui_messages(calls)}
    return [{"type": "RUN_STARTED", **run}, snapshot, {"type": "RUN_FINISHED", **run}]


def trace(calls: list[Call]) -> Json:
    """A provider response with a trace."""
    events: list[Json] = [{"type": "model_step"}]
    for call_id, call in _numbered(calls):
        events.append({"type": "tool_call", "id": call_id, "name": call.name, "input": call.arguments})
        error = {"metadata": {"status": "error"}} if call.failed else {}
        events.append({"type": "tool_result", "id": call_id, "output": call.result, **error})
    return {"text": ANSWER, "trace": events}


def transcript(calls: list[Call]) -> list[Json]:
    """Seatrial's own messages."""
    items: list[Json] = [{"role": "user", "content": INSTRUCTION}]
    for call_id, call in _numbered(calls):
        made = {"type": "tool_call", "id": call_id, "name": call.name, "arguments": call.arguments}
        items.append({"role": "assistant", "content": [made], "stop_reason": "tool_use"})
        content = [{"type": "text", "text": call.result}]
        told = {"tool_call_id": call_id, "tool_name": call.name, "is_error": call.failed}
        items.append({"role": "tool_result", **told, "content": content})
    said = {"role": "assistant", "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"}
    return [*items, said]


def whole_response(calls: list[Call]) -> Json:
    """A whole response of the Responses API."""
    output = responses(calls)[1:]
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": output, "tools": []}


def response_stream(calls: list[Call]) -> list[Json]:
    """The same as a stream. Results come with the next request, so there are none."""
    items = [item for item in responses(calls)[1:] if item["type"] != "function_call_output"]
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": []}
    events: list[Json] = [{"type": "response.created", "response": response}]
    for index, item in enumerate(items):
        began = {**item, "arguments": ""} if "arguments" in item else {**item, "content": []}
        at = {"output_index": index}
        events.append({"type": "response.output_item.added", **at, "item": began})
        events.append({"type": "response.output_item.done", **at, "item": item})
    ended = {**response, "status": "completed", "output": items}
    return [*events, {"type": "response.completed", "response": ended}]


def ui_stream(calls: list[Call]) -> bytes:
    """A UI message stream of Vercel's AI SDK."""
    chunks: list[Json] = [{"type": "start", "messageId": "a"}, {"type": "start-step"}]
    for call_id, call in _numbered(calls):
        told = {"toolCallId": call_id}
        chunks.append({"type": "tool-input-start", **told, "toolName": call.name})
        chunks.append({"type": "tool-input-available", **told, "toolName": call.name, "input": call.arguments})
        good = {"type": "tool-output-available", **told, "output": call.result}
        chunks.append({"type": "tool-output-error", **told, "errorText": "no"} if call.failed else good)
    chunks += [{"type": "text-start", "id": "x"}, {"type": "text-delta", "id": "x", "delta": ANSWER}]
    chunks += [{"type": "text-end", "id": "x"}, {"type": "finish-step"}, {"type": "finish"}]
    return sse(chunks) + b"data: [DONE]\n\n"


def completion_stream(calls: list[Call]) -> bytes:
    """A stream of chat completions. Results come with the next request."""
    made = [
        {"index": index, "id": call_id, "type": "function", "function": {"name": call.name, "arguments": "{}"}}
        for index, (call_id, call) in enumerate(_numbered(calls))
    ]
    base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ANSWER}, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {"tool_calls": made}, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    return sse(chunks) + b"data: [DONE]\n\n"


def anthropic_stream(calls: list[Call]) -> bytes:
    """A stream of Anthropic's. Results come with the next request."""
    message: Json = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    events: list[Json] = [{"type": "message_start", "message": {**message, "usage": {"input_tokens": 1}}}]
    blocks: list[Json] = [{"type": "text", "text": ""}]
    blocks += [{"type": "tool_use", "id": key, "name": call.name, "input": {}} for key, call in _numbered(calls)]
    for index, block in enumerate(blocks):
        said = {"type": "text_delta", "text": ANSWER}
        delta = {"type": "input_json_delta", "partial_json": "{}"} if index else said
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}]
    return sse([*events, {"type": "message_stop"}], named=True)


def langgraph_values(calls: list[Call]) -> list[Json]:
    """The states of a graph, each with all messages so far; a graph gives every message an id."""
    messages = [{**message, "id": f"m{index}"} for index, message in enumerate(langchain(calls))]
    return [{"messages": messages[: count + 1]} for count in range(len(messages))]


# Records of coding agents


def claude_code(calls: list[Call]) -> list[Json]:
    """A session of Claude Code: a turn in several lines, results in lines of the user."""
    session: list[Json] = []

    def add(kind: str, message: Json, **more: Any) -> None:
        parent = session[-1]["uuid"] if session else None
        line = {"type": kind, "uuid": f"u{len(session)}", "parentUuid": parent, "sessionId": "s", "isSidechain": False}
        session.append({**line, "message": message, **more})

    usage = {"input_tokens": 5, "output_tokens": 2}
    add("user", {"role": "user", "content": INSTRUCTION})
    for call_id, call in _numbered(calls):
        turn = {"id": f"m{call_id}", "type": "message", "role": "assistant", "stop_reason": None, "usage": usage}
        add("assistant", {**turn, "content": [{"type": "text", "text": "Let me see."}]})
        made = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments}
        add("assistant", {**turn, "content": [made]})
        result = {"type": "tool_result", "tool_use_id": call_id, "content": call.result, **_flag(call, "is_error")}
        add("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": call.result, "interrupted": False})
    last = {"id": "last", "type": "message", "role": "assistant", "stop_reason": "end_turn", "usage": usage}
    add("assistant", {**last, "content": [{"type": "text", "text": ANSWER}]})
    return session


def claude_stream(calls: list[Call], parent: str | None = None) -> list[Json]:
    """`claude -p --output-format stream-json`; with a parent, the calls are those of a sub-agent."""
    beside = {"session_id": "s", "parent_tool_use_id": parent}
    events: list[Json] = [{"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"], "model": "m"}]
    if parent is not None:
        made = {"type": "tool_use", "id": parent, "name": "Task", "input": {"subagent_type": "helper"}}
        message: Json = {"id": "m", "role": "assistant", "content": [made]}
        events.append({"type": "assistant", "message": message, **beside, "parent_tool_use_id": None})
    events += [{"type": line["type"], "message": line["message"], **beside} for line in claude_code(calls)[1:-1]]
    if parent is not None:
        ended = {"type": "tool_result", "tool_use_id": parent, "content": "ready"}
        message = {"role": "user", "content": [ended]}
        events.append({"type": "user", "message": message, **beside, "parent_tool_use_id": None})
    last = claude_code(calls)[-1]["message"]
    events.append({"type": "assistant", "message": last, **beside, "parent_tool_use_id": None})
    usage = {"input_tokens": 9, "output_tokens": 4}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": ANSWER, "total_cost_usd": 0.25}
    return [*events, {**end, "session_id": "s", "usage": usage, "duration_ms": 1200, "permission_denials": []}]


def codex_rollout(calls: list[Call]) -> list[Json]:
    """A rollout of Codex: items of Responses, and events that say how calls ended."""

    def line(kind: str, payload: Json) -> Json:
        return {"timestamp": "2026-11-16T13:11:33.940Z", "type": kind, "payload": payload}

    found = [line("session_meta", {"id": "s", "cli_version": "1"}), line("event_msg", {"type": "task_started"})]
    for given in responses(calls):
        item = {"type": "message", **given}
        if item["type"] == "function_call_output":
            failed = item.pop("status", None) is not None
            ended = {"type": "McpToolCall", "id": item["call_id"], "status": "failed" if failed else "completed"}
            found.append(line("event_msg", {"type": "item_completed", "item": ended}))
        found.append(line("response_item", item))
    counts = {"input_tokens": 9, "cached_input_tokens": 2, "output_tokens": 4}
    found.append(line("event_msg", {"type": "token_count", "info": {"total_token_usage": counts}}))
    return [*found, line("event_msg", {"type": "task_complete", "last_agent_message": ANSWER})]


def codex_exec(calls: list[Call]) -> list[Json]:
    """`codex exec --json`."""
    events: list[Json] = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
    for call_id, call in _numbered(calls):
        item: Json = {"id": call_id, "type": "mcp_tool_call", "server": "shop", "tool": call.name}
        item |= {"arguments": call.arguments, "result": None, "error": None, "status": "in_progress"}
        events.append({"type": "item.started", "item": item})
        ended = {"error": {"message": call.result}, "status": "failed"} if call.failed else {"status": "completed"}
        result = None if call.failed else {"content": [{"type": "text", "text": call.result}]}
        events.append({"type": "item.completed", "item": {**item, "result": result, **ended}})
    events.append({"type": "item.completed", "item": {"id": "last", "type": "agent_message", "text": ANSWER}})
    usage = {"input_tokens": 9, "cached_input_tokens": 2, "output_tokens": 4}
    return [*events, {"type": "turn.completed", "usage": usage}]


DOCUMENTS: dict[str, Callable[[list[Call]], bytes]] = {
    "AG-UI stream": lambda calls: sse(agui_events(calls)),
    "AG-UI lines": lambda calls: lines(agui_events(calls)),
    "AG-UI snapshot": lambda calls: sse(agui_snapshot(calls)),
    "trace": lambda calls: encoded(trace(calls)),
    "trace beside final_response": lambda calls: encoded({"final_response": ANSWER, "trace": trace(calls)["trace"]}),
    "transcript": lambda calls: encoded(transcript(calls)),
    "transcript lines": lambda calls: lines(transcript(calls)),
    "whole response": lambda calls: encoded(whole_response(calls)),
    "response stream": lambda calls: sse(response_stream(calls), named=True),
    "UI message stream": ui_stream,
    "completion stream": completion_stream,
    "anthropic stream": anthropic_stream,
    "LangGraph state": lambda calls: encoded({"messages": langchain_dumps(calls), "remaining_steps": 3}),
    "LangGraph values": lambda calls: lines(langgraph_values(calls)),
    "Claude Code session": lambda calls: lines(claude_code(calls)),
    "stream-json": lambda calls: lines(claude_stream(calls)),
    "stream-json array": lambda calls: encoded(claude_stream(calls)),
    "Codex rollout": lambda calls: lines(codex_rollout(calls)),
    "codex exec": lambda calls: lines(codex_exec(calls)),
}
WITHOUT_RESULTS = frozenset({"response stream", "completion stream", "anthropic stream"})
