"""OpenRouter's streams: reasoning beside the content, errors in mid-stream. The channel rules are in test_channels."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies.chats import chat_turns, completion_chunks, pieces, single_turns, sse

from seatrial.formats.completions import openrouter
from seatrial.formats.completions.openrouter import OpenRouterStream
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, Transcript

DONE = b"[DONE]"


def chunk(delta: dict[str, Any], *, finish: str | None = None, **keys: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "native_finish_reason": finish, "logprobs": None}
    return json.dumps({"id": "gen-1", "provider": "xAI", "choices": [choice], **keys}).encode()


def test_comments_that_keep_the_connection_open_are_no_frames() -> None:
    data = b": OPENROUTER PROCESSING\n\n" + sse([chunk({"content": "Yes."}), chunk({}, finish="stop"), DONE])
    reading = openrouter.read(data)
    assert reading.transcript.messages == [AssistantMessage([TextBlock("Yes.")], StopReason.END_TURN)]
    assert reading.transcript.metadata == {"provider": "xAI"}
    assert (reading.format, reading.notes) == ("openrouter", [])


def test_an_error_in_mid_stream_ends_the_turn() -> None:
    error = {"code": "server_error", "message": "Provider disconnected unexpectedly"}
    data = sse([chunk({"content": "Ye"}), chunk({"content": ""}, finish="error", error=error)])
    assert openrouter.read(data).transcript.messages == [
        AssistantMessage([TextBlock("Ye")], StopReason.ERROR, "Provider disconnected unexpectedly")
    ]


@given(st.data(), single_turns(chat_turns(native=True)))
def test_a_stream_reads_as_the_response_that_came_whole(data: st.DataObject, turn: AssistantMessage) -> None:
    (message,) = json.loads(openrouter.write(Transcript([turn])).data)["messages"]
    assume(not isinstance(message["content"], list))
    message["reasoning_details"] = turn.reasoning_details_values()
    response = {"id": "gen-1", "choices": [{"index": 0, "message": message, "finish_reason": "length"}]}
    stream = OpenRouterStream()
    for piece in data.draw(pieces(sse([*data.draw(completion_chunks(response)), DONE]))):
        stream.feed(piece)
    assert stream.finish() == openrouter.read(msgspec.json.encode(response))
