"""Streams of the Responses API: no call that a stream speaks of is lost without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial.formats import responses
from seatrial.formats.reading import Reading
from seatrial.transcript import AssistantMessage

CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "delete_account", "arguments": '{"id": 7}'}
OTHER = {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "look_up", "arguments": "{}"}
SAID = {
    "type": "message", "id": "m", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}  # fmt: skip


def read(*events: dict[str, Any]) -> Reading:
    return responses.read(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))


def created() -> dict[str, Any]:
    return {"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress"}}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    response = {"id": "r", "object": "response", "status": "completed", "output": list(output)}
    return {"type": "response.completed", "response": response}


def added(item: dict[str, Any], index: int | None = 0) -> dict[str, Any]:
    return _item("added", item, index)


def done(item: dict[str, Any], index: int | None = 0) -> dict[str, Any]:
    return _item("done", item, index)


def _item(what: str, item: dict[str, Any], index: int | None) -> dict[str, Any]:
    place = {} if index is None else {"output_index": index}
    return {"type": f"response.output_item.{what}", "item": item, **place}


def calls(reading: Reading) -> list[str]:
    messages = [message for message in reading.transcript.messages if isinstance(message, AssistantMessage)]
    return [call.name for message in messages for call in message.tool_calls()]


def said(reading: Reading) -> str:
    messages = [message for message in reading.transcript.messages if isinstance(message, AssistantMessage)]
    return "".join(message.plain_text() for message in messages)


def serious(reading: Reading) -> list[str]:
    return [note.code for note in reading.notes if note.serious]


def test_a_usual_stream_is_read_once_and_without_a_note() -> None:
    reading = read(
        created(),
        {"type": "response.in_progress", "response": {}},
        added({"type": "reasoning", "id": "rs", "summary": []}, 0),
        {"type": "response.reasoning_summary_part.added", "item_id": "rs", "output_index": 0},
        {"type": "response.reasoning_summary_text.delta", "item_id": "rs", "output_index": 0, "delta": "Hm"},
        done({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm"}]}, 0),
        added({**CALL, "arguments": "", "status": "in_progress"}, 1),
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 1, "delta": "{"},
        {"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 1, "arguments": "{}"},
        done({**CALL, "status": "completed"}, 1),
        added({**SAID, "content": [], "status": "in_progress"}, 2),
        {"type": "response.content_part.added", "item_id": "m", "output_index": 2},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 2, "delta": "Done."},
        {"type": "response.output_text.annotation.added", "item_id": "m", "output_index": 2},
        {"type": "keepalive", "sequence_number": 3},
        done(SAID, 2),
        completed({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm"}]}, CALL, SAID),
    )
    assert reading.notes == []
    assert calls(reading) == ["delete_account"]
    assert "Done." in said(reading)


@pytest.mark.parametrize("fresh", [{}, {"id": "fc_9"}, {"id": "fc_9", "call_id": "c9"}, {"id": ""}])
def test_an_item_that_has_another_id_in_the_end_is_still_one(fresh: dict[str, str]) -> None:
    reading = read(created(), added(CALL), done(CALL), completed({**CALL, **fresh}))
    assert (calls(reading), serious(reading)) == (["delete_account"], [])


@pytest.mark.parametrize(
    "hosted", ["web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"]
)
def test_the_progress_of_a_hosted_call_is_no_call_of_its_own(hosted: str) -> None:
    item = {"type": hosted, "id": "h", "status": "completed", "name": "search", "server_label": "docs"}
    progress = [
        {"type": f"response.{hosted}.{word}", "item_id": "h", "output_index": 0}
        for word in ("in_progress", "searching", "completed")
    ]
    reading = read(created(), added(item), *progress, done(item), completed(item))
    assert (len(calls(reading)), serious(reading)) == (1, [])


@pytest.mark.parametrize("output", [[], [SAID], [OTHER]])
def test_a_call_that_was_done_is_kept_when_the_last_event_leaves_it_out(output: list[dict[str, Any]]) -> None:
    reading = read(created(), added(CALL), done(CALL), completed(*output))
    assert "delete_account" in calls(reading)


@pytest.mark.parametrize("index", [None, 0, 5, -1])
def test_a_call_is_read_whatever_its_place(index: int | None) -> None:
    reading = read(created(), done(CALL, index), completed(SAID))
    assert calls(reading) == ["delete_account"]
    assert "Done." in said(reading)


def test_two_calls_under_one_index_are_two() -> None:
    reading = read(created(), done(OTHER), done(CALL), completed())
    assert calls(reading) == ["look_up", "delete_account"]


def test_a_call_that_is_done_twice_is_one() -> None:
    for end in (completed(), completed(CALL), completed(SAID)):
        assert calls(read(created(), done(CALL), done(CALL), end)) == ["delete_account"]


def test_two_equal_calls_are_two() -> None:
    twin = {**CALL, "id": "fc_3", "call_id": "c3"}
    for end in (completed(), completed(CALL), completed(CALL, twin)):
        assert calls(read(created(), done(CALL, 0), done(twin, 1), end)) == ["delete_account"] * 2


def test_another_tool_under_the_same_id_is_another_call() -> None:
    reading = read(created(), done(CALL), completed({**CALL, "name": "look_up"}))
    assert sorted(calls(reading)) == ["delete_account", "look_up"]


@pytest.mark.parametrize("output", [[], [SAID], [OTHER]])
@pytest.mark.parametrize(
    "event",
    [
        added(CALL),
        added({"type": "function_call", "name": "delete_account"}),
        added(CALL, None),
        {"type": "response.function_call_arguments.done", "item_id": "x", "output_index": 3, "arguments": "{}"},
        {"type": "response.function_call_arguments.done", "output_index": 3, "arguments": "{}"},
        {"type": "response.mcp_call.completed", "item_id": "x", "output_index": 0},
        {"type": "response.mcp_call.in_progress"},
        {"type": "response.custom_tool_call_input.delta", "item_id": "x", "delta": "rm"},
    ],
)
def test_a_call_that_began_and_is_nowhere_is_a_serious_finding(
    event: dict[str, Any], output: list[dict[str, Any]]
) -> None:
    assert "frame_dropped" in serious(read(created(), event, completed(*output)))


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.robot_call.completed", "item_id": "x"},
        {"type": "response.output_item.moved", "item": CALL},
        {"type": "response.output_item.done", "output_index": 0},
    ],
)
def test_an_event_of_an_unknown_type_is_a_serious_finding(event: dict[str, Any]) -> None:
    assert serious(read(created(), event, completed(SAID))) == ["frame_dropped"]


@pytest.mark.parametrize("item", [1, None, [], {"type": 1}, {"type": {}}, {"type": "function_call", "id": []}])
def test_items_of_any_shape_are_read_with_a_note(item: Any) -> None:
    for end in (completed(), completed(SAID), completed(item)):
        assert serious(read(created(), added(item), done(item), end))


def test_an_output_that_is_no_array_is_a_serious_finding() -> None:
    body = {"object": "response", "status": "completed", "input": "Hi", "output": CALL}
    assert serious(responses.read(json.dumps(body).encode())) == ["message_dropped"]


@pytest.mark.parametrize("more", [{"previous_response_id": "resp_1"}, {"conversation": {"id": "conv_1"}}])
def test_a_response_that_continues_what_the_provider_keeps_does_not_say_all(more: dict[str, Any]) -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    body = {"object": "response", "id": "resp_2", "status": "completed", "output": [said]}
    assert [note for note in responses.read(json.dumps(body).encode()).notes if note.serious] == []
    reading = responses.read(json.dumps({**body, **more}).encode())
    assert [note.code for note in reading.notes if note.serious] == ["earlier_turns_missing"]
