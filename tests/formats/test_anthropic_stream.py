"""Streams of the Anthropic API: the same as the message that came whole, however they are cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.chats import anthropic_events, block_turns, pieces, single_turns, sse
from strategies.growth import growth
from strategies.streams import answer, assert_read_as_far_as_it_goes, codes, fed

from seatrial.formats import anthropic
from seatrial.formats.anthropic import AnthropicStream
from seatrial.formats.reading import Reading
from seatrial.transcript import (
    AssistantMessage,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Transcript,
    Usage,
)


def event(kind: str, **keys: Any) -> bytes:
    return json.dumps({"type": kind, **keys}).encode()


def start(block: dict[str, Any], index: int = 0) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(kind: str, index: int = 0, **keys: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **keys})


USAGE = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 5}
BEGIN = event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
                                        "content": [], "stop_reason": None, "usage": USAGE})  # fmt: skip
END = [
    event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 2}),
    event("message_stop"),
]
HELLO = [
    BEGIN,
    start({"type": "text", "text": ""}),
    event("ping"),
    delta("text_delta", text="Hel"),
    delta("text_delta", text="lo"),
    event("content_block_stop", index=0),
    *END,
]


def read(*payloads: bytes) -> Reading:
    return anthropic.read(sse(payloads))


def test_text_usage_and_the_stop_reason_are_gathered() -> None:
    reading = read(*HELLO)
    assert answer(reading) == AssistantMessage([TextBlock("Hello")], StopReason.END_TURN, usage=Usage(3, 2, 0, 5))
    assert (reading.id, reading.transcript.metadata, reading.notes) == ("msg_1", {"model": "claude-x"}, [])


def test_a_recording_may_be_sse_with_names_or_lines_or_an_array() -> None:
    expected = read(*HELLO)
    named = b"".join([b"event: %s\ndata: %s\n\n" % (json.loads(each)["type"].encode(), each) for each in HELLO])
    assert anthropic.read(named) == expected
    assert anthropic.read(b"\n".join(HELLO)) == expected
    assert anthropic.read(b"[" + b",".join(HELLO) + b"]") == expected


def test_blocks_come_in_the_order_of_their_index() -> None:
    reading = read(
        BEGIN,
        start({"type": "tool_use", "id": "t", "name": "f", "input": {}}, 2),
        delta("input_json_delta", 2, partial_json='{"a"'),
        start({"type": "thinking", "thinking": "", "signature": ""}, 0),
        delta("thinking_delta", 0, thinking="hm"),
        delta("input_json_delta", 2, partial_json=": [1]}"),
        delta("signature_delta", 0, signature="c2ln"),
        start({"type": "text", "text": ""}, 1),
        delta("text_delta", 1, text="<think>so</thi"),
        delta("text_delta", 1, text="nk>Yes."),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={}),
        event("message_stop"),
    )
    details, *rest = answer(reading).content
    assert isinstance(details, ReasoningDetailsBlock)
    assert json.loads(bytes(details.details[0])) == {
        "type": "reasoning.text",
        "format": "anthropic-claude-v1",
        "text": "hm",
        "signature": "c2ln",
    }
    assert rest == [ThinkingBlock("so"), TextBlock("Yes."), ToolCall("t", "f", {"a": [1]})]
    assert reading.notes == []


def test_thinking_without_a_signature_is_reasoning() -> None:
    reading = read(BEGIN, start({"type": "thinking", "thinking": ""}), delta("thinking_delta", thinking="hm"), *END)
    assert answer(reading).content == [ReasoningBlock("hm")]


def test_a_call_without_fragments_has_the_input_it_started_with() -> None:
    reading = read(BEGIN, start({"type": "tool_use", "id": "t", "name": "f", "input": {}}), *END)
    assert answer(reading).content == [ToolCall("t", "f", {})]


def test_citations_and_unknown_events_are_noted_and_the_rest_stays() -> None:
    reading = read(
        *HELLO[:3],
        delta("citations_delta", citation={"cited_text": "x"}),
        delta("new_delta", x=1),
        event("new_event"),
        b"{oops",
        *HELLO[3:],
    )
    assert answer(reading).content == [TextBlock("Hello")]
    assert [(note.code, note.pointer) for note in reading.notes] == [
        ("key_dropped", "/3/delta/citation"),
        ("frame_dropped", "/4"),
    ]
    assert "2 more" in reading.notes[1].message


def test_an_error_event_ends_the_turn() -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    reading = read(*HELLO[:4], event("error", error=error))
    assert answer(reading) == AssistantMessage(
        [TextBlock("Hel")], StopReason.ERROR, "Overloaded", usage=Usage(3, 1, 0, 5)
    )
    assert reading.transcript.metadata["error"] == error


@pytest.mark.parametrize("end", [1, 4, 6])
def test_a_stream_that_was_cut_off_keeps_what_arrived_and_ends_in_an_error(end: int) -> None:
    reading = read(*HELLO[:end])
    assert answer(reading).stop_reason is StopReason.ERROR
    assert answer(reading).plain_text() == {1: "", 4: "Hel", 6: "Hello"}[end]
    assert codes(reading) == ["stream_truncated"]


def test_without_its_last_event_a_stream_is_cut_off() -> None:
    assert codes(read(*HELLO[:-1])) == ["stream_truncated"]
    assert codes(read(*HELLO[:-2], HELLO[-1])) == ["stop_reason_guessed"]


def test_arguments_that_were_cut_off_are_kept_as_text() -> None:
    call = start({"type": "tool_use", "id": "t", "name": "f", "input": {}})
    assert codes(read(BEGIN, call, delta("input_json_delta", partial_json='{"a": '))) == [
        "arguments_not_json",
        "stream_truncated",
    ]


def test_another_message_start_is_another_message() -> None:
    reading = read(*HELLO, *HELLO)
    assert [type(message) for message in reading.transcript.messages] == [AssistantMessage] * 2
    assert codes(read(*HELLO[:4], *HELLO)) == ["stream_truncated"]


def test_an_end_that_comes_twice_is_no_message() -> None:
    assert read(*HELLO, END[-1]) == read(*HELLO)


def test_a_delta_whose_start_is_missing_says_by_its_type_what_it_is() -> None:
    assert answer(read(BEGIN, delta("text_delta", text="a"), *END)).content == [TextBlock("a")]


def test_a_stream_without_a_response_says_so() -> None:
    reading = read(event("ping"))
    assert reading.transcript.messages == []
    assert codes(reading) == ["stream_truncated"]


@given(st.data(), single_turns(block_turns()))
def test_a_stream_reads_as_the_response_that_came_whole(data: st.DataObject, turn: AssistantMessage) -> None:
    for call in turn.tool_calls():
        call.arguments = {"value": call.arguments}
    (message,) = json.loads(anthropic.write(Transcript([turn])).data)["messages"]
    response = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": message["content"],
        "stop_reason": "max_tokens",
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 9, "service_tier": "standard"},
    }
    assert anthropic.read(sse(data.draw(anthropic_events(response)))) == anthropic.read(json.dumps(response).encode())


@given(st.data(), st.booleans())
def test_the_result_does_not_depend_on_how_the_bytes_were_cut(data: st.DataObject, framed: bool) -> None:
    text = b"\n \xef\xbb\xbf\r\n" + (sse(HELLO, line_end=b"\r") if framed else b"\n".join(HELLO))
    assert fed(AnthropicStream(), data.draw(pieces(text))) == fed(AnthropicStream(), [text])


@given(st.integers(0, 1000))
def test_a_stream_that_is_cut_at_any_byte_is_read_as_far_as_it_goes(length: int) -> None:
    assert_read_as_far_as_it_goes(AnthropicStream, sse(HELLO)[:length], "Hello")


def test_a_hundred_thousand_deltas_cost_linear_time() -> None:
    def reading(count: int) -> Callable[[], None]:
        text = sse([BEGIN, start({"type": "text", "text": ""}), *[delta("text_delta", text="word ")] * count, *END])

        def read_all() -> None:
            assert len(answer(anthropic.read(text)).plain_text()) == 5 * count

        return read_all

    assert growth(reading, 10_000, 100_000, below=25) < 25
