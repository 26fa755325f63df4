"""Vercel's AI SDK: the states of a tool call, and recorded streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from strategies.spellings import steps_of

from seatrial import formats
from seatrial.formats import vercel
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract
from seatrial.transcript import AssistantMessage, ReasoningDetailsBlock, StopReason

STREAM = Path(__file__).parent.parent / "resources" / "foreign" / "vercel_ui_stream.sse"


def said(*parts: Any, **more: Any) -> Reading:
    return vercel.read(json.dumps([{"id": "a", "role": "assistant", "parts": list(parts), **more}]).encode())


def streamed(*chunks: Any, done: bool = True) -> Reading:
    frames = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return vercel.read("".join([*frames, "data: [DONE]\n\n" if done else ""]).encode())


CALL = {"type": "tool-delete_account", "toolCallId": "c1", "input": {"id": 7}}


@pytest.mark.parametrize(
    ("more", "status", "serious"),
    [
        ({"state": "input-available"}, "unknown", False),
        ({"state": "input-streaming"}, "unknown", True),
        ({"state": "approval-requested", "approval": {"id": "p"}}, "unknown", True),
        ({"state": "approval-responded", "approval": {"id": "p", "approved": True}}, "unknown", False),
        ({"state": "approval-responded", "approval": {"id": "p", "approved": False, "reason": "no"}}, "error", False),
        ({"state": "output-available", "output": None}, "ok", False),
        ({"state": "output-available", "output": {"content": [], "isError": True}}, "error", False),
        ({"state": "output-error", "errorText": ""}, "error", False),
        ({"state": "output-denied", "approval": {"id": "p", "approved": False}}, "error", False),
        ({"state": "a state of another version"}, "unknown", True),
    ],
)
def test_a_tool_call_is_a_step_in_every_state(more: dict[str, Any], status: str, *, serious: bool) -> None:
    reading = said({**CALL, **more})
    assert steps_of(reading) == [("delete_account", {"id": 7}, status, "agent")]
    assert any(note.serious for note in reading.notes) is serious


def test_arguments_that_were_refused_are_kept() -> None:
    reading = said({**CALL, "input": None, "rawInput": {"id": "seven"}, "state": "output-error", "errorText": "bad"})
    assert steps_of(reading) == [("delete_account", {"id": "seven"}, "error", "agent")]


def test_a_tool_may_be_called_call() -> None:
    assert steps_of(said({**CALL, "type": "tool-call", "state": "input-available"}))[0][0] == "call"


def test_tool_invocations_beside_the_parts_are_the_same_calls() -> None:
    invocation = {"toolCallId": "c1", "toolName": "delete_account", "args": {"id": 7}, "state": "result", "result": "x"}
    both = said({"type": "tool-invocation", "toolInvocation": invocation}, toolInvocations=[invocation], content="")
    assert len(steps_of(both)) == 1
    oldest = {"role": "assistant", "content": "Done.", "toolInvocations": [invocation]}
    reading = vercel.read(json.dumps([oldest]).encode())
    assert steps_of(reading) == [("delete_account", {"id": 7}, "ok", "agent")]
    assert reading.transcript.final_text() == "Done."


def test_what_providers_sign_is_kept_with_the_reasoning() -> None:
    part = {"type": "reasoning", "text": "", "providerMetadata": {"openai": {"reasoningEncryptedContent": "g"}}}
    (message,) = said(part).transcript.messages
    assert isinstance(message, AssistantMessage)
    (block,) = message.content
    assert isinstance(block, ReasoningDetailsBlock)
    assert json.loads(bytes(block.details[0])) == part


def test_unknown_parts_are_serious_notes_and_data_that_looks_like_calls_too() -> None:
    assert [note.serious for note in said({"type": "future", "name": "delete_account"}).notes] == [True]
    assert [note.serious for note in said({"type": "data-log", "data": {"tool_calls": [{}]}}).notes] == [True]
    assert [note.serious for note in said({"type": "data-weather", "data": {"city": "Oslo"}}).notes] == [False]


def test_a_stream_that_was_cut_anywhere_before_its_end_is_a_serious_note() -> None:
    frames = STREAM.read_bytes().split(b"\n\n")
    whole = vercel.read(STREAM.read_bytes())
    assert not [note for note in whole.notes if note.serious]
    for count in range(1, len(frames) - 3):
        reading = vercel.read(b"\n\n".join(frames[:count]) + b"\n\n")
        assert "stream_truncated" in [note.code for note in reading.notes if note.serious], frames[count - 1]


def test_a_result_without_its_call_and_an_unknown_chunk_are_serious_notes() -> None:
    orphan = streamed({"type": "start"}, {"type": "tool-output-available", "toolCallId": "c9", "output": 1})
    assert "tool_call_dropped_no_name" in [note.code for note in orphan.notes if note.serious]
    unknown = streamed({"type": "start"}, {"type": "tool-future", "toolCallId": "c9"}, {"type": "finish"})
    assert "frame_dropped" in [note.code for note in unknown.notes if note.serious]


def test_an_aborted_stream_and_one_with_an_error_say_so() -> None:
    for chunk, reason in (
        ({"type": "abort"}, StopReason.ABORTED),
        ({"type": "error", "errorText": "x"}, StopReason.ERROR),
    ):
        message = streamed({"type": "start"}, chunk).transcript.messages[-1]
        assert isinstance(message, AssistantMessage)
        assert message.stop_reason is reason


def test_arguments_on_their_way_are_kept_as_text() -> None:
    reading = streamed(
        {"type": "start"},
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "delete_account"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"id": 7'},
        done=False,
    )
    assert steps_of(reading)[0][0] == "delete_account"
    assert {"arguments_cut", "stream_truncated"} <= {note.code for note in reading.notes if note.serious}


LINES = (
    b'f:{"messageId":"m"}\ng:"hm"\nb:{"toolCallId":"c","toolName":"find"}\nc:{"toolCallId":"c","argsTextDelta":"{}"}\n'
    b'9:{"toolCallId":"c","toolName":"find","args":{"a":1}}\na:{"toolCallId":"c","result":{"ok":true}}\n'
    b'e:{"finishReason":"tool-calls","isContinued":false}\n0:"Do"\n0:"ne."\nd:{"finishReason":"stop"}\n'
)


def test_the_lines_of_the_data_stream_protocol_are_read_like_the_chunks_that_took_their_place() -> None:
    reading = formats.read(LINES)
    assert reading.format == "vercel"
    assert [note for note in reading.notes if note.serious] == []
    (step,) = extract(reading).steps
    assert (step.name, step.arguments, step.result, step.status) == ("find", {"a": 1}, {"ok": True}, "ok")
    assert reading.transcript.final_text() == "Done."


@pytest.mark.parametrize("line", [b'z:{"toolCallId":"c"}', b"9:{broken", b"plain text", b'9:"find"'])
def test_a_line_that_is_not_one_of_the_data_stream_protocol_is_a_serious_note(line: bytes) -> None:
    reading = formats.read(LINES.replace(b'd:{"finish', line + b'\nd:{"finish'))
    assert [note.code for note in reading.notes if note.serious] == ["frame_dropped"]


def test_lines_of_the_data_stream_protocol_without_their_end_are_cut_off() -> None:
    reading = formats.read(LINES.rpartition(b"d:")[0])
    assert [note.code for note in reading.notes if note.serious] == ["stream_truncated"]
