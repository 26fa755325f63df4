"""Tool calls of every shape, read into one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from strategies.messages import json_values, texts

from seatrial import formats
from seatrial._support import wire
from seatrial.formats.chat.calls import Call, generated_id, read_call
from seatrial.trajectory import extract
from seatrial.trajectory.sources import steps_from_objects
from seatrial.transcript.arguments import arguments_note, detect_unparsed, parse_arguments


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ({"name": "f"}, Call("f", {})),
        ({"id": "1", "name": "f", "arguments": {"x": 1}}, Call("f", {"x": 1}, "1")),
        ({"id": "1", "name": "f", "arguments": '{"x": 1}'}, Call("f", {"x": 1}, "1")),
        ({"id": "1", "name": "f", "arguments": None}, Call("f", None, "1")),
        ({"id": "", "name": "f", "arguments": " "}, Call("f", {})),
        ({"id": 5, "name": "f"}, Call("f", {})),
        ({"id": "1", "type": "function", "function": {"name": "f", "arguments": "[1]"}}, Call("f", [1], "1")),
        ({"name": "", "function": {"name": "f"}}, Call("f", {})),
        ({"tool": "f", "input": {"x": 1}}, Call("f", {"x": 1})),
        ({"tool": "f", "output": None}, Call("f", {}, output=None)),
        ({"type": "tool_use", "id": "1", "name": "f", "input": {"x": 1}}, Call("f", {"x": 1}, "1")),
    ],
)
def test_every_shape_is_the_same_call(value: dict[str, Any], call: Call) -> None:
    assert read_call(value) == call


@pytest.mark.parametrize("value", [None, "f", [], {}, {"name": ""}, {"name": 5}, {"function": {}}, {"tool": None}])
def test_a_call_without_a_usable_name_is_none(value: Any) -> None:
    assert read_call(value) is None


@given(json_values())
def test_json_text_is_its_value(value: Any) -> None:
    assert parse_arguments(wire.encode(value).decode()) == (value, False)


@given(texts())
def test_any_text_is_parsed_or_kept(text: str) -> None:
    value, not_json = parse_arguments(text)
    unparsed = detect_unparsed(value)
    assert (unparsed is not None) == not_json
    assert unparsed is None or unparsed[1] == text


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '\ufeff{"a": 1}', '{"a": "\ud800"}'])
def test_text_that_can_be_mended_is_parsed(text: str) -> None:
    assert parse_arguments(text)[1] is False


def test_nesting_without_end_is_kept_as_text() -> None:
    text = "[" * 100_000
    assert parse_arguments(text)[1] is True


@pytest.mark.parametrize("text", ['{"id": ', '{"id": "é', '{"amount": 1.', '{"amount": -', '{"gone": tru'])
def test_arguments_that_end_too_early_are_a_serious_note_wherever_they_end(text: str) -> None:
    arguments, not_json = parse_arguments(text)
    assert not_json
    assert arguments_note(arguments, "", "find").serious


def test_the_note_on_arguments_that_are_nested_too_deeply_does_not_say_that_they_are_no_json() -> None:
    arguments, not_json = parse_arguments('{"a": ' + "[" * 300 + "]" * 300 + "}")
    assert not_json
    said = "the arguments for 'find' are kept as text: the JSON is nested more than 200 levels deep"
    assert arguments_note(arguments, "", "find").message == said


def test_a_made_up_id_is_the_position_of_the_call() -> None:
    assert generated_id(("messages", 3, "tool_calls", 1)) == "seatrial_call_3_1"


@pytest.mark.parametrize(
    "text",
    ['{"id": 7, "id": 8}', '{"id": 7, "id" :7}', '{"a": {"id": 7, "id": 8}}', '{"a": [{"id": 7, "id": 8}], "b": 1}'],
)
def test_arguments_with_a_key_twice_are_kept_as_text_because_nobody_knows_which_counted(text: str) -> None:
    arguments, not_json = parse_arguments(text)
    assert not_json
    assert detect_unparsed(arguments) is not None
    assert arguments_note(arguments, "", "find").serious


@pytest.mark.parametrize(
    "text", ['{"at": "10:30"}', '{"a": {"id": 7}, "b": {"id": 7}}', '{"a": "{\\"id\\": 7, \\"id\\": 8}"}']
)
def test_arguments_with_colons_or_the_same_key_in_two_objects_are_read(text: str) -> None:
    assert parse_arguments(text) == (json.loads(text), False)


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("key", ["messages", "output_messages"])
def test_no_check_on_arguments_is_decided_by_a_key_that_occurs_twice(key: str, encoded: bool) -> None:
    text = '{"id": 7, "id": 8}'
    function = {"name": "find", "arguments": json.dumps(text) if encoded else text}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    ]
    answer = "final_response" if key == "messages" else "text"
    found = extract(formats.read(json.dumps({answer: "Done.", key: messages}).encode()))
    assert found.completeness.level == "partial"
    assert [(step.name, step.arguments) for step in found.steps] == [("find", None)]
    steps, notes = steps_from_objects(messages)
    assert [step.arguments for step in steps] == [None]
    assert [note.serious for note in notes] == [True]


@pytest.mark.parametrize(
    "messages",
    [
        [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "read", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "c", "name": "NAME", "content": "ok"},
        ],
        [
            {"type": "ai", "content": "", "tool_calls": [{"id": "c", "name": "read", "args": {}}]},
            {"type": "tool", "tool_call_id": "c", "name": "NAME", "content": "ok"},
        ],
        [
            {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "read", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "NAME", "response": {"r": 1}}}]},
        ],
    ],
    ids=["OpenAI", "LangChain", "Gemini"],
)
@pytest.mark.parametrize("container", ["messages", "final_response"])
def test_a_result_of_a_tool_that_its_call_is_not_of_is_a_serious_note(messages: list[Any], container: str) -> None:
    for name, expected in (("read", []), ("delete_account", ["serious"])):
        record: dict[str, Any] = {"messages": json.loads(json.dumps(messages).replace("NAME", name))}
        if container == "final_response":
            record["final_response"] = "Done."
        notes = formats.read(json.dumps(record).encode()).notes
        assert [note.weight for note in notes if note.code == "tool_result_of_another_tool"] == expected
