"""Calls that an agent writes into its text: not read as calls, and never passed over."""

from __future__ import annotations

import json
import time

import pytest

from seatrial.formats.text_calls import calls_in_text
from seatrial.trajectory import extract
from seatrial.transcript import AssistantMessage, Message, StopReason, TextBlock, ToolCall, UserMessage

END = StopReason.END_TURN


def said(text: str, *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage([TextBlock(text), *calls], END)


def test_a_block_of_bash_that_was_answered_with_a_return_code_is_a_call_that_nobody_read() -> None:
    messages: list[Message] = [said("```bash\nls\n```"), UserMessage("<returncode>0</returncode>\n<output></output>")]
    assert [(note.code, note.pointer, note.serious) for note in calls_in_text(messages)] == [
        ("calls_in_text", "/messages/1", True)
    ]


def test_a_block_of_bash_that_nobody_answered_is_an_answer() -> None:
    assert calls_in_text([said("Run this:\n```bash\nls\n```"), UserMessage("Thank you.")]) == []


def test_what_a_user_says_first_is_no_result() -> None:
    assert calls_in_text([UserMessage("Observation: my screen is black."), said("Turn it on.")]) == []


def test_a_tagged_call_that_the_message_lists_as_well_is_known() -> None:
    tagged = '<tool_call>{"name": "find", "arguments": {"a": 1, "b": 2}}</tool_call>'
    assert calls_in_text([said(tagged, ToolCall("c", "find", {"b": 2, "a": 1}))]) == []
    assert calls_in_text([said(tagged, ToolCall("c", "find", {"b": 2, "a": 3}))]) != []
    assert calls_in_text([said(tagged + "<function=delete>", ToolCall("c", "find", {"b": 2, "a": 1}))]) != []


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{" * 20_000,
        "```" + " " * 200_000 + "```",
        "Action:\n" * 50_000,
        "Action" + " " * 100_000,
        "{" * 9_000,
    ],
)
def test_looking_takes_no_longer_than_the_text_is_long(text: str) -> None:
    begun = time.process_time()
    calls_in_text([said(text)])
    assert time.process_time() - begun < 5


def test_a_run_with_commands_in_its_text_is_partial() -> None:
    from seatrial import formats

    talk = [
        {"role": "user", "content": "Clean up."},
        {"role": "assistant", "content": "```bash\nrm -rf /\n```"},
        {"role": "user", "content": "<returncode>0</returncode>"},
        {"role": "assistant", "content": "Done."},
    ]
    found = extract(formats.read(json.dumps(talk).encode()))
    assert found.completeness.level == "partial"
    assert [note.code for note in found.completeness.reasons] == ["calls_in_text"]
