"""Anthropic Messages: what is read, what is noted, what is written, what is lost."""

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
    block_turns,
    conversations,
    readable_mutations,
    sse,
)
from strategies.messages import message_lists, transcripts

from seatrial.errors import SeatrialError
from seatrial.formats import anthropic
from seatrial.formats.reading import Reading
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    UserMessage,
)

SIGNED = {"type": "thinking", "thinking": "Two calls.", "signature": "c2ln"}
REQUEST: dict[str, Any] = {
    "model": "claude-x",
    "max_tokens": 1024,
    "system": "You book trains.",
    "messages": [
        {"role": "user", "content": "A train to Ghent?"},
        {
            "role": "assistant",
            "content": [
                SIGNED,
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"to": "Ghent"}},
                {"type": "text", "text": "And the time:"},
                {"type": "tool_use", "id": "toolu_2", "name": "clock", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "down", "is_error": True},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "09:12"}]},
                {"type": "text", "text": "Hurry."},
            ],
        },
        {"role": "assistant", "content": "The search is down."},
    ],
}
RESPONSE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [{"type": "text", "text": "At 09:40."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "output_tokens": 20,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 40,
        "service_tier": "standard",
    },
}


def read(document: Any) -> Reading:
    return anthropic.read(json.dumps(document).encode())


def codes(reading: Reading) -> list[str]:
    return [note.code for note in reading.notes]


def content_of(*blocks: Any) -> tuple[list[Any], list[str]]:
    reading = read([{"role": "assistant", "content": [*blocks]}])
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    return message.content, codes(reading)


def written(*messages: Message) -> dict[str, Any]:
    request: dict[str, Any] = json.loads(anthropic.write(Transcript([*messages])).data)
    return request


def losses(*messages: Message) -> list[tuple[str, str]]:
    return [(note.code, note.pointer) for note in anthropic.write(Transcript([*messages])).losses]


def details(*entries: bytes) -> ReasoningDetailsBlock:
    return ReasoningDetailsBlock([msgspec.Raw(entry) for entry in entries])


def turn(*blocks: Any) -> AssistantMessage:
    message = AssistantMessage([*blocks], StopReason.END_TURN)
    if message.tool_calls():
        message.stop_reason = StopReason.TOOL_USE
    return message


# Documents


def test_a_request_is_read_with_the_order_of_its_blocks() -> None:
    reading = read(REQUEST)
    assert (reading.format, reading.notes) == ("anthropic", [])
    assert reading.transcript.metadata == {"model": "claude-x", "max_tokens": 1024}
    signed = b'{"type":"reasoning.text","format":"anthropic-claude-v1","text":"Two calls.","signature":"c2ln"}'
    assert reading.transcript.messages == [
        SystemMessage("You book trains."),
        UserMessage("A train to Ghent?"),
        turn(
            details(signed),
            TextBlock("Let me look."),
            ToolCall("toolu_1", "search", {"to": "Ghent"}),
            TextBlock("And the time:"),
            ToolCall("toolu_2", "clock", {}),
        ),
        ToolResultMessage("toolu_1", "search", [TextBlock("down")], True),
        ToolResultMessage("toolu_2", "clock", [TextBlock("09:12")]),
        UserMessage([TextBlock("Hurry.")]),
        turn(TextBlock("The search is down.")),
    ]


def test_a_response_is_one_assistant_message_with_its_usage() -> None:
    reading = read(RESPONSE)
    assert (reading.id, reading.notes) == ("msg_1", [])
    assert reading.transcript.messages == [
        AssistantMessage([TextBlock("At 09:40.")], StopReason.END_TURN, usage=Usage(10, 20, 30, 40))
    ]
    assert reading.transcript.metadata == {"model": "claude-x", "usage": {"service_tier": "standard"}}


def test_responses_kept_as_messages_keep_their_stop_reason_and_usage() -> None:
    reading = read([{"role": "user", "content": "hi"}, {**RESPONSE, "stop_reason": "max_tokens"}])
    assert reading.transcript.messages[1] == AssistantMessage(
        [TextBlock("At 09:40.")], StopReason.MAX_TOKENS, usage=Usage(10, 20, 30, 40)
    )
    assert [(note.code, note.pointer) for note in reading.notes] == [
        ("key_dropped", "/1/model"),
        ("key_dropped", "/1/usage/service_tier"),
    ]


@pytest.mark.parametrize(
    ("given", "reason", "noted"),
    [
        ("end_turn", StopReason.END_TURN, []),
        ("stop_sequence", StopReason.END_TURN, []),
        ("tool_use", StopReason.TOOL_USE, ["call_missing"]),
        ("max_tokens", StopReason.MAX_TOKENS, []),
        ("model_context_window_exceeded", StopReason.MAX_TOKENS, []),
        ("refusal", StopReason.OTHER, ["unknown_stop_reason"]),
        ("pause_turn", StopReason.MAX_TOKENS, []),
        (None, StopReason.END_TURN, ["stop_reason_guessed"]),
    ],
)
def test_a_stop_reason_is_read(given: str | None, reason: StopReason, noted: list[str]) -> None:
    reading = read({**RESPONSE, "stop_reason": given})
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert (message.stop_reason, codes(reading)) == (reason, noted)


def test_an_error_response_is_a_turn_that_failed() -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    reading = read({"type": "error", "error": error})
    assert reading.transcript.messages == [AssistantMessage([], StopReason.ERROR, "Overloaded")]
    assert reading.transcript.metadata == {"error": error}


def test_one_message_is_a_conversation_and_so_are_lines_of_messages() -> None:
    for kind in ({}, {"type": "message"}):
        reading = read({"role": "user", "content": "a", **kind})
        assert reading.transcript.messages == [UserMessage("a")]
    messages = REQUEST["messages"]
    assert anthropic.read(b"\n".join([json.dumps(message).encode() for message in messages])) == read(messages)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_input"),
        (b"7", "invalid_document"),
        (b"{}", "invalid_document"),
        (b'{"messages": 7}', "invalid_document"),
        (b"hello", "not_json"),
        (b"[" * 5000, "too_deep"),
    ],
)
def test_what_is_no_document_is_an_error(data: bytes, code: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        anthropic.read(data)
    assert caught.value.code == code


# Messages


def test_blocks_of_a_system_prompt_are_system_messages() -> None:
    blocks = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]
    reading = read({"system": blocks, "messages": [{"role": "system", "content": "c"}]})
    assert reading.transcript.messages == [SystemMessage("a"), SystemMessage("b"), SystemMessage("c")]
    assert [(note.code, note.pointer) for note in reading.notes] == [("key_dropped", "/system/0/cache_control")]


def test_results_are_messages_in_their_place_among_what_the_user_said() -> None:
    content = [
        {"type": "text", "text": "a"},
        {"type": "tool_result", "tool_use_id": "t", "content": "r"},
        {"type": "text", "text": "b"},
        {"type": "text", "text": "c"},
    ]
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    assert read([call, {"role": "user", "content": content}]).transcript.messages[1:] == [
        UserMessage([TextBlock("a")]),
        ToolResultMessage("t", "f", [TextBlock("r")]),
        UserMessage([TextBlock("b"), TextBlock("c")]),
    ]


def test_a_result_of_no_known_call_is_kept_and_noted() -> None:
    reading = read([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}])
    assert reading.transcript.messages == [ToolResultMessage("t", "", [])]
    assert codes(reading) == ["tool_result_unpaired"]


def test_images_are_data_urls_or_urls() -> None:
    data = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
    url = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    reading = read([{"role": "user", "content": [data, url]}])
    assert reading.transcript.messages == [
        UserMessage([ImageBlock("data:image/png;base64,iVBO", "image/png"), ImageBlock("https://example.com/a.png")])
    ]
    request = anthropic.write(reading.transcript)
    assert json.loads(request.data)["messages"][0]["content"] == [data, url]
    assert request.losses == []


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "text", "data": "x"}},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "search_result"},
        7,
    ],
)
def test_a_block_without_a_place_is_dropped_with_a_note(block: Any) -> None:
    reading = read([{"role": "user", "content": [{"type": "text", "text": "a"}, block]}])
    assert reading.transcript.messages == [UserMessage([TextBlock("a")])]
    assert [(note.code, note.pointer) for note in reading.notes] == [("content_dropped", "/0/content/1")]


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_what_the_provider_ran_itself_is_a_call_of_the_providers(kind: str) -> None:
    part = {"type": kind, "id": "s", "name": "web_search", "input": {}}
    assert content_of(part) == ([ToolCall("s", "web_search", {})], [])
    reading = read([{"role": "assistant", "content": [part]}])
    assert [placed.facts.executed_by for placed in reading.facts] == ["provider"]


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"type": "web_search_tool_result", "content": [{"type": "web_search_result", "url": "u"}]}, False),
        (
            {"type": "web_search_tool_result", "content": {"type": "web_search_tool_result_error", "error_code": "x"}},
            True,
        ),
        ({"type": "mcp_tool_result", "is_error": True, "content": [{"type": "text", "text": "no"}]}, True),
        (
            {
                "type": "bash_code_execution_tool_result",
                "content": {"type": "bash_code_execution_result", "return_code": 1},
            },
            True,
        ),
    ],
)
def test_the_result_of_a_call_of_the_providers_is_paired_with_it(result: dict[str, Any], failed: bool) -> None:
    call = {"type": "server_tool_use", "id": "s", "name": "tool", "input": {}}
    reading = read([{"role": "assistant", "content": [call, {"tool_use_id": "s", **result}]}])
    message = reading.transcript.messages[-1]
    assert isinstance(message, ToolResultMessage)
    assert (message.tool_call_id, message.is_error, codes(reading)) == ("s", failed, [])


def test_a_block_that_nobody_knows_is_dropped_with_a_serious_note() -> None:
    reading = read([{"role": "assistant", "content": [{"type": "container_upload", "id": "s"}]}])
    assert [(note.code, note.weight) for note in reading.notes] == [("content_dropped", "serious")]


def test_thinking_with_a_signature_is_details_and_without_one_reasoning() -> None:
    signed = b'{"type":"reasoning.text","format":"anthropic-claude-v1","text":"Two calls.","signature":"c2ln"}'
    encrypted = b'{"type":"reasoning.encrypted","format":"anthropic-claude-v1","data":"ZW5j"}'
    assert content_of(SIGNED) == ([details(signed)], [])
    assert content_of({"type": "redacted_thinking", "data": "ZW5j"}) == ([details(encrypted)], [])
    assert content_of({"type": "thinking", "thinking": "hm"}) == ([ReasoningBlock("hm")], [])
    assert content_of(SIGNED, {"type": "redacted_thinking", "data": "ZW5j"}) == ([details(signed, encrypted)], [])


def test_hidden_tags_in_text_are_thinking() -> None:
    text = {"type": "text", "text": "<thinking>hm</thinking>Yes."}
    assert content_of(text) == ([ThinkingBlock("hm"), TextBlock("Yes.")], [])


def test_citations_and_other_lost_keys_are_noted_once() -> None:
    text = {"type": "text", "text": "a", "citations": [{"type": "char_location"}]}
    assert content_of(text, text) == ([TextBlock("a"), TextBlock("a")], ["key_dropped"])
    assert content_of({**text, "citations": None}) == ([TextBlock("a")], [])


def test_a_call_without_a_name_is_dropped_and_one_without_an_id_gets_one() -> None:
    content, noted = content_of({"type": "tool_use", "id": "1"}, {"type": "tool_use", "name": "f", "input": [1]})
    assert content == [ToolCall("seatrial_call_0_1", "f", [1])]
    assert noted == ["tool_call_dropped_no_name", "tool_call_id_generated"]


def test_an_unknown_role_is_kept_whole() -> None:
    message = {"role": "critic", "content": "meh", "score": 2}
    reading = read([message, 7])
    assert reading.transcript.messages == [CustomMessage("critic", message)]
    assert codes(reading) == ["role_unknown", "message_dropped"]


# Writing


def test_a_request_is_written_as_it_was_read() -> None:
    request = anthropic.write(Transcript(read(REQUEST).transcript.messages))
    expected = json.loads(json.dumps({"system": REQUEST["system"], "messages": REQUEST["messages"]}))
    # One text is a string; what the user said after the results is a message of its own.
    results = expected["messages"][2]["content"]
    results[1]["content"] = "09:12"
    expected["messages"].insert(3, {"role": "user", "content": [results.pop()]})
    expected["messages"][4]["content"] = [{"type": "text", "text": "The search is down."}]
    assert json.loads(request.data) == expected
    assert request.losses == []


def test_prompts_at_the_head_go_to_system_and_later_ones_stay() -> None:
    assert written(SystemMessage("a"), UserMessage("b")) == {
        "system": "a",
        "messages": [{"role": "user", "content": "b"}],
    }
    request = written(SystemMessage("a"), SystemMessage("b"), UserMessage("c"), SystemMessage("d"))
    assert request["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert request["messages"] == [{"role": "user", "content": "c"}, {"role": "system", "content": "d"}]


def test_results_that_follow_each_other_are_one_user_message() -> None:
    calls = turn(ToolCall("1", "f", {}), ToolCall("2", "g", {}))
    request = written(calls, ToolResultMessage("1", "f", []), ToolResultMessage("2", "g", [TextBlock("x")], True))
    assert request["messages"][1:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1"},
                {"type": "tool_result", "tool_use_id": "2", "content": "x", "is_error": True},
            ],
        }
    ]


def test_results_come_right_after_their_calls_and_a_move_is_told() -> None:
    calls = turn(ToolCall("1", "f", {}), ToolCall("2", "g", {}))
    one, two = ToolResultMessage("1", "f", []), ToolResultMessage("2", "g", [])
    messages: list[Message] = [calls, UserMessage("wait"), one, UserMessage("so"), two]
    request = written(*messages)
    assert [message["role"] for message in request["messages"]] == ["assistant", "user", "user", "user"]
    assert [block["tool_use_id"] for block in request["messages"][1]["content"]] == ["1", "2"]
    assert losses(*messages) == [("changed", "/messages/2"), ("changed", "/messages/4")]


def test_text_as_arguments_is_told_from_text_that_stands_for_json() -> None:
    for arguments in ("[1]", "plain", "", None, [1], 7):
        transcript = Transcript([turn(ToolCall("1", "f", arguments))])
        request = anthropic.write(transcript)
        assert request.losses == []
        assert anthropic.read(request.data).transcript == transcript


def test_details_of_other_providers_are_losses() -> None:
    unsigned = b'{"type":"reasoning.text","format":"anthropic-claude-v1","text":"a"}'
    foreign = b'{"type":"reasoning.encrypted","format":"openai-responses-v1","data":"a"}'
    summary = b'{"type":"reasoning.summary","format":"anthropic-claude-v1","summary":"a"}'
    assert losses(turn(details(unsigned, foreign, summary, b"1"))) == [
        ("not_carried", f"/messages/0/content/0/details/{index}") for index in range(4)
    ]


def test_reasoning_that_came_both_plain_and_signed_is_said_once() -> None:
    detail = b'{"type":"reasoning.text","format":"anthropic-claude-v1","text":"hm","signature":"s"}'
    blocks: list[AssistantBlock] = [ReasoningBlock("hm"), ReasoningDetailsBlock([msgspec.Raw(detail)])]
    written = anthropic.write(Transcript([AssistantMessage(blocks, StopReason.END_TURN)]))
    content = json.loads(written.data)["messages"][0]["content"]
    assert content == [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    assert [loss.pointer for loss in written.losses] == ["/messages/0/content/0"]


def test_keys_of_a_detail_beside_text_and_signature_are_a_loss() -> None:
    entry = b'{"type":"reasoning.text","format":"anthropic-claude-v1","index":0,"text":"a","signature":"s"}'
    assert written(turn(details(entry)))["messages"][0]["content"] == [
        {"type": "thinking", "thinking": "a", "signature": "s"}
    ]
    assert losses(turn(details(entry))) == [("changed", "/messages/0/content/0/details/0")]


def test_everything_that_a_request_cannot_carry_is_a_loss() -> None:
    one = details(b'{"type":"reasoning.encrypted","format":"anthropic-claude-v1","data":"a"}')
    transcript = Transcript(
        [
            AssistantMessage([one, one, details(), TextBlock("<think>")], StopReason.ABORTED, "gone", 1, Usage()),
            ToolResultMessage("1", "f", [ImageBlock("data:,", "image/png", "a cat")], True, "Did it.", {"a": 1}, 2),
            CustomMessage("mark"),
        ],
        metadata={"model": "x"},
    )
    assert sorted((note.code, note.pointer) for note in anthropic.write(transcript).losses) == [
        ("changed", "/messages/0/content/1"),
        ("changed", "/messages/0/content/3"),
        ("not_carried", "/messages/0/content/2"),
        ("not_carried", "/messages/0/error_message"),
        ("not_carried", "/messages/0/stop_reason"),
        ("not_carried", "/messages/0/timestamp"),
        ("not_carried", "/messages/0/usage"),
        ("not_carried", "/messages/1/content/0/alt"),
        ("not_carried", "/messages/1/content/0/media_type"),
        ("not_carried", "/messages/1/details"),
        ("not_carried", "/messages/1/narration"),
        ("not_carried", "/messages/1/tool_name"),
        ("not_carried", "/messages/2"),
        ("not_carried", "/metadata"),
    ]


@given(conversations(block_turns(), result_errors=True))
def test_what_the_format_carries_is_read_back_the_same_without_losses(transcript: Transcript) -> None:
    assert_carried(anthropic, transcript)


@given(st.one_of(conversations(any_turns(), result_errors=True), transcripts(), message_lists().map(Transcript)))
def test_what_is_not_read_back_the_same_is_a_loss_that_points_at_it(transcript: Transcript) -> None:
    assert_losses_are_told(anthropic, transcript)


# Hostile input


def test_ten_thousand_mutated_samples_raise_nothing_but_our_error() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f"}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**RESPONSE, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {**SIGNED, "signature": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_start", "index": 1, "content_block": RESPONSE["content"][0]},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "<think>"}},
        {"type": "content_block_start", "index": 2, "content_block": call},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    payloads = [json.dumps(event).encode() for event in events]
    samples = [json.dumps(document).encode() for document in (REQUEST, REQUEST["messages"], RESPONSE)]
    samples += [sse(payloads), b"\n".join(payloads)]
    assert readable_mutations(anthropic, samples) > 3_000


def test_damaged_text_is_mended_with_a_note() -> None:
    for damaged, code in ((b"a\\ud800b", "lone_surrogate_replaced"), (b"a\xffb", "invalid_utf8_replaced")):
        reading = anthropic.read(b'[{"role":"assistant","content":[{"type":"text","text":"%s"}]}]' % damaged)
        assert reading.transcript.messages == [turn(TextBlock("a\ufffdb"))]
        assert codes(reading) == [code]


def test_a_number_out_of_range_spoils_nothing_but_itself() -> None:
    call = b'{"type":"tool_use","id":"1","name":"f","input":{"a":1e999}}'
    reading = anthropic.read(b'[{"role":"assistant","content":[%s,{"type":"text","text":"a"}]}]' % call)
    call_block = ToolCall("1", "f", {"a": "1e999"})
    assert reading.transcript.messages == [AssistantMessage([call_block, TextBlock("a")], StopReason.TOOL_USE)]
    assert codes(reading) == ["value_unreadable"]
