"""How turns end: one that was cut, or that tells of a call which is not here, is never taken for whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial.formats import anthropic, bedrock, langchain, responses, vercel
from seatrial.formats.completions import openai
from seatrial.formats.reading import Reading
from seatrial.transcript import AssistantMessage, StopReason

TEXT: list[dict[str, Any]] = [{"type": "text", "text": "Done."}]
SEARCH: list[dict[str, Any]] = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
]
CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


def data(document: Any) -> bytes:
    return json.dumps(document).encode()


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + data(event) + b"\n\n" for event in events)


def serious(reading: Reading) -> list[str]:
    return [note.code for note in reading.notes if note.serious]


def completion(**message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "Done.", **message}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}


def response(content: list[dict[str, Any]], **keys: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn", **keys}


def converse(*content: dict[str, Any]) -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": [*content]}}, "stopReason": "tool_use"}


@pytest.mark.parametrize(
    "reading",
    [
        openai.read(data(completion())),
        anthropic.read(data(response(TEXT, stop_reason="tool_use"))),
        anthropic.read(data([response(TEXT, stop_reason="tool_use")])),
        bedrock.read(data(converse({"text": "Done."}))),
        langchain.read(
            data([{"type": "ai", "content": "Done.", "response_metadata": {"finish_reason": "tool_calls"}}])
        ),
        anthropic.read(data(response(TEXT, usage={"server_tool_use": {"web_search_requests": 2}}))),
        anthropic.read(data([response(TEXT, usage={"server_tool_use": {"web_search_requests": 2}})])),
        anthropic.read(data(response([*SEARCH, *TEXT], usage={"server_tool_use": {"web_search_requests": 2}}))),
    ],
)
def test_a_call_that_the_record_tells_of_and_does_not_have_is_a_serious_finding(reading: Reading) -> None:
    assert serious(reading) == ["call_missing"]


@pytest.mark.parametrize(
    "reading",
    [
        openai.read(data(completion(tool_calls=[CALL]))),
        openai.read(data(completion(function_call={"name": "look_up", "arguments": "{}"}))),
        anthropic.read(
            data(response([{"type": "tool_use", "id": "c", "name": "f", "input": {}}], stop_reason="tool_use"))
        ),
        bedrock.read(data(converse({"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}))),
        anthropic.read(data(response([*SEARCH, *TEXT], usage={"server_tool_use": {"web_search_requests": 1}}))),
        anthropic.read(data(response(TEXT, usage={"server_tool_use": {"web_search_requests": 0}}))),
    ],
)
def test_a_turn_that_has_the_call_it_ended_with_is_whole(reading: Reading) -> None:
    assert serious(reading) == []


BEGIN = {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
OUTPUT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


def body(status: str, **keys: Any) -> bytes:
    return data({"object": "response", "status": status, "output": [OUTPUT], **keys})


@pytest.mark.parametrize(
    "reading",
    [
        anthropic.read(sse(BEGIN, {"type": "content_block_start", "index": 0, "content_block": TEXT[0]}, END)),
        vercel.read(sse({"type": "start"}, {"type": "text-delta", "id": "t", "delta": "Do"}, {"type": "abort"})),
        responses.read(body("incomplete", incomplete_details={"reason": "max_output_tokens"})),
        responses.read(body("incomplete")),
        responses.read(body("cancelled")),
    ],
)
def test_a_turn_that_was_cut_is_a_serious_finding(reading: Reading) -> None:
    assert serious(reading) == ["stream_truncated"]


def test_a_stream_that_said_how_its_turn_ended_keeps_that_without_its_last_event() -> None:
    stream = sse(BEGIN, {"type": "content_block_start", "index": 0, "content_block": TEXT[0]}, END)
    message = anthropic.read(stream).transcript.messages[-1]
    assert isinstance(message, AssistantMessage)
    assert message.stop_reason is StopReason.END_TURN
