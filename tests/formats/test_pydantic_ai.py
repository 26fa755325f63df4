"""Pydantic AI: its parts, and what they come to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from strategies.spellings import steps_of

from seatrial.formats import pydantic_ai
from seatrial.formats.reading import Reading
from seatrial.transcript import AssistantMessage, SystemMessage, Usage, UserMessage

CALL = {"part_kind": "tool-call", "tool_name": "delete_account", "args": None, "tool_call_id": "c1"}


def read(*messages: Any) -> Reading:
    return pydantic_ai.read(json.dumps(list(messages)).encode())


def response(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "response", "parts": list(parts), **more}


def request(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts), **more}


@pytest.mark.parametrize("outcome", ["failed", "denied", "interrupted", "retried", "a word of another version"])
def test_every_outcome_but_success_is_a_failed_call(outcome: str) -> None:
    back = {"part_kind": "tool-return", "tool_name": "delete_account", "tool_call_id": "c1", "content": "x"}
    assert steps_of(read(response(CALL), request({**back, "outcome": outcome})))[0][2] == "error"
    assert steps_of(read(response(CALL), request(back)))[0] == ("delete_account", {}, "ok", "agent")


def test_a_retry_prompt_without_a_tool_is_a_message_of_the_user_although_it_has_an_id() -> None:
    retry = {"part_kind": "retry-prompt", "content": "again", "tool_name": None, "tool_call_id": "made-up"}
    reading = read(response(), request(retry))
    assert reading.transcript.messages[-1] == UserMessage("again")
    assert not [note for note in reading.notes if note.serious]


def test_instructions_that_every_request_repeats_are_one_prompt() -> None:
    reading = read(request(instructions="Be brief."), response(), request(instructions="Be brief."))
    assert [message for message in reading.transcript.messages if isinstance(message, SystemMessage)] == [
        SystemMessage("Be brief.")
    ]


def test_counts_of_nothing_but_zero_are_unknown() -> None:
    for usage, expected in (
        ({"input_tokens": 0, "output_tokens": 0}, None),
        ({"input_tokens": 9, "output_tokens": 1, "cache_read_tokens": 4}, Usage(5, 1, 0, 4)),
    ):
        (message,) = read(response(usage=usage)).transcript.messages
        assert isinstance(message, AssistantMessage)
        assert message.usage == expected


def test_a_call_that_the_provider_threw_away_is_a_serious_note() -> None:
    reading = read(response(finish_reason="error", provider_details={"finish_reason": "MALFORMED_FUNCTION_CALL"}))
    assert [note.code for note in reading.notes if note.serious] == ["call_discarded"]


def test_unknown_parts_and_keys_of_a_response_are_serious_notes() -> None:
    for message in (
        response({"part_kind": "future"}),
        response(failed_attempts=[{"x": 1}]),
        response({**CALL, "x": [1]}),
    ):
        assert [note.serious for note in read(message).notes] == [True]


def test_the_history_is_what_the_run_started_from_and_the_new_messages_are_what_it_did() -> None:
    body = {"message_history": [response(CALL)], "new_messages": [response({**CALL, "tool_call_id": "c2"})]}
    reading = pydantic_ai.read(json.dumps(body).encode())
    assert reading.transcript.given == [0]
    assert len(steps_of(reading)) == 1
