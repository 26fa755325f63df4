"""Gemini: contents, responses, streams, and what their parts come to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from strategies.spellings import steps_of

from seatrial.formats import gemini
from seatrial.formats.reading import Reading
from seatrial.transcript import AssistantMessage, ReasoningBlock, ReasoningDetailsBlock, TextBlock, ToolCall
from seatrial.transcript.reasoning import ReasoningEncrypted, ReasoningFormat, as_items


def read(value: Any) -> Reading:
    return gemini.read(json.dumps(value).encode())


def response(parts: list[Any], **candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": parts}, **candidate}]}


def test_a_response_without_a_role_is_the_models() -> None:
    reading = read(response([{"text": "hm", "thought": True}, {"text": "Done."}], finishReason="STOP"))
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.content == [ReasoningBlock("hm"), TextBlock("Done.")]


def test_a_signature_survives_in_front_of_the_call_that_it_signs() -> None:
    part = {"functionCall": {"id": "c1", "name": "find", "args": {}}, "thoughtSignature": "sig"}
    (message,) = read(response([part], finishReason="STOP")).transcript.messages
    assert isinstance(message, AssistantMessage)
    signed, call = message.content
    assert isinstance(signed, ReasoningDetailsBlock)
    assert as_items(signed) == [ReasoningEncrypted(id="c1", format=ReasoningFormat.GOOGLE_GEMINI_V1, data="sig")]
    assert call == ToolCall("c1", "find", {})


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_was_lost_is_a_serious_note(reason: str) -> None:
    reading = read(response([], finishReason=reason))
    assert "call_discarded" in [note.code for note in reading.notes if note.serious]


@pytest.mark.parametrize(
    ("outcome", "status"), [("OUTCOME_OK", "ok"), ("OUTCOME_FAILED", "error"), ("OUTCOME_DEADLINE_EXCEEDED", "timeout")]
)
def test_code_that_the_provider_ran_is_a_call_with_its_outcome(outcome: str, status: str) -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": outcome, "output": "x"}},
    ]
    reading = read(response(parts, finishReason="STOP"))
    assert steps_of(reading) == [("code_execution", {"language": "PYTHON", "code": "1"}, status, "provider")]


def test_a_stream_is_one_answer_and_one_without_an_end_was_cut_off() -> None:
    chunks = [response([{"text": "Do"}]), response([{"text": "ne."}]), response([], finishReason="STOP")]
    whole = b"".join([b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks])
    reading = gemini.read(whole)
    assert reading.transcript.final_text() == "Done."
    assert reading.notes == []
    cut = read(chunks[:2])
    assert cut.transcript.final_text() == "Done."
    assert [note.code for note in cut.notes if note.serious] == ["stream_truncated"]


def test_a_stream_that_says_in_every_piece_why_it_finished_is_one_answer() -> None:
    """As older versions of the API do; newer ones have the id of the response in every piece."""
    chunks = [response([{"text": text}], finishReason="STOP") for text in ("Do", "ne.")]
    for pieces in (chunks, [{**chunk, "responseId": "r"} for chunk in chunks]):
        reading = read(pieces)
        assert reading.transcript.final_text() == "Done."
        assert reading.answer_only
    turns = read([{**chunk, "responseId": f"r{number}"} for number, chunk in enumerate(chunks)])
    assert turns.transcript.final_text() == "ne."
    assert not turns.answer_only


def test_what_follows_a_call_is_another_turn() -> None:
    call = response([{"functionCall": {"name": "find", "args": {}}}], finishReason="STOP")
    reading = read([call, response([{"text": "Done."}], finishReason="STOP")])
    assert reading.transcript.final_text() == "Done."
    assert not reading.answer_only


def test_other_candidates_and_unknown_parts_are_serious_notes() -> None:
    two = response([{"text": "a"}, {"future": {}}], finishReason="STOP")
    two["candidates"].append({"content": {"parts": [{"functionCall": {"name": "delete_account"}}]}})
    codes = [note.code for note in read(two).notes if note.serious]
    assert codes == ["choice_dropped", "content_dropped"]


def test_calls_of_the_history_are_not_counted_twice() -> None:
    history = [{"role": "model", "parts": [{"functionCall": {"name": "find", "args": {}}}]}]
    history.append({"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"output": "x"}}}]})
    first = {**response([{"text": "A"}]), "automatic_function_calling_history": history}
    second = {**response([{"text": "B"}], finish_reason="STOP"), "automatic_function_calling_history": history}
    assert [step[0] for step in steps_of(read([first, second]))] == ["find"]


def test_part_of_a_call_is_a_serious_note() -> None:
    reading = read(response([{"functionCall": {"name": "delete_account", "willContinue": True}}], finishReason="STOP"))
    assert [step[0] for step in steps_of(reading)] == ["delete_account"]
    assert "arguments_cut" in [note.code for note in reading.notes if note.serious]
