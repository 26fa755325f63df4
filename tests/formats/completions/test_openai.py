"""OpenAI chat completions: what is read, what is noted, what is written, what is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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
from strategies.growth import growth
from strategies.messages import message_lists, transcripts

from seatrial.errors import SeatrialError
from seatrial.formats.completions import openai
from seatrial.formats.reading import Reading
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
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
from seatrial.transcript.arguments import detect_unparsed, unparsed_arguments

CONVERSATION: list[dict[str, Any]] = [
    {"role": "system", "content": "You book trains."},
    {"role": "user", "content": "A train to Ghent?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": '{"to": "Ghent"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_2", "content": "09:12"},
    {"role": "tool", "tool_call_id": "call_1", "content": "09:40, platform 3"},
    {"role": "assistant", "content": "At 09:40 from platform 3."},
]
RESPONSE: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "gpt-x",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "At 09:40.", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 7, "audio_tokens": 0},
    },
}


def read(document: Any) -> Reading:
    return openai.read(json.dumps(document).encode())


def codes(reading: Reading) -> list[str]:
    return [note.code for note in reading.notes]


def one(message: dict[str, Any]) -> Any:
    reading = read([message])
    assert reading.notes == []
    return reading.transcript.messages[0]


def turn(**keys: Any) -> Any:
    return one({"role": "assistant", **keys})


def refused(data: bytes) -> SeatrialError:
    with pytest.raises(SeatrialError) as caught:
        openai.read(data)
    return caught.value


# Documents


def test_a_conversation_is_read_with_its_calls_and_results() -> None:
    reading = read(CONVERSATION)
    assert reading.format == "openai"
    assert reading.notes == []
    assert reading.transcript.messages == [
        SystemMessage("You book trains."),
        UserMessage("A train to Ghent?"),
        AssistantMessage(
            [ToolCall("call_1", "search", {"to": "Ghent"}), ToolCall("call_2", "clock", {})], StopReason.TOOL_USE
        ),
        ToolResultMessage("call_2", "clock", [TextBlock("09:12")]),
        ToolResultMessage("call_1", "search", [TextBlock("09:40, platform 3")]),
        AssistantMessage([TextBlock("At 09:40 from platform 3.")], StopReason.END_TURN),
    ]


def test_a_request_is_its_messages_and_the_rest_is_metadata() -> None:
    reading = read({"model": "gpt-x", "temperature": 0.5, "messages": CONVERSATION})
    assert reading.transcript.messages == read(CONVERSATION).transcript.messages
    assert reading.transcript.metadata == {"model": "gpt-x", "temperature": 0.5}
    assert reading.notes == []


def test_a_response_is_one_assistant_message_with_its_usage() -> None:
    reading = read(RESPONSE)
    assert reading.id == "chatcmpl-1"
    assert reading.notes == []
    assert reading.transcript.messages == [
        AssistantMessage([TextBlock("At 09:40.")], StopReason.END_TURN, usage=Usage(40, 20, 0, 60))
    ]
    assert reading.transcript.metadata == {
        "created": 1700000000,
        "model": "gpt-x",
        "usage": {"completion_tokens_details": {"reasoning_tokens": 7, "audio_tokens": 0}},
    }


def test_prompt_tokens_are_split_so_that_the_parts_add_up() -> None:
    details = {"cached_tokens": 60, "cache_write_tokens": 30}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": details}
    message = read({**RESPONSE, "usage": usage}).transcript.messages[0]
    assert isinstance(message, AssistantMessage)
    assert message.usage == Usage(10, 5, 30, 60)


@pytest.mark.parametrize(
    "usage", [7, {"prompt_tokens": -1}, {"prompt_tokens": 2**63}, {"prompt_tokens_details": {"cached_tokens": 1}}]
)
def test_counts_that_cannot_be_are_noted(usage: Any) -> None:
    assert codes(read({**RESPONSE, "usage": usage})) == ["value_dropped"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("stop", StopReason.END_TURN),
        ("length", StopReason.MAX_TOKENS),
        ("tool_calls", StopReason.TOOL_USE),
        ("function_call", StopReason.TOOL_USE),
        ("error", StopReason.ERROR),
    ],
)
def test_a_finish_reason_becomes_the_stop_reason(given: str, reason: StopReason) -> None:
    reading = read({"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": given}]})
    assert reading.transcript.messages == [AssistantMessage([TextBlock("x")], reason)]
    expected = ["call_missing"] if reason is StopReason.TOOL_USE else []
    assert [note.code for note in reading.notes] == expected


@pytest.mark.parametrize(
    ("given", "reason", "code"),
    [
        ("content_filter", StopReason.OTHER, "unknown_stop_reason"),
        (7, StopReason.OTHER, "unknown_stop_reason"),
        (None, StopReason.END_TURN, "stop_reason_guessed"),
    ],
)
def test_a_finish_reason_without_counterpart_is_noted(given: Any, reason: StopReason, code: str) -> None:
    reading = read({"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": given}]})
    assert reading.transcript.messages == [AssistantMessage([TextBlock("x")], reason)]
    assert codes(reading) == [code]


def test_a_turn_that_calls_tools_stops_for_them_whatever_the_server_says() -> None:
    message = {"role": "assistant", "tool_calls": CONVERSATION[2]["tool_calls"]}
    reading = read({"choices": [{"message": message, "finish_reason": "stop"}]})
    answer = reading.transcript.messages[0]
    assert isinstance(answer, AssistantMessage)
    assert answer.stop_reason is StopReason.TOOL_USE


def test_of_several_choices_the_first_is_read_and_the_others_are_counted() -> None:
    choice = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    reading = read({"choices": [choice, {**choice, "index": 1}, {**choice, "index": 2}]})
    assert len(reading.transcript.messages) == 1
    assert [(note.code, note.pointer) for note in reading.notes] == [("choice_dropped", "/choices/1")]
    assert "1 more" in reading.notes[0].message


def test_one_message_is_a_conversation_and_so_are_lines_of_messages() -> None:
    reading = openai.read(b'{"role":"user","content":"a","mood":"good"}')
    assert reading.transcript.messages == [UserMessage("a")]
    assert [note.pointer for note in reading.notes] == ["/mood"]
    lines = [json.dumps(message).encode() for message in CONVERSATION]
    assert openai.read(b"\n".join(lines)) == read(CONVERSATION)
    lines.insert(1, b"{oops")
    reading = openai.read(b"\r\n".join(lines) + b"\r\n")
    assert reading.transcript == read(CONVERSATION).transcript
    assert [(note.code, note.pointer) for note in reading.notes] == [("message_dropped", "/1")]


def test_an_error_response_is_a_turn_that_failed() -> None:
    error = {"message": "Rate limit reached", "type": "tokens", "code": "rate_limit_exceeded"}
    reading = read({"error": error})
    assert reading.transcript.messages == [AssistantMessage([], StopReason.ERROR, "Rate limit reached")]
    assert reading.transcript.metadata == {"error": error}


@pytest.mark.parametrize("data", [b"", b"  \n", b"\xef\xbb\xbf"])
def test_nothing_is_an_error(data: bytes) -> None:
    assert refused(data).code == "empty_input"


@pytest.mark.parametrize("data", [b"7", b'"text"', b"{}", b'{"foo": 1}', b'{"messages": 7}', b'{"messages": {}}'])
def test_json_of_another_kind_is_an_error(data: bytes) -> None:
    assert refused(data).code == "invalid_document"


@pytest.mark.parametrize("data", [b"hello", b"[1,", b'{"messages": [}', b"\xff\xfe"])
def test_what_is_not_json_is_an_error(data: bytes) -> None:
    assert refused(data).code == "not_json"


# Messages


def test_a_developer_is_read_as_system_with_one_note_for_all() -> None:
    reading = read([{"role": "developer", "content": "a"}, {"role": "developer", "content": "b"}])
    assert reading.transcript.messages == [SystemMessage("a"), SystemMessage("b")]
    assert codes(reading) == ["role_read_as"]


def test_parts_of_a_user_become_blocks_and_a_list_stays_a_list() -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
    assert one({"role": "user", "content": parts}) == UserMessage(
        [TextBlock("see"), ImageBlock("https://example.com/a.png")]
    )
    assert one({"role": "user", "content": parts[:1]}) == UserMessage([TextBlock("see")])


@pytest.mark.parametrize("kind", ["input_audio", "file", "video_url"])
def test_a_part_without_a_place_is_dropped_with_a_note(kind: str) -> None:
    reading = read([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": kind, kind: {}}]}])
    assert reading.transcript.messages == [UserMessage([TextBlock("a")])]
    assert [(note.code, note.pointer) for note in reading.notes] == [("content_dropped", "/0/content/1")]


def test_hidden_tags_in_the_content_are_thinking() -> None:
    assert turn(content="<think>hm</think>Yes.").content == [ThinkingBlock("hm"), TextBlock("Yes.")]


def test_an_unclosed_tag_is_thinking_too_with_a_note() -> None:
    reading = read([{"role": "assistant", "content": "Well<thought>so it is"}])
    answer = reading.transcript.messages[0]
    assert isinstance(answer, AssistantMessage)
    assert answer.content == [TextBlock("Well"), ThinkingBlock("so it is")]
    assert codes(reading) == ["unclosed_thinking_tag"]


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_of_other_servers_is_native_reasoning(key: str) -> None:
    assert turn(content="x", **{key: "because"}).content == [ReasoningBlock("because"), TextBlock("x")]


def test_the_same_reasoning_under_both_names_is_read_once() -> None:
    assert turn(content="x", reasoning="r", reasoning_content="r").content == [ReasoningBlock("r"), TextBlock("x")]
    reading = read([{"role": "assistant", "content": "x", "reasoning": "r", "reasoning_content": "s"}])
    assert [(note.code, note.pointer) for note in reading.notes] == [("key_dropped", "/0/reasoning_content")]


def test_a_refusal_is_kept_as_text_with_a_note() -> None:
    for message in ({"refusal": "No."}, {"content": [{"type": "refusal", "refusal": "No."}]}):
        reading = read([{"role": "assistant", "content": None, **message}])
        answer = reading.transcript.messages[0]
        assert isinstance(answer, AssistantMessage)
        assert answer.content == [TextBlock("No.")]
        assert codes(reading) == ["refusal_read_as_text"]


def test_content_of_an_unheard_of_shape_is_kept_as_json_text() -> None:
    reading = read([{"role": "user", "content": {"a": 1}}, {"role": "assistant", "content": 5}])
    assert reading.transcript.messages == [
        UserMessage('{"a":1}'),
        AssistantMessage([TextBlock("5")], StopReason.END_TURN),
    ]
    assert codes(reading) == ["text_from_json", "text_from_json"]


def test_an_unknown_role_is_kept_whole_and_none_of_its_keys_is_called_dropped() -> None:
    message = {"role": "critic", "content": "meh", "score": 2}
    reading = read([message])
    assert reading.transcript.messages == [CustomMessage("critic", message)]
    assert codes(reading) == ["role_unknown"]


def test_entries_that_are_no_messages_are_dropped_one_by_one() -> None:
    reading = read([5, {"role": "user", "content": "a"}, {"content": "b"}, {"role": 7}, None])
    assert reading.transcript.messages == [UserMessage("a")]
    assert [(note.code, note.pointer) for note in reading.notes] == [
        ("message_dropped", "/0"),
        ("message_dropped_no_role", "/2"),
        ("message_dropped_no_role", "/3"),
        ("message_dropped", "/4"),
    ]


def test_a_key_that_is_lost_is_noted_once_and_counted_but_not_what_says_nothing() -> None:
    silent: dict[str, Any] = {"annotations": [], "audio": None, "id": "1"}
    user = {"role": "user", "content": "a", "name": "Ann", "mood": "good", **silent}
    reading = read([user, user, user])
    assert sorted((note.code, note.pointer) for note in reading.notes) == [
        ("key_dropped", "/0/mood"),
        ("key_dropped", "/0/name"),
    ]
    assert all("2 more" in note.message for note in reading.notes)


def test_the_detail_of_an_image_is_noted() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
    reading = read([{"role": "user", "content": [image]}])
    assert [note.pointer for note in reading.notes] == ["/0/content/0/image_url/detail"]


# Calls and results


def test_arguments_that_are_not_json_are_kept_as_text() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
    reading = read([{"role": "assistant", "tool_calls": [call]}])
    answer = reading.transcript.messages[0]
    assert isinstance(answer, AssistantMessage)
    unparsed = detect_unparsed(answer.tool_calls()[0].arguments)
    assert unparsed is not None
    assert unparsed[1] == '{"a": '
    assert [(note.code, note.pointer) for note in reading.notes] == [("arguments_not_json", "/0/tool_calls/0")]
    assert json.loads(openai.write(reading.transcript).data)[0]["tool_calls"] == [call]


@pytest.mark.parametrize("arguments", ["", "{}", " "])
def test_blank_arguments_are_no_arguments(arguments: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    assert turn(tool_calls=[call]).content == [ToolCall("1", "f", {})]


def test_a_legacy_function_call_and_its_result_are_paired() -> None:
    reading = read(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "clock", "arguments": "{}"}},
            {"role": "function", "name": "clock", "content": "09:12"},
        ]
    )
    call, result = reading.transcript.messages
    assert isinstance(call, AssistantMessage)
    assert isinstance(result, ToolResultMessage)
    assert call.stop_reason is StopReason.TOOL_USE
    assert (result.tool_call_id, result.tool_name) == (call.tool_calls()[0].id, "clock")
    assert codes(reading) == ["tool_call_id_generated", "role_read_as"]


def test_a_custom_tool_takes_its_text_as_arguments() -> None:
    call = {"id": "1", "type": "custom", "custom": {"name": "sql", "input": "[1]"}}
    reading = read([{"role": "assistant", "tool_calls": [call]}])
    answer = reading.transcript.messages[0]
    assert isinstance(answer, AssistantMessage)
    assert answer.content == [ToolCall("1", "sql", "[1]")]
    assert codes(reading) == ["custom_tool_call"]


def test_a_call_without_a_name_is_dropped_and_the_others_stay() -> None:
    calls = [{"id": "1", "function": {}}, {"id": "2", "function": {"name": "f"}}, 7]
    reading = read([{"role": "assistant", "tool_calls": calls}])
    answer = reading.transcript.messages[0]
    assert isinstance(answer, AssistantMessage)
    assert answer.content == [ToolCall("2", "f", {})]
    assert codes(reading) == ["tool_call_dropped_no_name"] * 2


def test_calls_in_the_flat_shape_are_read_and_lost_keys_of_calls_are_noted() -> None:
    assert turn(tool_calls=[{"id": "1", "name": "f", "arguments": {"a": 1}}]).content == [ToolCall("1", "f", {"a": 1})]
    call = {"id": "1", "extra_content": {"s": 1}, "function": {"name": "f", "arguments": "{}", "strict": True}}
    reading = read([{"role": "assistant", "tool_calls": [call]}])
    assert [note.pointer for note in reading.notes] == [
        "/0/tool_calls/0/extra_content",
        "/0/tool_calls/0/function/strict",
    ]


# Writing


def test_the_messages_are_written_as_the_api_has_them() -> None:
    written = openai.write(read(CONVERSATION).transcript)
    expected = json.loads(json.dumps(CONVERSATION))
    expected[2]["tool_calls"][0]["function"]["arguments"] = '{"to":"Ghent"}'
    assert json.loads(written.data) == expected
    assert written.losses == []


def test_content_is_parts_only_where_a_string_would_read_back_differently() -> None:
    def content(*blocks: TextBlock | ThinkingBlock) -> Any:
        return json.loads(openai.write(Transcript([AssistantMessage([*blocks], StopReason.END_TURN)])).data)[0][
            "content"
        ]

    assert content() == ""
    assert content(TextBlock("a")) == "a"
    assert content(TextBlock("a"), ThinkingBlock("t"), TextBlock("b")) == "a<thought>t</thought>b"
    assert content(TextBlock("a"), TextBlock("b")) == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert content(TextBlock("")) == [{"type": "text", "text": ""}]
    # A `<` right before a tag would hide it.
    assert content(TextBlock("1 <"), ThinkingBlock("t")) == [
        {"type": "text", "text": "1 <"},
        {"type": "text", "text": "<thought>t</thought>"},
    ]


def test_a_result_says_its_tool_only_where_no_call_does() -> None:
    call = AssistantMessage([ToolCall("1", "f", {})], StopReason.TOOL_USE)
    results = [ToolResultMessage("1", "f", []), ToolResultMessage("1", "g", []), ToolResultMessage("2", "h", [])]
    written = json.loads(openai.write(Transcript([call, *results])).data)
    assert [message.get("name") for message in written[1:]] == [None, "g", "h"]


def test_everything_that_messages_cannot_carry_is_a_loss() -> None:
    transcript = Transcript(
        [
            AssistantMessage(
                [
                    TextBlock("a"),
                    ReasoningBlock("r"),
                    ReasoningDetailsBlock([]),
                    ToolCall("1", "f", {}),
                    TextBlock("<thought>b</thought>"),
                ],
                StopReason.MAX_TOKENS,
                "late",
                1,
                Usage(),
            ),
            ToolResultMessage("1", "f", [ImageBlock("data:,"), TextBlock("b")], True, "Did it.", {"a": 1}, 2),
            CustomMessage("mark"),
            UserMessage([ImageBlock("https://example.com/a", "image/png", "a cat")]),
        ],
        answer="a",
        usage=Usage(),
        cost_usd=1.0,
        duration_ms=2.0,
        metadata={"model": "x"},
    )
    losses = openai.write(transcript).losses
    assert sorted((note.code, note.pointer) for note in losses) == [
        ("changed", "/messages/0/content"),
        ("changed", "/messages/0/content/4"),
        ("not_carried", "/answer"),
        ("not_carried", "/cost_usd"),
        ("not_carried", "/duration_ms"),
        ("not_carried", "/messages/0/content/1"),
        ("not_carried", "/messages/0/content/2"),
        ("not_carried", "/messages/0/error_message"),
        ("not_carried", "/messages/0/stop_reason"),
        ("not_carried", "/messages/0/timestamp"),
        ("not_carried", "/messages/0/usage"),
        ("not_carried", "/messages/1/content/0"),
        ("not_carried", "/messages/1/details"),
        ("not_carried", "/messages/1/is_error"),
        ("not_carried", "/messages/1/narration"),
        ("not_carried", "/messages/2"),
        ("not_carried", "/messages/3/content/0/alt"),
        ("not_carried", "/messages/3/content/0/media_type"),
        ("not_carried", "/metadata"),
        ("not_carried", "/usage"),
    ]


def test_a_foreign_complaint_about_arguments_is_lost_but_their_text_is_not() -> None:
    for arguments in (unparsed_arguments("my own words", "{"), unparsed_arguments("it is JSON after all", "{}")):
        transcript = Transcript([AssistantMessage([ToolCall("1", "f", arguments)], StopReason.TOOL_USE)])
        written = openai.write(transcript)
        assert json.loads(written.data)[0]["tool_calls"][0]["function"]["arguments"] in ("{", "{}")
        assert [(note.code, note.pointer) for note in written.losses] == [
            ("changed", "/messages/0/content/0/arguments")
        ]


@given(conversations(chat_turns(native=False), result_images=False))
def test_what_the_format_carries_is_read_back_the_same_without_losses(transcript: Transcript) -> None:
    assert_carried(openai, transcript)


@given(st.one_of(conversations(any_turns(), result_errors=True), transcripts(), message_lists().map(Transcript)))
def test_what_is_not_read_back_the_same_is_a_loss_that_points_at_it(transcript: Transcript) -> None:
    assert_losses_are_told(openai, transcript)


# Hostile input

DELTAS: list[dict[str, Any]] = [
    {"content": "<think>a", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]},
    {"content": "</think>b", "refusal": "no", "tool_calls": [{"index": 0, "function": {"arguments": "1"}}]},
]
CHUNKS = [json.dumps({"id": "c1", "choices": [{"index": 0, "delta": delta}]}).encode() for delta in DELTAS]
SAMPLES = [
    json.dumps(CONVERSATION).encode(),
    json.dumps(RESPONSE).encode(),
    json.dumps({"model": "x", "messages": CONVERSATION}).encode(),
    json.dumps(
        [
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
            {
                "role": "assistant",
                "content": "<thought>a</thought>b",
                "reasoning": "r",
                "reasoning_details": [{"a": 1}],
            },
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{"}},
            {"role": "function", "name": "f", "content": "x"},
        ]
    ).encode(),
    sse([*CHUNKS, b"[DONE]"]),
    b"\n".join(CHUNKS),
    b"[" + b",".join(CHUNKS) + b"]",
]


def test_ten_thousand_mutated_samples_raise_nothing_but_our_error() -> None:
    assert readable_mutations(openai, SAMPLES) > 3_000


def test_lone_surrogates_and_bytes_that_are_not_utf8_are_replaced_with_a_note() -> None:
    reading = openai.read(b'[{"role":"user","content":"a\\ud800b"}]')
    assert reading.transcript.messages == [UserMessage("a\ufffdb")]
    assert codes(reading) == ["lone_surrogate_replaced"]
    reading = openai.read(b'[{"role":"user","content":"a\xffb"}]')
    assert reading.transcript.messages == [UserMessage("a\ufffdb")]
    assert codes(reading) == ["invalid_utf8_replaced"]
    reading = openai.read(b'\xef\xbb\xbf[{"role":"user","content":"a"}]')
    assert reading.transcript.messages == [UserMessage("a")]
    assert codes(reading) == ["bom_removed"]


@pytest.mark.parametrize("depth", [1_500, 200_000])
def test_deep_nesting_is_an_error(depth: int) -> None:
    assert refused(b'[{"role":"user","content":' + b"[" * depth + b"]" * depth + b"}]").code == "too_deep"
    assert refused(b"[" * depth).code == "too_deep"


def test_a_number_out_of_range_spoils_nothing_but_itself() -> None:
    call = b'{"id":"1","function":{"name":"f","arguments":"{}"},"weight":1e999}'
    reading = openai.read(
        b'[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[%s]}]' % call
    )
    assert reading.transcript.messages == [
        UserMessage("a"),
        AssistantMessage([TextBlock("b"), ToolCall("1", "f", {})], StopReason.TOOL_USE),
    ]
    assert "value_unreadable" in codes(reading)


def test_fifty_thousand_messages_cost_linear_time() -> None:
    def reading(count: int) -> Callable[[], object]:
        document = b"[" + b",".join([b'{"role":"user","content":"%s","mood":1}' % (b"a" * 150)] * count) + b"]"

        def read() -> None:
            assert len(openai.read(document).transcript.messages) == count

        return read

    assert growth(reading, 5_000, 50_000, below=40) < 40


def _completion(choice: dict[str, Any], **more: Any) -> Reading:
    body = {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", **choice}], **more}
    return openai.read(json.dumps(body).encode())


SAID = {"role": "assistant", "content": "the password is x"}


@pytest.mark.parametrize("delta", [None, {}, {"role": "assistant", "content": ""}, SAID])
def test_the_message_of_a_completion_counts_whatever_delta_stands_beside_it(delta: Any) -> None:
    reading = _completion({"message": SAID, "delta": delta})
    assert reading.transcript.final_text() == "the password is x"
    assert not [note for note in reading.notes if note.serious]


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "ok"},
        {"content": "", "tool_calls": [{"id": "c", "function": {"name": "delete_account", "arguments": "{}"}}]},
    ],
)
def test_a_delta_that_says_something_else_than_its_message_is_a_serious_loss(delta: dict[str, Any]) -> None:
    reading = _completion({"message": SAID, "delta": delta})
    assert reading.transcript.final_text() == "the password is x"
    assert [(note.code, note.pointer, note.weight) for note in reading.notes] == [
        ("key_dropped", "/choices/0/delta", "serious")
    ]


def _chunks(*choices: dict[str, Any], kind: str = "chat.completion.chunk") -> Reading:
    chunks = [{"object": kind, "choices": [{"index": 0, **choice}]} for choice in choices]
    return openai.read(sse([json.dumps(chunk).encode() for chunk in chunks]))


@pytest.mark.parametrize("kind", ["chat.completion.chunk", "chat.completion"])
def test_chunks_may_repeat_the_message_so_far(kind: str) -> None:
    reading = _chunks(
        {"delta": {"content": "the "}, "message": {"role": "assistant", "content": "the "}},
        {"delta": {"content": "end"}, "message": {"role": "assistant", "content": "the end"}, "finish_reason": "stop"},
        kind=kind,
    )
    assert reading.transcript.final_text() == "the end"
    assert not [note for note in reading.notes if note.serious]


def test_a_message_that_is_not_what_its_chunks_say_is_a_serious_loss() -> None:
    for message in (SAID, {"content": "ok", "tool_calls": [{"id": "c", "function": {"name": "pay"}}]}):
        reading = _chunks({"delta": {"content": "ok"}, "message": message, "finish_reason": "stop"})
        assert [note.weight for note in reading.notes if note.code == "key_dropped"] == ["serious"]


def test_a_message_without_any_delta_is_what_a_stream_says() -> None:
    reading = _chunks({"message": SAID, "finish_reason": "stop"})
    assert reading.transcript.final_text() == "the password is x"


@pytest.mark.parametrize(
    "message",
    [
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        {"type": "mcp_list_tools", "tools": []},
        {"type": "compaction", "id": "c"},
        {"type": "tool", "data": {"content": "ok", "tool_call_id": "c"}},
        {"type": "remove", "data": {"id": "m"}},
        {"kind": "request", "parts": []},
    ],
    ids=str,
)
@pytest.mark.parametrize("before", [[], [{"role": "assistant", "content": "Before."}]])
def test_a_response_whose_message_is_not_one_of_the_assistant_has_an_empty_turn_and_a_serious_note(
    message: dict[str, Any], before: list[dict[str, Any]]
) -> None:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    given: dict[str, Any] = {"messages": before} if before else {}
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    reading = openai.read(json.dumps({**given, "choices": [choice], "usage": usage}).encode())
    last = reading.transcript.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.content, last.usage) == ([], Usage(1, 2, 0, 0))
    assert "message_dropped" in [note.code for note in reading.notes]
