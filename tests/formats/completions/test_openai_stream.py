"""Streams of chat completions: the same as the message that came whole, however they are cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies.chats import chat_turns, completion_chunks, pieces, single_turns, sse
from strategies.growth import growth
from strategies.streams import answer, assert_read_as_far_as_it_goes, codes, fed

from seatrial.formats.completions import openai
from seatrial.formats.completions.openai import OpenAIStream
from seatrial.formats.reading import Reading
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, ThinkingBlock, ToolCall, Transcript, Usage

DONE = b"[DONE]"


def chunk(delta: dict[str, Any] | None = None, *, index: int = 0, finish: str | None = None, **keys: Any) -> bytes:
    choices = [] if delta is None else [{"index": index, "delta": delta, "finish_reason": finish}]
    return json.dumps({"id": "c1", "object": "chat.completion.chunk", "choices": choices, **keys}).encode()


def read(*payloads: bytes) -> Reading:
    return openai.read(sse(payloads))


HELLO = [
    chunk({"role": "assistant", "content": ""}, model="gpt-x"),
    chunk({"content": "Hel"}),
    chunk({"content": "lo"}),
    chunk({}, finish="stop"),
    chunk(None, usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
    DONE,
]


def test_text_usage_and_the_finish_reason_are_gathered() -> None:
    reading = read(*HELLO)
    assert answer(reading) == AssistantMessage([TextBlock("Hello")], StopReason.END_TURN, usage=Usage(3, 2))
    assert (reading.id, reading.transcript.metadata, reading.notes) == ("c1", {"model": "gpt-x"}, [])


def test_a_recording_may_be_sse_or_lines_or_an_array() -> None:
    expected = read(*HELLO)
    assert openai.read(sse(HELLO, line_end=b"\r\n")) == expected
    assert openai.read(b": comment\n\nevent: x\n" + sse(HELLO)) == expected
    assert openai.read(b"\n".join(HELLO)) == expected
    assert openai.read(b"[" + b",".join(HELLO[:-1]) + b"]") == expected


def test_calls_are_put_together_by_index_and_come_in_its_order() -> None:
    def call(index: int, arguments: str, **keys: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, "function": {"arguments": arguments, **keys}}]}

    second = {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]}
    first = {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}]}
    deltas = [second, first, call(1, '{"x"'), call(0, '"y": 2}'), call(1, ": 1}")]
    reading = read(*[chunk(delta) for delta in deltas], chunk({}, finish="tool_calls"), DONE)
    assert answer(reading).content == [ToolCall("a", "f", {"y": 2}), ToolCall("b", "g", {"x": 1})]
    assert reading.notes == []


def test_another_id_under_the_same_index_is_another_call() -> None:
    calls = [{"index": 0, "id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    reading = read(chunk({"tool_calls": calls}, finish="tool_calls"), DONE)
    assert answer(reading).content == [ToolCall("a", "a", {}), ToolCall("b", "b", {})]


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    deltas: list[dict[str, Any]] = [
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "["}}]},
        {"tool_calls": [{"function": {"arguments": "1]"}}]},
        {"tool_calls": [{"id": "b", "function": {"name": "g", "arguments": "{}"}}]},
    ]
    reading = read(*[chunk(delta) for delta in deltas], chunk({}, finish="tool_calls"), DONE)
    assert answer(reading).content == [ToolCall("a", "f", [1]), ToolCall("b", "g", {})]


def test_a_legacy_function_call_is_gathered() -> None:
    deltas: list[dict[str, Any]] = [
        {"function_call": {"name": "f", "arguments": '{"a'}},
        {"function_call": {"arguments": '": 1}'}},
    ]
    reading = read(*[chunk(delta) for delta in deltas], chunk({}, finish="function_call"), DONE)
    (call,) = answer(reading).tool_calls()
    assert (call.name, call.arguments) == ("f", {"a": 1})


def test_of_several_choices_the_first_is_read_whichever_comes_first() -> None:
    chunks = [chunk({"content": "second"}, index=1, finish="stop"), chunk({"content": "first"}, finish="stop"), DONE]
    reading = read(*chunks)
    assert answer(reading).content == [TextBlock("first")]
    assert codes(reading) == ["choice_dropped"]


def test_a_tag_that_is_cut_anywhere_is_found() -> None:
    text = "a<thought>hm</thought>b"
    reading = read(*[chunk({"content": letter}) for letter in text], chunk({}, finish="stop"), DONE)
    assert answer(reading).content == [TextBlock("a"), ThinkingBlock("hm"), TextBlock("b")]


def test_after_done_another_response_may_follow() -> None:
    reading = read(*HELLO, chunk({"content": "Bye"}, finish="stop"), DONE)
    assert [
        message.plain_text() for message in reading.transcript.messages if isinstance(message, AssistantMessage)
    ] == [
        "Hello",
        "Bye",
    ]


def test_an_error_in_the_stream_ends_the_turn() -> None:
    error = {"code": 502, "message": "Provider disconnected"}
    reading = read(chunk({"content": "Hel"}), chunk({"content": ""}, finish="error", error=error))
    assert answer(reading) == AssistantMessage([TextBlock("Hel")], StopReason.ERROR, "Provider disconnected")
    assert reading.transcript.metadata == {"error": error}


@pytest.mark.parametrize("end", [1, 2, 3])
def test_a_stream_that_was_cut_off_keeps_what_arrived_and_ends_in_an_error(end: int) -> None:
    reading = read(*HELLO[:end])
    assert answer(reading).stop_reason is StopReason.ERROR
    assert answer(reading).error_message is not None
    assert answer(reading).plain_text() == "Hello"[: (end - 1) * 3]
    assert codes(reading) == ["stream_truncated"]


def test_arguments_that_were_cut_off_are_kept_as_text() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"a": '}}
    reading = read(chunk({"tool_calls": [call]}))
    assert codes(reading) == ["arguments_not_json", "stream_truncated"]


def test_a_finish_reason_is_enough_and_so_is_done() -> None:
    assert codes(read(*HELLO[:4])) == []
    assert codes(read(*HELLO[:3], DONE)) == ["stop_reason_guessed"]


def test_a_stream_without_a_response_says_so() -> None:
    reading = openai.read(b": keepalive\n\ndata: [DONE]\n\n")
    assert reading.transcript.messages == []
    assert codes(reading) == ["stream_truncated"]


def test_a_frame_that_is_no_chunk_is_dropped_and_the_rest_stays() -> None:
    reading = read(HELLO[0], b"{oops", HELLO[1], b"7", b'{"choices": 7}', *HELLO[2:])
    assert answer(reading).plain_text() == "Hello"
    assert [(note.code, note.pointer) for note in reading.notes] == [("frame_dropped", "/1")]
    assert "2 more" in reading.notes[0].message


def test_a_key_of_a_delta_that_is_lost_is_noted_once() -> None:
    reading = read(chunk({"content": "a", "mood": 1}), chunk({"content": "b", "mood": 2}, finish="stop"), DONE)
    assert answer(reading).plain_text() == "ab"
    assert [(note.code, note.pointer) for note in reading.notes] == [("key_dropped", "/0/choices/0/delta/mood")]


@given(st.data(), single_turns(chat_turns(native=False)))
def test_a_stream_reads_as_the_response_that_came_whole(data: st.DataObject, turn: AssistantMessage) -> None:
    (message,) = json.loads(openai.write(Transcript([turn])).data)
    assume(not isinstance(message["content"], list))
    response = {
        "id": "chatcmpl-1",
        "model": "gpt-x",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if turn.tool_calls() else "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}},
    }
    chunks = data.draw(completion_chunks(response))
    assert openai.read(sse([*chunks, DONE])) == openai.read(json.dumps(response).encode())


@given(st.data(), st.booleans())
def test_the_result_does_not_depend_on_how_the_bytes_were_cut(data: st.DataObject, framed: bool) -> None:
    text = b"\n \xef\xbb\xbf\r\n" + (sse(HELLO, line_end=b"\r\n") if framed else b"\r\n".join(HELLO))
    assert fed(OpenAIStream(), data.draw(pieces(text))) == fed(OpenAIStream(), [text])


@given(st.integers(0, 1000))
def test_a_stream_that_is_cut_at_any_byte_is_read_as_far_as_it_goes(length: int) -> None:
    assert_read_as_far_as_it_goes(OpenAIStream, sse(HELLO)[:length], "Hello")


def test_a_hundred_thousand_deltas_cost_linear_time() -> None:
    def reading(count: int) -> Callable[[], None]:
        call = {"index": 0, "function": {"arguments": "1,"}}
        text = sse([chunk({"content": "word ", "reasoning": "so ", "tool_calls": [call]})] * count)

        def read_all() -> None:
            assert len(answer(openai.read(text)).plain_text()) == 5 * count

        return read_all

    assert growth(reading, 10_000, 100_000, below=25) < 25
