"""What a function may return, and what that means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.setting import error_class
from seatrial._support import wire
from seatrial.agents.python.returned import read_returned
from seatrial.trajectory import extract


class Answer(msgspec.Struct):
    final_response: str
    messages: list[Any] = []


@dataclass
class Output:
    text: str
    output_messages: list[Any] = field(default_factory=list)


class Model:
    """Has the one method of a pydantic model that counts."""

    def model_dump_json(self) -> str:
        return '{"final_response":"from a model"}'


@pytest.mark.parametrize(
    ("value", "answer", "format"),
    [
        ("hello", "hello", "output-messages"),
        ('{"final_response": "x"}', '{"final_response": "x"}', "output-messages"),
        ({"final_response": "x"}, "x", "agent-response"),
        ({"final_response": "x", "messages": None, "metadata": {"model": "m"}}, "x", "agent-response"),
        ({"text": "x"}, "x", "output-messages"),
        ({"output_messages": [{"role": "assistant", "content": "x"}]}, "x", "output-messages"),
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "x"}], "x", "output-messages"),
        (({"role": "assistant", "content": "x"},), "x", "output-messages"),
        (b"plain bytes", "plain bytes", "output-messages"),
        (b'{"final_response": "x"}', "x", "agent-response"),
        (b'{"text": "x"}', "x", "output-messages"),
        (Answer("x"), "x", "agent-response"),
        (Output("x"), "x", "output-messages"),
        (Model(), "from a model", "agent-response"),
    ],
)
def test_what_is_understood(value: Any, answer: str, format: str) -> None:
    reply = read_returned(value)
    assert reply.fault is None
    assert reply.reading is not None
    assert reply.reading.format == format
    assert reply.reading.transcript.final_text() == answer
    assert reply.body


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "nothing"),
        ("", "empty"),
        (" \n", "empty"),
        (b"", "empty"),
        (7, "int"),
        (True, "bool"),
        ({"final_response": ""}, "final_response"),
        ({"final_response": None}, "final_response"),
        ({}, "none of them"),
        ({"answer": "x"}, "none of them"),
        ({"final_response": object()}, "cannot be written as JSON"),
        (object(), "cannot be written as JSON"),
        (b'{"final_response": "x"', "JSON"),
        ({"final_response": 2**70}, "final_response"),
    ],
)
def test_what_is_not(value: Any, words: str) -> None:
    reply = read_returned(value)
    assert error_class(reply) == "agent_bad_response"
    assert reply.fault is not None
    assert words in reply.fault.message


def test_calls_of_a_list_of_messages_are_steps() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "book", "arguments": '{"n": 2}'}}
    reply = read_returned([{"role": "assistant", "content": "ok", "tool_calls": [call]}])
    assert reply.reading is not None
    assert [(step.name, step.arguments) for step in extract(reply.reading).steps] == [("book", {"n": 2})]


def test_a_whole_response_of_bedrock_converse_is_read_with_its_calls() -> None:
    call = {"toolUse": {"toolUseId": "1", "name": "delete_account", "input": {}}}
    output = {"message": {"role": "assistant", "content": [call]}}
    reply = read_returned({"output": output, "stopReason": "tool_use", "usage": {"inputTokens": 1, "outputTokens": 1}})
    assert reply.reading is not None
    assert [step.name for step in extract(reply.reading).steps] == ["delete_account"]


def test_an_object_nested_too_deeply_is_a_bad_response() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert error_class(read_returned({"final_response": "x", "metadata": deep})) == "agent_bad_response"
    while deep:
        deep = deep.popitem()[1]


@given(st.text(alphabet=st.characters()))
def test_any_text_that_is_not_blank_is_the_answer_as_it_is(text: str) -> None:
    reply = read_returned(text)
    if not text.encode("utf-8", "replace").strip():
        assert error_class(reply) == "agent_bad_response"
    else:
        assert reply.reading is not None
        expected = wire.without_surrogates(text)
        assert reply.reading.transcript.final_text() == expected.removeprefix("\ufeff")


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["final_response", "messages", "text", "output_messages", "trace"]) | st.text(), _json
    )
)
def test_no_object_makes_it_raise(value: dict[str, Any]) -> None:
    reply = read_returned(value)
    assert error_class(reply) in (None, "agent_bad_response")
    assert reply.fault is not None or reply.reading is not None
    assert reply.body == wire.encode(value)


def doubled(levels: int) -> list[Any]:
    """A list that is small in memory, and twice as long as JSON for each level."""
    value: Any = "a" * 8
    for _ in range(levels):
        value = [value, value]
    return [value]


@pytest.mark.parametrize(
    "value",
    [{"final_response": "hi", "x": doubled(40)}, doubled(40), {"x": ["a" * 1_000_000] * 100}],
    ids=["in an object", "in a list", "texts"],
)
def test_a_value_that_is_small_in_memory_and_endless_as_json_is_too_large(value: Any) -> None:
    reply = read_returned(value)
    assert reply.fault is not None
    assert reply.fault.error_class == "response_too_large"


def test_a_circle_of_lists_is_too_large() -> None:
    circle: list[Any] = []
    circle.append(circle)
    reply = read_returned({"final_response": "hi", "x": circle})
    assert reply.fault is not None
    assert reply.fault.error_class == "response_too_large"
