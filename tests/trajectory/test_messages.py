from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import SeatrialError
from seatrial.trajectory import expectation_from_steps, match, match_messages, steps_from_objects
from seatrial.trajectory.completeness import COMPLETE, Completeness
from seatrial.transcript.arguments import ARGUMENTS_NOT_JSON

ARGUMENTS = st.sampled_from(
    ['{"q": 1}', '{"q":1}', '{"q": 1.0}', '{"q": true}', "{}", '{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"q": 1e0}']
)
ODD_ARGUMENTS = st.sampled_from(
    ["", "{", "[1]", {"q": 1}, None, b"{}", '{"__clark_arg_parse_error":"","__clark_arg_raw":""}']
)
NAMES = st.sampled_from(["a", "b"])


def call(tool: Any, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": tool, "arguments": arguments}, **more}


def turn(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


USUAL = st.one_of(
    st.builds(turn, st.builds(call, NAMES, ARGUMENTS)),
    st.builds(turn, st.builds(call, NAMES, ARGUMENTS), st.builds(call, NAMES, ARGUMENTS)),
    st.just({"role": "tool", "tool_call_id": "c", "content": "x"}),
    st.just({"role": "user", "content": "go"}),
)
ODD = st.one_of(
    st.builds(turn, st.builds(call, NAMES, ODD_ARGUMENTS)),
    st.builds(turn, st.builds(call, st.sampled_from(["", None, 5]), ARGUMENTS)),
    st.builds(turn, st.builds(call, NAMES, ARGUMENTS, name=st.sampled_from(["z", ""]))),
    st.sampled_from(
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "a", "input": {"q": 1}}]},
            {"role": "user", "content": "x", "tool_calls": [call("a", "{}")]},
            {"role": "tool", "content": "x", "toolCalls": [call("a", "{}")]},
            {"role": "assistant", "tool_calls": [{"name": "a", "arguments": {"q": 1}}]},
            {"content": "x", "tool_calls": [call("a", "{}")]},
            {"role": "assistant", "content": "x", "tool_calls": {"a": 1}},
            {"role": "tool", "tool_call_id": "nowhere", "content": "x"},
            {"role": "assistant", "content": None, "function_call": {"name": "b", "arguments": "{}"}},
            {"role": "assistant", "content": "x", "actions": [{"name": "b"}]},
            {"role": "unheard_of", "content": "x"},
            5,
        ]
    ),
)
MESSAGES = st.lists(USUAL, max_size=5) | st.lists(USUAL | ODD, max_size=4)
MODES = st.sampled_from(["in_order", "exact", "superset", "subset", "unordered"])


@settings(max_examples=400)
@given(MODES, MESSAGES, MESSAGES, st.booleans())
def test_the_result_is_that_of_taking_the_steps_of_both_and_matching_them(
    mode: Any, expected: list[Any], actual: list[Any], same: bool
) -> None:
    actual = expected if same else actual
    reference, lost = steps_from_objects(expected)
    steps, notes = steps_from_objects(actual)
    dropped = [note for note in notes if note.serious]
    try:
        if any(note.serious and note.code != ARGUMENTS_NOT_JSON for note in lost):
            raise SeatrialError("invalid_document", "a reference of which something was dropped")
        known = Completeness("partial", "messages", ["messages"], dropped) if dropped else COMPLETE
        wanted = match(expectation_from_steps(mode, reference), steps, known)
    except SeatrialError:
        with pytest.raises(SeatrialError):
            match_messages(mode, expected, actual)
        return
    assert match_messages(mode, expected, actual) == wanted


def test_texts_that_differ_but_mean_the_same_are_the_same_call() -> None:
    expected = [turn(call("a", '{"x": 1, "y": 2}')), turn(call("a", '{"y":2.0,"x":1}'))]
    result = match_messages("unordered", expected, expected[::-1])
    assert [(pair.expected, pair.actual) for pair in result.matched] == [(0, 0), (1, 1)]
