"""LangChain: the places where a message keeps its calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from strategies.spellings import steps_of

from seatrial.formats import langchain
from seatrial.formats.reading import Reading
from seatrial.transcript import AssistantMessage, Usage


def ai(content: Any = "", **more: Any) -> Reading:
    return langchain.read(json.dumps([{"type": "ai", "content": content, **more}]).encode())


def names(reading: Reading) -> list[str]:
    return [step[0] for step in steps_of(reading)]


RAW = {"id": "c1", "type": "function", "function": {"name": "delete_account", "arguments": '{"id": 7}'}}


def test_raw_calls_of_the_provider_count_where_they_are_listed_nowhere_else() -> None:
    listed = [{"name": "delete_account", "args": {"id": 7}, "id": "c1"}]
    assert names(ai(tool_calls=listed, additional_kwargs={"tool_calls": [RAW]})) == ["delete_account"]
    assert names(ai(tool_calls=[], additional_kwargs={"tool_calls": [RAW]})) == ["delete_account"]
    legacy = {"function_call": RAW["function"]}
    assert names(ai(tool_calls=listed, additional_kwargs=legacy)) == ["delete_account"]
    assert names(ai(additional_kwargs=legacy)) == ["delete_account"]


def test_an_invalid_call_is_a_call() -> None:
    reading = ai(invalid_tool_calls=[{"name": "delete_account", "args": "{id: 7", "id": None, "error": "bad"}])
    assert names(reading) == ["delete_account"]
    assert "arguments_not_json" in [note.code for note in reading.notes]


def test_calls_without_ids_under_two_keys_stay_two() -> None:
    reading = ai(tool_calls=[{"name": "a", "args": {}, "id": None}], invalid_tool_calls=[{"name": "b", "args": "{"}])
    assert names(reading) == ["a", "b"]
    assert len({step.id for message in reading.transcript.messages for step in message.tool_calls()}) == 2  # type: ignore[union-attr]


def test_items_of_the_responses_api_in_a_content_are_calls() -> None:
    content = [
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"},
        {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"query": "x"}},
    ]
    reading = ai(content, tool_calls=[{"name": "find", "args": {}, "id": "c1"}])
    assert [(name, by) for name, _, _, by in steps_of(reading)] == [("web_search", "provider"), ("find", "agent")]
    outputs = {"tool_outputs": [content[1]]}
    assert names(ai("x", additional_kwargs=outputs)) == ["web_search"]


def test_fragments_of_a_streamed_call_are_a_serious_note() -> None:
    chunk = {"type": "AIMessageChunk", "content": "", "tool_call_chunks": [{"name": None, "args": '{"id', "id": None}]}
    reading = langchain.read(json.dumps([chunk]).encode())
    assert [note.code for note in reading.notes if note.serious] == ["tool_call_dropped_no_name"]


def test_cached_tokens_are_taken_out_of_the_input() -> None:
    usage = {"input_tokens": 100, "output_tokens": 5, "input_token_details": {"cache_read": 40, "cache_creation": 10}}
    (message,) = ai("x", usage_metadata=usage).transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.usage == Usage(50, 5, 10, 40)
    fallback = {"token_usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    (message,) = ai("x", response_metadata=fallback).transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.usage == Usage(3, 2, 0, 0)


def test_whatever_else_an_answer_holds_is_a_serious_note() -> None:
    for reading in (
        ai("x", future=[{"name": "delete_account"}]),
        ai("x", additional_kwargs={"future": {"name": "delete_account"}}),
        ai([{"type": "future_call", "name": "delete_account"}]),
        ai("x", response_metadata={"future": {"tool_calls": [{}]}}),
    ):
        assert [note.serious for note in reading.notes] == [True]


@pytest.mark.parametrize("block", [{"type": "text", "text": "Sent."}, {"type": "reasoning", "reasoning": "hm"}])
def test_extras_of_a_block_hold_what_the_provider_needs_again_and_no_call(block: dict[str, Any]) -> None:
    said = {"type": "text", "text": "It is on its way."}
    signed = ai([{**block, "extras": {"signature": "EqAB", "index": 0}}, said], tool_calls=[])
    assert not any(note.serious for note in signed.notes)
    hidden = ai([{**block, "extras": {"tool_calls": [RAW]}}, said], tool_calls=[])
    assert any(note.serious for note in hidden.notes)


def test_a_removed_message_removes_no_call() -> None:
    made = {"type": "ai", "id": "m1", "content": "", "tool_calls": [{"name": "delete_account", "args": {}, "id": "c"}]}
    for later in ({"type": "remove", "id": "m1", "content": ""}, {"type": "ai", "id": "m1", "content": "hidden"}):
        reading = langchain.read(json.dumps([made, later]).encode())
        assert "delete_account" in names(reading)


def test_chunks_of_one_message_are_put_together() -> None:
    fragments = [("find", "c", "", 0), (None, None, '{"a": ', 0), ("look", "d", "{}", 1), (None, None, "1}", 0)]
    chunks = [
        {
            "type": "AIMessageChunk",
            "id": "r",
            "content": text,
            "tool_call_chunks": [{"name": name, "id": call_id, "args": arguments, "index": index}],
            "tool_calls": [{"name": name or "", "id": call_id, "args": {}}],
            "additional_kwargs": {
                "tool_calls": [{"index": index, "id": call_id, "function": {"arguments": arguments}}]
            },
        }
        for text, (name, call_id, arguments, index) in zip(("Let ", "me ", "see", "."), fragments, strict=True)
    ]
    reading = langchain.read(json.dumps(chunks).encode())
    assert [note for note in reading.notes if note.serious] == []
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.plain_text() == "Let me see."
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls()] == [
        ("c", "find", {"a": 1}),
        ("d", "look", {}),
    ]


def test_a_call_that_no_chunk_has_in_fragments_stays() -> None:
    chunk = {"type": "AIMessageChunk", "id": "r", "content": ""}
    made = {"tool_calls": [{"name": "delete", "id": "d", "args": {}}]}
    fragment = {"tool_call_chunks": [{"name": "find", "id": "c", "args": "{}", "index": 0}]}
    reading = langchain.read(json.dumps([{**chunk, **made}, {**chunk, **fragment}]).encode())
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert [call.name for call in message.tool_calls()] == ["find", "delete"]


def test_states_without_ids_count_each_message_once_and_a_rewritten_one_twice() -> None:
    messages = [
        {"type": "human", "content": "x"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "find", "args": {}, "id": "c"}]},
        {"type": "tool", "content": "ok", "tool_call_id": "c"},
    ]
    states = [{"messages": messages[: count + 1]} for count in range(3)]
    assert len(langchain.read(json.dumps(states).encode()).transcript.messages) == 3
    states.append({"messages": [messages[0], {"type": "ai", "content": "no"}]})
    assert len(langchain.read(json.dumps(states).encode()).transcript.messages) == 5


@pytest.mark.parametrize("wrong", [["c"], {"a": 1}, 7, None])
@pytest.mark.parametrize("key", ["index", "id", "name", "args"])
def test_chunks_with_any_value_anywhere_are_read_or_noted(key: str, wrong: Any) -> None:
    fragment = {"name": "find", "id": "c", "args": "{}", "index": 0, key: wrong}
    chunk = {
        "type": "AIMessageChunk",
        "id": "r",
        "content": "",
        "tool_call_chunks": [fragment],
        "tool_calls": [fragment],
    }
    reading = langchain.read(json.dumps([chunk, chunk]).encode())
    assert steps_of(reading) or any(note.serious for note in reading.notes)


@pytest.mark.parametrize("wrap", [lambda state: state, lambda state: [state], lambda state: {"values": state}])
@pytest.mark.parametrize(("interrupts", "waits"), [([{"value": "ok?", "id": "1"}], True), ([], False)])
def test_a_state_with_an_interrupt_waits_for_input(wrap: Any, interrupts: list[Any], *, waits: bool) -> None:
    messages = [{"type": "human", "content": "x"}, {"type": "ai", "content": "ok"}]
    reading = langchain.read(json.dumps(wrap({"messages": messages, "__interrupt__": interrupts})).encode())
    assert ("waits_for_input" in {note.code for note in reading.notes if note.serious}) is waits


def test_chunks_whose_metadata_has_a_content_are_merged() -> None:
    chunk: dict[str, Any] = {"type": "AIMessageChunk", "content": "a", "id": "1", "response_metadata": {}}
    more = [chunk, {**chunk, "response_metadata": {"content": {}}}, {**chunk, "response_metadata": {"content": "x"}}]
    reading = langchain.read(json.dumps(more).encode())
    assert reading.transcript.final_text() == "aaa"
