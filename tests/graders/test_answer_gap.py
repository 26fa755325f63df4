"""An answer of which a part is missing: what is found in it is found, and nothing else is known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graders.subjects import subject, verdict
from seatrial.formats import read
from seatrial.graders import Subject
from seatrial.graders.answer_gap import ANSWER_INCOMPLETE, answer_gap

MYSTERY = {"type": "mystery", "text": "password is x"}
HELLO = {"type": "text", "text": "Hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "ok"}


def answered(record: Any) -> Subject:
    run = subject()
    run.run.reading = read(record if isinstance(record, bytes) else json.dumps(record).encode())
    return run


def completion(*choices: dict[str, Any]) -> dict[str, Any]:
    made = [{"index": index, "finish_reason": "stop", **choice} for index, choice in enumerate(choices)]
    return {"id": "x", "object": "chat.completion", "choices": made}


def choice(text: str, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}, **more}


INCOMPLETE: list[Any] = [
    [{"role": "assistant", "content": [HELLO, MYSTERY]}],
    [{"role": "assistant", "content": [MYSTERY, HELLO]}],
    [{"role": "user", "content": "go"}, {"role": "assistant", "content": [HELLO, MYSTERY]}],
    [{"role": "assistant", "content": "Hi"}, {"role": "assistant", "content": [MYSTERY]}],
    [{"role": "assistant", "content": "Hi"}, {"role": "weird", "content": "password is x"}],
    {"role": "assistant", "content": [HELLO, MYSTERY]},
    {"messages": [{"role": "assistant", "content": [HELLO, MYSTERY]}]},
    completion(choice("Hi"), choice("password")),
    completion(choice("Hi", finish_reason="length")),
    completion(choice("Hi", finish_reason="content_filter")),
    b'{"final_response": "password", "final_response": "Hi"}',
    b'[{"role": "assistant", "content": "password", "content": "Hi"}]',
    [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": name, "name": "find", "input": {}} for name in "ab"],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in "ab"]},
        {"role": "assistant", "content": [HELLO, MYSTERY]},
    ],
]
WHOLE: list[Any] = [
    [{"role": "assistant", "content": [HELLO]}],
    [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, MYSTERY], "tool_calls": [CALL]},
        RESULT,
        {"role": "assistant", "content": "Hi"},
    ],
    {"final_response": "Hi", "messages": [{"role": "assistant", "content": [HELLO, MYSTERY]}]},
    [{"role": "assistant", "content": [HELLO, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]}],
    completion(choice("Hi")),
    completion(choice("Hi", finish_reason="done")),
    {"final_response": "Hi"},
]
NOT_SAID: list[dict[str, Any]] = [
    {"kind": "contains", "value": "password", "negate": True},
    {"kind": "icontains", "value": "password", "negate": True},
    {"kind": "contains_any", "values": ["password", "secret"], "negate": True},
    {"kind": "regex", "pattern": "pass[a-z]+", "negate": True},
    {"kind": "regex", "pattern": r"\A(?!.*password)"},
    {"kind": "equals", "value": "Hi"},
    {"kind": "ends_with", "value": "Hi"},
    {"kind": "composite", "graders": [{"kind": "contains", "value": "password"}], "negate": True},
]
SAID: list[dict[str, Any]] = [
    {"kind": "contains", "value": "Hi"},
    {"kind": "regex", "pattern": "(?i)h."},
    {"kind": "contains_all", "values": ["Hi"]},
    {"kind": "contains_all", "values": ["Hi", "password"], "min_score": 0.5},
]


@pytest.mark.parametrize("grader", NOT_SAID)
@pytest.mark.parametrize("record", INCOMPLETE)
def test_an_answer_with_a_part_missing_does_not_show_what_it_does_not_say(record: Any, grader: dict[str, Any]) -> None:
    found = verdict(answered(record), grader)
    assert (found.outcome, found.code) == ("errored", ANSWER_INCOMPLETE)
    if grader["kind"] != "composite":
        assert "a part of the answer is missing" in found.reasons[0]
        assert found.reasons[-1].startswith("To do: ")


@pytest.mark.parametrize("grader", SAID)
@pytest.mark.parametrize("record", INCOMPLETE)
def test_what_is_found_in_a_part_of_the_answer_is_found(record: Any, grader: dict[str, Any]) -> None:
    assert verdict(answered(record), grader).outcome == "passed"
    assert verdict(answered(record), {**grader, "negate": True}).outcome == "failed"


@pytest.mark.parametrize("record", INCOMPLETE)
def test_what_is_not_found_in_a_part_of_the_answer_may_be_in_the_rest(record: Any) -> None:
    graders: list[dict[str, Any]] = [
        {"kind": "contains", "value": "password"},
        {"kind": "contains_all", "values": ["Hi", "password"]},
        {"kind": "contains_all", "values": ["Hi", "password"], "min_score": 0.9},
        {"kind": "is_json"},
    ]
    for grader in graders:
        found = verdict(answered(record), grader)
        assert (found.outcome, found.code) == ("errored", ANSWER_INCOMPLETE)


@pytest.mark.parametrize("record", WHOLE)
def test_a_whole_answer_is_judged_whatever_is_missing_elsewhere(record: Any) -> None:
    run = answered(record)
    assert answer_gap(run) is None
    assert {verdict(run, grader).outcome for grader in NOT_SAID} == {"passed"}
    assert verdict(run, {"kind": "contains", "value": "password"}).outcome == "failed"
