"""What an agent is asked, and what of its answer is new."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.api import CreateRun, RunInput
from seatrial.errors import SeatrialError
from seatrial.events.run_input import Context, ResumeEntry, RunAgentInput, Tool
from seatrial.server import conversation
from seatrial.server.conversation import History
from seatrial.transcript import (
    Note,
)


def read(*messages: dict[str, Any]) -> list[Any]:
    return conversation.read_messages(CreateRun(agent="a", input=RunInput(messages=list(messages))), "run-1", [])


def test_messages_get_ids_that_no_other_run_has() -> None:
    first, second, third = read(
        {"role": "user", "content": "a"},
        {"id": 7, "role": "user", "content": "b"},
        {"id": "own", "role": "system", "content": ""},
    )
    assert [first.id, second.id, third.id] == ["run-1-input-0", "run-1-input-1", "own"]


def test_a_message_that_is_mended_is_noted_and_one_that_is_none_is_refused() -> None:
    notes: list[Note] = []
    request = CreateRun(agent="a", input=RunInput(messages=[{"role": "user", "content": None}]))
    assert conversation.read_messages(request, "run-1", notes)[0].content == ""
    assert [note.code for note in notes] == ["agui_message_repaired"]
    with pytest.raises(SeatrialError) as caught:
        read({"role": "narrator", "content": "Once upon a time"})
    assert (caught.value.code, caught.value.pointer) == ("invalid_request", "/input/messages/0")


def test_an_input_has_all_that_was_asked_for_and_the_whole_conversation() -> None:
    request = CreateRun(
        agent="a",
        input=RunInput(
            tools=[Tool("find", "Finds.")], context=[Context("where", "here")], forwarded_props={"model": "small"}
        ),
        resume=[ResumeEntry("i", "cancelled")],
    )
    given = conversation.run_input(request, "run-1", "thread-1", read({"id": "u", "role": "user", "content": "a"}))
    whole = conversation.with_history(given, History(read({"id": "m", "role": "assistant", "content": "b"}), {"n": 1}))
    assert whole == RunAgentInput(
        thread_id="thread-1",
        run_id="run-1",
        protocol_version="1.0",
        state={"n": 1},
        messages=[{"id": "m", "role": "assistant", "content": "b"}],
        tools=[Tool("find", "Finds.")],
        context=[Context("where", "here")],
        forwarded_props={"model": "small"},
        resume=[ResumeEntry("i", "cancelled")],
    )
    assert given.messages == [{"id": "u", "role": "user", "content": "a"}]


def test_a_conversation_is_a_case_whose_instruction_is_the_last_word_of_the_user() -> None:
    image = {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}}
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    case = conversation.case_of(
        "run-1",
        read(
            {"id": "1", "role": "developer", "content": "Be brief.", "name": "dev"},
            {"id": "2", "role": "user", "content": [{"type": "text", "text": "What is"}, image]},
            {"id": "3", "role": "reasoning", "content": "hm"},
            {"id": "4", "role": "assistant", "toolCalls": [call]},
            {"id": "5", "role": "tool", "toolCallId": "c", "content": "a cat"},
            {"id": "6", "role": "activity", "activityType": "PLAN", "content": {}},
            {"id": "7", "role": "assistant", "content": "A cat."},
            {
                "id": "8",
                "role": "user",
                "content": [{"type": "text", "text": "Are you "}, {"type": "text", "text": "sure?"}],
            },
        ),
        [1, 2],
    )
    assert case.instruction == "Are you sure?"
    assert case.input == {"state": [1, 2]}
    assert case.messages == [
        {"role": "developer", "name": "dev", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a cat"},
        {"role": "assistant", "content": "A cat."},
    ]


def test_a_conversation_that_the_user_does_not_end_has_no_instruction() -> None:
    case = conversation.case_of("run-1", read({"id": "1", "role": "tool", "toolCallId": "c", "content": "found"}))
    assert (case.instruction, case.input) == ("", {})
    assert case.messages == [{"role": "tool", "tool_call_id": "c", "content": "found"}]
    assert conversation.case_of("run-1", []).messages == []
