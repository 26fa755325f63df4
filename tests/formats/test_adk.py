"""Events of Google ADK, as google-adk 2.13 dumps them (`None` left out)."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial import formats
from seatrial._support import wire
from seatrial.agents.output import reading_fault
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract
from seatrial.transcript import AssistantMessage, UserMessage

USAGE = {"prompt_token_count": 100, "candidates_token_count": 10, "thoughts_token_count": 5, "total_token_count": 115}


def event(*parts: dict[str, Any], role: str = "model", author: str = "support", **more: Any) -> dict[str, Any]:
    return {"author": author, "invocation_id": "e-1", "content": {"role": role, "parts": [*parts]}, "id": "x", **more}


ASKED = event({"text": "Where is A-1?"}, role="user", author="user")
CALL = event(
    {"text": "I look it up.", "thought": True},
    {"function_call": {"id": "c1", "name": "find_order", "args": {"order": "A-1"}}, "thought_signature": "c2ln"},
    usage_metadata=USAGE,
    finish_reason="STOP",
    actions={"state_delta": {}, "transfer_to_agent": None},
    long_running_tool_ids=[],
    timestamp=1795015964.8815138,
)
RESULT = event({"function_response": {"id": "c1", "name": "find_order", "response": {"state": "sent"}}}, role="user")
SAID = event({"text": "It was sent."}, usage_metadata=USAGE, finish_reason="STOP")
RUN = [ASKED, CALL, RESULT, SAID]


def read(document: Any) -> Reading:
    return formats.read(wire.encode(document))


@pytest.mark.parametrize("document", [RUN, {"id": "s", "app_name": "a", "state": {}, "events": RUN}])
def test_events_and_sessions_are_read_with_calls_results_reasoning_and_usage(document: Any) -> None:
    reading = read(document)
    found = extract(reading)
    assert reading.format == "adk"
    assert found.completeness.level == "complete"
    assert [(step.name, step.arguments, step.status) for step in found.steps] == [
        ("find_order", {"order": "A-1"}, "ok")
    ]
    asked, called, _, said = reading.transcript.messages
    assert isinstance(asked, UserMessage)
    assert isinstance(called, AssistantMessage)
    assert isinstance(said, AssistantMessage)
    assert called.reasoning_text() == "I look it up."
    assert called.usage is not None
    assert (called.usage.input_tokens, called.usage.output_tokens) == (100, 15)
    assert called.timestamp == 1795015964881
    assert reading.transcript.final_text() == "It was sent."
    assert reading_fault(reading) is None


def test_events_of_the_api_server_are_in_camel_case() -> None:
    call = {"id": "c1", "name": "refund", "args": {}}
    events = [
        {"author": "a", "invocationId": "e", "content": {"role": "model", "parts": [{"functionCall": call}]}},
        {"author": "a", "invocationId": "e", "errorCode": "SAFETY", "errorMessage": "blocked"},
    ]
    reading = read(events)
    assert [step.name for step in extract(reading).steps] == ["refund"]
    fault = reading_fault(reading)
    assert fault is not None
    assert fault.message == "SAFETY: blocked"


def test_a_response_with_an_error_is_a_failed_call() -> None:
    response = {"id": "c1", "name": "find_order", "response": {"error": "no such order"}}
    (step,) = extract(read([CALL, event({"function_response": response}, role="user"), SAID])).steps
    assert (step.status, step.error) == ("error", "no such order")


def test_pieces_are_not_read_again_when_the_whole_event_follows() -> None:
    piece = event({"text": "It was"}, partial=True)
    reading = read([ASKED, CALL, RESULT, piece, SAID])
    assert extract(reading).completeness.level == "complete"
    assert reading.transcript.final_text() == "It was sent."
    assert len(reading.transcript.messages) == 4


def test_pieces_without_the_whole_event_leave_the_calls_partial() -> None:
    assert extract(read([ASKED, event({"text": "It was"}, partial=True)])).completeness.level == "partial"
    # The whole turn of another agent is not that of this one.
    other = event({"text": "Hello."}, author="greeter")
    assert extract(read([ASKED, event({"text": "It was"}, partial=True), other])).completeness.level == "partial"


def test_a_long_running_call_without_a_result_waits_for_input() -> None:
    asking = {**CALL, "long_running_tool_ids": ["c1"]}
    waiting = read([ASKED, asking])
    assert "waits_for_input" in {note.code for note in waiting.notes}
    assert "waits_for_input" not in {note.code for note in read([ASKED, asking, RESULT, SAID]).notes}


@pytest.mark.parametrize(
    "more",
    [
        {"delegated": {"function_call": {"name": "refund", "args": {}}}},
        {"custom_metadata": {"tool_calls": [{"name": "refund", "args": {}}]}},
        {"actions": {"state_delta": {"tool_calls": [{"name": "refund", "args": {}}]}}},
        {"actions": {"unheard_of": [{"a": 1}]}},
        {"finish_reason": "MALFORMED_FUNCTION_CALL"},
    ],
)
def test_what_may_hide_a_call_leaves_the_calls_partial(more: dict[str, Any]) -> None:
    assert extract(read([ASKED, {**SAID, **more}])).completeness.level == "partial"


def test_what_a_node_of_a_workflow_gives_is_said_once() -> None:
    output = {"author": "flow", "invocation_id": "e", "output": "It was sent."}
    assert len(read([*RUN, output]).transcript.messages) == 4
    reading = read([*RUN, {**output, "output": {"order": "A-1"}}])
    assert reading.transcript.final_text() == '{"order":"A-1"}'


def test_one_event_is_no_list_of_calls() -> None:
    assert extract(read(SAID)).completeness.level == "none"


@pytest.mark.parametrize(
    ("arguments", "level"),
    [
        ({"request": "Where is A-1?"}, "partial"),
        ({"request": "Where is A-1?", "language": "en"}, "complete"),
        ({"request": {"order": "A-1"}}, "complete"),
        ({"query": "Where is A-1?"}, "complete"),
    ],
)
def test_an_agent_that_is_called_as_a_tool_leaves_the_calls_partial(arguments: dict[str, Any], level: str) -> None:
    for call, result in (("function_call", "function_response"), ("functionCall", "functionResponse")):
        asked = event({call: {"id": "c1", "name": "research", "args": arguments}})
        answered = event(
            {result: {"id": "c1", "name": "research", "response": {"result": "It was sent."}}}, role="user"
        )
        known = extract(read([ASKED, asked, answered, SAID])).completeness
        assert known.level == level
        assert [note.code for note in known.reasons] == (["subagent_missing"] if level == "partial" else [])
