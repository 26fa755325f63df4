"""The transcript's own JSON as one format among others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from strategies.messages import transcripts
from strategies.mutations import mutations

from seatrial.errors import SeatrialError
from seatrial.formats.transcript import read, write
from seatrial.transcript import (
    AssistantMessage,
    Message,
    RunIdentity,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    UserMessage,
    encode_lines,
)
from seatrial.transcript.document import encode_messages

# What is said of transcripts whose results and calls do not fit, however well they are written.
STRAYS = {"tool_result_unpaired", "tool_result_of_another_tool"}


@given(transcripts())
def test_messages_come_back_as_they_were(transcript: Transcript) -> None:
    for written in (write(transcript).data, encode_lines(transcript.messages)):
        reading = read(written)
        assert {note.code for note in reading.notes} <= STRAYS
        assert reading.transcript == Transcript(transcript.messages)


def test_what_the_messages_do_not_say_is_a_loss() -> None:
    transcript = Transcript(
        [UserMessage("hi")],
        "hello",
        identity=RunIdentity("r1"),
        usage=Usage(1),
        cost_usd=0.5,
        duration_ms=7.0,
        metadata={"model": "m", "x": None},
    )
    expected = ["/answer", "/identity", "/usage", "/cost_usd", "/duration_ms", "/metadata/model", "/metadata/x"]
    assert [loss.pointer for loss in write(transcript).losses] == expected


def test_what_the_messages_do_say_is_none() -> None:
    message = AssistantMessage([TextBlock("hello")], StopReason.END_TURN, usage=Usage(1, 2, 3, 4))
    assert write(Transcript([message, message], "hello", usage=Usage(2, 4, 6, 8))).losses == []


def test_a_whole_run_is_read_from_an_object() -> None:
    transcript = Transcript([UserMessage("hi")], "hello", RunIdentity("r1"), Usage(1), 0.5, 7.0, {"model": "m"})
    assert read(msgspec.json.encode(transcript)).transcript == transcript


def test_a_run_that_is_not_sound_loses_nothing_but_that() -> None:
    reading = read(b'{"messages": [{"role": "user", "content": "hi"}], "cost_usd": "much"}')
    assert reading.transcript == Transcript([UserMessage("hi")])
    assert [(note.code, note.pointer) for note in reading.notes] == [("value_dropped", "/cost_usd")]


def test_a_single_message_says_nothing_about_the_run() -> None:
    data = b'{"role": "assistant", "content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 5}}'
    assert read(data).transcript.usage is None


@pytest.mark.parametrize(("data", "code"), [(b"", "empty_input"), (b"{", "not_json"), (b"{}", "invalid_document")])
def test_what_holds_no_messages_is_an_error(data: bytes, code: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        read(data)
    assert caught.value.code == code


def test_a_result_of_a_call_that_is_not_here_or_of_another_tool_is_noted() -> None:
    call: Message = AssistantMessage([ToolCall("c1", "find", {})], StopReason.TOOL_USE)
    stray = [call, ToolResultMessage("c1", "find", []), ToolResultMessage("c2", "pay", [])]
    other = [call, ToolResultMessage("c1", "pay", [])]
    for messages, code in ((stray, "tool_result_unpaired"), (other, "tool_result_of_another_tool")):
        data = encode_messages(messages)
        assert [(note.code, note.pointer) for note in read(data).notes] == [(code, f"/messages/{len(messages) - 1}")]
    assert read(encode_messages(stray[:2])).notes == []


@pytest.mark.parametrize("name", [None, 7, [], {}])
def test_a_call_without_a_usable_name_is_a_serious_loss(name: Any) -> None:
    content = [{"type": "tool_call", "id": "c1", "name": name, "arguments": {}}]
    reading = read(msgspec.json.encode([{"role": "assistant", "content": content, "stop_reason": "tool_use"}]))
    assert any(note.serious for note in reading.notes)


def test_ten_thousand_mutated_transcripts_are_read_or_refused() -> None:
    message = AssistantMessage([TextBlock("hello")], StopReason.END_TURN, timestamp=5, usage=Usage(1))
    transcript = Transcript([UserMessage([TextBlock("hi")]), message], "hello", metadata={"k": 1})
    samples = [write(transcript).data, encode_lines(transcript.messages), msgspec.json.encode(transcript)]
    outcomes: set[object] = set()
    for mutation in mutations(samples, 10_000):
        try:
            outcomes.add(len(read(mutation).notes) > 0)
        except SeatrialError:
            outcomes.add("error")
    assert outcomes == {True, False, "error"}
