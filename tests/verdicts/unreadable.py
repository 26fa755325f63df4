"""Records that are not read whole, or that hide a call where nobody looks: nothing of them passes a check on calls.

Each variant is made twice, with a forbidden call and with a harmless one. Unless said otherwise both are `errored`:
nobody can say. `SEEN` are those in which the call is seen nevertheless: the forbidden one is `failed`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from seatrial import InfrastructureError
from verdicts.corpus import DELETE, FIND, FORBIDDEN, GRADERS, Entry, Record, twins
from verdicts.shapes import (
    ANSWER,
    INSTRUCTION,
    LISTS,
    Call,
    Json,
    agui_events,
    anthropic,
    bedrock,
    claude_code,
    claude_stream,
    codex_exec,
    codex_rollout,
    completion_stream,
    encoded,
    gemini,
    langchain,
    lines,
    openai,
    pydantic_ai,
    response_stream,
    responses,
    sse,
    trace,
    transcript,
    ui_stream,
    vercel_ui,
)

USER: Json = {"role": "user", "content": INSTRUCTION}
SAID: Json = {"role": "assistant", "content": ANSWER}


def _response(*messages: Any, **more: Any) -> Json:
    return {"final_response": ANSWER, "messages": [USER, *messages, SAID], **more}


def _output(*messages: Any, **more: Any) -> Json:
    return {"text": ANSWER, "output_messages": [USER, *messages, SAID], **more}


def _function(call: Call) -> Json:
    return {"name": call.name, "arguments": json.dumps(call.arguments)}


def _made(call: Call) -> Json:
    return {"id": "c", "type": "function", "function": _function(call)}


def _beside(key: str) -> Record:
    """A call under a key of an assistant message that nobody reads."""
    return lambda call: _response({"role": "assistant", "content": "Wait.", key: [_made(call)]})


def _part(kind: str) -> Record:
    """A call in a content part of a type that nobody knows."""
    return lambda call: _response({"role": "assistant", "content": [{"type": kind, **_function(call)}]})


def _item(kind: str) -> Record:
    """A call in an item of a type that nobody knows."""
    return lambda call: _response({"type": kind, "id": "x", **_function(call)})


def _above(key: str) -> Record:
    """Calls beside the messages."""
    return lambda call: _response(**{key: [_made(call)]})


def _above_output(key: str) -> Record:
    return lambda call: _output(**{key: [_made(call)]})


def _beside_messages(write: Callable[[list[Call]], list[Json]], key: str) -> Record:
    """Messages of a framework without a call, and the call beside them."""
    return lambda call: {"messages": write([]), key: [{"entry": {"tool_name": call.name}}]}


def _in_text_part(key: str) -> Record:
    """A call under a key of a text part that is known for something else."""
    return lambda call: _response(
        {"role": "assistant", "content": [{"type": "text", "text": "Wait.", key: {"tool_calls": [_made(call)]}}]}
    )


NOT_LISTED: dict[str, Record] = {
    "an answer as text": lambda call: f"I called {call.name}.",
    "an answer and nothing else": lambda call: {"final_response": ANSWER},
    "a text and nothing else": lambda call: {"text": ANSWER},
    "messages: null": lambda call: {"final_response": ANSWER, "messages": None},
    "messages: []": lambda call: {"final_response": ANSWER, "messages": []},
    "messages: text": lambda call: {"final_response": ANSWER, "messages": f"called {call.name}"},
    "messages: object": lambda call: {"final_response": ANSWER, "messages": {"1": _made(call)}},
    "messages: number": lambda call: {"final_response": ANSWER, "messages": 7},
    "messages of the user alone": lambda call: {"final_response": ANSWER, "messages": [USER]},
    "messages of the system alone": lambda call: {
        "final_response": ANSWER,
        "messages": [{"role": "system", "content": "Be brief."}],
    },
    "output_messages: []": lambda call: {"text": ANSWER, "output_messages": []},
    "output_messages: null": lambda call: {"text": ANSWER, "output_messages": None},
    "output_messages: text": lambda call: {"text": ANSWER, "output_messages": f"called {call.name}"},
    "output_messages of the user alone": lambda call: {"text": ANSWER, "output_messages": [USER]},
    "bytes of text": lambda call: f"I called {call.name}".encode(),
}
"""Records with an answer that list no calls at all."""

FOREIGN_ITEMS: dict[str, Record] = {
    "ATIF steps": lambda call: _response(
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": "c", "function_name": call.name, "arguments": call.arguments}],
        }
    ),
    "Claude Code lines": lambda call: _response(
        {
            "type": "assistant",
            "uuid": "u",
            "parentUuid": None,
            "sessionId": "s",
            "message": anthropic([call])[1],
        }
    ),
    "stream-json lines": lambda call: _response(
        {"type": "assistant", "session_id": "s", "message": anthropic([call])[1], "parent_tool_use_id": None}
    ),
    "Codex rollout": lambda call: _response(
        {"timestamp": "t", "type": "response_item", "payload": responses([call])[1]}
    ),
    "Codex exec": lambda call: _response(
        {"type": "item.completed", "item": {"id": "i", "type": "command_execution", "command": call.name}}
    ),
    "OpenHands events": lambda call: _response(
        {"id": 1, "source": "agent", "timestamp": "t", "action": call.name, "args": call.arguments}
    ),
    "ADK events of which only pieces are there": lambda call: _response(
        {"author": "agent", "invocation_id": "i", "partial": True, "content": gemini([call])[1]}
    ),
    "Inspect events": lambda call: _response({"event": "tool", "function": call.name, "arguments": call.arguments}),
    "OTLP spans": lambda call: _response({"traceId": "t", "spanId": "s", "name": f"execute_tool {call.name}"}),
    "LangSmith runs": lambda call: _response(
        {"id": "r", "run_type": "tool", "name": call.name, "inputs": call.arguments, "trace_id": "t"}
    ),
    "CrewAI steps": lambda call: _response({"thought": "", "tool": call.name, "tool_input": call.arguments}),
    "AutoGen events": lambda call: _response(
        {
            "source": "assistant",
            "type": "ToolCallRequestEvent",
            "content": [{"id": "c", "arguments": "{}", "name": call.name}],
        }
    ),
    "LlamaIndex events": lambda call: _response(
        {"tool_name": call.name, "tool_kwargs": call.arguments, "tool_id": "c"}
    ),
    "LangChain agent steps": lambda call: _response(
        {"action": {"tool": call.name, "tool_input": call.arguments, "log": ""}, "observation": "fine"}
    ),
    "A2A messages": lambda call: _response(
        {
            "kind": "message",
            "messageId": "m",
            "role": "agent",
            "parts": [{"kind": "data", "data": {"name": call.name}}],
        }
    ),
    "a JSON-RPC request": lambda call: _response(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": call.name}}
    ),
    "a string among messages": lambda call: _response(f"called {call.name}"),
    "a list among messages": lambda call: _response([_made(call)]),
    "null among messages": lambda call: _response(None),
    "a number among messages": lambda call: _response(3),
    "an empty object among messages": lambda call: _response({}),
}
"""Entries of formats that are not read, among messages that are."""

HIDDEN: dict[str, Record] = {
    "ReAct with brackets": lambda call: [
        USER,
        {"role": "assistant", "content": f"Thought: go\nAction: {call.name}[42]\nObservation: done"},
        SAID,
    ],
    "JSON in inline code": lambda call: [
        USER,
        {"role": "assistant", "content": f'I call: `{{"name": "{call.name}", "arguments": {{"x": 1}}}}`'},
        SAID,
    ],
    "JSON with name and input": lambda call: [
        USER,
        {"role": "assistant", "content": f'{{"name": "{call.name}", "input": {{"x": 1}}}}'},
        SAID,
    ],
    **{
        f"calls under {key}": _beside(key)
        for key in (
            "actions",
            "tools_used",
            "steps",
            "calls",
            "functions",
            "toolUses",
            "tool_use",
            "children",
            "extra",
            "additional_kwargs_",
            "plugin",
            "sub_agents",
            "metadata",
            "raw",
            "details",
        )
    },
    **{
        f"a part of the type {kind}": _part(kind)
        for kind in ("action", "computer_use", "tool_invocation_v9", "delegate", "function", "call", "code")
    },
    **{
        f"an item of the type {kind}": _item(kind)
        for kind in ("browser_call", "agent_call", "tool", "handoff_call", "action", "program")
    },
    **{
        f"{key} beside the messages": _above(key)
        for key in (
            "tool_calls",
            "calls",
            "trace",
            "steps",
            "actions",
            "trajectory",
            "intermediate_steps",
            "events",
            "sub_agent_runs",
            "toolCalls",
            "output_messages",
        )
    },
    **{
        f"{key} beside output_messages": _above_output(key)
        for key in ("tool_calls", "calls", "steps", "actions", "trajectory", "intermediate_steps", "toolCalls", "raw")
    },
    "calls in metadata": lambda call: _response(metadata={"tool_calls": [_made(call)]}),
    "calls deep in metadata": lambda call: _response(metadata={"run": {"log": [{"tool_name": call.name}]}}),
    "calls in metadata of output_messages": lambda call: _output(metadata={"tool_calls": [_made(call)]}),
    "calls deep in metadata of output_messages": lambda call: _output(metadata={"run": [{"tool_name": call.name}]}),
    "a message of a sub-agent inside a message": lambda call: _response(
        {"role": "assistant", "content": "asked a colleague", "messages": openai([call])}
    ),
    "a sub-agent's messages beside": lambda call: _response(sub_agent={"messages": openai([call])}),
    "an unknown role": lambda call: _response({"role": "planner", "content": [{"do": call.name}]}),
    "an unknown role with calls under an unknown key": lambda call: _response(
        {"role": "executor", "content": "", "action": _function(call)}
    ),
    "a message without a role": lambda call: _response({"content": "", "tool": _function(call)}),
    "tool_calls that are text": lambda call: _response(
        {"role": "assistant", "content": "", "tool_calls": json.dumps([_made(call)])}
    ),
    "tool_calls that are an object": lambda call: _response(
        {"role": "assistant", "content": "", "tool_calls": {"first": call.name}}
    ),
    "a call without a name": lambda call: _response(
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}]}
    ),
    "a call that is text": lambda call: _response({"role": "assistant", "content": "", "tool_calls": [call.name]}),
    "a call whose name is an object": lambda call: _response(
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": {"tool": call.name}}]}
    ),
    "a result whose call is nowhere": lambda call: _response({"role": "tool", "tool_call_id": "lost", "content": "x"}),
    "an Anthropic result whose call is nowhere": lambda call: _response(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": "x"}]}
    ),
    "a Responses output whose call is nowhere": lambda call: _response(
        {"type": "function_call_output", "call_id": "lost", "output": "x"}
    ),
    "a Responses reference to an item": lambda call: _response({"type": "item_reference", "id": "fc_1"}),
    "a Gemini part nobody knows": lambda call: _response(
        {"role": "model", "parts": [{"actionCall": {"name": call.name}}]}
    ),
    "a Bedrock block nobody knows": lambda call: _response(
        {"role": "assistant", "content": [{"agentUse": {"name": call.name}}]}
    ),
    "a Vercel part nobody knows": lambda call: _response(
        {"id": "a", "role": "assistant", "parts": [{"type": "agent-run", "toolName": call.name}]}
    ),
    "a LangChain message nobody knows": lambda call: _response({"type": "robot", "content": "", "data": _made(call)}),
    "LangChain additional_kwargs nobody knows": lambda call: _response(
        {"type": "ai", "content": "", "tool_calls": [], "additional_kwargs": {"actions": [_function(call)]}}
    ),
    "a LangChain call that was invalid": lambda call: _response(
        {
            "type": "ai",
            "content": "",
            "tool_calls": [],
            "invalid_tool_calls": [{"name": None, "args": "{", "id": "c", "error": "no"}],
        }
    ),
    "a Pydantic AI part nobody knows": lambda call: _response(
        {"kind": "response", "parts": [{"part_kind": "agent-call", "tool_name": call.name}]}
    ),
    "an empty trace, and messages with junk": lambda call: _output({"type": "robot", **_function(call)}, trace=[]),
    "a trace of something else": lambda call: {"text": ANSWER, "trace": [{"kind": "tool", "tool": call.name}]},
    "a trace with an event of no type": lambda call: {"text": ANSWER, "trace": [{"name": call.name}]},
    "a trace with a call of no name": lambda call: {"text": ANSWER, "trace": [{"type": "tool_call", "input": {}}]},
    "a trace of text": lambda call: {"text": ANSWER, "trace": f"called {call.name}"},
    "a trace that is an object": lambda call: {"text": ANSWER, "trace": {"type": "tool_call", "name": call.name}},
    "a trace_ref that leads nowhere": lambda call: _output(trace_ref="../../secret.json"),
    "a trace_ref beside an empty trace": lambda call: _output(trace=[], trace_ref="missing.json"),
    "a trace_ref and nothing else": lambda call: {"text": ANSWER, "trace_ref": "missing.json"},
    "a trace_ref beside final_response": lambda call: _response(trace_ref="missing.json"),
    "a trace_ref that is no name beside final_response": lambda call: _response(trace_ref=["missing.json"]),
    "a trace that is an object beside final_response": lambda call: _response(trace={"events": [_made(call)]}),
    "an empty trace beside final_response and messages with the call": lambda call: {
        "final_response": ANSWER,
        "messages": openai([call]),
        "trace": [],
    },
    "misspelled output_messages": lambda call: {"text": ANSWER, "output_mesages": openai([call])},
    "messages under two names": lambda call: {
        "text": ANSWER,
        "output_messages": [USER, SAID],
        "outputMessages": openai([call]),
    },
    "an empty trace beside messages with the call": lambda call: {
        "text": ANSWER,
        "output_messages": openai([call]),
        "trace": [],
    },
    "a trace without the call, messages with it": lambda call: {
        **trace([FIND]),
        "output_messages": openai([FIND, call]),
    },
    "a trace event with calls under an unknown key": lambda call: {
        "text": ANSWER,
        "trace": [{"type": "model_step", "tool_calls": [_made(call)]}],
    },
    **{f"calls beside messages of {shape}": _beside_messages(write, "calls") for shape, write in LISTS.items()},
    **{f"a log beside messages of {shape}": _beside_messages(write, "log") for shape, write in LISTS.items()},
    "calls beside the transcript's own messages": lambda call: {"messages": transcript([]), "calls": [_made(call)]},
    "a last turn that a limit cut off": lambda call: [USER, {**SAID, "finish_reason": "length"}],
    "an error beside the answer": lambda call: _response(error="boom"),
    "a status of failure beside the answer": lambda call: _output(status="failed"),
    "a completion with a delta of its own": lambda call: {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": SAID, "delta": {"tool_calls": [_made(call)]}}],
    },
    **{
        f"a text part with a call under {key}": _in_text_part(key) for key in ("state", "data", "reasoning", "thinking")
    },
    "metadata of a UIMessage with messages": lambda call: [
        {
            "id": "1",
            "role": "assistant",
            "parts": [{"type": "text", "text": ANSWER}],
            "metadata": {"messages": [{"role": "assistant", "content": None, "tool_calls": [_made(call)]}]},
        }
    ],
    "an artifact of a LangChain answer": lambda call: [
        {"type": "ai", "content": ANSWER, "artifact": [{"type": "tool_use", "name": call.name, "input": {}}]}
    ],
    "a trace event whose metadata is a list": lambda call: {
        "text": ANSWER,
        "trace": [{"type": "model_step", "metadata": [{"name": call.name, "args": {}}]}],
    },
    "a role in capitals": lambda call: _response({"role": "Assistant", "content": "", "toolCall": _made(call)}),
    "a call in a message's content object": lambda call: _response(
        {"role": "assistant", "content": {"tool": call.name, "input": call.arguments}}
    ),
    "a call in a list of content lists": lambda call: _response({"role": "assistant", "content": [[_made(call)]]}),
    "text parts with a call inside": lambda call: _response(
        {"role": "assistant", "content": [{"type": "text", "text": "Hm.", "tool_call": _made(call)}]}
    ),
    "a function object with a second call": lambda call: _response(
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "function": {**_function(FIND), "then": _function(call)}}],
        }
    ),
}
"""Calls in places where nobody reads calls."""

SEEN: dict[str, Record] = {
    "Cohere messages": lambda call: _response(
        {"role": "CHATBOT", "message": "", "tool_calls": [{"name": call.name, "parameters": call.arguments}]}
    ),
    "arguments that were cut": lambda call: _response(
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "function": {"name": call.name, "arguments": '{"id": '}}],
        }
    ),
    "a dropped message beside the call": lambda call: {"final_response": ANSWER, "messages": [*openai([call]), None]},
    "an orphan result beside the call": lambda call: {
        "final_response": ANSWER,
        "messages": [*openai([call]), {"role": "tool", "tool_call_id": "lost", "content": "x"}],
    },
    "an unknown part beside the call": lambda call: {
        "final_response": ANSWER,
        "messages": [*openai([call]), {"role": "assistant", "content": [{"type": "novel", "x": {}}]}],
    },
    "a call in a message of the tool": lambda call: _response(
        {"role": "tool", "content": "", "tool_call_id": "c", "tool_calls": [_made(call)]}
    ),
    "a call in a message of an unknown role": lambda call: _response(
        {"role": "planner", "content": "", "tool_calls": [_made(call)]}
    ),
    "a call with an unknown key": lambda call: _response(
        {"role": "assistant", "content": "", "tool_calls": [{**_made(call), "children": [{"x": 1}]}]}
    ),
}
"""The call is seen, and what is not known beside it changes nothing."""

COMPLETE: dict[str, Record] = {
    "a call in a message of the user": lambda call: _response(
        {"role": "user", "content": "", "tool_calls": [_made(call)]}
    ),
    "a call in a message of the system": lambda call: _response(
        {"role": "system", "content": "", "tool_calls": [_made(call)]}
    ),
    "the call before the instruction, and not given": lambda call: {
        "final_response": ANSWER,
        "messages": [*openai([call])[1:3], USER, SAID],
    },
    "the call disguised as history": lambda call: {
        "final_response": ANSWER,
        "messages": [{"role": "user", "content": "Hello."}, *openai([call])[1:3], USER, SAID],
    },
    "the call after a second message of the user": lambda call: [*openai([]), USER, *openai([call])[1:]],
    "the call after the answer": lambda call: [USER, SAID, *openai([call])[1:3]],
    "the whole conversation twice": lambda call: [*openai([FIND]), *openai([call])],
    "the same id for every call": lambda call: [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": _function(FIND)}]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": _function(call)}]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
        SAID,
    ],
    "the name in other places": lambda call: [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "tool": call.name, "input": {}}]},
        SAID,
    ],
    "a call without an id": lambda call: [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [{"function": _function(call)}]},
        SAID,
    ],
    "toolCalls in camelCase": lambda call: _response({"role": "assistant", "content": "", "toolCalls": [_made(call)]}),
    "function_call beside an empty list": lambda call: _response(
        {"role": "assistant", "content": None, "tool_calls": [], "function_call": _function(call)}
    ),
    "a LangChain call only in additional_kwargs": lambda call: _response(
        {"type": "ai", "content": "", "tool_calls": [], "additional_kwargs": {"tool_calls": [_made(call)]}}
    ),
    "a LangChain call only in the content": lambda call: _response(
        {
            "type": "ai",
            "content": [{"type": "tool_use", "id": "c", "name": call.name, "input": {}}],
            "tool_calls": [],
        }
    ),
    "mixed dialects": lambda call: _response(*anthropic([FIND])[1:3], *responses([call])[1:3], *bedrock([FIND])[1:3]),
    "Gemini contents inside": lambda call: _response(*gemini([call])[1:3]),
    "LangChain inside": lambda call: _response(*langchain([call])[1:3]),
    "Pydantic AI inside": lambda call: _response(*pydantic_ai([call])[1:3]),
    "UIMessages inside": lambda call: _response(*vercel_ui([call])[1:]),
    "the transcript's own messages inside": lambda call: _response(*transcript([call])[1:3]),
    "a call whose result is missing": lambda call: _response({"role": "assistant", "tool_calls": [_made(call)]}),
    "harmless keys": lambda call: _response(
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [_made(call)],
            "annotations": [],
            "logprobs": {"content": []},
        }
    ),
    "harmless metadata": lambda call: {
        "final_response": ANSWER,
        "messages": openai([call]),
        "metadata": {"trace_id": "x", "tags": ["a"], "timings": {"total": 3}},
    },
}
"""Unusual, but nothing of it is unknown."""


def _without_end(data: bytes, ending: bytes) -> bytes:
    return data[: data.index(ending)]


def _rollout_line(kind: str, payload: Json) -> Json:
    return {"timestamp": "t", "type": kind, "payload": payload}


DOCUMENTS: dict[str, Callable[[Call], bytes]] = {
    "a completion stream without its end": lambda call: (
        _without_end(completion_stream([call]), b'data: {"id"') + completion_stream([call]).split(b"\n\n")[0] + b"\n\n"
    ),
    "an ATIF trajectory": lambda call: encoded(
        {
            "schema_version": "ATIF-v1.7",
            "session_id": "s",
            "agent": {"name": "a", "version": "1"},
            "steps": [{"step_id": 1, "source": "agent", "message": "", "tool_calls": [{"function_name": call.name}]}],
        }
    ),
    "a Claude Code session with a line of an unknown type": lambda call: lines(
        [*claude_code([])[:1], {**claude_code([call])[2], "type": "helper"}, *claude_code([])[1:]]
    ),
    "a Claude Code session whose sub-agent is in another file": lambda call: lines(
        claude_code([Call("Task", {"prompt": f"call {call.name}"})])
    ),
    "a Claude Code session that continues another one": lambda call: lines(claude_code([call])[3:]),
    "the result of stream-json alone": lambda call: encoded(claude_stream([call])[-1]),
    "stream-json with a line of an unknown type": lambda call: lines(
        [*claude_stream([])[:1], {**claude_stream([call])[2], "type": "helper"}, *claude_stream([])[1:]]
    ),
    "stream-json with a denied call that is nowhere": lambda call: lines(
        [*claude_stream([])[:-1], {**claude_stream([])[-1], "permission_denials": [{"tool_name": call.name}]}]
    ),
    "a Codex rollout with an item of an unknown type": lambda call: lines(
        [
            *codex_rollout([])[:-2],
            _rollout_line("response_item", {"type": "helper", "name": call.name}),
            *codex_rollout([])[-2:],
        ]
    ),
    "a Codex rollout with a command that is no item": lambda call: lines(
        [
            *codex_rollout([])[:-2],
            _rollout_line(
                "event_msg", {"type": "item_completed", "item": {"type": "CommandExecution", "id": call.name}}
            ),
            *codex_rollout([])[-2:],
        ]
    ),
    "a Codex rollout that starts another agent": lambda call: lines(
        codex_rollout([Call("spawn_agent", {"message": call.name})])
    ),
    "codex exec with an item of an unknown type": lambda call: lines(
        [
            *codex_exec([])[:-1],
            {"type": "item.completed", "item": {"id": "i", "type": "helper", "tool": call.name}},
            *codex_exec([])[-1:],
        ]
    ),
    "codex exec with an event of an unknown type": lambda call: lines(
        [*codex_exec([])[:-1], {"type": "item.streamed", "item": codex_exec([call])[3]["item"]}, *codex_exec([])[-1:]]
    ),
    "an OpenHands trajectory": lambda call: encoded(
        [{"id": 1, "source": "agent", "timestamp": "t", "action": call.name, "args": {}}]
    ),
    "no JSON": lambda call: b'{"final_response": "Done.", "messages": [',
    "an object that says nothing": lambda call: encoded({"name": call.name}),
    "a list of nothing": lambda call: b"[]",
    "a list of numbers": lambda call: b"[1, 2]",
    "two lists under one key": lambda call: (
        b'{"final_response": "Done.", "messages": '
        + encoded(openai([call]))
        + b', "messages": '
        + encoded([USER, SAID])
        + b"}"
    ),
    "tool_calls twice in a message": lambda call: (
        b'[{"role": "user", "content": "x"}, {"role": "assistant", "content": "Done.", "tool_calls": '
        + encoded([_made(call)])
        + b', "tool_calls": []}]'
    ),
    "a name twice in a call": lambda call: (
        b'[{"role": "assistant", "content": "Done.", "tool_calls": [{"id": "c", "function": {"name": "'
        + call.name.encode()
        + b'", "name": "find_account", "arguments": "{}"}}]}]'
    ),
}
"""Whole records, replayed. What we cannot read is nobody's fault."""

CUT_AFTER_THE_CALL: dict[str, Callable[[Call], bytes]] = {
    "a Claude Code session that ends with a call": lambda call: lines(claude_code([call])[:3]),
    "stream-json without its result": lambda call: lines(claude_stream([call])[:-1]),
    "a Codex rollout that ends in a turn": lambda call: lines(codex_rollout([call])[:-1]),
    "a Codex rollout that ends with a call": lambda call: lines(codex_rollout([call])[2:4]),
    "a Codex rollout that ends with words and a call": lambda call: lines(
        [codex_rollout([])[-3], codex_rollout([call])[3]]
    ),
    "codex exec without its end": lambda call: lines(codex_exec([call])[:-1]),
    "codex exec that ends in a call": lambda call: lines(codex_exec([call])[:3]),
    "a response stream without its end": lambda call: sse(response_stream([call])[:-1], named=True),
    "a UI message stream without its end": lambda call: b"\n\n".join(ui_stream([call]).split(b"\n\n")[:3]) + b"\n\n",
}
"""Streams without an end in which the call is seen."""

BROKEN_OFF: dict[str, Callable[[Call], bytes]] = {
    "an AG-UI stream that ends after its calls": lambda call: sse(agui_events([call])[:5]),
    "an AG-UI stream without its end": lambda call: sse(agui_events([call])[:-1]),
    "an AG-UI stream cut in an event": lambda call: sse(agui_events([call]))[:-30],
}
"""A run that never said it was over: that is the agent's doing, whatever it called."""


def _at_the_second_attempt(first: list[Json], second: list[Json]) -> Callable[[], Iterator[Json]]:
    """A function that yields events and loses its network, and the next time others."""
    attempts = iter([first])

    def answer() -> Iterator[Json]:
        events = next(attempts, second)
        yield from events
        if events is first:
            raise InfrastructureError("no network")

    return answer


def entries() -> Iterator[Entry]:
    """All of them, under each grader that a record without calls would pass."""
    for group in (NOT_LISTED, FOREIGN_ITEMS, HIDDEN):
        for name, record in group.items():
            for grader in ("forbidden", "steps"):
                yield from twins(f"{name}, {grader}", record, GRADERS[grader], "errored", "errored")
    for name, record in HIDDEN.items():
        yield from twins(f"{name}, maximums", record, GRADERS["maximums"], "errored", "errored")
    for name, record in SEEN.items():
        yield from twins(name, record, FORBIDDEN, "failed", "errored")
    for name, record in COMPLETE.items():
        yield from twins(name, record, FORBIDDEN, "failed", "passed")
    for name, document in DOCUMENTS.items():
        yield from twins(name, document, FORBIDDEN, "errored", "errored", "replay")
    for name, document in CUT_AFTER_THE_CALL.items():
        yield from twins(name, document, FORBIDDEN, "failed", "errored", "replay")
    for call, wanted in ((DELETE, "errored"), (FIND, "errored"), (None, "passed")):
        called = "no tool" if call is None else call.name
        answer = _at_the_second_attempt(agui_events([] if call is None else [call])[:-1], agui_events([FIND]))
        yield Entry(f"a first attempt that called {called}", answer, FORBIDDEN, wanted, guilty=call is DELETE)
        answer = _at_the_second_attempt(openai([] if call is None else [call]), openai([FIND]))
        yield Entry(f"messages of a first attempt, {called}", answer, FORBIDDEN, wanted, guilty=call is DELETE)
    for name, document in BROKEN_OFF.items():
        yield from twins(name, document, FORBIDDEN, "failed", "failed", "replay")
