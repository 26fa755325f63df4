"""The JSON of messages and the helpers on them (transcript.md 1.1)."""

from __future__ import annotations

import msgspec
import pytest

from seatrial.transcript import (
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
    Usage,
    UserMessage,
    assistant_content,
    decode_messages,
    encode_messages,
    text_content,
)


def written(message: Message) -> str:
    return encode_messages([message]).decode()[1:-1]


def read(text: str) -> Message:
    (message,) = decode_messages(f"[{text}]".encode())
    return message


@pytest.mark.parametrize(
    ("message", "json"),
    [
        (SystemMessage("be brief"), '{"role":"system","content":"be brief"}'),
        (SystemMessage("", timestamp=0), '{"role":"system","content":"","timestamp":0}'),
        (UserMessage("hello", timestamp=7), '{"role":"user","content":"hello","timestamp":7}'),
        (UserMessage([]), '{"role":"user","content":[]}'),
        (UserMessage([TextBlock("hi")]), '{"role":"user","content":[{"type":"text","text":"hi"}]}'),
        (
            UserMessage([ImageBlock("https://x/y.png"), ImageBlock("data:,", media_type="image/png", alt="a cat")]),
            '{"role":"user","content":[{"type":"image","source":"https://x/y.png"},'
            '{"type":"image","source":"data:,","media_type":"image/png","alt":"a cat"}]}',
        ),
        (
            AssistantMessage([], StopReason.END_TURN),
            '{"role":"assistant","content":[],"stop_reason":"end_turn"}',
        ),
        (
            AssistantMessage(
                [
                    TextBlock("a"),
                    ThinkingBlock("b"),
                    ReasoningBlock("c"),
                    ReasoningDetailsBlock([msgspec.Raw(b'{"z":1.50,"a":[ ]}')]),
                    ToolCall("call_1", "search", {"q": None}),
                ],
                StopReason.TOOL_USE,
                error_message="late",
                timestamp=5,
                usage=Usage(input_tokens=3),
            ),
            '{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"thinking","text":"b"},'
            '{"type":"reasoning","text":"c"},{"type":"reasoning_details","details":[{"z":1.50,"a":[ ]}]},'
            '{"type":"tool_call","id":"call_1","name":"search","arguments":{"q":null}}],"stop_reason":"tool_use",'
            '"error_message":"late","timestamp":5,"usage":{"input_tokens":3,"output_tokens":0,'
            '"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}',
        ),
        (
            ToolResultMessage("call_1", "search", [TextBlock("found")]),
            '{"role":"tool_result","tool_call_id":"call_1","tool_name":"search",'
            '"content":[{"type":"text","text":"found"}],"is_error":false}',
        ),
        (
            ToolResultMessage("c", "t", [], is_error=True, narration="n", details={"k": 1}, timestamp=1),
            '{"role":"tool_result","tool_call_id":"c","tool_name":"t","content":[],"is_error":true,'
            '"narration":"n","details":{"k":1},"timestamp":1}',
        ),
        (CustomMessage("marker"), '{"role":"custom","kind":"marker","payload":null}'),
        (
            CustomMessage("ui", {"text": "build"}, timestamp=2),
            '{"role":"custom","kind":"ui","payload":{"text":"build"},"timestamp":2}',
        ),
    ],
)
def test_messages_are_written_tag_first_in_declaration_order_and_read_back(message: Message, json: str) -> None:
    assert written(message) == json
    assert read(json) == message


def test_the_tag_may_stand_anywhere() -> None:
    assert read('{"content":"x","role":"user"}') == UserMessage("x")
    assert read('{"content":[{"text":"x","type":"text"}],"stop_reason":"end_turn","role":"assistant"}') == (
        AssistantMessage([TextBlock("x")], StopReason.END_TURN)
    )


def test_unknown_keys_are_ignored_everywhere() -> None:
    assert read('{"role":"user","content":[{"type":"text","text":"x","cache":1}],"name":"ann"}') == (
        UserMessage([TextBlock("x")])
    )


def test_null_options_read_as_none() -> None:
    message = read(
        '{"role":"assistant","content":[],"stop_reason":"error","error_message":null,"timestamp":null,"usage":null}'
    )
    assert message == AssistantMessage([], StopReason.ERROR)
    assert read(
        '{"role":"tool_result","tool_call_id":"","tool_name":"","content":[],"narration":null,"details":null}'
    ) == ToolResultMessage("", "", [])


def test_a_missing_timestamp_stays_missing() -> None:
    assert read('{"role":"system","content":"x"}').timestamp is None
    assert written(read('{"role":"system","content":"x"}')) == '{"role":"system","content":"x"}'


def test_missing_usage_counts_read_as_zero() -> None:
    message = read('{"role":"assistant","content":[],"stop_reason":"other","usage":{"output_tokens":-3}}')
    assert isinstance(message, AssistantMessage)
    assert message.usage == Usage(output_tokens=-3)


def test_a_list_of_one_text_block_is_not_a_string() -> None:
    assert UserMessage([TextBlock("x")]) != UserMessage("x")
    assert UserMessage([TextBlock("x"), ImageBlock("u"), TextBlock("y")]).plain_text() == "xy"
    assert UserMessage("x").plain_text() == "x"


def test_equality_ignores_the_order_of_keys_and_minds_the_order_of_items() -> None:
    assert ToolCall("1", "f", {"a": 1, "b": 2}) == ToolCall("1", "f", {"b": 2, "a": 1})
    assert ToolCall("1", "f", [1, 2]) != ToolCall("1", "f", [2, 1])


def test_the_channels_are_joined_each_in_its_own_way() -> None:
    call = ToolCall("1", "f", {})
    message = AssistantMessage(
        [
            TextBlock("a"),
            ThinkingBlock("t"),
            ReasoningBlock("r"),
            ReasoningDetailsBlock([msgspec.Raw(b"1"), msgspec.Raw(b"2")]),
            call,
            TextBlock("b"),
            ThinkingBlock("u"),
            ReasoningBlock("s"),
            ReasoningDetailsBlock([msgspec.Raw(b"3")]),
        ],
        StopReason.TOOL_USE,
    )
    assert message.plain_text() == "ab"
    assert message.thinking_text() == "t\nu"
    assert message.reasoning_text() == "rs"
    assert message.tool_calls() == [call]
    assert message.reasoning_details_values() == [msgspec.Raw(b"1"), msgspec.Raw(b"2"), msgspec.Raw(b"3")]


def test_a_tool_result_shows_its_text_and_skips_images() -> None:
    result = ToolResultMessage("1", "f", [TextBlock("a"), ImageBlock("u"), TextBlock("b")])
    assert result.plain_text() == "ab"


def test_assistant_content_leaves_blank_text_out_and_keeps_other_text_untrimmed() -> None:
    call = ToolCall("1", "f", {})
    assert assistant_content(" \n", [call]) == [call]
    assert assistant_content(None, [call]) == [call]
    assert assistant_content(" x ", [call]) == [TextBlock(" x "), call]


def test_text_content_is_one_block_also_for_the_empty_string() -> None:
    assert text_content("") == [TextBlock("")]
