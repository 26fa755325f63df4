"""Outputs of CrewAI 1.15: crews, tasks and agents, with calls of the model's API and in the form of ReAct."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial import formats
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract

PROMPT = [
    {
        "role": "system",
        "content": "You are clerk.\n\nAction: the action to take\nAction Input: its input\nObservation: ...",
    },
    {"role": "user", "content": "\nCurrent Task: Where is A-1009?", "cache_breakpoint": True},
]
ANALYZE = {"role": "user", "content": "Analyze the tool result."}


def calling(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def gave(call_id: str, name: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "content": text, "tool_call_id": call_id, "name": name}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def failure(name: str, arguments: Any, message: str) -> dict[str, Any]:
    about = {"message": message, "reason": "exception", "code": "ValueError", "retryable": False, "details": {}}
    return {"tool_name": name, "failure": about, "tool_args": arguments, "agent_role": "clerk"}


def task(*messages: dict[str, Any], raw: str = "It is on its way.", failures: Any = ()) -> dict[str, Any]:
    about = {
        "description": "Where is A-1009?",
        "expected_output": "an answer",
        "agent": "clerk",
        "output_format": "raw",
    }
    return {**about, "raw": raw, "messages": [*PROMPT, *messages], "tool_failures": [*failures]}


def crew(*tasks: dict[str, Any], asked: int, raw: str = "It is on its way.") -> dict[str, Any]:
    usage = {"total_tokens": 30, "prompt_tokens": 20, "completion_tokens": 10, "successful_requests": asked}
    return {"raw": raw, "pydantic": None, "json_dict": None, "tasks_output": [*tasks], "token_usage": usage}


def read(document: dict[str, Any]) -> Reading:
    reading = formats.read(json.dumps(document).encode())
    assert reading.format == "crewai"
    return reading


def calls_of(document: dict[str, Any]) -> list[tuple[str, Any, str]]:
    return [(step.name, step.arguments, step.status) for step in extract(read(document)).steps]


def level_of(document: dict[str, Any]) -> str:
    return extract(read(document)).completeness.level


FOUND = (calling("c1", "find_order", {"order": "A-1009"}), gave("c1", "find_order", "shipped"))
LOOKED = said('Thought: look\nAction: find_order\nAction Input: {"order": "A-1009"}\nObservation: shipped')


def test_a_crew_has_its_calls_its_answer_and_its_usage() -> None:
    document = crew(task(*FOUND, said("It is on its way.")), asked=2)
    assert calls_of(document) == [("find_order", {"order": "A-1009"}, "ok")]
    assert level_of(document) == "complete"
    reading = read(document)
    assert reading.transcript.final_text() == "It is on its way."
    assert reading.transcript.usage is not None
    assert reading.transcript.usage.output_tokens == 10


def test_the_prompt_of_each_task_is_given() -> None:
    transcript = read(crew(task(*FOUND, said("first")), task(said("second")), asked=3)).transcript
    given = [transcript.messages[index] for index in transcript.given]
    assert [type(message).__name__ for message in given] == ["UserMessage", "UserMessage"]


def test_the_output_of_a_task_and_of_an_agent_are_read_as_well() -> None:
    usage = {"usage_metrics": {"prompt_tokens": 2, "completion_tokens": 1, "successful_requests": 2}}
    output = task(*FOUND, said("It is on its way."))
    agent = {"raw": output["raw"], "agent_role": "clerk", "messages": output["messages"], "tool_failures": [], **usage}
    agent |= {"pydantic": None, "plan": None, "todos": [], "replan_count": 0, "last_replan_reason": None}
    assert calls_of(output) == calls_of(agent) == [("find_order", {"order": "A-1009"}, "ok")]
    assert level_of(agent) == "complete"
    assert level_of(output) == "partial"


def test_a_failed_call_is_the_one_that_the_task_names() -> None:
    again = (calling("c2", "find_order", {"order": "B-1"}), gave("c2", "find_order", "Error executing tool: no B-1"))
    failures = [failure("find_order", {"order": "B-1"}, "no B-1")]
    document = crew(task(*FOUND, *again, said("no"), failures=failures), asked=3)
    assert [status for _, _, status in calls_of(document)] == ["ok", "error"]
    assert level_of(document) == "complete"


def test_equal_failures_are_recorded_once_and_mark_every_call_that_gave_them() -> None:
    twice = [
        message
        for call_id in ("c2", "c3")
        for message in (calling(call_id, "pay", {}), gave(call_id, "pay", "Error executing tool: no money"))
    ]
    paid = (calling("c4", "pay", {}), gave("c4", "pay", "paid"))
    document = crew(task(*twice, *paid, said("paid"), failures=[failure("pay", {}, "no money")]), asked=4)
    assert [status for _, _, status in calls_of(document)] == ["error", "error", "ok"]


def test_a_failure_of_a_call_that_is_not_there_makes_the_calls_partial() -> None:
    document = crew(task(*FOUND, said("ok"), failures=[failure("refund", {}, "no")]), asked=2)
    assert level_of(document) == "partial"


def test_without_a_list_of_failures_nobody_knows_which_calls_failed() -> None:
    output = task(*FOUND, said("ok"))
    del output["tool_failures"]
    assert [status for _, _, status in calls_of(crew(output, asked=2))] == ["unknown"]


def test_calls_in_the_form_of_react_are_read_with_their_observation() -> None:
    document = crew(task(LOOKED, ANALYZE), asked=2)
    assert calls_of(document) == [("find_order", {"order": "A-1009"}, "ok")]
    assert level_of(document) == "complete"
    assert read(document).transcript.final_text() == "It is on its way."


def test_a_failed_call_in_the_form_of_react_explains_the_form_in_its_observation() -> None:
    observed = "no B-1\nTo use a tool, use:\nAction: [name]\nAction Input: [JSON]\n\nFinal Answer: [complete response]"
    looked = said(f'Thought: look\nAction: Find Order\nAction Input: {{"order": "B-1"}}\nObservation: \n{observed}')
    failures = [failure("find_order", '{"order": "B-1"}', "no B-1")]
    document = crew(task(looked, ANALYZE, failures=failures), asked=2)
    assert calls_of(document) == [("Find Order", {"order": "B-1"}, "error")]


def test_an_observation_that_the_model_may_have_made_up_is_no_call() -> None:
    made_up = said("Thought: t\nAction: refund\nAction Input: {}\nObservation: done\nFinal Answer: It is refunded.")
    document = crew(task(made_up, raw="It is refunded."), asked=1)
    assert calls_of(document) == []
    assert level_of(document) == "partial"


def test_arguments_that_are_not_json_are_kept_as_text() -> None:
    looked = said("Thought: look\nAction: search\nAction Input: where is it\nObservation: nowhere")
    [step] = extract(read(crew(task(looked, ANALYZE), asked=2))).steps
    assert (step.name, step.arguments_text) == ("search", "where is it")


@pytest.mark.parametrize(
    ("asked", "part"), [(0, "does not say how often"), (1, "asked 1 times"), (5, "begin each with")]
)
def test_answers_that_are_missing_make_the_calls_partial_with_the_reason(asked: int, part: str) -> None:
    document = crew(task(*FOUND, said("It is on its way.")), asked=asked)
    [reason] = extract(read(document)).completeness.reasons
    assert reason.code == "answers_missing"
    assert part in reason.message


def test_tasks_are_read_in_order_and_the_result_of_a_tool_may_be_the_answer_of_one() -> None:
    by_tool = task(calling("c1", "refund", {}), gave("c1", "refund", "refunded"), raw="refunded")
    document = crew(task(*FOUND, said("first")), by_tool, asked=3, raw="refunded")
    assert [name for name, _, _ in calls_of(document)] == ["find_order", "refund"]
    assert level_of(document) == "complete"
    assert read(document).transcript.final_text() == "refunded"


def test_what_a_coworker_called_is_not_known() -> None:
    asked = (calling("c1", "delegate_work_to_coworker", {}), gave("c1", "delegate_work_to_coworker", "done"))
    reasons = extract(read(crew(task(*asked, said("done")), asked=2))).completeness.reasons
    assert [reason.code for reason in reasons] == ["subagent_missing"]


def test_tasks_without_messages_list_no_calls() -> None:
    document = {"raw": "Done.", "tasks_output": [{"raw": "Done."}], "token_usage": {}}
    assert calls_of(document) == []
    assert level_of(document) != "complete"


@pytest.mark.parametrize("key", ["planned_calls", "steps"])
def test_keys_that_are_not_known_are_not_passed_over(key: str) -> None:
    document = crew(task(*FOUND, said("It is on its way.")), asked=2)
    for where in (document, document["tasks_output"][0], document["tasks_output"][0]["messages"][-1]):
        where[key] = [{"tool": "refund", "args": {}}]
        assert level_of(document) == "partial", where
        del where[key]
