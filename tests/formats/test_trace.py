"""The explicit trace: nothing that one of its events says is left out without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial import formats
from seatrial.trajectory import Trajectory, extract

CALL = {"type": "tool_call", "id": "1", "name": "search", "input": {"id": 7}}


def _trajectory(*events: dict[str, Any]) -> Trajectory:
    return extract(formats.read(json.dumps({"text": "Done.", "trace": events}).encode()))


@pytest.mark.parametrize(
    "event",
    [
        {"type": "model_step", "tool_calls": [{"name": "delete_account"}]},
        {"type": "model_step", "metadata": {"tool_calls": [{"name": "delete_account"}]}},
        {"type": "model_step", "output": {"content": [{"type": "tool_use", "id": "9", "name": "d", "input": {}}]}},
        {"type": "model_step", "output": [{"type": "function_call", "name": "delete_account"}]},
        {"type": "model_step", "children": [{"type": "tool_call", "name": "delete_account"}]},
        {"type": "message", "tool_calls": [{"id": "1", "function": {"name": "delete_account", "arguments": "{}"}}]},
        {**CALL, "children": [{"type": "tool_call", "id": "2", "name": "delete_account"}]},
        {**CALL, "arguments": {"id": 8}},
    ],
    ids=str,
)
def test_a_call_inside_an_event_makes_the_trace_partial(event: dict[str, Any]) -> None:
    assert _trajectory(event, CALL).completeness.level == "partial"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "model_step", "output": {"tool_calls": [{"id": "1", "function": {"name": "search"}}]}},
        {"type": "model_step", "input": [{"role": "assistant", "tool_calls": [{"id": "0"}]}], "output": "Done."},
        {
            "type": "model_step",
            "model": "m",
            "usage": {"input_tokens": 3},
            "duration_ms": 5,
            "metadata": {"span": {"id": "s"}},
        },
        {"type": "tool_result", "id": "1", "output": [{"tool": "hammer"}]},
    ],
    ids=str,
)
def test_calls_with_an_event_of_their_own_and_other_keys_leave_the_trace_complete(event: dict[str, Any]) -> None:
    assert _trajectory(CALL, event).completeness.level == "complete"


@pytest.mark.parametrize("key", ["arguments", "args"])
def test_arguments_by_another_name_are_the_arguments(key: str) -> None:
    found = _trajectory({"type": "tool_call", "name": "search", key: {"id": 7}})
    assert [step.arguments for step in found.steps] == [{"id": 7}]


FAILURES: list[dict[str, Any]] = [
    {"is_error": True}, {"status": "error"}, {"error": "no such user"}, {"success": False}, {"exit_code": 1},
    {"metadata": {"is_error": True}}, {"metadata": {"exit_code": 1}},
]  # fmt: skip


@pytest.mark.parametrize("said", FAILURES, ids=str)
def test_a_result_that_failed_in_any_spelling_is_an_error(said: dict[str, Any]) -> None:
    assert [step.status for step in _trajectory(CALL, {"type": "tool_result", "id": "1", **said}).steps] == ["error"]


@pytest.mark.parametrize("said", FAILURES, ids=str)
def test_a_call_with_its_output_inside_that_failed_in_any_spelling_is_an_error(said: dict[str, Any]) -> None:
    assert [step.status for step in _trajectory({**CALL, "output": "x", **said}).steps] == ["error"]


def test_a_key_without_a_field_is_kept_as_metadata_with_a_note() -> None:
    reading = formats.read(json.dumps({"text": "Done.", "trace": [{**CALL, "retries": 2}]}).encode())
    assert reading.trace is not None
    assert reading.trace[0].metadata == {"retries": 2}
    assert [(note.code, note.pointer, note.weight) for note in reading.notes if "trace" in note.code] == [
        ("trace_key_kept", "/trace/0/retries", "harmless")
    ]


def test_an_error_that_names_a_call_which_is_not_there_is_noted() -> None:
    notes = _trajectory(CALL, {"type": "error", "id": "2", "text": "boom"}).notes
    assert [(note.code, note.pointer) for note in notes] == [("tool_result_unpaired", "/trace/1")]


WRITTEN = '<tool_call>{"name": "search", "arguments": {"id": 7}}</tool_call>'


@pytest.mark.parametrize("event", [{"type": "model_step", "text": WRITTEN}, {"type": "message", "output": WRITTEN}])
def test_a_call_in_the_text_of_an_event_is_unknown_unless_it_has_an_event_of_its_own(event: dict[str, Any]) -> None:
    alone = _trajectory(event).completeness
    assert (alone.level, [note.code for note in alone.reasons]) == ("partial", ["calls_in_text"])
    assert _trajectory(event, {**CALL, "output": "ok"}).completeness.level == "complete"
    assert _trajectory(event, {**CALL, "input": {"id": 8}, "output": "ok"}).completeness.level == "partial"
    assert _trajectory({**event, "role": "user"}).completeness.level == "complete"
