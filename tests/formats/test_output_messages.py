"""The provider response of trajectory.md 1."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.messages import message_lists, transcripts
from strategies.mutations import mutations

from seatrial.errors import SeatrialError
from seatrial.formats.chat.reader import messages_from_objects
from seatrial.formats.output_messages import read, read_object, read_text_output, write
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Note,
    ReasoningBlock,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    UserMessage,
)
from seatrial.transcript.arguments import unparsed_arguments


def response(**fields: Any) -> Reading:
    return read(msgspec.json.encode(fields))


def noted(reading: Reading) -> list[tuple[str, str]]:
    return [(note.code, note.pointer) for note in reading.notes]


def said(text: str) -> AssistantMessage:
    return AssistantMessage([TextBlock(text)], StopReason.END_TURN)


# Keys.


def test_snake_case_and_camel_case_say_the_same() -> None:
    calls = [{"tool": "find", "input": {"order": 7}, "output": "Leiden"}]
    snake = response(
        text="a",
        output_messages=[{"role": "assistant", "content": "b", "tool_calls": calls}],
        trace_ref="trace.json",
        token_usage={"input_tokens": 5, "output_tokens": 6},
        cost_usd=0.5,
        duration_ms=7,
    )
    camel = response(
        text="a",
        outputMessages=[{"role": "assistant", "content": "b", "toolCalls": calls}],
        traceRef="trace.json",
        usage={"inputTokens": 5, "outputTokens": 6},
        costUsd=0.5,
        durationMs=7,
    )
    assert snake == camel
    assert snake.notes == []
    assert snake.trace_ref == "trace.json"
    assert snake.transcript == Transcript(
        [
            AssistantMessage(
                [TextBlock("b"), ToolCall("seatrial_call_0_0", "find", {"order": 7})], StopReason.TOOL_USE
            ),
            ToolResultMessage("seatrial_call_0_0", "find", [TextBlock("Leiden")]),
        ],
        "a",
        usage=Usage(5, 6),
        cost_usd=0.5,
        duration_ms=7,
    )


def test_messages_may_be_called_output() -> None:
    assert response(output=[{"role": "assistant", "content": "b"}]).transcript.messages == [said("b")]


def test_the_first_of_two_names_is_used_and_the_other_noted() -> None:
    reading = response(output_messages=[{"role": "assistant", "content": "b"}], outputMessages=[], traceRef="t")
    assert reading.transcript.messages == [said("b")]
    assert noted(reading) == [("key_repeated", "/outputMessages")]


def test_what_has_no_field_is_kept_as_metadata() -> None:
    reading = response(text="a", output_messages=[], raw={"x": 1}, reasoning="why", model="m-1", metadata={"k": 2})
    assert reading.transcript.metadata == {"raw": {"x": 1}, "reasoning": "why", "model": "m-1", "k": 2}
    assert reading.notes == []


def test_a_misspelled_key_is_pointed_out() -> None:
    reading = response(text="a", output_mesages=[])
    assert ("key_misspelled", "/output_mesages") in noted(reading)


def test_values_of_the_wrong_kind_are_dropped_with_notes() -> None:
    reading = response(text="a", output_messages=[], usage="many", cost_usd="1", duration_ms=[], trace_ref=5, id={})
    assert sorted(noted(reading)) == [
        ("value_dropped", "/cost_usd"),
        ("value_dropped", "/duration_ms"),
        ("value_dropped", "/id"),
        ("value_dropped", "/trace_ref"),
        ("value_dropped", "/usage"),
    ]


@pytest.mark.parametrize(
    "usage",
    [
        {"input": 1, "output": 2, "cached": 3},
        {"prompt_tokens": 1, "completion_tokens": 2, "cache_read_input_tokens": 3, "total_tokens": 6},
    ],
)
def test_token_counts_are_known_by_several_names(usage: dict[str, int]) -> None:
    assert response(text="a", token_usage=usage).transcript.usage == Usage(1, 2, 0, 3)


# Rules 1 to 3: the trace.


def test_rule_1_only_the_type_of_a_trace_event_is_required_and_its_time_is_kept_as_given() -> None:
    reading = response(
        text="a",
        trace=[
            {"type": "model_step"},
            {"type": "tool_call", "id": "c1", "name": "find", "input": {"x": 1}, "timestamp": "yesterday"},
            {"type": "tool_result", "output": None, "timestamp": 12.5, "metadata": {"k": 1}, "unknown": True},
        ],
    )
    assert reading.trace == [
        TraceEvent("model_step"),
        TraceEvent("tool_call", "yesterday", "c1", "find", {"x": 1}),
        TraceEvent("tool_result", 12.5, metadata={"k": 1, "unknown": True}),
    ]


def test_rule_2_an_empty_trace_is_a_trace() -> None:
    assert response(text="a", trace=[]).trace == []
    assert response(text="a").trace is None
    assert response(text="a", trace=None).trace is None


def test_rule_2_invalid_events_are_dropped_each_with_a_note() -> None:
    reading = response(
        text="a", output_messages=[], trace=[{"type": "dance"}, {"type": "error", "text": "no"}, {}, "x"]
    )
    assert reading.trace == [TraceEvent("error", text="no")]
    assert noted(reading) == [
        ("trace_event_dropped", "/trace/0"),
        ("trace_event_dropped", "/trace/2"),
        ("trace_event_dropped", "/trace/3"),
    ]


def test_a_wrong_field_of_a_trace_event_loses_the_field_and_never_the_event() -> None:
    trace = [
        {"type": "tool_call", "name": "find", "id": 7, "text": 5, "metadata": []},
        {"type": "tool_call", "name": []},
    ]
    reading = response(text="a", output_messages=[], trace=trace)
    assert reading.trace == [TraceEvent("tool_call", name="find", id="7"), TraceEvent("tool_call")]
    assert [(note.code, note.pointer, note.weight) for note in reading.notes if note.code.startswith("trace")] == [
        ("trace_field_dropped", "/trace/0/text", "look"),
        ("trace_field_dropped", "/trace/0/metadata", "look"),
        ("trace_field_dropped", "/trace/1/name", "serious"),
    ]


@pytest.mark.parametrize("trace", [[{"type": "dance"}], {"type": "error"}, "trace.json"])
def test_rule_2_a_trace_without_a_valid_event_is_none(trace: Any) -> None:
    reading = response(text="a", output_messages=[], trace=trace)
    assert reading.trace is None
    assert noted(reading)[-1] == ("trace_invalid", "/trace")


# Rule 4: messages.


def test_rule_4_every_shape_of_call_is_read_in_order_whatever_the_role() -> None:
    messages = [
        {
            "role": "assistant",
            "tool_calls": [{"tool": "a", "input": {"x": 1}}, {"id": "2", "name": "b", "arguments": "{}"}],
        },
        {"role": "critic", "tool_calls": [{"id": "3", "function": {"name": "c", "arguments": '{"y": 2}'}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "4", "name": "d", "input": {"z": 3}}]},
    ]
    reading = response(output_messages=messages)
    calls = [call for m in reading.transcript.messages if isinstance(m, AssistantMessage) for call in m.tool_calls()]
    assert [(call.name, call.arguments) for call in calls] == [
        ("a", {"x": 1}),
        ("b", {}),
        ("c", {"y": 2}),
        ("d", {"z": 3}),
    ]


def test_rule_4_results_are_paired_by_id_and_otherwise_by_order() -> None:
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "1", "tool": "a"}, {"id": "2", "tool": "b"}]},
        {"role": "tool", "toolCallId": "2", "content": "second"},
        {"role": "tool", "content": "first"},
    ]
    reading = response(text="done", output_messages=messages)
    assert reading.transcript.messages[1:] == [
        ToolResultMessage("2", "b", [TextBlock("second")]),
        ToolResultMessage("1", "a", [TextBlock("first")]),
    ]
    assert noted(reading) == [("tool_result_paired_by_order", "/output_messages/2")]


def test_rule_4_arguments_that_are_not_json_are_kept_as_text() -> None:
    reading = response(
        text="a", output_messages=[{"role": "assistant", "tool_calls": [{"id": "1", "tool": "f", "input": "{"}]}]
    )
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.tool_calls()[0].arguments == unparsed_arguments("Input data was truncated", "{")
    assert noted(reading) == [("arguments_not_json", "/output_messages/0/tool_calls/0")]


def test_rule_4_nameless_calls_and_messages_without_a_role_are_dropped_and_the_rest_stays() -> None:
    reading = response(
        output_messages=[{"content": "?"}, {"role": "assistant", "content": "b", "tool_calls": [{"input": 1}]}]
    )
    assert reading.transcript.messages == [said("b")]
    assert noted(reading) == [
        ("message_dropped_no_role", "/output_messages/0"),
        ("tool_call_dropped_no_name", "/output_messages/1/tool_calls/0"),
    ]


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [(1_700_000_000_000, 1_700_000_000_000), ("1970-01-01T00:00:01.5Z", 1500), ("1970-01-01T01:00:00+01:00", 0)],
)
def test_rule_4_the_time_of_a_message_is_kept(given: Any, milliseconds: int) -> None:
    reading = response(output_messages=[{"role": "assistant", "content": "b", "timestamp": given}])
    assert reading.notes == []
    assert reading.transcript.messages[0].timestamp == milliseconds


@pytest.mark.parametrize("given", ["noon", "2024-01-01T00:00:00", -1, 1.5, True, 2**64, "1969-01-01T00:00:00Z"])
def test_a_time_that_is_none_is_dropped_with_a_note(given: Any) -> None:
    reading = response(output_messages=[{"role": "assistant", "content": "b", "timestamp": given}])
    assert reading.transcript.messages == [said("b")]
    assert noted(reading) == [("value_dropped", "/output_messages/0/timestamp")]


def test_an_output_that_is_no_text_is_kept_as_text_and_as_the_value() -> None:
    calls = [{"id": "1", "tool": "f", "output": {"a": [1]}}, {"id": "2", "tool": "g", "output": None}]
    reading = response(text="a", output_messages=[{"role": "assistant", "tool_calls": calls}])
    assert reading.transcript.messages[1:] == [
        ToolResultMessage("1", "f", [TextBlock('{"a":[1]}')], details={"a": [1]}),
        ToolResultMessage("2", "g", []),
    ]


def test_a_result_inside_its_call_and_again_as_a_message_is_kept_once() -> None:
    calls = [{"id": "1", "tool": "f", "output": "x"}, {"id": "2", "tool": "f", "output": "y"}]
    reading = response(
        text="a",
        output_messages=[
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "1", "content": "x"},
            {"role": "tool", "tool_call_id": "2", "content": "z"},
        ],
    )
    assert [m.plain_text() for m in reading.transcript.messages if isinstance(m, ToolResultMessage)] == ["x", "y", "z"]
    assert noted(reading) == [
        ("tool_result_repeated", "/output_messages/1"),
        ("tool_result_repeated", "/output_messages/2"),
    ]


# Rules 5 to 7.


def test_rule_5_trace_and_messages_are_both_kept() -> None:
    calls = [{"id": "1", "tool": "f", "output": "x"}]
    reading = response(
        output_messages=[{"role": "assistant", "tool_calls": calls}], text="a", trace=[{"type": "tool_call"}]
    )
    assert reading.trace == [TraceEvent("tool_call")]
    assert len(reading.transcript.messages) == 2


def test_rule_6_the_answer_is_the_text_then_the_last_assistant_text() -> None:
    messages = [{"role": "assistant", "content": "b"}, {"role": "assistant", "content": ""}]
    assert response(text="a", output_messages=messages).transcript.final_text() == "a"
    assert response(text="", output_messages=messages).transcript.final_text() == "b"
    assert response(output_messages=messages).transcript.final_text() == "b"


def test_rule_6_no_answer_is_noted() -> None:
    reading = response(output_messages=[{"role": "user", "content": "hi"}])
    assert not reading.transcript.final_text()
    assert noted(reading) == [("answer_missing", "")]


def test_rule_6_content_that_is_an_object_is_serialised_and_never_dropped() -> None:
    reading = response(text={"order": 7}, output_messages=[{"role": "assistant", "content": {"b": 1}}])
    assert reading.transcript == Transcript([said('{"b":1}')], '{"order":7}')
    assert noted(reading) == [("text_from_json", "/text"), ("text_from_json", "/output_messages/0/content")]


def test_text_without_messages_stands_for_them_with_its_reasoning() -> None:
    reading = response(text="a", reasoning="why")
    assert reading.transcript.messages == [
        AssistantMessage([ReasoningBlock("why"), TextBlock("a")], StopReason.END_TURN)
    ]
    assert noted(reading) == [("messages_missing", "/output_messages")]


def test_output_that_is_text_is_read_as_the_answer() -> None:
    reading = response(output="a")
    assert reading.transcript == Transcript([said("a")], "a")
    assert noted(reading) == [("output_read_as_text", "/output"), ("messages_missing", "/output")]


@pytest.mark.parametrize("data", [b"", b"plain text", b"{"])
def test_rule_7_what_is_not_json_is_an_error(data: bytes) -> None:
    with pytest.raises(SeatrialError) as caught:
        read(data)
    assert caught.value.code == "not_json"


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"outptu_messages": []}', b'{"text": null}', b"5"])
def test_rule_7_an_object_with_nothing_readable_is_refused(data: bytes) -> None:
    with pytest.raises(SeatrialError) as caught:
        read(data)
    assert caught.value.code == "invalid_document"


def test_rule_7_a_typo_is_named_in_the_refusal() -> None:
    with pytest.raises(SeatrialError, match="outptu_messages looks like output_messages"):
        read(b'{"outptu_messages": []}')


def test_plain_text_is_the_answer_when_it_is_meant_to_be() -> None:
    assert read_text_output("Café.\n".encode()).transcript == Transcript([said("Café.\n")], "Café.\n")
    assert noted(read_text_output(b"caf\xe9")) == [("invalid_utf8_replaced", "")]
    with pytest.raises(SeatrialError) as caught:
        read_text_output(b" \n")
    assert caught.value.code == "empty_input"


def test_what_cannot_be_read_inside_a_message_is_noted_there() -> None:
    call = b'{"id":"c","tool":"f","input":{"x":1e999}}'
    body = b'{"text":"a","output_messages":[{"role":"assistant","content":"b\xff","tool_calls":[%b]}]}' % call
    assert noted(read(body)) == [
        ("invalid_utf8_replaced", "/output_messages/0/content"),
        ("value_unreadable", "/output_messages/0/tool_calls/0/input/x"),
    ]


def test_messages_under_a_second_name_stay_a_value_that_can_be_stored() -> None:
    again = [{"role": "user", "content": "hi"}]
    reading = read(msgspec.json.encode({"text": "a", "output_messages": again, "outputMessages": again}))
    assert reading.transcript.metadata == {"outputMessages": again}
    assert noted(reading) == [("key_repeated", "/outputMessages")]


# Decoded objects.


def test_decoded_messages_are_read_without_bytes() -> None:
    notes: list[Note] = []
    messages = messages_from_objects([{"role": "user", "content": "hi"}, {"role": "x"}], notes)
    assert messages == [UserMessage("hi"), CustomMessage("x", {"role": "x"})]
    assert [(note.code, note.pointer) for note in notes] == [("role_unknown", "/1/role")]


def test_a_decoded_response_is_not_changed_by_reading_it() -> None:
    body = {"text": "a", "output_messages": [], "model": "m", "metadata": {"k": 1}}
    read_object(body)
    assert body == {"text": "a", "output_messages": [], "model": "m", "metadata": {"k": 1}}


# Writing.


def test_results_stand_inside_their_calls_where_they_can() -> None:
    transcript = Transcript(
        [
            AssistantMessage(
                [ToolCall("1", "f", {"x": 1}), ToolCall("2", "g", {}), ToolCall("3", "h", {})], StopReason.TOOL_USE
            ),
            ToolResultMessage("1", "f", [TextBlock("a")]),
            ToolResultMessage("3", "h", [TextBlock('{"b":1}')], details={"b": 1}),
            ToolResultMessage("2", "g", [ImageBlock("https://example.com/a.png")], is_error=True, timestamp=5),
        ]
    )
    written = write(transcript)
    assert written.losses == []
    assert msgspec.json.decode(written.data) == {
        "output_messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "tool": "f", "input": {"x": 1}, "output": "a"},
                    {"id": "2", "tool": "g", "input": {}},
                    {"id": "3", "tool": "h", "input": {}, "output": {"b": 1}},
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "2",
                "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
                "name": "g",
                "is_error": True,
                "timestamp": 5,
            },
        ]
    }


def test_custom_messages_are_carried() -> None:
    written = write(Transcript([CustomMessage("ui.card", {"x": 1}, 5)], "a"))
    assert written.losses == []


@given(transcripts() | st.builds(Transcript, message_lists()))
def test_what_is_written_reads_back_as_it_was_unless_a_loss_says_so(transcript: Transcript) -> None:
    written = write(transcript)
    assert (read(written.data).transcript == transcript) == (written.losses == [])


def test_ten_thousand_mutated_responses_are_read_or_refused() -> None:
    sample = msgspec.json.encode(
        {
            "id": "case-1",
            "text": "done",
            "token_usage": {"input": 5, "output": 6},
            "trace": [{"type": "tool_call", "name": "f", "input": {"x": 1}}, {"type": "tool_result", "output": "y"}],
            "output_messages": [
                {"role": "user", "content": [{"type": "text", "text": "go"}], "timestamp": "2024-01-01T00:00:00Z"},
                {"role": "assistant", "tool_calls": [{"tool": "f", "input": {"x": 1}, "output": {"y": 2}}]},
                {"role": "assistant", "toolCalls": [{"id": "2", "function": {"name": "g", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "2", "content": {"z": 1}, "is_error": True},
                {"role": "assistant", "content": "done"},
            ],
            "metadata": {"model": "m"},
        }
    )
    outcomes: set[object] = set()
    for mutation in mutations([sample], 10_000):
        try:
            outcomes.add(len(read(mutation).notes) > 0)
        except SeatrialError:
            outcomes.add("error")
    assert outcomes == {True, False, "error"}
