"""**Agent responses** from bytes to a transcript with notes: 64 of them, with flat and nested tool calls, arguments as
objects and as text, thinking, content parts; every eighth has faults that need notes.

Whoever takes an answer also looks through its bytes for keys that occur twice; the last row has both.

The floor is a bare msgspec decode of the same bytes into plain Structs that mirror the response's schema. inspect_ai
validates the same messages, rewritten beforehand into its own shape. It makes an id for each message, except in the
context in which it reads its own logs; both ways are measured.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from inspect_ai._util.constants import DESERIALIZING
from inspect_ai.model import ChatMessage
from pydantic import TypeAdapter

from bench import corpus
from bench.clock import race
from bench.corpus import Json
from bench.figure import Figure, speed
from seatrial.formats import agent_response
from seatrial.formats.chat.hidden_calls import note_repeated_keys

RESPONSES = 64


class Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class Call(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    arguments: Any = None
    type: str | None = None
    function: Function | None = None


class Message(msgspec.Struct):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[Any] | None = None
    tool_call_id: str | None = None
    tool_calls: list[Call] | None = None
    thinking: list[dict[str, Any]] | None = None


class Response(msgspec.Struct):
    """The floor: the document as its schema describes it, decoded and nothing more."""

    final_response: str
    messages: list[Message] | None = None
    metadata: dict[str, Any] | None = None


def measure() -> list[Figure]:
    responses = corpus.agent_responses(RESPONSES)
    bodies = [msgspec.json.encode(response) for response in responses]
    decoder = msgspec.json.Decoder(Response)

    chats = [msgspec.json.encode(inspect_messages(response)) for response in responses]
    adapter = TypeAdapter(list[ChatMessage])
    context = {DESERIALIZING: True}

    for number, (body, chat) in enumerate(zip(bodies, chats, strict=True)):
        reading = agent_response.read(body)
        assert len(reading.transcript.messages) == len(adapter.validate_json(chat, context=context)) == corpus.MESSAGES
        assert len(reading.notes) == (2 if corpus.is_faulty(number) else 0)
    result = race(
        {
            "seatrial": lambda: [agent_response.read(body) for body in bodies],
            "bare msgspec decode": lambda: [decoder.decode(body) for body in bodies],
            "inspect_ai": lambda: [adapter.validate_json(chat) for chat in chats],
            "inspect_ai without ids": lambda: [adapter.validate_json(chat, context=context) for chat in chats],
        },
        seconds=6,
    )
    answers = race(
        {
            "seatrial": lambda: [note_repeated_keys(body, agent_response.read(body)) for body in bodies],
            "bare msgspec decode": lambda: [decoder.decode(body) for body in bodies],
        }
    )
    work = f"agent response of {sum(map(len, bodies)) / RESPONSES / 1000:.1f} kB to transcript and notes"
    return [
        speed(result, work, "bare msgspec decode", at_least=0.4, pieces=RESPONSES),
        speed(result, work, "inspect_ai", at_least=10, pieces=RESPONSES),
        speed(result, work, "inspect_ai without ids", at_least=10, pieces=RESPONSES),
        speed(answers, f"{work}, and a look for repeated keys", "bare msgspec decode", at_least=None, pieces=RESPONSES),
    ]


def inspect_messages(response: Json) -> list[Json]:
    """The messages as inspect_ai's ChatMessage wants them: arguments parsed, calls without a name left out."""
    messages: list[Json] = []
    for message in response["messages"]:
        rewritten = {"role": message["role"], "content": message["content"] or ""}
        if "thinking" in message:
            rewritten["content"] = [
                *(
                    {"type": "reasoning", "reasoning": block["text"], "signature": block["signature"]}
                    for block in message["thinking"]
                ),
                {"type": "text", "text": message["content"]},
            ]
        if "tool_call_id" in message:
            rewritten["tool_call_id"] = message["tool_call_id"]
        if "tool_calls" in message:
            rewritten["tool_calls"] = [
                _inspect_call(call["id"], flat)
                for call in message["tool_calls"]
                if "name" in (flat := call.get("function", call))
            ]
        messages.append(rewritten)
    return messages


def _inspect_call(call_id: str, call: Json) -> Json:
    arguments = call["arguments"]
    rewritten: Json = {"id": call_id, "function": call["name"], "arguments": arguments, "type": "function"}
    if isinstance(arguments, str):
        try:
            rewritten["arguments"] = msgspec.json.decode(arguments)
        except msgspec.DecodeError as error:
            rewritten |= {"arguments": {}, "parse_error": str(error)}
    return rewritten
