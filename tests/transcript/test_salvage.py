"""What the lenient reader keeps of a message that is not quite one, and what it says about the rest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from strategies.messages import json_values, messages

from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    Note,
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
    encode_messages,
    read_messages,
)
from seatrial.transcript.arguments import detect_unparsed

END = StopReason.END_TURN


def salvaged(json: str | bytes) -> tuple[Message, list[tuple[str, str]]]:
    """The one message in the document, and the code and place of each note."""
    data = json.encode() if isinstance(json, str) else json
    (message,), notes = read_messages(b"[" + data + b"]")
    return message, [(note.code, note.pointer) for note in notes]


def assistant(content: str, rest: str = '"stop_reason":"end_turn"') -> str:
    return f'{{"role":"assistant","content":{content},{rest}}}'


@pytest.mark.parametrize(
    ("json", "message", "notes"),
    [
        # Roles
        (
            '{"role":"developer","content":"x"}',
            CustomMessage("developer", {"role": "developer", "content": "x"}),
            [("role_unknown", "/0")],
        ),
        ('{"content":"x"}', CustomMessage("unknown", {"content": "x"}), [("role_unknown", "/0")]),
        ('{"role":5}', CustomMessage("unknown", {"role": 5}), [("role_unknown", "/0")]),
        # Stop reasons
        (
            assistant("[]", '"stop_reason":"content_filter"'),
            AssistantMessage([], StopReason.OTHER),
            [("unknown_stop_reason", "/0/stop_reason")],
        ),
        (
            assistant("[]", '"stop_reason":["stop"]'),
            AssistantMessage([], StopReason.OTHER),
            [("unknown_stop_reason", "/0/stop_reason")],
        ),
        (
            assistant('[{"type":"text","text":"x"}]', '"n":1'),
            AssistantMessage([TextBlock("x")], END),
            [("stop_reason_guessed", "/0/stop_reason")],
        ),
        (
            assistant('[{"type":"tool_call","id":"1","name":"f","arguments":{}}]', '"stop_reason":null'),
            AssistantMessage([ToolCall("1", "f", {})], StopReason.TOOL_USE),
            [("stop_reason_guessed", "/0/stop_reason")],
        ),
        # Content of another shape
        (assistant('"hi"'), AssistantMessage([TextBlock("hi")], END), [("content_reshaped", "/0/content")]),
        (assistant("null"), AssistantMessage([], END), [("value_missing", "/0/content")]),
        (
            assistant('{"type":"thinking","text":"x"}'),
            AssistantMessage([ThinkingBlock("x")], END),
            [("content_reshaped", "/0/content")],
        ),
        (
            assistant('["a",{"type":"reasoning","text":"b"},5,null]'),
            AssistantMessage([TextBlock("a"), ReasoningBlock("b"), TextBlock("5")], END),
            [
                ("content_reshaped", "/0/content/0"),
                ("content_reshaped", "/0/content/2"),
                ("block_dropped", "/0/content/3"),
            ],
        ),
        ('{"role":"user","content":5}', UserMessage("5"), [("text_from_json", "/0/content")]),
        ('{"role":"user"}', UserMessage(""), [("value_missing", "/0/content")]),
        (
            '{"role":"user","content":{"type":"image","source":"u"}}',
            UserMessage([ImageBlock("u")]),
            [("content_reshaped", "/0/content")],
        ),
        (
            '{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}',
            SystemMessage("ab"),
            [("content_reshaped", "/0/content")],
        ),
        # Blocks
        (
            assistant('[{"type":"video","url":"u"},{"text":"x"},{"type":"text"},{"type":"text","text":"kept"}]'),
            AssistantMessage([TextBlock("kept")], END),
            [("block_dropped", f"/0/content/{index}") for index in range(3)],
        ),
        (
            assistant('[{"type":"text","text":5}]'),
            AssistantMessage([TextBlock("5")], END),
            [("text_from_json", "/0/content/0/text")],
        ),
        (
            '{"role":"user","content":[{"type":"image"},{"type":"image","source":"u","alt":5,"media_type":null}]}',
            UserMessage([ImageBlock("u", alt="5")]),
            [("block_dropped", "/0/content/0"), ("text_from_json", "/0/content/1/alt")],
        ),
        (
            assistant('[{"type":"reasoning_details","details":{"a":1.50}},{"type":"reasoning_details"}]'),
            AssistantMessage([ReasoningDetailsBlock([msgspec.Raw(b'{"a":1.50}')])], END),
            [("content_reshaped", "/0/content/0/details"), ("block_dropped", "/0/content/1")],
        ),
        # Tool calls
        (
            assistant('[{"type":"tool_call","id":7,"name":"f"},{"type":"tool_call","name":"g","arguments":null}]'),
            AssistantMessage([ToolCall("7", "f", {}), ToolCall("seatrial_call_0_1", "g", None)], END),
            [
                ("text_from_json", "/0/content/0/id"),
                ("value_missing", "/0/content/0/arguments"),
                ("tool_call_id_generated", "/0/content/1/id"),
            ],
        ),
        (
            assistant('[{"type":"tool_call","id":"1","arguments":{}}]'),
            AssistantMessage([], END),
            [("block_dropped", "/0/content/0")],
        ),
        # Tool results
        (
            '{"role":"tool_result","content":"out","is_error":"yes","narration":1}',
            ToolResultMessage("", "", [TextBlock("out")], narration="1"),
            [
                ("value_missing", "/0/tool_call_id"),
                ("value_missing", "/0/tool_name"),
                ("content_reshaped", "/0/content"),
                ("value_dropped", "/0/is_error"),
                ("text_from_json", "/0/narration"),
            ],
        ),
        # Custom messages
        ('{"role":"custom","payload":1}', CustomMessage("", 1), [("value_missing", "/0/kind")]),
        # Numbers
        (
            '{"role":"user","content":"x","timestamp":-1}',
            UserMessage("x"),
            [("value_dropped", "/0/timestamp")],
        ),
        (
            '{"role":"user","content":"x","timestamp":18446744073709551616}',
            UserMessage("x"),
            [("value_dropped", "/0/timestamp")],
        ),
        (
            assistant("[]", '"stop_reason":"end_turn","usage":{"input_tokens":1.5,"output_tokens":2}'),
            AssistantMessage([], END, usage=Usage(output_tokens=2)),
            [("value_dropped", "/0/usage/input_tokens")],
        ),
        (
            assistant("[]", '"stop_reason":"end_turn","usage":7,"error_message":{"code":5}'),
            AssistantMessage([], END, error_message='{"code":5}'),
            [("text_from_json", "/0/error_message"), ("value_dropped", "/0/usage")],
        ),
    ],
)
def test_the_smallest_part_is_repaired_or_dropped(json: str, message: Message, notes: list[tuple[str, str]]) -> None:
    assert salvaged(json) == (message, notes)


def test_what_is_no_object_is_dropped_with_a_note() -> None:
    found, notes = read_messages(b'["x",[],null,{"role":"user","content":"kept"}]')
    assert found == [UserMessage("kept")]
    assert [(note.code, note.pointer) for note in notes] == [("message_dropped", f"/{index}") for index in range(3)]


def test_arguments_that_cannot_be_held_are_kept_as_text() -> None:
    message, notes = salvaged(assistant('[{"type":"tool_call","id":"1","name":"f","arguments":{"x": 1e999}}]'))
    assert isinstance(message, AssistantMessage)
    unparsed = detect_unparsed(message.tool_calls()[0].arguments)
    assert unparsed is not None
    assert unparsed[1] == '{"x": 1e999}'
    assert notes == [("value_unreadable", "/0/content/0/arguments")]


def test_a_payload_that_cannot_be_held_is_kept_as_text() -> None:
    assert salvaged('{"role":"custom","kind":"k","payload":[1e999]}') == (
        CustomMessage("k", "[1e999]"),
        [("value_unreadable", "/0/payload")],
    )
    assert salvaged('{"role":"other","n":1e999}') == (
        CustomMessage("other", '{"role":"other","n":1e999}'),
        [("role_unknown", "/0"), ("value_unreadable", "/0")],
    )


def test_details_that_are_not_utf8_are_repaired_where_they_stand() -> None:
    message, notes = salvaged(
        b'{"role":"assistant","stop_reason":"end_turn","content":'
        b'[{"type":"reasoning_details","details":[{"a": 1.50},"\xff"]}]}'
    )
    assert isinstance(message, AssistantMessage)
    assert message.reasoning_details_values() == [msgspec.Raw(b'{"a": 1.50}'), msgspec.Raw('"\ufffd"'.encode())]
    assert notes == [("invalid_utf8_replaced", "/0/content/0/details/1")]


def test_long_values_do_not_make_long_notes() -> None:
    _, notes = read_messages(b'[{"role":"' + b"r" * 100_000 + b'"}]')
    assert len(notes[0].message) < 200


def with_unknown_neighbour(message: Message) -> tuple[list[Message], list[Note]]:
    """Read the message by the careful way, which a sound document does not take."""
    return read_messages(encode_messages([message])[:-1] + b",0]")


@given(messages())
def test_the_careful_way_gives_a_sound_message_unchanged(message: Message) -> None:
    found, notes = with_unknown_neighbour(message)
    assert found == [message]
    assert [note.pointer for note in notes] == ["/1"]


@given(json_values(max_leaves=12))
def test_any_json_among_messages_gives_a_message_or_a_note(value: Any) -> None:
    found, notes = read_messages(b"[" + msgspec.json.encode(value) + b"]")
    assert found or notes
    assert len(found) <= 1
