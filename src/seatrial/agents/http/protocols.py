"""The APIs of models that an HTTP agent may speak: what is sent for a case, and how the response is read.

There is no loop: a model that calls a tool waits for its result, and its run ends there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from seatrial import formats
from seatrial._support import wire
from seatrial.agents.http.config import HttpConfig, ModelTool
from seatrial.agents.http.template import conversation, mapped
from seatrial.agents.output import reading_fault
from seatrial.formats import anthropic
from seatrial.formats.reading import WAITS_FOR_INPUT, Reading
from seatrial.runs import Case, Fault
from seatrial.runs.conclusion import given_messages
from seatrial.transcript import AssistantMessage, Note, ToolResultMessage, Transcript

ANTHROPIC_VERSION = {"anthropic-version": "2023-06-01"}
MAX_TOKENS = 4096
"""What Anthropic's API must be told; `request.body.max_tokens` says otherwise."""


class ModelApi(msgspec.Struct, frozen=True):
    """One API: the format of its responses, and the body of a request without its model."""

    format: str
    body: Callable[[Case], dict[str, Any]]
    tool: Callable[[ModelTool], dict[str, Any]]


def model_body(config: HttpConfig, case: Case) -> dict[str, Any]:
    """What a model is sent for a case."""
    api = MODEL_APIS[config.protocol]
    # Our encoders write only what is plain text, and these may name variables.
    tools = {"tools": mapped([api.tool(tool) for tool in config.tools], str)} if config.tools else {}
    return {"model": str(config.model), **api.body(case), **tools}


def read_model_response(data: bytes, config: HttpConfig) -> tuple[Reading, Fault | None]:
    """What a model answered. Raises `SeatrialError` when that is not a response of its API."""
    reading = formats.read(data, MODEL_APIS[config.protocol].format)
    messages = reading.transcript.messages
    settled = {message.tool_call_id for message in messages if type(message) is ToolResultMessage}
    ran = {(placed.message, placed.call) for placed in reading.facts if placed.facts.executed_by == "provider"}
    waiting = [
        call.name
        for index, message in enumerate(messages)
        if type(message) is AssistantMessage
        for number, call in enumerate(message.tool_calls())
        if call.id not in settled and (index, number) not in ran
    ]
    if waiting:
        text = f"the model called {waiting[0][:60]!r} and waits for the result, which nothing here gives it"
        reading.notes.append(Note(WAITS_FOR_INPUT, "", text))
    if config.tools:
        # It was given these tools and asked once: the response lists all calls that it made of them.
        reading.single_turn = reading.answer_only = False
    fault = reading_fault(reading)
    if fault is None and not any(type(message) is AssistantMessage for message in messages):
        fault = Fault("agent_bad_response", "the response has no message of the model")
    return reading, fault


def _chat_body(case: Case) -> dict[str, Any]:
    return {"messages": conversation(case)}


def _chat_tool(tool: ModelTool) -> dict[str, Any]:
    return {"type": "function", "function": _described(tool, "parameters")}


def _responses_body(case: Case) -> dict[str, Any]:
    return {"input": [item for message in conversation(case) for item in _items(message)]}


def _responses_tool(tool: ModelTool) -> dict[str, Any]:
    # Strict, which is the default of this API, allows few schemas.
    return {"type": "function", **_described(tool, "parameters"), "strict": False}


def _anthropic_body(case: Case) -> dict[str, Any]:
    written = anthropic.write(Transcript(given_messages(case)))
    return {"max_tokens": MAX_TOKENS, **wire.decode(written.data)}


def _anthropic_tool(tool: ModelTool) -> dict[str, Any]:
    return _described(tool, "input_schema")


def _described(tool: ModelTool, schema: str) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, schema: tool.parameters}


def _items(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message of the chat completions API as items of the Responses API, which has calls and results beside it."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        output = content if isinstance(content, str) else wire.encode(content).decode()
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
    items: list[dict[str, Any]] = []
    if content:
        side = "output_text" if role == "assistant" else "input_text"
        parts = content if isinstance(content, str) else [_part(part, side) for part in content]
        items.append({"role": role, "content": parts})
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        items.append({"type": "function_call", "call_id": call.get("id"), **function})
    return items


def _part(part: Any, side: str) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "text":
        return {"type": side, "text": part.get("text")}
    image = part.get("image_url")
    if not isinstance(image, dict):
        return part
    return {"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail", "auto")}


MODEL_APIS = {  # where they are: `MODEL_PATHS`
    "openai-chat": ModelApi("openai", _chat_body, _chat_tool),
    "openai-responses": ModelApi("responses", _responses_body, _responses_tool),
    "anthropic": ModelApi("anthropic", _anthropic_body, _anthropic_tool),
}
