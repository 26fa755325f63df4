"""What is measured: inputs that are the same in every run, made from a seeded generator."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec

Json = dict[str, Any]

_PROSE = (
    "the order was placed on Tuesday and shipped from a warehouse in Leiden so customs may ask for an invoice "
    'please check whether a refund is still possible before you "answer" it\n- status pending total amount euro '
    "quantity account customer address delivery window morning afternoon"
)
_WORDS = _PROSE.split(" ")
_FOREIGN = "café naïve 東京 — straße"
_TOOLS = ("search_orders", "get_customer", "refund_payment", "send_email", "list_invoices", "update_address")

MESSAGES = 12
"""Messages of an agent response."""


def is_faulty(number: int) -> bool:
    """Whether this agent response needs two notes: a call has no name, the arguments of another are not JSON."""
    return number % 8 == 7


def agent_responses(count: int) -> list[Json]:
    """Bodies of customer-hosted agents: 12 messages and about 9 KB each, with every shape of tool call."""
    rng = random.Random(7)
    return [_agent_response(rng, faulty=is_faulty(number)) for number in range(count)]


def _agent_response(rng: random.Random, *, faulty: bool) -> Json:
    messages: list[Json] = [
        {"role": "system", "content": _text(rng, 1500)},
        {"role": "user", "content": [{"type": "text", "text": _text(rng, 400)}]},
    ]
    for turn in range(3):
        calls = [_call(rng, shape=(turn * 2 + place) % 4) for place in range(2)]
        if faulty and turn == 1:
            calls[1]["function"]["arguments"] = '{"order": 17, "reason": '
            calls.append({"id": "call_nameless", "arguments": {"order": 17}})
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        if turn != 1:
            messages[-1]["content"] = _text(rng, 200)
            messages[-1]["thinking"] = [{"type": "thinking", "text": _text(rng, 400), "signature": "c2ln" * 12}]
        messages += ({"role": "tool", "tool_call_id": call["id"], "content": _text(rng, 450)} for call in calls[:2])
    messages.append({"role": "assistant", "content": _text(rng, 600)})
    return {
        "final_response": messages[-1]["content"],
        "messages": messages,
        "metadata": {
            "model": "model-1",
            "total_input_tokens": 5210,
            "total_output_tokens": 812,
            "agent_runtime_ms": 4.5,
        },
    }


def _call(rng: random.Random, *, shape: int) -> Json:
    """Flat or nested, with arguments as an object or as JSON text."""
    call_id, name = f"call_{rng.getrandbits(64):016x}", rng.choice(_TOOLS)
    arguments: Any = _arguments(rng, name)
    if shape % 2:
        arguments = msgspec.json.encode(arguments).decode()
    if shape < 2:
        return {"id": call_id, "name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def run_and_reference(mode: str, calls: int, *, respelled: bool = False) -> tuple[list[Json], list[Json]]:
    """The messages of a run, and those of a reference that it matches in this mode, call for call.

    Respelled, the arguments of the reference are the same JSON as another writer spells it.
    """
    run, reference = _conversation(calls), _conversation(calls)
    if mode != "strict":
        reference = _shuffled(reference)
    if respelled:
        for message in reference:
            for call in message.get("tool_calls", ()):
                arguments = msgspec.json.decode(call["function"]["arguments"])
                call["function"]["arguments"] = json.dumps(arguments, sort_keys=True)
    # Decoded, the objects lie in memory as if they had just been read from a file: in the order of the list.
    return _decoded(run), _decoded(reference)


def _conversation(calls: int) -> list[Json]:
    """OpenAI chat messages with so many tool calls, mostly one in a message, at times two or three."""
    rng = random.Random(11)
    messages: list[Json] = [{"role": "user", "content": _text(rng, 200)}]
    made = 0
    while made < calls:
        batch = [_openai_call(rng, made + place) for place in range(min(rng.choice((1, 1, 1, 1, 2, 3)), calls - made))]
        made += len(batch)
        messages.append({"role": "assistant", "content": "", "tool_calls": batch})
        messages += ({"role": "tool", "tool_call_id": call["id"], "content": _text(rng, 80)} for call in batch)
    messages.append({"role": "assistant", "content": _text(rng, 200)})
    return messages


def _shuffled(messages: list[Json]) -> list[Json]:
    """The same conversation with its turns (a call message and its results) in another order."""
    turns: list[list[Json]] = []
    for message in messages[1:-1]:
        if message["role"] == "assistant":
            turns.append([])
        turns[-1].append(message)
    random.Random(13).shuffle(turns)
    return [messages[0], *(message for turn in turns for message in turn), messages[-1]]


def _openai_call(rng: random.Random, number: int) -> Json:
    name = rng.choice(_TOOLS)
    arguments = msgspec.json.encode(_arguments(rng, name)).decode()
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _decoded(messages: list[Json]) -> list[Json]:
    return msgspec.json.decode(msgspec.json.encode(messages), type=list[Json])


def event_run(count: int) -> list[Json]:
    """A legal run of so many events in AG-UI's wire form: mostly deltas, with tools, steps, chunks and state."""
    rng = random.Random(17)
    run = {"threadId": "thread-1", "runId": "run-1"}
    events: list[Json] = [
        {"type": "RUN_STARTED", **run},
        {"type": "STATE_SNAPSHOT", "snapshot": {"turn": 0, "orders": []}},
    ]
    turn = 0
    while len(events) < count - 1:
        events += _turn(rng, turn)
        turn += 1
    # A cut inside a turn would leave messages open: the last turn goes, and events that stand alone fill up.
    if len(events) > count - 1:
        del events[-_TURN_EVENTS:]
    while len(events) < count - 1:
        events.append({"type": "CUSTOM", "name": "progress", "value": {"done": len(events)}})
    events.append({"type": "RUN_FINISHED", **run})
    return events


def _turn(rng: random.Random, turn: int) -> list[Json]:
    thought, answer, aside, result = f"thought-{turn}", f"answer-{turn}", f"aside-{turn}", f"result-{turn}"
    call, chunked = f"call-{turn}", f"chunked-{turn}"
    step, tool = {"stepName": "model"}, rng.choice(_TOOLS)
    return [
        {"type": "STEP_STARTED", **step},
        {"type": "REASONING_START", "messageId": f"span-{turn}"},
        {"type": "REASONING_MESSAGE_START", "messageId": thought, "role": "reasoning"},
        *({"type": "REASONING_MESSAGE_CONTENT", "messageId": thought, "delta": _token(rng)} for _ in range(20)),
        {"type": "REASONING_MESSAGE_END", "messageId": thought},
        {"type": "REASONING_END", "messageId": f"span-{turn}"},
        {"type": "TEXT_MESSAGE_START", "messageId": answer, "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": answer, "delta": _token(rng)} for _ in range(40)),
        {"type": "TEXT_MESSAGE_END", "messageId": answer},
        {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": tool, "parentMessageId": answer},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": part} for part in _json_parts(rng, tool, 12)),
        {"type": "TOOL_CALL_END", "toolCallId": call},
        {"type": "TOOL_CALL_RESULT", "messageId": result, "toolCallId": call, "content": _text(rng, 200)},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/turn", "value": turn}]},
        *(
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": aside, "role": "assistant", "delta": _token(rng)}
            for _ in range(10)
        ),
        *(
            {"type": "TOOL_CALL_CHUNK", "toolCallId": chunked, "toolCallName": "search_orders", "delta": part}
            for part in _json_parts(rng, "search_orders", 6)
        ),
        {"type": "TOOL_CALL_RESULT", "messageId": f"{result}-2", "toolCallId": chunked, "content": _text(rng, 200)},
        {"type": "STEP_FINISHED", **step},
    ]


def _json_parts(rng: random.Random, tool: str, parts: int) -> list[str]:
    text = msgspec.json.encode(_arguments(rng, tool)).decode()
    size = -(-len(text) // parts)
    return [text[place * size : (place + 1) * size] for place in range(parts)]


def _arguments(rng: random.Random, tool: str) -> Json:
    """Mostly flat, as tool arguments are; two of the six tools take an object inside."""
    customer = f"C-{rng.randint(10**6, 10**7)}"
    match tool:
        case "get_customer":
            return {"customer_id": customer}
        case "list_invoices":
            return {"customer_id": customer, "limit": rng.choice((10, 25, 50))}
        case "refund_payment":
            amount = rng.randint(1, 10**5) / 100
            return {"payment_id": f"pay_{rng.getrandbits(48):012x}", "amount": amount, "reason": _text(rng, 30)}
        case "send_email":
            return {"to": f"{customer}@example.org", "subject": _text(rng, 30), "body": _text(rng, 120)}
        case "update_address":
            address = {"street": _text(rng, 15), "city": "Leiden", "postcode": f"{rng.randint(1000, 9999)} AB"}
            return {"customer_id": customer, "address": address}
        case _:
            filters = {"open": rng.random() < 0.5, "tags": ["late", rng.choice(_WORDS)]}
            return {"query": _text(rng, 40), "filters": filters, "page": rng.randint(1, 9)}


def _token(rng: random.Random) -> str:
    return f" {rng.choice(_WORDS)}"


def _text(rng: random.Random, length: int) -> str:
    words: list[str] = []
    size = 0
    while size < length:
        words.append(rng.choice(_WORDS))
        size += len(words[-1]) + 1
    # Most texts are ASCII, which decodes faster; some are not.
    return " ".join(words) if rng.random() < 0.9 else " ".join((*words, _FOREIGN))


_TURN_EVENTS = len(_turn(random.Random(0), 0))
