"""What a record says of its own end beside the answer, and turns that a limit cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial import formats
from seatrial.trajectory import extract

SAID: dict[str, Any] = {"role": "assistant", "content": "Done."}
FAILED = [
    {"error": "boom"},
    {"error": {"message": "boom"}},
    {"error": True},
    {"errors": ["boom"]},
    {"status": "failed"},
    {"status": "error"},
    {"is_error": True},
]
FINE: list[dict[str, Any]] = [
    {"error": None},
    {"error": ""},
    {"error": {}},
    {"errors": []},
    {"status": "completed"},
    {"status": "open"},
    {"is_error": False},
]


def _containers(beside: dict[str, Any]) -> list[Any]:
    return [
        {"final_response": "Done.", "messages": [SAID], **beside},
        {"text": "Done.", "output_messages": [SAID], **beside},
        {"messages": [{"type": "ai", "content": "Done."}], **beside},
        {"final_response": "Done.", "messages": [{**SAID, **beside}]},
    ]


def _codes(document: Any) -> list[str]:
    found = extract(formats.read(json.dumps(document).encode()))
    return [note.code for note in found.completeness.reasons]


@pytest.mark.parametrize("beside", FAILED, ids=str)
def test_a_record_that_says_that_it_failed_may_lack_a_call(beside: dict[str, Any]) -> None:
    for document in _containers(beside):
        assert "failure_reported" in _codes(document)


@pytest.mark.parametrize("beside", FINE, ids=str)
def test_other_words_beside_an_answer_are_not_a_failure(beside: dict[str, Any]) -> None:
    for document in _containers(beside):
        assert _codes(document) == []


def _cut(chat: str, anthropic: str, gemini: str) -> dict[str, Any]:
    text = {"type": "text", "text": "Done."}
    return {
        "completion": {
            "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": chat, "message": SAID}],
        },
        "messages": [{"role": "user", "content": "Go."}, {**SAID, "finish_reason": chat}],
        "Anthropic": {"type": "message", "role": "assistant", "content": [text], "stop_reason": anthropic},
        "Bedrock": {"output": {"message": {"role": "assistant", "content": [{"text": "x"}]}}, "stopReason": anthropic},
        "Gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": gemini}]},
        "LangChain": [{"type": "ai", "content": "x", "response_metadata": {"finish_reason": chat}}],
        "Pydantic AI": [{"kind": "response", "parts": [{"part_kind": "text", "content": "x"}], "finish_reason": chat}],
    }


@pytest.mark.parametrize("shape", _cut("", "", ""))
def test_a_last_turn_that_a_limit_cut_off_may_lack_a_call(shape: str) -> None:
    # Of one turn alone nobody knows what was called before it.
    code = "single_turn" if shape in ("completion", "Anthropic", "Bedrock", "Gemini") else "turn_cut"
    assert code in _codes(_cut("length", "max_tokens", "MAX_TOKENS")[shape])
    assert "turn_cut" not in _codes(_cut("stop", "end_turn", "STOP")[shape])


def test_a_paused_turn_may_lack_a_call() -> None:
    call = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
    paused = {"type": "message", "role": "assistant", "content": [call], "stop_reason": "pause_turn"}
    assert "turn_cut" in _codes(paused)


def test_a_turn_that_was_cut_and_went_on_lacks_nothing() -> None:
    talk = [{"role": "user", "content": "Go."}, {**SAID, "finish_reason": "length"}, {"role": "user", "content": "On."}]
    assert _codes([*talk, SAID]) == []


def test_the_token_counts_beside_a_final_response_are_those_of_the_run() -> None:
    body = {"final_response": "Done.", "messages": [SAID], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}
    usage = formats.read(json.dumps(body).encode()).transcript.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (5, 3)
    body["usage"] = {"prompt_tokens": 5}
    reading = formats.read(json.dumps(body).encode())
    assert reading.transcript.usage is None
    assert [note.code for note in reading.notes if note.weight != "harmless"] == ["value_dropped"]


@pytest.mark.parametrize("key", ["final_response", "text"])
def test_a_thought_without_an_end_is_noted_in_an_answer_as_in_a_message(key: str) -> None:
    messages = "messages" if key == "final_response" else "output_messages"
    reading = formats.read(json.dumps({key: "Done. <think>secret", messages: [SAID]}).encode())
    assert reading.transcript.answer == "Done."
    assert [(note.code, note.pointer) for note in reading.notes] == [("unclosed_thinking_tag", f"/{key}")]


@pytest.mark.parametrize("status", ["failed", "error", "timeout"])
def test_a_record_that_says_of_the_whole_run_that_it_failed_and_why_says_so_in_every_shape(status: str) -> None:
    *records, message = _containers({"status": status, "error": "boom"})
    for document in records:
        assert "run_failure_reported" in _codes(document)
    assert _codes(message) == ["failure_reported"], "one message is not the run"
    for beside in ({"status": status}, {"error": "boom"}, {"status": "completed", "error": "boom"}):
        for document in _containers(beside):
            assert "run_failure_reported" not in _codes(document)


def test_a_trace_that_ends_with_an_error_of_no_call_may_lack_a_call() -> None:
    call = {"type": "tool_call", "id": "1", "name": "look", "input": {}}
    crashed = {"type": "error", "text": "crashed"}
    assert _codes({"text": "ok", "trace": [call, crashed]}) == ["failure_reported"]
    assert _codes({"text": "ok", "trace": [call, {**crashed, "id": "1"}]}) == []
    assert _codes({"text": "ok", "trace": [crashed, call]}) == []
