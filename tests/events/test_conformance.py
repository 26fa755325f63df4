"""`ok` is what the real AG-UI client accepts: our verdict against its own, on thousands of streams with one flaw."""

from __future__ import annotations

import json
from typing import Any

import pytest
from server.real_client import follow
from strategies.agui_mutations import STREAMS, mutants

from seatrial.cli.commands.events import first_violation
from seatrial.events import read_log, replay
from seatrial.events.codec import EVENT_TYPES
from seatrial.events.conformance import refusal
from seatrial.events.violation import OrderViolation

# What the client accepts and we do not, by the code of our violation; docs/events.md has the same list, with reasons.
STRICTER = {
    "truncated": "a stream that ends without RUN_FINISHED or RUN_ERROR",
}


def verdict(events: list[Any]) -> OrderViolation | None:
    log = read_log(as_sse(events).encode(), check=True)
    return first_violation(log, replay(log.events))


def as_sse(events: list[Any]) -> str:
    return "".join([f"data: {json.dumps(event)}\n\n" for event in events])


def test_the_streams_have_every_type_of_event_and_every_field() -> None:
    events = [event for stream in STREAMS.values() for event in stream]
    assert {event["type"] for event in events} >= EVENT_TYPES.keys()
    native = {"eventId", "createdAt", "artifactId", "status", "threadId", "subagentRunId"}
    for name, kind in EVENT_TYPES.items():
        used = {key for event in events if event["type"] == name for key in event}
        assert used >= set(kind.__struct_encode_fields__) - native, name


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_the_client_accepts_is_ok(name: str) -> None:
    assert verdict(STREAMS[name]) is None


def test_our_verdict_is_that_of_the_real_client_on_every_single_mutation() -> None:
    changed = {as_sse(mutant.events): mutant for mutant in mutants()}
    held = follow([{"threadId": "t", "steps": [{"method": "POST", "body": body}]} for body in changed])
    wrong: list[str] = []
    refused = 0
    for mutant, client in zip(changed.values(), held, strict=True):
        ours = verdict(mutant.events)
        refused += bool(client.errors)
        if ours is None and client.errors:
            wrong.append(f"{mutant.name}: the client refuses it: {client.errors[0][:200]}")
        elif ours is not None and not client.errors and ours.code not in STRICTER:
            wrong.append(f"{mutant.name}: the client accepts it, and we say: {ours.message}")
    assert len(changed) > 5000
    assert refused > 2000
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])


ORDERS: list[list[Any]] = [
    # Unknown types are dropped before the order is looked at.
    [{"type": "HELLO"}, *STREAMS["cancelled"], {"type": "BYE"}],
    [*STREAMS["cancelled"], {"type": "KEEPALIVE"}, {"type": "TERMINAL"}],
    [*STREAMS["cancelled"], {"type": "RAW", "event": 1}],
    [{"type": "RAW", "event": 1, "source": "seatrial"}, *STREAMS["cancelled"]],
    # Old events continue old ones only.
    [
        STREAMS["reasoning"][0],
        STREAMS["reasoning"][2],
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "x"},
        STREAMS["reasoning"][4],
        STREAMS["reasoning"][-1],
    ],
    # Messages that the client drops own nothing.
    [
        STREAMS["calls"][0],
        {
            "type": "MESSAGES_SNAPSHOT",
            "messages": [
                {"id": "m", "role": "alien", "subagentRunId": "s"},
                {"id": "u", "role": "user", "content": "", "subagentRunId": "s", "toolCalls": [{"id": "c"}]},
            ],
        },
        {"type": "SUBAGENT_STARTED", "subagentRunId": "x", "name": "n"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": "x"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "x"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "subagentRunId": "x"},
        {"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": "x"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "x"},
        STREAMS["calls"][-1],
    ],
    # A part whose source is of an unknown kind is dropped as a whole, and so is what else is wrong with it.
    [
        STREAMS["calls"][0],
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "r",
            "toolCallId": "c",
            "content": [{"type": "image", "id": 5, "source": {"type": "cloud"}}],
        },
        STREAMS["calls"][-1],
    ],
    [STREAMS["calls"][0], {**STREAMS["calls"][-1], "outcome": {"type": "interrupt", "interrupts": []}}],
]


def test_our_verdict_is_that_of_the_real_client_on_these_orders() -> None:
    held = follow([{"threadId": "t", "steps": [{"method": "POST", "body": as_sse(events)}]} for events in ORDERS])
    for events, client in zip(ORDERS, held, strict=True):
        assert (verdict(events) is None) == (not client.errors), (events, client.errors)


@pytest.mark.parametrize(
    ("event", "pointer", "message"),
    [
        ({"type": "TEXT_MESSAGE_END"}, "/messageId", "a required field is missing"),
        ({"type": "TEXT_MESSAGE_END", "messageId": None}, "/messageId", "expected text, got null"),
        ({"type": ""}, "/type", "expected text that names a type of event, got ''"),
        ({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "a", "value": 1}]}, "/delta/0/path", "a JSON Pointer"),
        ([], "", "expected an object with a `type`"),
        (
            {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "a", "role": "assistant", "toolCalls": [{"id": "c"}]}]},
            "/messages/0/toolCalls/0/type",
            "a required field is missing",
        ),
    ],
)
def test_a_refusal_says_where_and_what_was_expected(event: Any, pointer: str, message: str) -> None:
    refused = refusal(event)
    assert refused is not None
    assert refused.pointer == pointer
    assert message in refused.message
