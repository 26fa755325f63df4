"""The channel rules: prompted thinking and native reasoning never mix, on the way out and on the way in.

transcript.md 1.1: thinking only in `content` as a tag, reasoning only in its own fields, details byte for byte.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.chats import any_turns, conversations, fragments, interleaved, sse, tricky_talk

from seatrial.formats import anthropic
from seatrial.formats.completions import openai, openrouter
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Transcript,
    UserMessage,
)
from seatrial.transcript.thinking import weave_thought

SPELLINGS = [
    b'{"type":"reasoning.text","text":"a","index":0}',
    b'{ "type" : "reasoning.encrypted",\t"data":"QQ==" }',
    b'{"index":0.0,"z":1,"a":[1.50, 1E5 ,-0],"text":"\\u00e9\\/"}',
    b'{"n":123456789012345678901234567890,"a":1,"a":2}',
    b'{"huge":1e999}',
    b"[ ]",
    b"null",
]


def transcript(*blocks: AssistantBlock) -> Transcript:
    return Transcript([UserMessage("go"), AssistantMessage([*blocks], StopReason.END_TURN)])


def request(*blocks: AssistantBlock) -> dict[str, Any]:
    """The assistant message of an OpenRouter request."""
    message: dict[str, Any] = json.loads(openrouter.write(transcript(*blocks)).data)["messages"][1]
    return message


def streamed(*deltas: dict[str, Any]) -> list[AssistantBlock]:
    """The blocks that a stream of these deltas comes to."""
    chunks = [msgspec.json.encode({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
    end = b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
    reading = openrouter.read(sse([*chunks, end, b"[DONE]"]))
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    return message.content


# The request side


def test_thinking_goes_into_the_content_as_a_tag_and_never_into_reasoning() -> None:
    message = request(ThinkingBlock("scratch"), TextBlock("answer"))
    assert message == {"role": "assistant", "content": "<thought>scratch</thought>answer"}


def test_thinking_keeps_its_place_in_the_content() -> None:
    message = request(TextBlock("a"), ThinkingBlock("b"), TextBlock("c"))
    assert message["content"] == "a<thought>b</thought>c"


def test_reasoning_goes_into_reasoning_and_never_into_the_content() -> None:
    message = request(ReasoningBlock("native"), TextBlock("answer"))
    assert message == {"role": "assistant", "content": "answer", "reasoning": "native"}


def test_reasoning_that_holds_a_tag_is_still_only_reasoning() -> None:
    message = request(ReasoningBlock("<thought>x</thought>"), TextBlock("answer"))
    assert (message["reasoning"], message["content"]) == ("<thought>x</thought>", "answer")


def test_all_three_channels_of_a_turn_stay_apart() -> None:
    details = ReasoningDetailsBlock([msgspec.Raw(b'{"type":"reasoning.encrypted","data":"QQ=="}')])
    message = request(
        ReasoningBlock("native"), details, ThinkingBlock("scratch"), TextBlock("answer"), ToolCall("1", "f", {})
    )
    assert message["content"] == "<thought>scratch</thought>answer"
    assert message["reasoning"] == "native"
    assert message["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "QQ=="}]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_details_are_written_byte_for_byte(spelling: bytes) -> None:
    data = openrouter.write(transcript(ReasoningDetailsBlock([msgspec.Raw(spelling), msgspec.Raw(b"1.0")]))).data
    assert b'"reasoning_details":[' + spelling + b",1.0]" in data


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_details_are_read_byte_for_byte(spelling: bytes) -> None:
    message = b'{"role":"assistant","content":"a","reasoning_details":[ %s , 1.0]}' % spelling
    for document in (b"[%s]" % message, b'{"messages": [ %s ]}' % message, b'{"choices":[{"message":%s}]}' % message):
        (read,) = openrouter.read(document).transcript.messages
        assert isinstance(read, AssistantMessage)
        assert [bytes(detail) for detail in read.reasoning_details_values()] == [spelling, b"1.0"]


@given(conversations(any_turns()))
def test_no_writer_ever_puts_a_thought_into_reasoning_or_reasoning_into_text(conversation: Transcript) -> None:
    marked = Transcript([_marked(message) for message in conversation.messages])
    for module in (openai, openrouter, anthropic):
        document = json.loads(module.write(marked).data)
        for message in document if isinstance(document, list) else document["messages"]:
            if message["role"] != "assistant":
                continue
            visible, native = _visible(message), _native(message)
            assert "NATIVE" not in visible
            assert "PROMPTED" not in native
            assert visible.count("PROMPTED") == visible.count("<thought>PROMPTED")


def _marked(message: Any) -> Any:
    """The same message, every block of a hidden channel known by its text."""
    if not isinstance(message, AssistantMessage):
        return message
    blocks: list[AssistantBlock] = []
    for block in message.content:
        if isinstance(block, ThinkingBlock):
            blocks.append(ThinkingBlock("PROMPTED" + block.text))
        elif isinstance(block, ReasoningBlock):
            blocks.append(ReasoningBlock("NATIVE" + block.text))
        elif isinstance(block, ReasoningDetailsBlock):
            blocks.append(ReasoningDetailsBlock([msgspec.Raw(b'{"type":"reasoning.text","text":"NATIVE"}')]))
        else:
            blocks.append(block)
    return AssistantMessage(blocks, message.stop_reason)


def _visible(message: dict[str, Any]) -> str:
    """What of a message a user would see."""
    content = message["content"]
    return json.dumps([part for part in content if part["type"] == "text"] if isinstance(content, list) else content)


def _native(message: dict[str, Any]) -> str:
    """What of a message the provider reads as its own reasoning."""
    content = message["content"] if isinstance(message["content"], list) else []
    blocks = [part for part in content if part["type"] in ("thinking", "redacted_thinking")]
    return json.dumps([message.get("reasoning"), message.get("reasoning_details"), blocks])


# The stream side


def test_content_passes_the_filter_into_text_and_thinking() -> None:
    deltas = [{"content": piece} for piece in ("a<tho", "ught>hm", "</thou", "ght>b")]
    assert streamed(*deltas) == [TextBlock("a"), ThinkingBlock("hm"), TextBlock("b")]


def test_delta_reasoning_is_reasoning() -> None:
    assert streamed({"reasoning": "so "}, {"reasoning": "it is"}, {"content": "Yes."}) == [
        ReasoningBlock("so it is"),
        TextBlock("Yes."),
    ]


def test_a_tag_inside_delta_reasoning_stays_reasoning_text() -> None:
    assert streamed({"reasoning": "a<thou"}, {"reasoning": "ght>x</thought>"}, {"content": "Yes."}) == [
        ReasoningBlock("a<thought>x</thought>"),
        TextBlock("Yes."),
    ]


def test_a_tag_in_the_content_never_becomes_reasoning() -> None:
    assert streamed({"content": "<reasoning>x</reasoning>Yes."}) == [ThinkingBlock("x"), TextBlock("Yes.")]


def test_a_tag_that_opens_in_one_channel_is_not_closed_in_the_other() -> None:
    assert streamed({"content": "a<thought>b"}, {"reasoning": "</thought>"}, {"content": "</thought>c"}) == [
        ReasoningBlock("</thought>"),
        TextBlock("a"),
        ThinkingBlock("b"),
        TextBlock("c"),
    ]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_details_of_a_stream_are_kept_byte_for_byte_in_order(spelling: bytes) -> None:
    first = {"reasoning_details": [msgspec.Raw(spelling), msgspec.Raw(b'{"b":1}')], "content": "a"}
    blocks = streamed(first, {"reasoning_details": [msgspec.Raw(spelling)]})
    assert isinstance(blocks[0], ReasoningDetailsBlock)
    assert [bytes(detail) for detail in blocks[0].details] == [spelling, b'{"b":1}', spelling]
    assert blocks[1:] == [TextBlock("a")]


def test_details_are_not_put_together_even_where_they_are_fragments() -> None:
    fragments = [
        b'{"type":"reasoning.text","text":"a","index":0}',
        b'{"type":"reasoning.text","signature":"s","index":0}',
    ]
    blocks = streamed(*[{"reasoning_details": [msgspec.Raw(fragment)]} for fragment in fragments])
    assert blocks == [ReasoningDetailsBlock([msgspec.Raw(fragment) for fragment in fragments])]


@given(st.data(), tricky_talk().filter(bool), tricky_talk().filter(bool))
def test_the_channels_of_a_stream_are_those_of_the_whole_message(data: st.DataObject, said: str, reasoned: str) -> None:
    deltas = data.draw(
        interleaved(
            [
                [{"content": piece} for piece in data.draw(fragments(said))],
                [{"reasoning": piece} for piece in data.draw(fragments(reasoned))],
            ]
        )
    )
    whole = json.dumps([{"role": "assistant", "content": said, "reasoning": reasoned}]).encode()
    (message,) = openrouter.read(whole).transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.reasoning_text() == reasoned
    assert streamed(*deltas) == message.content


# Anthropic, where native reasoning has blocks of its own


def test_native_thinking_of_anthropic_never_becomes_text_nor_prompted_thinking_native() -> None:
    signed = {"type": "thinking", "thinking": "native <thought>x</thought>", "signature": "c2ln"}
    document = [{"role": "assistant", "content": [signed, {"type": "text", "text": "<think>scratch</think>Yes."}]}]
    (message,) = anthropic.read(json.dumps(document).encode()).transcript.messages
    assert isinstance(message, AssistantMessage)
    assert [type(block) for block in message.content] == [ReasoningDetailsBlock, ThinkingBlock, TextBlock]
    written = json.loads(anthropic.write(Transcript([message])).data)["messages"]
    assert written[0]["content"] == [
        signed,
        {"type": "text", "text": weave_thought("scratch")},
        {"type": "text", "text": "Yes."},
    ]


def test_what_anthropic_signed_goes_to_openrouter_and_back_untouched() -> None:
    blocks = [
        {"type": "thinking", "thinking": 'a\u2028b "q"', "signature": "c2ln/+=="},
        {"type": "redacted_thinking", "data": "ZW5j"},
        {"type": "text", "text": "Yes."},
    ]
    first = anthropic.read(json.dumps([{"role": "assistant", "content": blocks}]).encode()).transcript
    over_there = openrouter.read(openrouter.write(first).data).transcript
    assert over_there == first
    written = anthropic.write(over_there)
    assert json.loads(written.data)["messages"][0]["content"] == blocks
    assert written.losses == []
