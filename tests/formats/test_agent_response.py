"""The agent response of dispatch.md 6, and the seed's schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.messages import json_objects, json_values, message_lists, names, texts, transcripts
from strategies.mutations import mutations

from seatrial._support.nesting import MAX_DEPTH
from seatrial.errors import SeatrialError
from seatrial.formats import Reading
from seatrial.formats.agent_response import LONG_FINAL_RESPONSE, read, write
from seatrial.trajectory import extract
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Note,
    ReasoningBlock,
    ReasoningDetailsBlock,
    RunIdentity,
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
from seatrial.transcript.arguments import unparsed_arguments
from seatrial.transcript.call_facts import CallFacts, PlacedFacts

SCHEMA = jsonschema_rs.validator_for(
    (Path(__file__).parent.parent / "resources" / "agent-response.schema.json").read_text(encoding="utf-8")
)
NO_ROLE = {"content": "who said this?"}


def body(*messages: Any, **more: Any) -> bytes:
    return msgspec.json.encode({"final_response": "Done.", "messages": list(messages), **more})


def assistant(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", **fields}


def noted(reading: Reading) -> list[tuple[str, str]]:
    return [(note.code, note.pointer) for note in reading.notes]


# What a sound body becomes.


def test_every_role_becomes_its_message() -> None:
    reading = read(
        body(
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Where is my order?"},
            assistant(content=None, tool_calls=[{"id": "c1", "name": "find", "arguments": {"order": 7}}]),
            {"role": "tool", "tool_call_id": "c1", "content": "in Leiden"},
            assistant(content="In Leiden."),
        )
    )
    assert reading.format == "agent-response"
    assert reading.notes == []
    assert reading.transcript == Transcript(
        [
            SystemMessage("Be brief."),
            UserMessage("Where is my order?"),
            AssistantMessage([ToolCall("c1", "find", {"order": 7})], StopReason.TOOL_USE),
            ToolResultMessage("c1", "find", [TextBlock("in Leiden")]),
            AssistantMessage([TextBlock("In Leiden.")], StopReason.END_TURN),
        ],
        "Done.",
    )


def test_thinking_comes_before_the_text_and_the_calls() -> None:
    call = {"id": "c1", "name": "find"}
    reading = read(
        body(assistant(tool_calls=[call], content="Let me see.", thinking=[{"type": "thought", "text": "?"}]))
    )
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.content == [ThinkingBlock("?"), TextBlock("Let me see."), ToolCall("c1", "find", {})]


def test_content_may_be_an_array_of_parts() -> None:
    parts = [
        {"type": "text", "text": "this"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "input_text", "text": "that"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}},
        {"text": "no type"},
        "bare",
    ]
    reading = read(body({"role": "user", "content": parts}))
    assert reading.notes == []
    assert reading.transcript.messages == [
        UserMessage(
            [
                TextBlock("this"),
                ImageBlock("https://example.com/a.png"),
                TextBlock("that"),
                ImageBlock("data:image/png;base64,iVBORw0=", "image/png"),
                TextBlock("no type"),
                TextBlock("bare"),
            ]
        )
    ]


def test_tool_use_and_tool_result_parts_become_calls_and_results() -> None:
    reading = read(
        body(
            assistant(
                content=[
                    {"type": "text", "text": "a"},
                    {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
                ]
            ),
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "boom", "is_error": True},
                    {"type": "text", "text": "go on"},
                ],
            },
        )
    )
    assert reading.notes == []
    assert reading.transcript.messages == [
        AssistantMessage([TextBlock("a"), ToolCall("t1", "f", {"x": 1})], StopReason.TOOL_USE),
        ToolResultMessage("t1", "f", [TextBlock("boom")], is_error=True),
        UserMessage([TextBlock("go on")]),
    ]


# Section 6.2, rule by rule.


def test_n1_nested_calls_become_flat_silently() -> None:
    nested = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": 7}'}}
    flat = {"id": "c1", "name": "find", "arguments": {"order": 7}}
    assert read(body(assistant(tool_calls=[nested]))) == read(body(assistant(tool_calls=[flat])))


@pytest.mark.parametrize(
    "call",
    [
        {"id": "x", "arguments": {}},
        {"name": ""},
        {"function": {"arguments": "{}"}},
        {"name": 5},
        "find",
    ],
)
def test_n2_a_call_without_a_name_is_dropped_and_the_rest_stays(call: Any) -> None:
    reading = read(body(assistant(tool_calls=[call, {"id": "c2", "name": "find"}])))
    assert noted(reading) == [("tool_call_dropped_no_name", "/messages/0/tool_calls/0")]
    assert reading.transcript.messages == [AssistantMessage([ToolCall("c2", "find", {})], StopReason.TOOL_USE)]


def test_n3_a_final_response_of_more_than_50_000_code_points_is_noted_and_kept_whole() -> None:
    answer = "é" * (LONG_FINAL_RESPONSE + 1)
    reading = read(body(final_response=answer))
    assert reading.transcript.answer == answer
    assert noted(reading) == [("final_response_truncated", "/final_response")]
    assert read(body(final_response=answer[:LONG_FINAL_RESPONSE])).notes == []


@pytest.mark.parametrize("more", [{}, {"messages": None}])
def test_n4_and_n11_without_messages_the_answer_stands_for_them(more: dict[str, Any]) -> None:
    reading = read(msgspec.json.encode({"final_response": "Done.", **more}))
    assert noted(reading) == [("messages_missing", "/messages")]
    assert reading.transcript.messages == [AssistantMessage([TextBlock("Done.")], StopReason.END_TURN)]


@pytest.mark.parametrize("messages", ["text", {"role": "user"}, 5])
def test_n5_messages_that_are_no_array_are_ignored_as_a_whole(messages: Any) -> None:
    reading = read(msgspec.json.encode({"final_response": "Done.", "messages": messages}))
    assert noted(reading) == [("messages_invalid", "/messages")]
    assert reading.transcript.messages == [AssistantMessage([TextBlock("Done.")], StopReason.END_TURN)]


def test_n5_a_bad_entry_is_dropped_and_the_good_ones_stay() -> None:
    reading = read(body({"role": "user", "content": "a"}, "text", NO_ROLE, {"role": 7}, assistant(content="b")))
    assert noted(reading) == [
        ("message_dropped", "/messages/1"),
        ("message_dropped_no_role", "/messages/2"),
        ("message_dropped_no_role", "/messages/3"),
    ]
    assert reading.transcript.messages == [
        UserMessage("a"),
        AssistantMessage([TextBlock("b")], StopReason.END_TURN),
    ]


@pytest.mark.parametrize("final_response", ["", None, 5, {"text": "hidden"}])
def test_n6_an_unusable_final_response_is_noted(final_response: Any) -> None:
    reading = read(body(assistant(content="hello"), final_response=final_response))
    assert noted(reading) == [("final_response_missing", "/final_response")]
    assert reading.transcript.answer == ""
    assert len(reading.transcript.messages) == 1


def test_n6_a_missing_final_response_is_noted() -> None:
    assert noted(read(b'{"messages": []}')) == [("final_response_missing", "/final_response")]


@pytest.mark.parametrize("data", [b"", b"hello", b"{", b"<html>", b"\x00", b'{"final_response": "a"} x'])
def test_n7_what_is_not_json_is_an_error(data: bytes) -> None:
    with pytest.raises(SeatrialError) as caught:
        read(data)
    assert caught.value.code == "not_json"


@pytest.mark.parametrize("data", [b"[]", b'"text"', b"5", b"null"])
def test_a_body_that_is_no_object_is_an_error(data: bytes) -> None:
    with pytest.raises(SeatrialError) as caught:
        read(data)
    assert caught.value.code == "invalid_document"


def test_n8_unknown_keys_change_nothing_and_are_noted() -> None:
    reading = read(body(assistant(content="a", mood="good"), more=1))
    assert reading.transcript == read(body(assistant(content="a"))).transcript
    assert [(note.pointer, note.weight) for note in reading.notes] == [
        ("/messages/0/mood", "harmless"),
        ("/more", "harmless"),
    ]


@pytest.mark.parametrize(
    "hidden",
    [
        {"tool_calls": [{"name": "delete_account", "arguments": {}}]},
        {"steps": [{"tool": "delete_account"}]},
        {"debug": {"deep": [{"function_call": {"name": "delete_account"}}]}},
    ],
)
def test_calls_beside_the_messages_are_never_dropped_without_a_serious_note(hidden: dict[str, Any]) -> None:
    assert any(note.serious for note in read(body(assistant(content="a"), **hidden)).notes)
    assert any(note.serious for note in read(body(assistant(content="a"), metadata=hidden)).notes)


TRACE = [{"type": "tool_call", "name": "delete_account", "id": "1"}]


@pytest.mark.parametrize("messages", [{}, {"messages": [{"role": "assistant", "content": "Done."}]}])
def test_a_trace_beside_the_answer_is_read_and_its_calls_count(messages: dict[str, Any]) -> None:
    trajectory = extract(read(msgspec.json.encode({"final_response": "Done.", "trace": TRACE, **messages})))
    assert [step.name for step in trajectory.steps] == ["delete_account"]
    assert (trajectory.source, trajectory.completeness.level) == ("trace", "complete")


def test_an_empty_trace_says_that_nothing_was_called_unless_the_messages_say_otherwise() -> None:
    calling = assistant(tool_calls=[{"id": "1", "name": "delete_account", "arguments": {}}])
    assert extract(read(body(assistant(content="a"), trace=[]))).completeness.level == "complete"
    assert extract(read(body(calling, trace=[]))).completeness.level == "partial"


@pytest.mark.parametrize("key", ["trace_ref", "traceRef"])
def test_the_file_that_trace_ref_names_counts_and_is_missed(key: str) -> None:
    reading = read(body(assistant(content="a"), **{key: "t.json"}))
    assert (reading.trace_ref, reading.notes) == ("t.json", [])
    found = extract(reading, trace_file=msgspec.json.encode(TRACE))
    assert ([step.name for step in found.steps], found.completeness.level) == (["delete_account"], "complete")
    missed = extract(reading)
    assert [(note.code, note.weight) for note in missed.notes] == [("trace_ref_not_read", "serious")]
    assert missed.completeness.level == "partial"


def test_no_trace_is_no_trace() -> None:
    reading = read(body(assistant(content="a"), trace=None, trace_ref=None))
    assert (reading.trace, reading.trace_ref, reading.notes) == (None, None, [])


def test_an_unknown_key_with_an_object_under_an_assistant_message_is_serious_unless_it_is_known_to_hold_no_call() -> (
    None
):
    assert [note.weight for note in read(body(assistant(content="a", plan={"x": 1}))).notes] == ["serious"]
    assert [note.weight for note in read(body(assistant(content="a", annotations=[{"x": 1}]))).notes] == ["harmless"]
    assert [note.weight for note in read(body({"role": "user", "content": "a", "plan": {"x": 1}})).notes] == [
        "harmless"
    ]


def test_hidden_thinking_is_no_visible_answer() -> None:
    reading = read(body(assistant(content="<think>secret</think>Done."), final_response="<think>nothing</think> "))
    assert reading.transcript.messages == [
        AssistantMessage([ThinkingBlock("secret"), TextBlock("Done.")], StopReason.END_TURN)
    ]
    assert noted(reading) == [("final_response_missing", "/final_response")]


def test_n9_metadata_that_is_not_known_stays_metadata() -> None:
    reading = read(body(metadata={"model": "m-1", "system_prompt_id": "v7", "region": {"eu": True}}))
    assert reading.transcript.metadata == {"model": "m-1", "system_prompt_id": "v7", "region": {"eu": True}}


@pytest.mark.parametrize(
    ("entry", "block"),
    [
        ({"type": "thought", "text": "own words"}, ThinkingBlock("own words")),
        ({"text": "native"}, ReasoningBlock("native")),
        ({"type": "summary", "text": "native"}, ReasoningBlock("native")),
        ({"text": "t", "signature": "s"}, ReasoningDetailsBlock([msgspec.Raw(b'{"text":"t","signature":"s"}')])),
        ({"data": "x"}, ReasoningDetailsBlock([msgspec.Raw(b'{"data":"x"}')])),
        ({"type": 5, "text": "t"}, ReasoningDetailsBlock([msgspec.Raw(b'{"type":5,"text":"t"}')])),
        ({"text": 5.0}, ReasoningDetailsBlock([msgspec.Raw(b'{"text":5.0}')])),
    ],
)
def test_n10_thinking_is_text_or_kept_as_sent(entry: dict[str, Any], block: Any) -> None:
    assert read(body(assistant(thinking=[entry]))).transcript.messages == [
        AssistantMessage([block], StopReason.END_TURN)
    ]


@pytest.mark.parametrize("bad_neighbour", [b"", b',{"content":"no role"}'])
@pytest.mark.parametrize(
    "entry",
    [
        b'{ "signature" : "s",  "weight": 1.50, "weight": 1e2, "big": 12345678901234567890123 }',
        b'{"text" : "t", "type":\n null}',
        b'{"text": 1.50}',
    ],
)
def test_n10_thinking_keeps_its_bytes(entry: bytes, bad_neighbour: bytes) -> None:
    data = b'{"final_response":"a","messages":[{"role":"assistant","thinking":[%s]}%s]}' % (entry, bad_neighbour)
    (message,) = read(data).transcript.messages
    assert isinstance(message, AssistantMessage)
    assert [bytes(raw) for raw in message.reasoning_details_values()] == [entry]


def test_n10_details_in_a_row_are_one_block() -> None:
    (message,) = read(body(assistant(thinking=[{"a": 1}, {"b": 2}, {"text": "t"}, {"c": 3}]))).transcript.messages
    assert isinstance(message, AssistantMessage)
    assert [type(block) for block in message.content] == [ReasoningDetailsBlock, ReasoningBlock, ReasoningDetailsBlock]
    assert [bytes(raw) for raw in message.reasoning_details_values()] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


@pytest.mark.parametrize("thinking", [["why"], "why"])
def test_thinking_that_is_bare_text_is_kept_as_reasoning(thinking: Any) -> None:
    reading = read(body(assistant(thinking=thinking)))
    assert noted(reading) == [("thinking_invalid", "/messages/0/thinking/0")]
    assert reading.transcript.messages == [AssistantMessage([ReasoningBlock("why")], StopReason.END_TURN)]


def test_n11_null_metadata_is_no_metadata() -> None:
    assert read(body(metadata=None)) == read(body())


def test_n13_arguments_that_are_json_text_are_parsed_and_other_text_is_kept() -> None:
    calls = [
        {"id": "a", "name": "f", "arguments": '{"x": [1]}'},
        {"id": "b", "name": "f", "arguments": '{"x": '},
        {"id": "c", "name": "f", "arguments": "  "},
        {"id": "d", "name": "f", "arguments": None},
        {"id": "e", "name": "f", "arguments": '"\\ud800"'},
    ]
    reading = read(body(assistant(tool_calls=calls)))
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert [call.arguments for call in message.tool_calls()] == [
        {"x": [1]},
        unparsed_arguments("Input data was truncated", '{"x": '),
        {},
        None,
        "�",
    ]
    assert noted(reading) == [("arguments_not_json", "/messages/0/tool_calls/1")]


# Section 6.3.


def test_totals_of_the_metadata_become_usage_duration_and_cost() -> None:
    totals = {"total_input_tokens": 12, "total_output_tokens": 3, "agent_runtime_ms": 4.5, "cost_usd": 0.25}
    transcript = read(body(metadata={"model": "m-1", **totals})).transcript
    assert transcript.usage == Usage(12, 3)
    assert transcript.duration_ms == 4.5
    assert transcript.cost_usd == 0.25
    assert transcript.metadata == {"model": "m-1"}


def test_half_a_count_is_not_shown_as_a_whole_one() -> None:
    reading = read(body(metadata={"total_output_tokens": 3}))
    assert reading.transcript.usage is None
    assert reading.transcript.metadata == {"total_output_tokens": 3}
    assert read(body(metadata={"total_input_tokens": 0, "total_output_tokens": 3})).transcript.usage == Usage(0, 3)
    assert read(body(metadata={"total_input_tokens": 9, "total_output_tokens": -3})).transcript.usage is None


@pytest.mark.parametrize("value", ["12", 1.5, True, [1], 2**63])
def test_a_total_that_is_no_count_stays_metadata_with_a_note(value: Any) -> None:
    reading = read(body(metadata={"total_input_tokens": value}))
    assert reading.transcript.usage is None
    assert reading.transcript.metadata == {"total_input_tokens": value}
    assert noted(reading) == [("metadata_not_understood", "/metadata/total_input_tokens")]


@pytest.mark.parametrize("value", ["0.25", -1, True, [1], 2**63, 10**400])
def test_a_cost_that_is_no_amount_stays_metadata_with_a_note(value: Any) -> None:
    reading = read(body(metadata={"cost_usd": value}))
    assert reading.transcript.cost_usd is None
    assert noted(reading) == [("metadata_not_understood", "/metadata/cost_usd")]


def test_metadata_that_is_no_object_is_ignored_with_a_note() -> None:
    assert noted(read(body(metadata=["m-1"]))) == [("metadata_invalid", "/metadata")]


# Section 6.1.


def test_a_turn_may_be_answered_with_message_and_session_done() -> None:
    reading = read(b'{"message": "Which order?", "session_done": false, "messages": []}')
    assert reading.transcript.answer == "Which order?"
    assert reading.notes == []


# Guesses and repairs.


def test_a_call_without_an_id_gets_one_so_that_its_result_is_paired() -> None:
    reading = read(
        body(
            assistant(tool_calls=[{"name": "find"}, {"id": "", "name": "send"}]),
            {"role": "tool", "content": "found"},
            {"role": "tool", "content": "sent"},
        )
    )
    assert reading.transcript.messages[1:] == [
        ToolResultMessage("seatrial_call_0_0", "find", [TextBlock("found")]),
        ToolResultMessage("seatrial_call_0_1", "send", [TextBlock("sent")]),
    ]
    assert noted(reading) == [
        ("tool_call_id_generated", "/messages/0/tool_calls/0"),
        ("tool_call_id_generated", "/messages/0/tool_calls/1"),
        ("tool_result_paired_by_order", "/messages/1"),
        ("tool_result_paired_by_order", "/messages/2"),
    ]


def test_a_result_of_an_unknown_call_is_kept_without_a_name() -> None:
    reading = read(body({"role": "tool", "tool_call_id": "c9", "content": "?"}, {"role": "tool", "content": "??"}))
    assert reading.transcript.messages == [
        ToolResultMessage("c9", "", [TextBlock("?")]),
        ToolResultMessage("", "", [TextBlock("??")]),
    ]
    assert noted(reading) == [("tool_result_unpaired", "/messages/0"), ("tool_result_unpaired", "/messages/1")]


def test_an_id_that_is_used_again_means_the_latest_call() -> None:
    reading = read(
        body(
            assistant(tool_calls=[{"id": "0", "name": "find"}]),
            {"role": "tool", "tool_call_id": "0", "content": "a"},
            assistant(tool_calls=[{"id": "0", "name": "send"}]),
            {"role": "tool", "tool_call_id": "0", "content": "b"},
        )
    )
    results = [message for message in reading.transcript.messages if isinstance(message, ToolResultMessage)]
    assert [result.tool_name for result in results] == ["find", "send"]


def test_content_without_a_place_is_dropped_with_a_pointer() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "UklGRg=="}}
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    reading = read(
        body(
            {"role": "user", "content": [audio, {"type": "text", "text": "listen"}, 5]},
            assistant(content=[image, {"type": "text", "text": "ok"}]),
            {"role": "system", "content": [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]},
        )
    )
    assert noted(reading) == [
        ("content_dropped", "/messages/0/content/0"),
        ("content_dropped", "/messages/0/content/2"),
        ("content_dropped", "/messages/1/content/0"),
        ("content_dropped", "/messages/2/content/1"),
        ("content_joined", "/messages/2/content"),
    ]
    assert reading.transcript.messages == [
        UserMessage([TextBlock("listen")]),
        AssistantMessage([TextBlock("ok")], StopReason.END_TURN),
        SystemMessage("ab"),
    ]


def test_content_that_is_an_object_is_kept_as_json_text() -> None:
    call = {"id": "c1", "name": "find"}
    reading = read(
        body(
            assistant(content={"a": 1}, tool_calls=[call]), {"role": "tool", "tool_call_id": "c1", "content": {"b": 2}}
        )
    )
    assert noted(reading) == [("text_from_json", "/messages/0/content"), ("text_from_json", "/messages/1/content")]
    assert reading.transcript.messages == [
        AssistantMessage([TextBlock('{"a":1}'), ToolCall("c1", "find", {})], StopReason.TOOL_USE),
        ToolResultMessage("c1", "find", [TextBlock('{"b":2}')], details={"b": 2}),
    ]


def test_roles_by_another_name_are_read_as_what_they_stand_for() -> None:
    reading = read(body({"role": "developer", "content": "Be brief."}, {"role": "critic", "content": "Hm."}))
    assert noted(reading) == [("role_read_as", "/messages/0/role"), ("role_unknown", "/messages/1/role")]
    assert reading.transcript.messages == [
        SystemMessage("Be brief."),
        CustomMessage("critic", {"role": "critic", "content": "Hm."}),
    ]


def test_calls_of_another_role_follow_as_an_assistant_message() -> None:
    reading = read(body({"role": "system", "content": "go", "tool_calls": [{"id": "c1", "name": "find"}]}))
    assert noted(reading) == [("calls_outside_assistant", "/messages/0")]
    assert reading.transcript.messages == [
        SystemMessage("go"),
        AssistantMessage([ToolCall("c1", "find", {})], StopReason.TOOL_USE),
    ]


def test_calls_of_a_user_are_the_users_own() -> None:
    call = {"id": "c1", "name": "find", "requestor": "user"}
    reading = read(body({"role": "user", "content": "go", "tool_calls": [call]}))
    assert noted(reading) == []
    assert reading.facts == [PlacedFacts(1, CallFacts(executed_by="user"))]


def test_calls_in_a_message_of_the_user_that_nobody_claims_are_the_agents() -> None:
    reading = read(body({"role": "user", "content": "go", "tool_calls": [{"id": "c1", "name": "find"}]}))
    assert [code for code, _ in noted(reading)] == ["calls_outside_assistant"]
    assert [step.executed_by for step in extract(reading).steps] == ["agent"]


@pytest.mark.parametrize(
    ("data", "code", "at"),
    [
        (b'\xef\xbb\xbf{"final_response":"a","messages":[]}', "bom_removed", ""),
        (b'{"final_response":"a\xff","messages":[]}', "invalid_utf8_replaced", "/final_response"),
        (b'{"final_response":"a\\ud800","messages":[]}', "lone_surrogate_replaced", ""),
        (
            b'{"final_response":"a","messages":[{"role":"assistant","thinking":[{"a":"\xff"}]}]}',
            "invalid_utf8_replaced",
            "/messages/0/thinking/0",
        ),
    ],
)
def test_text_that_is_not_quite_text_is_repaired_with_a_note(data: bytes, code: str, at: str) -> None:
    reading = read(data)
    assert noted(reading) == [(code, at)]
    write(reading.transcript).data.decode()


def test_a_number_that_nothing_can_hold_spoils_nothing_but_itself() -> None:
    reading = read(
        b'{"final_response":"a","messages":[{"role":"assistant","thinking":[{"w":1e999}],"tool_calls":['
        b'{"id":"c1","name":"f","arguments":{"x":1e999,"y":1}},{"id":"c2","name":"g","arguments":{}}]}]}'
    )
    assert noted(reading) == [("value_unreadable", "/messages/0/tool_calls/0/arguments/x")]
    details = ReasoningDetailsBlock([msgspec.Raw(b'{"w":1e999}')])
    calls = [ToolCall("c1", "f", {"x": "1e999", "y": 1}), ToolCall("c2", "g", {})]
    assert reading.transcript.messages == [AssistantMessage([details, *calls], StopReason.TOOL_USE)]
    assert write(reading.transcript).losses == []


def test_nesting_without_end_is_one_clear_error() -> None:
    with pytest.raises(SeatrialError) as caught:
        read(b'{"final_response":"a","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert caught.value.code == "too_deep"


@pytest.mark.parametrize(
    ("before", "after", "levels"),
    [
        ('"messages":[{"role":"assistant","tool_calls":[{"id":"a","name":"f","arguments":', "}]}]", 5),
        ('"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":', "}}]}]", 6),
        ('"messages":[{"role":"assistant","thinking":[{"signature":"s","more":', "}]}]", 5),
        ('"messages":[],"metadata":{"more":', "}", 2),
    ],
)
def test_a_value_counts_by_how_deeply_it_is_nested_in_the_whole_body(before: str, after: str, levels: int) -> None:
    def nested(inner: int) -> bytes:
        return f'{{"final_response":"a",{before}{"[" * inner}{"]" * inner}{after}}}'.encode()

    for inner in (0, 1, 20, 21, 22, MAX_DEPTH - levels):
        read(nested(inner) if inner else nested(1))
    with pytest.raises(SeatrialError) as caught:
        read(nested(MAX_DEPTH - levels + 1))
    assert caught.value.code == "too_deep"


# Properties.


def _calls() -> st.SearchStrategy[dict[str, Any]]:
    arguments = st.one_of(json_objects(), json_values(), json_objects().map(lambda v: msgspec.json.encode(v).decode()))
    flat = st.fixed_dictionaries(
        {"name": texts(max_size=5)}, optional={"id": st.sampled_from(["c1", "c2", ""]), "arguments": arguments}
    )
    function = st.fixed_dictionaries({"name": names()}, optional={"arguments": arguments})
    nested = st.fixed_dictionaries(
        {"function": function}, optional={"id": st.sampled_from(["c1", "c2", ""]), "type": st.just("function")}
    )
    return st.one_of(flat, nested)


def _wire_messages() -> st.SearchStrategy[dict[str, Any]]:
    part = st.one_of(
        texts().map(lambda text: {"type": "text", "text": text}),
        st.just({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
        json_values(),
    )
    content = st.one_of(st.none(), texts(), st.lists(part, max_size=3))
    thought = st.one_of(
        json_objects(), texts().map(lambda text: {"type": "thought", "text": text}), texts().map(lambda t: {"text": t})
    )
    return st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "assistant", "tool"])},
        optional={
            "content": content,
            "tool_calls": st.lists(_calls(), max_size=2),
            "thinking": st.lists(thought, max_size=2),
            "tool_call_id": st.sampled_from(["c1", "c2"]),
            "name": texts(),
        },
    )


def _bodies() -> st.SearchStrategy[dict[str, Any]]:
    totals = st.dictionaries(
        st.sampled_from(["model", "total_input_tokens", "total_output_tokens", "agent_runtime_ms", "cost_usd"]),
        st.one_of(st.integers(0, 9), json_values()),
    )
    return st.fixed_dictionaries(
        {"final_response": texts(), "messages": st.lists(_wire_messages(), max_size=5)},
        optional={"metadata": st.one_of(st.none(), totals, json_objects())},
    )


@given(_bodies())
def test_what_is_valid_under_the_schema_is_read(document: dict[str, Any]) -> None:
    if SCHEMA.is_valid(document):
        read(msgspec.json.encode(document))


@given(_bodies())
def test_one_bad_message_changes_nothing_about_the_others(document: dict[str, Any]) -> None:
    # The bad one also sends the whole document the careful way, which must read it as the fast way does.
    alone = read(msgspec.json.encode(document))
    document["messages"].append(NO_ROLE)
    mixed = read(msgspec.json.encode(document))
    assert mixed.transcript == alone.transcript
    dropped = Note(
        "message_dropped_no_role", f"/messages/{len(document['messages']) - 1}", "dropped a message without a role"
    )
    assert sorted(mixed.notes, key=repr) == sorted([*alone.notes, dropped], key=repr)


@given(transcripts() | st.builds(Transcript, message_lists()))
def test_what_is_written_is_valid_under_the_schema(transcript: Transcript) -> None:
    SCHEMA.validate(msgspec.json.decode(write(transcript).data))


@given(transcripts() | st.builds(Transcript, message_lists()))
def test_what_is_written_reads_back_as_it_was_unless_a_loss_says_so(transcript: Transcript) -> None:
    written = write(transcript)
    assert (read(written.data).transcript == transcript) == (written.losses == [])


def test_a_transcript_that_fits_comes_back_whole() -> None:
    transcript = Transcript(
        [
            SystemMessage("Be brief."),
            UserMessage([TextBlock("this"), ImageBlock("https://example.com/a.png", "image/png", "a cat")]),
            AssistantMessage(
                [
                    ThinkingBlock("own"),
                    ReasoningBlock("native"),
                    ReasoningDetailsBlock([msgspec.Raw(b'{"signature":"s"}'), msgspec.Raw(b'{"data": 1.50}')]),
                    TextBlock("one"),
                    TextBlock("two"),
                    ToolCall("c1", "find", {"order": 7}),
                    ToolCall("c2", "say", "just text"),
                    ToolCall("c3", "note", unparsed_arguments("Input data was truncated", "{")),
                    ToolCall("c4", "none", None),
                ],
                StopReason.TOOL_USE,
            ),
            ToolResultMessage("c1", "find", [TextBlock("")]),
            ToolResultMessage("c2", "say", []),
            ToolResultMessage("c3", "note", [TextBlock("a"), TextBlock("b")]),
            ToolResultMessage("elsewhere", "unknown_call", [TextBlock("kept")]),
            AssistantMessage([TextBlock("")], StopReason.END_TURN),
            UserMessage(""),
        ],
        "Done.",
        usage=Usage(1, 2),
        duration_ms=12,
        metadata={"model": "m-1"},
    )
    written = write(transcript)
    assert written.losses == []
    assert read(written.data).transcript == transcript


def test_what_the_format_cannot_carry_is_named() -> None:
    transcript = Transcript(
        [
            CustomMessage("ui.card", {"x": 1}),
            AssistantMessage([ToolCall("c1", "f", {}), TextBlock("a")], StopReason.MAX_TOKENS, timestamp=5),
            ToolResultMessage("c1", "f", [], is_error=True, narration="n", details={"d": 1}, timestamp=5),
        ],
        "Done.",
        identity=RunIdentity("r1"),
        usage=Usage(1, 2, 3, 4),
        cost_usd=0.5,
    )
    assert [(loss.code, loss.pointer) for loss in write(transcript).losses] == [
        ("not_carried", "/messages/0"),
        ("changed", "/messages/1/content"),
        ("changed", "/messages/1/stop_reason"),
        ("not_carried", "/messages/1/timestamp"),
        ("not_carried", "/messages/2/is_error"),
        ("not_carried", "/messages/2/narration"),
        ("not_carried", "/messages/2/details"),
        ("not_carried", "/identity"),
        ("changed", "/usage"),
    ]


def test_a_transcript_that_names_no_answer_is_given_its_last_text() -> None:
    written = write(Transcript([AssistantMessage([TextBlock("Done.")], StopReason.END_TURN)]))
    assert read(written.data).transcript.answer == "Done."
    assert [(loss.code, loss.pointer) for loss in written.losses] == [("changed", "/answer")]


def test_an_empty_answer_stays_empty() -> None:
    transcript = Transcript([AssistantMessage([TextBlock("Done.")], StopReason.END_TURN)], "")
    written = write(transcript)
    assert written.losses == []
    assert read(written.data).transcript == transcript


def test_ten_thousand_mutated_bodies_are_read_or_refused() -> None:
    sample = body(
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Where?"}, {"type": "image_url", "image_url": {"url": "u"}}],
        },
        assistant(
            content=None,
            thinking=[{"type": "thought", "text": "?"}, {"signature": "s", "thinking": "t"}],
            tool_calls=[
                {"id": "c1", "name": "find", "arguments": {"order": 7}},
                {"id": "c2", "type": "function", "function": {"name": "send", "arguments": '{"to": "a"}'}},
            ],
        ),
        {"role": "tool", "tool_call_id": "c1", "content": "in Leiden"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text"}]}]},
        assistant(content="In Leiden."),
        metadata={"model": "m", "total_input_tokens": 5, "agent_runtime_ms": 7},
    )
    outcomes: set[object] = set()
    for mutation in mutations([sample], 10_000):
        try:
            outcomes.add(len(read(mutation).notes) > 0)
        except SeatrialError:
            outcomes.add("error")
    assert outcomes == {True, False, "error"}
