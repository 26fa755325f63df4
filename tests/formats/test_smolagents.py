"""Steps of smolagents, as smolagents 1.26 gives them (timing and the model's input left out)."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial import formats
from seatrial._support import wire
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract
from seatrial.transcript import AssistantMessage, SystemMessage, UserMessage

TASK = {"task": "Where is A-1?", "task_images": None}
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


def call(name: str, arguments: Any, call_id: str = "c0") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments, "description": None}}


def step(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "tool_calls": [*calls] or None, "raw": None, "token_usage": USAGE}
    given = {"step_number": 1, "tool_calls": [*calls], "error": None, "model_output_message": message}
    return {**given, "observations": None, "token_usage": USAGE, "is_final_answer": False, **more}


LOOKED = step(call("find_order", {"order": "A-1"}), observations="sent")
FAILED = step(
    call("delete_account", {"user": "u1"}),
    tool_calls=[],
    error={"type": "AgentToolExecutionError", "message": "not allowed"},
)
ANSWERED = step(call("final_answer", {"answer": "It was sent."}), observations="It was sent.", is_final_answer=True)
CODE = "find_order('A-1')"
RAN = step(
    tool_calls=[call("python_interpreter", CODE)],
    code_action=CODE,
    observations="Execution logs:\nsent",
    action_output="It was sent.",
    is_final_answer=True,
)


def read(*steps: dict[str, Any]) -> Reading:
    return formats.read(wire.encode([*steps]))


def made(reading: Reading) -> list[tuple[str, str]]:
    return [(found.name, found.status) for found in extract(reading).steps]


@pytest.mark.parametrize(
    "document", [[TASK, LOOKED, ANSWERED], {"steps": [TASK, LOOKED, ANSWERED], "state": "success"}]
)
def test_steps_and_results_are_read_and_the_final_answer_is_no_call(document: Any) -> None:
    reading = formats.read(wire.encode(document))
    assert reading.format == "smolagents"
    assert made(reading) == [("find_order", "ok")]
    assert extract(reading).completeness.level == "complete"
    assert reading.transcript.final_text() == "It was sent."
    used = reading.transcript.tokens()
    assert used is not None
    assert (used.input, used.output) == (20, 10)


def test_a_call_that_failed_is_only_in_the_message_of_the_model() -> None:
    reading = read(TASK, FAILED, ANSWERED)
    [failed] = extract(reading).steps
    assert (failed.name, failed.arguments, failed.status) == ("delete_account", {"user": "u1"}, "error")
    assert failed.error == "not allowed"


def test_an_answer_that_was_refused_is_a_call() -> None:
    refused = step(call("final_answer", {"answer": "no"}), error={"type": "AgentError", "message": "a check failed"})
    assert made(read(TASK, refused, ANSWERED)) == [("final_answer", "error")]


def test_one_text_for_several_calls_says_nothing_of_which_of_them_failed() -> None:
    calls = (call("look", {}, "c0"), call("refund", {}, "c1"))
    together = read(TASK, step(*calls, observations="a\nb"), ANSWERED)
    assert made(together) == [("look", "ok"), ("refund", "ok")]
    assert [note.code for note in together.notes] == ["results_as_one"]
    failed = read(TASK, step(*calls, error={"message": "no"}), ANSWERED)
    assert made(failed) == [("look", "unknown"), ("refund", "unknown")]


def test_what_code_called_is_unknown() -> None:
    reading = read(TASK, RAN)
    found = extract(reading)
    assert [(each.name, each.arguments) for each in found.steps] == [("python_interpreter", {"code": CODE})]
    assert found.completeness.level == "partial"
    assert [note.code for note in found.completeness.reasons] == ["calls_of_code"]
    assert reading.transcript.final_text() == "It was sent."


def test_what_the_model_wrote_and_could_not_be_used_is_no_call() -> None:
    unusable = step(error={"type": "AgentParsingError", "message": "there is no call"})
    reading = read(TASK, unusable, LOOKED, ANSWERED)
    assert made(reading) == [("find_order", "ok")]
    assert extract(reading).completeness.level == "complete"


def test_plans_and_prompts_have_a_place() -> None:
    plan = {"plan": "I look, then I answer.", "model_input_messages": [], "token_usage": USAGE}
    reading = read({"system_prompt": "You are a clerk."}, TASK, plan, LOOKED, ANSWERED)
    kinds = [type(message) for message in reading.transcript.messages[:3]]
    assert kinds == [SystemMessage, UserMessage, AssistantMessage]
    assert extract(reading).completeness.level == "complete"


def test_calls_under_keys_that_are_not_known_leave_the_record_partial() -> None:
    hidden = {**LOOKED, "more_calls": [{"name": "delete_account", "arguments": {}}]}
    assert extract(read(TASK, hidden, ANSWERED)).completeness.level == "partial"
    unnamed = step(call("", {}))
    assert extract(read(TASK, unnamed, ANSWERED)).completeness.level == "partial"


def test_a_call_that_only_the_step_lists_leaves_the_record_partial() -> None:
    other = {**LOOKED, "tool_calls": [call("delete_account", {}, "c9")]}
    assert extract(read(TASK, other, ANSWERED)).completeness.level == "partial"


@pytest.mark.parametrize("odd", [5, "x", {"a": 1}, [None, 3], True])
def test_anything_where_calls_belong_is_read_without_a_fault(odd: Any) -> None:
    message = {"role": "assistant", "content": odd, "tool_calls": odd}
    odd_step = {"step_number": odd, "model_output_message": message, "tool_calls": odd, "observations": odd}
    assert extract(read(TASK, odd_step, {**odd_step, "tool_calls": [5]})).completeness.level == "partial"
