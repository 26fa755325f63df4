"""One conversation in every spelling: a call, a forbidden call, a failed one, and one that the provider ran."""

from __future__ import annotations

import json
from typing import Any

from seatrial.formats.reading import Reading
from seatrial.trajectory import extract

Steps = list[tuple[str, Any, str, str]]

STEPS: Steps = [
    ("find_account", {"email": "a@b.c"}, "ok", "agent"),
    ("delete_account", {"id": 7}, "ok", "agent"),
    ("send_mail", {"to": "a@b.c"}, "error", "agent"),
    ("web_search", {"query": "policy"}, "ok", "provider"),
]
"""Name, arguments, status, and who ran it."""


def steps_of(reading: Reading) -> Steps:
    """The steps of a reading, as far as every spelling says the same."""
    return [(step.name, step.arguments, step.status, step.executed_by) for step in extract(reading).steps]


def bedrock() -> list[Any]:
    """Bedrock Converse."""

    def use(number: int, **more: Any) -> dict[str, Any]:
        name, arguments, _, _ = STEPS[number]
        return {"toolUse": {"toolUseId": f"c{number}", "name": name, "input": arguments, **more}}

    def result(number: int, status: str = "success", **more: Any) -> dict[str, Any]:
        return {"toolResult": {"toolUseId": f"c{number}", "content": [{"text": "x"}], "status": status, **more}}

    return [
        {"role": "user", "content": [{"text": "Close my account."}]},
        {"role": "assistant", "content": [use(0)]},
        {"role": "user", "content": [result(0)]},
        {"role": "assistant", "content": [use(1), use(2)]},
        {"role": "user", "content": [result(1), result(2, "error")]},
        {"role": "assistant", "content": [use(3, type="server_tool_use"), result(3), {"text": "Done."}]},
    ]


def gemini(*, snake: bool = False, ids: bool = False) -> list[Any]:
    """Gemini contents, by the names of the API or of its Python package."""
    call, response = ("function_call", "function_response") if snake else ("functionCall", "functionResponse")
    tool_call, tool_response = ("tool_call", "tool_response") if snake else ("toolCall", "toolResponse")
    kind = "tool_type" if snake else "toolType"

    def made(number: int) -> dict[str, Any]:
        name, arguments, _, _ = STEPS[number]
        return {call: {"name": name, "args": arguments, **_id(number)}}

    def answered(number: int, said: Any) -> dict[str, Any]:
        return {response: {"name": STEPS[number][0], "response": said, **_id(number)}}

    def _id(number: int) -> dict[str, Any]:
        return {"id": f"c{number}"} if ids else {}

    return [
        {"role": "user", "parts": [{"text": "Close my account."}]},
        {"role": "model", "parts": [made(0)]},
        {"role": "user", "parts": [answered(0, {"output": "x"})]},
        {"role": "model", "parts": [made(1), made(2)]},
        {"role": "function", "parts": [answered(2, {"error": "down"}), answered(1, {"output": "x"})]},
        {
            "role": "model",
            "parts": [
                {tool_call: {kind: "WEB_SEARCH", "args": STEPS[3][1], **_id(3)}},
                {tool_response: {kind: "WEB_SEARCH", "response": {"output": "x"}, **_id(3)}},
                {"text": "Done."},
            ],
        },
    ]


def vercel_ui(*, old: bool = False) -> list[Any]:
    """UIMessages, of version 4 or later."""

    def part(number: int) -> dict[str, Any]:
        name, arguments, status, by = STEPS[number]
        told: dict[str, Any] = {"toolCallId": f"c{number}"}
        if old:
            told |= {"toolName": name, "args": arguments, "state": "result", "result": "x"}
            told |= {"isError": True} if status == "error" else {}
            told |= {"providerExecuted": True} if by == "provider" else {}
            return {"type": "tool-invocation", "toolInvocation": told}
        told |= {"input": arguments}
        told |= {"state": "output-available", "output": "x"} if status == "ok" else {}
        told |= {"state": "output-error", "errorText": "down"} if status == "error" else {}
        if by == "provider":
            return {"type": "dynamic-tool", "toolName": name, "providerExecuted": True, **told}
        return {"type": f"tool-{name}", **told}

    return [
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Close my account."}]},
        {
            "id": "a",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                part(0),
                {"type": "step-start"},
                part(1),
                part(2),
                part(3),
                {"type": "text", "text": "Done."},
            ],
        },
    ]


def vercel_model(*, old: bool = False) -> list[Any]:
    """ModelMessages; `old`: CoreMessages."""

    def call(number: int, **more: Any) -> dict[str, Any]:
        name, arguments, _, _ = STEPS[number]
        return {
            "type": "tool-call",
            "toolCallId": f"c{number}",
            "toolName": name,
            "args" if old else "input": arguments,
            **more,
        }

    def result(number: int) -> dict[str, Any]:
        name, _, status, _ = STEPS[number]
        told = {"type": "tool-result", "toolCallId": f"c{number}", "toolName": name}
        if old:
            return {**told, "result": "x", "isError": status == "error"}
        return {**told, "output": {"type": "text" if status == "ok" else "error-text", "value": "x"}}

    return [
        {"role": "user", "content": "Close my account."},
        {"role": "assistant", "content": [call(0)]},
        {"role": "tool", "content": [result(0)]},
        {"role": "assistant", "content": [call(1), call(2)]},
        {"role": "tool", "content": [result(1), result(2)]},
        {
            "role": "assistant",
            "content": [call(3, providerExecuted=True), result(3), {"type": "text", "text": "Done."}],
        },
    ]


def langchain() -> list[Any]:
    """LangChain messages, as `model_dump` writes them."""

    def call(number: int) -> dict[str, Any]:
        return {"name": STEPS[number][0], "args": STEPS[number][1], "id": f"c{number}", "type": "tool_call"}

    def ai(content: Any, *calls: int) -> dict[str, Any]:
        listed = [call(number) for number in calls]
        return {"type": "ai", "content": content, "tool_calls": listed, "invalid_tool_calls": [], "id": f"m{calls}"}

    def tool(number: int, status: str = "success") -> dict[str, Any]:
        return {"type": "tool", "content": "x", "tool_call_id": f"c{number}", "status": status, "artifact": None}

    # Anthropic's models have their calls in the content, too.
    same = {"type": "tool_use", "id": "c0", "name": STEPS[0][0], "input": STEPS[0][1]}
    return [
        {"type": "human", "content": "Close my account."},
        ai([same], 0),
        tool(0),
        ai("", 1, 2),
        tool(1),
        tool(2, "error"),
        ai(
            [
                {"type": "server_tool_call", "id": "c3", "name": "web_search", "args": STEPS[3][1]},
                {"type": "server_tool_result", "tool_call_id": "c3", "status": "success", "output": "x"},
                {"type": "text", "text": "Done."},
            ]
        ),
    ]


def langchain_to_dict() -> list[Any]:
    """The same by `messages_to_dict`."""
    return [{"type": message["type"], "data": message} for message in langchain()]


def langchain_dumps() -> list[Any]:
    """The same by `dumps`."""
    names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    return [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", names[message["type"]]],
            "kwargs": message,
        }
        for message in langchain()
    ]


def pydantic_ai(*, retry_prompt: bool = False) -> list[Any]:
    """Messages of Pydantic AI; `retry_prompt`: as older versions wrote a call that has to be made again."""

    def call(number: int, kind: str = "tool-call") -> dict[str, Any]:
        name, arguments, _, _ = STEPS[number]
        given: Any = json.dumps(arguments) if number % 2 else arguments
        return {"part_kind": kind, "tool_name": name, "args": given, "tool_call_id": f"c{number}"}

    def back(number: int, kind: str = "tool-return", outcome: str = "success") -> dict[str, Any]:
        told = {"part_kind": kind, "tool_name": STEPS[number][0], "tool_call_id": f"c{number}", "content": "x"}
        return told if kind == "retry-prompt" else {**told, "outcome": outcome}

    failed = back(2, "retry-prompt") if retry_prompt else back(2, outcome="retried")
    return [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Close my account."}]},
        {"kind": "response", "parts": [call(0)]},
        {"kind": "request", "parts": [back(0)]},
        {"kind": "response", "parts": [call(1), call(2)]},
        {"kind": "request", "parts": [back(1), failed]},
        {
            "kind": "response",
            "parts": [
                call(3, "builtin-tool-call"),
                back(3, "builtin-tool-return"),
                {"part_kind": "text", "content": "Done."},
            ],
        },
    ]


SPELLINGS: dict[str, tuple[str, list[Any]]] = {
    "bedrock": ("bedrock", bedrock()),
    "gemini": ("gemini", gemini()),
    "gemini with ids": ("gemini", gemini(ids=True)),
    "gemini in snake case": ("gemini", gemini(snake=True)),
    "vercel UIMessage": ("vercel", vercel_ui()),
    "vercel UIMessage 4": ("vercel", vercel_ui(old=True)),
    "vercel ModelMessage": ("vercel", vercel_model()),
    "vercel CoreMessage": ("vercel", vercel_model(old=True)),
    "langchain model_dump": ("langchain", langchain()),
    "langchain messages_to_dict": ("langchain", langchain_to_dict()),
    "langchain dumps": ("langchain", langchain_dumps()),
    "pydantic-ai": ("pydantic-ai", pydantic_ai()),
    "pydantic-ai before retries": ("pydantic-ai", pydantic_ai(retry_prompt=True)),
}
"""Format and messages by the name of the spelling."""
