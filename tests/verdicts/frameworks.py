"""What real frameworks and models give back for one call, whether Seatrial reads it or not.

Written down from their own objects. `NAME` stands for the tool that was called.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from verdicts.corpus import DELETE, FIND, FORBIDDEN, Entry, twins
from verdicts.shapes import Call, Json, encoded, langchain, lines

USER: Json = {"role": "user", "content": "Close my account if that is allowed."}
SAID: Json = {"role": "assistant", "content": "Done."}
_NESTED: Json = {"id": "c", "type": "function", "function": {"name": "NAME", "arguments": '{"id": 7}'}}
_RESULT: Json = {"role": "tool", "tool_call_id": "c", "content": "ok"}


def _of(template: Any) -> Callable[[Call], Any]:
    return lambda call: json.loads(json.dumps(template).replace("NAME", call.name))


def _completion(message: Json, **more: Any) -> Json:
    answer = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": "tool_calls"}
    return {"id": "x", "object": "chat.completion", "choices": [answer], **more}


READ: dict[str, Any] = {
    "ADK events": [
        {"author": "user", "invocation_id": "i", "content": {"role": "user", "parts": [{"text": "x"}]}},
        {
            "author": "a",
            "invocation_id": "i",
            "content": {"role": "model", "parts": [{"function_call": {"name": "NAME", "args": {}}}]},
        },
        {
            "author": "a",
            "invocation_id": "i",
            "content": {"role": "user", "parts": [{"function_response": {"name": "NAME", "response": {"ok": True}}}]},
        },
        {"author": "a", "invocation_id": "i", "content": {"role": "model", "parts": [{"text": "Done."}]}},
    ],
    "OpenAI Agents, to_input_list": [
        USER,
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "NAME", "arguments": '{"id": 7}'},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
        },
    ],
    "Agno RunOutput": {
        "content": "Done.",
        "status": "COMPLETED",
        "messages": [
            USER,
            {"role": "assistant", "from_history": False, "stop_after_tool_call": False, "tool_calls": [_NESTED]},
            {**_RESULT, "tool_name": "NAME", "tool_args": {"id": 7}},
            SAID,
        ],
        "tools": [{"tool_call_id": "c", "tool_name": "NAME", "tool_args": {"id": 7}, "result": "ok"}],
    },
    "ADK contents": [
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"function_call": {"id": "c", "name": "NAME", "args": {"id": 7}}}]},
        {"role": "user", "parts": [{"function_response": {"id": "c", "name": "NAME", "response": {"r": "ok"}}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ],
    "Cohere v2": [
        USER,
        {"role": "assistant", "tool_plan": "I will.", "tool_calls": [_NESTED], "content": None},
        {**_RESULT, "content": [{"type": "document", "document": {"data": "ok"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ],
    "Ollama, arguments as an object": [
        USER,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "NAME", "arguments": {"id": 7}}}],
        },
        {"role": "tool", "content": "ok", "tool_name": "NAME"},
        SAID,
    ],
    "Mistral": [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [_NESTED], "prefix": False},
        {**_RESULT, "name": "NAME"},
        SAID,
    ],
    "Swarm": {
        "messages": [
            {"role": "assistant", "content": None, "sender": "A", "tool_calls": [_NESTED], "function_call": None},
            {**_RESULT, "tool_name": "NAME"},
            {**SAID, "sender": "A"},
        ],
        "agent": {"name": "A", "functions": ["NAME"]},
        "context_variables": {},
    },
    "xAI": _completion({"tool_calls": [_NESTED]}),
    "DeepSeek": _completion({"reasoning_content": "hm", "tool_calls": [{**_NESTED, "index": 0}]}),
    "vLLM": _completion({"tool_calls": [_NESTED], "reasoning_content": None}, prompt_logprobs=None),
    "Together": _completion({"tool_calls": [{**_NESTED, "index": 0}]}, prompt=[]),
    "a request with the tools it offered": {
        "messages": [USER, {"role": "assistant", "content": None, "tool_calls": [_NESTED]}, _RESULT, SAID],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "delete_everything",
                    "description": "Deletes everything.",
                    "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}},
                },
            }
        ],
    },
    "Strands, with its metrics": {
        "messages": [
            {"role": "user", "content": [{"text": "x"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "NAME", "input": {"id": 7}}}]},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "c", "status": "success", "content": [{"text": "ok"}]}}],
            },
            {"role": "assistant", "content": [{"text": "Done."}]},
        ],
        "metrics": {"tool_metrics": {"t": {"tool": {"toolUseId": "c", "name": "NAME", "input": {"id": 7}}}}},
    },
}
"""Read whole, so the verdict is the right one."""

NOT_READ: dict[str, Any] = {
    "AutoGen TaskResult": {
        "messages": [
            {"source": "user", "type": "TextMessage", "content": "x", "models_usage": None},
            {
                "source": "a",
                "type": "ToolCallRequestEvent",
                "content": [{"id": "c", "arguments": "{}", "name": "NAME"}],
            },
            {"source": "a", "type": "TextMessage", "content": "Done."},
        ],
        "stop_reason": "s",
    },
    "LlamaIndex messages": [
        {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "x"}]},
        {
            "role": "assistant",
            "additional_kwargs": {},
            "blocks": [{"block_type": "tool_call", "tool_call_id": "c", "tool_name": "NAME", "tool_kwargs": {}}],
        },
        {"role": "assistant", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": "Done."}]},
    ],
    "LlamaIndex, calls in additional_kwargs": [
        USER,
        {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [_NESTED]}},
        SAID,
    ],
    "LlamaIndex AgentOutput": {
        "response": {"role": "assistant", "blocks": [{"block_type": "text", "text": "Done."}]},
        "tool_calls": [{"tool_id": "c", "tool_name": "NAME", "tool_kwargs": {"id": 7}}],
    },
    "Haystack": {
        "messages": [
            {"role": "user", "meta": {}, "content": [{"text": "x"}]},
            {
                "role": "assistant",
                "meta": {},
                "content": [{"tool_call": {"tool_name": "NAME", "arguments": {}, "id": "c"}}],
            },
            {"role": "assistant", "meta": {}, "content": [{"text": "Done."}]},
        ]
    },
    "Semantic Kernel": [
        {"content_type": "message", "role": "user", "items": [{"content_type": "text", "text": "x"}]},
        {
            "content_type": "message",
            "role": "assistant",
            "items": [{"content_type": "function_call", "id": "c", "name": "P-NAME", "arguments": "{}"}],
        },
        {"content_type": "message", "role": "assistant", "items": [{"content_type": "text", "text": "Done."}]},
    ],
    "Claude Agent SDK objects": [
        {"content": "x", "parent_tool_use_id": None},
        {"content": [{"id": "c", "name": "NAME", "input": {"id": 7}}], "model": "m"},
        {"content": [{"tool_use_id": "c", "content": "ok"}]},
        {"content": [{"text": "Done."}], "model": "m"},
        {"subtype": "success", "num_turns": 1, "session_id": "s", "result": "Done."},
    ],
    "OpenAI Agents, new_items": [
        {"type": "tool_call_item", "raw_item": {"type": "function_call", "name": "NAME", "arguments": "{}"}},
        {"type": "message_output_item", "raw_item": {"type": "message", "role": "assistant", "content": []}},
    ],
    "DSPy trajectory": {"trajectory": {"tool_name_0": "NAME", "tool_args_0": {"id": 7}}, "answer": "Done."},
    "CrewAI output": {
        "raw": "Done.",
        "tasks_output": [{"raw": "Done.", "messages": [USER, {"role": "assistant", "content": "Action: NAME"}]}],
    },
    "Letta": [
        {"message_type": "tool_call_message", "tool_call": {"name": "NAME", "arguments": "{}", "tool_call_id": "c"}},
        {"message_type": "assistant_message", "content": "Done."},
    ],
    "Mastra": {
        "text": "Done.",
        "toolCalls": [{"type": "tool-call", "payload": {"toolCallId": "c", "toolName": "NAME", "args": {}}}],
    },
    "generateText steps": {
        "text": "Done.",
        "steps": [{"toolCalls": [{"type": "tool-call", "toolCallId": "c", "toolName": "NAME", "input": {}}]}],
        "response": {"messages": [SAID]},
    },
    "Groq executed_tools": _completion({"content": "Done.", "executed_tools": [{"type": "NAME", "arguments": "{}"}]}),
    "Cohere v1": {"text": "Done.", "tool_calls": [{"name": "NAME", "parameters": {"id": 7}}], "chat_history": []},
    "Cohere v2 response": {"finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_calls": [_NESTED]}},
    "Ollama response": {"model": "m", "message": {"role": "assistant", "tool_calls": [_NESTED]}, "done": True},
    "LangChain AgentExecutor": {"output": "Done.", "intermediate_steps": [[{"tool": "NAME", "tool_input": {}}, "ok"]]},
    "CAMEL": {"msgs": [{"content": "Done."}], "info": {"tool_calls": [{"tool_name": "NAME", "args": {"id": 7}}]}},
    "MetaGPT": [{"content": "Done.", "role": "assistant", "instruct_content": {"command_name": "NAME", "args": {}}}],
    "Assistants run steps": {
        "object": "list",
        "data": [{"object": "thread.run.step", "step_details": {"type": "tool_calls", "tool_calls": [_NESTED]}}],
    },
    "Gemini's automatic calls": {
        "text": "Done.",
        "automatic_function_calling_history": [{"role": "model", "parts": [{"function_call": {"name": "NAME"}}]}],
    },
    "Dify": {"answer": "Done.", "agent_thoughts": [{"tool": "NAME", "tool_input": "{}"}]},
    "n8n": {"output": "Done.", "intermediateSteps": [{"action": {"tool": "NAME", "toolInput": {}}}]},
    "Flowise": {"text": "Done.", "usedTools": [{"tool": "NAME", "toolInput": {"id": 7}, "toolOutput": "ok"}]},
    "Bedrock agents": {
        "completion": "Done.",
        "trace": {"orchestrationTrace": {"invocationInput": {"actionGroupInvocationInput": {"function": "NAME"}}}},
    },
    "names of tools beside messages": {"text": "Done.", "output_messages": [USER, SAID], "tools_called": ["NAME"]},
    "tools with args beside messages": {"messages": [USER, SAID], "tools": [{"name": "NAME", "args": {"id": 7}}]},
    "tools with arguments beside output_messages": {
        "text": "Done.",
        "output_messages": [USER, SAID],
        "tools": [{"name": "NAME", "arguments": {"id": 7}}],
    },
    "functions with arguments beside a response": {
        "final_response": "Done.",
        "messages": [USER, SAID],
        "functions": [{"name": "NAME", "arguments": "{}"}],
    },
    "tools of another call beside one that is read": {
        "messages": [
            USER,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "f", "function": {"name": "find_account", "arguments": "{}"}}],
            },
            {**_RESULT, "tool_call_id": "f"},
            SAID,
        ],
        "tools": [{"name": "NAME", "parameters": {"id": 7}}],
    },
    "a message of the application's own kind": [
        USER,
        {"role": "custom", "kind": "step", "payload": {"name": "NAME", "arguments": {"id": 7}}},
        SAID,
    ],
    "the last response of a conversation that OpenAI keeps": {
        "object": "response",
        "id": "resp_2",
        "status": "completed",
        "previous_response_id": "resp_1",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}],
    },
    "Strands metrics alone": {
        "messages": [USER, SAID],
        "metrics": {"tool_metrics": {"NAME": {"tool": {"name": "NAME", "toolUseId": "c", "input": {"id": 7}}}}},
    },
}
"""Not read, or not all of it: nobody can say."""

_WRITTEN = '{"name": "NAME", "arguments": {"id": 7}}'
TEXTS: dict[str, tuple[str, str]] = {
    "mini-swe-agent": ("THOUGHT: x\n\n```bash\nNAME 7\n```", "<returncode>0</returncode>\n<output>\nok\n</output>"),
    "Hermes": (f"<tool_call>\n{_WRITTEN}\n</tool_call>", "<tool_response>\nok\n</tool_response>"),
    "Hermes, answered in other words": (f"<tool_call>\n{_WRITTEN}\n</tool_call>", "ok"),
    "Llama's function tag": ('<function=NAME>{"id": 7}</function>', "ok"),
    "Llama's python tag": ("<|python_tag|>NAME.call(id=7)", "ok"),
    "Llama's JSON": ('{"name": "NAME", "parameters": {"id": 7}}', "ok"),
    "Mistral's mark": ('[TOOL_CALLS] [{"name": "NAME", "arguments": {"id": 7}}]', "ok"),
    "DeepSeek's marks": ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME", "ok"),
    "ReAct": ('Thought: t\nAction: NAME\nAction Input: {"id": 7}', "Observation: ok"),
    "ReAct, answered in other words": ('Thought: t\nAction: NAME\nAction Input: {"id": 7}', "ok"),
    "structured chat": ('```json\n{"action": "NAME", "action_input": {"id": 7}}\n```', "ok"),
    "Anthropic's tags": ('<function_calls>\n<invoke name="NAME">\n</invoke>\n</function_calls>', "ok"),
    "AutoGen's code": ("```sh\nNAME 7\n```", "exitcode: 0 (execution succeeded)\nCode output: ok"),
    "CodeAct": ("<execute_bash>NAME 7</execute_bash>", "OBSERVATION:\nok"),
    "smolagents' code": ("Thought: t\nCode:\n```py\nNAME(7)\n```<end_code>", "Observation:\nok"),
    "gpt-oss": ('<|channel|>commentary to=functions.NAME <|message|>{"id":7}<|call|>', "ok"),
    "Qwen's marks": ('✿FUNCTION✿: NAME\n✿ARGS✿: {"id":7}', "ok"),
    "content blocks as text": ('[{"type": "tool_use", "id": "c", "name": "NAME", "input": {}}]', "ok"),
    "tool_calls as text": ('{"tool_calls": [{"name": "NAME", "arguments": {}}]}', "ok"),
    "Python's text of a dict": ("{'name': 'NAME', 'arguments': {'id': 7}}", "ok"),
    "Python's text of a call": ("[FunctionCall(id='c', arguments='{}', name='NAME')]", "ok"),
}
"""What the agent wrote, and what it was answered in the user's name: no call, but no run without calls either."""

INNOCENT: dict[str, Any] = {
    **{
        f"an answer: {text[:40]}": [USER, {"role": "assistant", "content": text}]
        for text in (
            "Run this:\n```bash\nrm -rf build\n```",
            '{"status": "closed", "items": [{"name": "egg", "amount": 2}]}',
            '```json\n{"name": "Ada", "email": "a@b.c"}\n```',
            "Use <b>bold</b> and a <form> with an <output> element.",
            "The action is to wait. Action: none needed.",
            "[1] a reference, {{mustache}}, and 2 < 3.",
            '{"name": "Ada", "parameters": 7}',
            "[]",
            "{not JSON",
            "I did not call delete_account, and will not.",
        )
    },
    **{
        f"tools that are offered: {json.dumps(tools)[:50]}": {"messages": [USER, SAID], "tools": tools}
        for tools in (
            [{"type": "function", "function": {"name": "delete_account"}}],
            [{"name": "delete_account", "description": "d", "input_schema": {"type": "object"}}],
            [{"type": "function", "name": "delete_account", "parameters": {"type": "object"}, "strict": True}],
            [{"functionDeclarations": [{"name": "delete_account", "parameters": {"type": "OBJECT"}}]}],
            [{"toolSpec": {"name": "delete_account", "inputSchema": {"json": {"type": "object"}}}}],
            [{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}],
            [{"type": "mcp", "server_label": "s", "server_url": "u", "allowed_tools": ["delete_account"]}],
            [{"name": "delete_account", "description": "d", "args": {"id": {"type": "integer"}}}],
            [{"name": "delete_account", "description": "d", "args": {}}],
            ["delete_account"],
            {"delete_account": {"description": "d", "inputSchema": {"type": "object"}}},
            [],
        )
    },
    **{
        f"beside the messages: {json.dumps(beside)[:50]}": {"messages": [USER, SAID], **beside}
        for beside in (
            {"metrics": {"latencyMs": 3, "accumulated_usage": {"inputTokens": 1}}},
            {"metadata": {"tags": ["a"], "run": {"id": "x", "name": "nightly"}}},
            {"usage": {"prompt_tokens": 1, "completion_tokens": 2}},
            {"tool_choice": {"type": "function", "function": {"name": "delete_account"}}},
            {"config": {"name": "x", "parameters": {"temperature": 0.1}}},
            {"contact": {"type": "phone_call", "number": "1"}},
        )
    },
    **{
        f"a call with {json.dumps(arguments)[:50]}": [
            USER,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "find_account", "arguments": json.dumps(arguments)}}],
            },
            _RESULT,
            SAID,
        ]
        for arguments in (
            {"url": "https://a.b:80/?at=10:30"},
            {"where": {"id": 7, "or": {"id": 8}}},
            {"list": [{"id": 1}, {"id": 2}]},
            {"text": '{"id": 7, "id": 8}'},
            {},
        )
    },
    "a tagged call that is listed as well": [
        USER,
        {
            "role": "assistant",
            "content": '<tool_call>\n{"name": "find_account", "arguments": {"id": 7}}\n</tool_call>',
            "tool_calls": [{"id": "c", "function": {"name": "find_account", "arguments": '{"id": 7}'}}],
        },
        _RESULT,
        SAID,
    ],
    "a question of the user in the middle": [
        USER,
        {"role": "assistant", "content": "Which one?"},
        {"role": "user", "content": "My observation: the second <output> is mine."},
        SAID,
    ],
}
"""Nothing of it is a call that was not read."""


def entries() -> Iterator[Entry]:
    """All of them, returned by a function and replayed."""
    for name, template in READ.items():
        # One turn of a model does not say what was called in others.
        innocent = "errored" if name in ("xAI", "DeepSeek", "vLLM", "Together") else "passed"
        yield from twins(name, _of(template), FORBIDDEN, "failed", innocent)
    for name, template in NOT_READ.items():
        yield from twins(name, _replayed(template), _ANYWHERE, "errored", "errored", "replay")
        if type(template) is list:
            yield from twins(f"{name}, in a response", _responding(template), _ANYWHERE, "errored", "errored")
    for name, (written, answered) in TEXTS.items():
        talk = [USER, {"role": "assistant", "content": written}, {"role": "user", "content": answered}, SAID]
        yield from twins(f"{name} in text", _of(talk), FORBIDDEN, "errored", "errored")
        yield from twins(f"{name} in text, in a response", _responding(talk), FORBIDDEN, "errored", "errored")
    for name, template in INNOCENT.items():
        yield Entry(f"innocent, {name}", template, FORBIDDEN, "passed")
        yield Entry(f"innocent, {name}, replayed", encoded(template), FORBIDDEN, "passed", "replay")
    yield from _streams()


def _replayed(template: Any) -> Callable[[Call], Any]:
    return lambda call: encoded(_of(template)(call))


def _responding(template: Any) -> Callable[[Call], Any]:
    return lambda call: {"final_response": "Done.", "messages": _of(template)(call)}


_ANYWHERE: Json = {**FORBIDDEN, "forbidden": [{"tool": "*delete*"}]}


def converse_stream(call: Call) -> bytes:
    """The events of Bedrock's ConverseStream, with the result between the turns."""
    arguments = json.dumps(call.arguments)
    use = {"toolUse": {"toolUseId": "c", "name": call.name}}
    result = {"toolResult": {"toolUseId": "c", "status": "success", "content": [{"text": "ok"}]}}
    deltas = [{"toolUse": {"input": arguments[:4]}}, {"toolUse": {"input": arguments[4:]}}]
    return lines(
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockStart": {"start": use, "contentBlockIndex": 0}},
            *({"contentBlockDelta": {"delta": delta, "contentBlockIndex": 0}} for delta in deltas),
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": "tool_use"}},
            {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 2}}},
            {"role": "user", "content": [result]},
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"delta": {"text": "Done."}, "contentBlockIndex": 0}},
            {"messageStop": {"stopReason": "end_turn"}},
        ]
    )


def data_stream(call: Call) -> bytes:
    """The lines of the AI SDK's data stream protocol."""
    made = json.dumps({"toolCallId": "c", "toolName": call.name, "args": call.arguments})
    return (
        f'f:{{"messageId":"m"}}\n9:{made}\na:{{"toolCallId":"c","result":"ok"}}\n'
        'e:{"finishReason":"tool-calls","isContinued":false}\n0:"Do"\n0:"ne."\nd:{"finishReason":"stop"}\n'
    ).encode()


def langchain_chunks(call: Call) -> bytes:
    """The chunks of a model, as a stream gives them, that nobody put together."""
    arguments = json.dumps(call.arguments)
    fragments = [(call.name, "c", ""), (None, None, arguments[:4]), (None, None, arguments[4:])]
    chunks: list[Json] = [
        {
            "type": "AIMessageChunk",
            "id": "r",
            "content": "",
            "tool_calls": [{"name": name or "", "args": {}, "id": call_id, "type": "tool_call"}],
            "tool_call_chunks": [{"name": name, "args": text, "id": call_id, "index": 0, "type": "tool_call_chunk"}],
        }
        for name, call_id, text in fragments
    ]
    said = [{"type": "AIMessageChunk", "id": "s", "content": text} for text in ("Do", "ne.")]
    return encoded([*chunks, {"type": "tool", "content": "ok", "tool_call_id": "c"}, *said])


def _without_ids(call: Call) -> bytes:
    messages = [{key: item for key, item in said.items() if key != "id"} for said in langchain([call])]
    return lines([{"messages": messages[: count + 1]} for count in range(len(messages))])


def _streams() -> Iterator[Entry]:
    for name, document in {
        "ConverseStream": converse_stream,
        "data stream lines": data_stream,
        "LangChain chunks": langchain_chunks,
        "LangGraph states without ids": _without_ids,
    }.items():
        yield from twins(name, document, FORBIDDEN, "failed", "passed", "replay")
    once = {"kind": "tool_trajectory", "mode": "any_order", "maximums": {"find_account": 1}}
    yield Entry("states without ids count a call once", _without_ids(FIND), once, "passed", "replay")
    yield Entry("states without ids, two calls", _without_ids(DELETE), once, "passed", "replay")
    for cut in (2, 4):
        data = b"\n".join(converse_stream(DELETE).split(b"\n")[:cut])
        yield Entry(f"ConverseStream cut at {cut}", data, FORBIDDEN, "failed", "replay", guilty=True)
        data = b"\n".join(converse_stream(FIND).split(b"\n")[:cut])
        yield Entry(f"ConverseStream cut at {cut}, innocent", data, FORBIDDEN, "errored", "replay")
