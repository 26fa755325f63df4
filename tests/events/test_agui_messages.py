"""AG-UI's messages: strict where that works, else mended with a note."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import agui_messages
from strategies.messages import json_values

from seatrial.events import agui_messages as agui
from seatrial.transcript import Note


def read(*values: Any) -> tuple[Any, list[str]]:
    notes: list[Note] = []
    messages = agui.read_messages(list(values), ("messages",), notes)
    return msgspec.json.decode(msgspec.json.encode(messages)), [note.code for note in notes]


WHOLE = [
    {"role": "developer", "id": "1", "content": "d", "name": "n", "encryptedValue": "e", "metadata": {"k": None}},
    {"role": "system", "id": "2", "content": "s", "subagentRunId": "x"},
    {
        "role": "assistant",
        "id": "3",
        "content": "a",
        "toolCalls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "f", "arguments": "{}"},
                "encryptedValue": "e",
                "metadata": {},
            }
        ],
    },
    {"role": "assistant", "id": "4"},
    {"role": "user", "id": "5", "content": "u"},
    {"role": "user", "id": "6", "content": [{"type": "text", "text": "x"}]},
    {"role": "tool", "id": "7", "toolCallId": "c", "content": "r", "error": "e"},
    {"role": "activity", "id": "8", "activityType": "PLAN", "content": {"x": 1}},
    {"role": "reasoning", "id": "9", "content": "h", "encryptedValue": "e"},
]


def test_every_message_is_read_and_written_as_it_was() -> None:
    assert read(*WHOLE) == (WHOLE, [])


@given(agui_messages())
def test_sound_messages_need_no_note(message: dict[str, Any]) -> None:
    assert read(message) == ([message], [])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"role": "assistant", "id": "m", "content": None, "name": None}, {"role": "assistant", "id": "m"}),
        ({"role": "user", "id": "m"}, {"role": "user", "id": "m", "content": ""}),
        ({"role": "user", "id": "m", "content": {"a": 1}}, {"role": "user", "id": "m", "content": '{"a":1}'}),
        (
            {"role": "assistant", "id": "m", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "id": "m", "content": "ab"},
        ),
        (
            {"role": "user", "id": "m", "content": [{"type": "text", "text": "a"}, 5]},
            {"role": "user", "id": "m", "content": [{"type": "text", "text": "a"}]},
        ),
        ({"role": "system", "content": "s"}, {"role": "system", "id": "seatrial-message-messages-0", "content": "s"}),
        (
            {"role": "activity", "id": "m", "activityType": "A", "content": 5},
            {"role": "activity", "id": "m", "activityType": "A", "content": {"value": 5}},
        ),
        (
            {"role": "user", "id": "m", "content": "x", "metadata": 5, "name": 7, "subagentRunId": []},
            {"role": "user", "id": "m", "content": "x"},
        ),
        (
            {
                "role": "assistant",
                "id": "m",
                "toolCalls": [{"function": {"name": "f", "arguments": {"a": 1}}}, {"id": "c"}, 5],
            },
            {
                "role": "assistant",
                "id": "m",
                "toolCalls": [{"id": "", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
            },
        ),
    ],
)
def test_what_is_usual_is_mended(value: Any, message: Any) -> None:
    assert read(value) == ([message], ["agui_message_repaired"])


@pytest.mark.parametrize("value", [None, 5, "user", [], {}, {"role": "bot", "id": "m"}, {"role": "tool", "id": "m"}])
def test_what_is_no_message_is_dropped_with_a_note(value: Any) -> None:
    assert read(value) == ([], ["agui_message_dropped"])


def test_messages_that_are_no_array_are_noted() -> None:
    notes: list[Note] = []
    assert agui.read_messages({"role": "user"}, ("messages",), notes) == []
    assert [note.pointer for note in notes] == ["/messages"]


@pytest.mark.parametrize(
    ("part", "upgraded"),
    [
        (
            {"type": "binary", "mimeType": "audio/wav", "url": "u"},
            {"type": "audio", "source": {"type": "url", "value": "u", "mimeType": "audio/wav"}},
        ),
        (
            {"type": "binary", "mimeType": "application/pdf", "id": "f1"},
            {"type": "document", "source": {"type": "file", "value": "f1", "mimeType": "application/pdf"}},
        ),
        (
            {"type": "binary", "mimeType": "image/png", "data": "AA", "filename": "x.png"},
            {
                "type": "image",
                "source": {"type": "data", "value": "AA", "mimeType": "image/png"},
                "metadata": {"filename": "x.png"},
            },
        ),
    ],
)
def test_binary_parts_become_media_parts(part: Any, upgraded: Any) -> None:
    message = {"role": "user", "id": "m", "content": [part]}
    assert read(message) == ([{**message, "content": [upgraded]}], ["binary_part_upgraded"])
    # Sent both ways, it is one attachment.
    both = {**message, "content": [part, upgraded]}
    assert read(both) == ([{**message, "content": [upgraded]}], ["binary_part_upgraded"])


def test_a_binary_part_without_anything_in_it_stays() -> None:
    message = {"role": "user", "id": "m", "content": [{"type": "binary"}, {"type": "binary", "mimeType": "image/png"}]}
    assert read(message) == ([message], [])


FIELDS = ["id", "role", "content", "toolCalls", "toolCallId", "activityType", "metadata", "name", "subagentRunId"]


@given(agui_messages(), st.sampled_from(FIELDS), json_values(max_leaves=3))
def test_a_message_with_one_field_changed_is_read_or_noted(message: dict[str, Any], field: str, value: Any) -> None:
    messages, notes = read({**message, field: value})
    assert len(messages) == 1 or notes
