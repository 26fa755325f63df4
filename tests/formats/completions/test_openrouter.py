"""OpenRouter: what it has beyond OpenAI's chat completions. The channel rules are in test_channels."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.chats import (
    any_turns,
    assert_carried,
    assert_losses_are_told,
    chat_turns,
    conversations,
    readable_mutations,
    sse,
)
from strategies.messages import message_lists, transcripts

from seatrial.formats.completions import openrouter
from seatrial.formats.reading import Reading
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    UserMessage,
)

RESPONSE: dict[str, Any] = {
    "id": "gen-1",
    "provider": "Anthropic",
    "model": "anthropic/claude",
    "object": "chat.completion",
    "created": 1700000000,
    "choices": [
        {
            "logprobs": None,
            "finish_reason": "stop",
            "native_finish_reason": "end_turn",
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Yes.",
                "refusal": None,
                "reasoning": "Is it?",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": "Is it?",
                        "signature": "c2ln",
                        "format": "anthropic-claude-v1",
                        "index": 0,
                    }
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "cost": 0.0125,
        "is_byok": False,
        "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 80},
    },
}


def read(document: Any) -> Reading:
    return openrouter.read(json.dumps(document).encode())


def written(*blocks: AssistantBlock) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    result = openrouter.write(Transcript([AssistantMessage([*blocks], StopReason.END_TURN)]))
    (message,) = json.loads(result.data)["messages"]
    return message, [(note.code, note.pointer) for note in result.losses]


def test_a_response_is_read_with_reasoning_usage_and_cost() -> None:
    reading = read(RESPONSE)
    assert (reading.format, reading.id, reading.notes) == ("openrouter", "gen-1", [])
    details = [msgspec.Raw(json.dumps(RESPONSE["choices"][0]["message"]["reasoning_details"][0]).encode())]
    assert reading.transcript.messages == [
        AssistantMessage(
            [ReasoningBlock("Is it?"), ReasoningDetailsBlock(details), TextBlock("Yes.")],
            StopReason.END_TURN,
            usage=Usage(10, 20, 80, 10),
        )
    ]
    assert reading.transcript.cost_usd == 0.0125
    assert reading.transcript.metadata == {"provider": "Anthropic", "model": "anthropic/claude", "created": 1700000000}


@pytest.mark.parametrize("cost", ["1", True, -1, 10**400])
def test_a_cost_that_is_no_amount_is_noted(cost: Any) -> None:
    reading = read({**RESPONSE, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": cost}})
    assert [(note.code, note.pointer) for note in reading.notes] == [("value_dropped", "/usage/cost")]
    assert reading.transcript.cost_usd is None


def test_a_request_is_written_with_its_messages_under_their_key() -> None:
    assert openrouter.write(Transcript([UserMessage("hi")])).data == b'{"messages":[{"role":"user","content":"hi"}]}'


def test_images_in_results_are_carried() -> None:
    transcript = Transcript(
        [
            AssistantMessage([ToolCall("1", "f", {})], StopReason.TOOL_USE),
            ToolResultMessage("1", "f", [TextBlock("see"), ImageBlock("data:,a")]),
        ]
    )
    result = openrouter.write(transcript)
    assert result.losses == []
    assert openrouter.read(result.data).transcript == transcript


def test_blocks_of_one_kind_become_one_and_empty_ones_nothing() -> None:
    message, losses = written(ReasoningBlock("a"), ReasoningBlock("b"), TextBlock("c"))
    assert (message["reasoning"], losses) == ("ab", [("changed", "/messages/0/content")])
    one, two = ReasoningDetailsBlock([msgspec.Raw(b"1")]), ReasoningDetailsBlock([msgspec.Raw(b"2")])
    message, losses = written(one, two, TextBlock("c"))
    assert (message["reasoning_details"], losses) == ([1, 2], [("changed", "/messages/0/content")])
    assert written(ReasoningBlock(""))[1] == [("not_carried", "/messages/0/content")]
    assert written(ReasoningDetailsBlock([]))[1] == [("not_carried", "/messages/0/content")]


def test_reasoning_after_the_text_is_carried_but_not_its_place() -> None:
    message, losses = written(TextBlock("a"), ReasoningBlock("r"))
    assert (message["content"], message["reasoning"]) == ("a", "r")
    assert losses == [("changed", "/messages/0/content")]


@pytest.mark.parametrize("entry", [b"", b"{", b"1 2", b'"\xff"', b"[" * 5000])
def test_details_that_someone_made_and_are_no_json_are_left_out(entry: bytes) -> None:
    message, losses = written(ReasoningDetailsBlock([msgspec.Raw(entry), msgspec.Raw(b"1")]))
    assert message["reasoning_details"] == [1]
    assert losses == [("not_carried", "/messages/0/content/0/details/0")]


def test_details_that_are_no_array_are_noted() -> None:
    reading = read([{"role": "assistant", "content": "a", "reasoning_details": {"type": "reasoning.text"}}])
    assert [(note.code, note.pointer) for note in reading.notes] == [("key_dropped", "/0/reasoning_details")]


@given(conversations(chat_turns(native=True)))
def test_what_the_format_carries_is_read_back_the_same_without_losses(transcript: Transcript) -> None:
    assert_carried(openrouter, transcript)


@given(st.one_of(conversations(any_turns(), result_errors=True), transcripts(), message_lists().map(Transcript)))
def test_what_is_not_read_back_the_same_is_a_loss_that_points_at_it(transcript: Transcript) -> None:
    assert_losses_are_told(openrouter, transcript)


def test_ten_thousand_mutated_samples_raise_nothing_but_our_error() -> None:
    message = RESPONSE["choices"][0]["message"]
    deltas = [message, {"content": "<thought>hm</thought>Yes.", "reasoning": "so"}]
    chunks = [json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() for delta in deltas]
    samples = [json.dumps(document).encode() for document in (RESPONSE, {"messages": [message]})]
    samples += [sse(chunks), b"\n".join(chunks)]
    assert readable_mutations(openrouter, samples) > 3_000
