"""Items, whole responses and streams of OpenAI's Responses API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial import formats
from seatrial.formats import responses
from seatrial.formats.reading import Reading
from seatrial.trajectory import extract
from seatrial.transcript import AssistantMessage, ReasoningDetailsBlock, TextBlock, Usage

SAMPLES = Path(__file__).parent.parent.parent / "samples"

CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "find", "arguments": '{"order":"A"}'}


def read(*items: dict[str, Any]) -> Reading:
    return responses.read(json.dumps(list(items)).encode())


def steps(reading: Reading) -> list[tuple[str, Any, str, str]]:
    return [(step.name, step.arguments, step.status, step.executed_by) for step in extract(reading).steps]


def test_a_result_is_paired_by_its_call_id_and_never_by_its_id() -> None:
    reading = read(CALL, {"type": "function_call_output", "id": "fc_1", "call_id": "c1", "output": "shipped"})
    assert steps(reading) == [("find", {"order": "A"}, "ok", "agent")]
    assert reading.notes == []


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "q"}},
         ("web_search", {"action": {"type": "search", "query": "q"}}, "ok", "provider")),
        ({"type": "file_search_call", "id": "f", "status": "failed", "queries": ["q"]},
         ("file_search", {"queries": ["q"]}, "error", "provider")),
        ({"type": "code_interpreter_call", "id": "i", "code": "1", "status": "completed", "outputs": [{"logs": "1"}]},
         ("code_interpreter", {"code": "1"}, "ok", "provider")),
        ({"type": "mcp_call", "id": "m", "name": "delete", "server_label": "s", "arguments": "{}", "output": "done"},
         ("delete", {}, "ok", "provider")),
        ({"type": "mcp_call", "id": "m", "name": "delete", "arguments": "{}", "error": "denied"},
         ("delete", {}, "error", "provider")),
        ({"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "[1]"},
         ("sql", "[1]", "unknown", "agent")),
        ({"type": "local_shell_call", "call_id": "c", "action": {"command": ["rm"]}},
         ("local_shell", {"action": {"command": ["rm"]}}, "unknown", "agent")),
    ],
)  # fmt: skip
def test_every_kind_of_call_is_a_step_with_who_ran_it(
    item: dict[str, Any], expected: tuple[str, Any, str, str]
) -> None:
    reading = read(item)
    assert steps(reading) == [expected]
    assert not any(note.serious for note in reading.notes)


def test_a_command_that_ended_badly_is_a_failed_result() -> None:
    call = {"type": "shell_call", "call_id": "c", "action": {"commands": ["false"]}}
    output = [{"stdout": "", "outcome": {"type": "exit", "exit_code": 1}}]
    reading = read(call, {"type": "shell_call_output", "call_id": "c", "output": output})
    assert [step.status for step in extract(reading).steps] == ["error"]


def test_items_of_the_model_that_follow_each_other_are_one_turn() -> None:
    reasoning = {"type": "reasoning", "id": "r", "summary": [{"text": "why"}], "encrypted_content": "gAAA"}
    message = {"type": "message", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "Let me look."}]}  # fmt: skip
    (turn,) = read(reasoning, message, CALL).transcript.messages
    assert isinstance(turn, AssistantMessage)
    assert [type(block) for block in turn.content[:2]] == [ReasoningDetailsBlock, TextBlock]
    assert len(turn.tool_calls()) == 1


def test_the_text_of_a_whole_response_is_a_setting_and_never_the_answer() -> None:
    body = {"object": "response", "text": {"format": {"type": "text"}}, "output": [CALL], "status": "completed"}
    assert formats.read(json.dumps(body).encode()).transcript.final_text() is None


def test_the_sample_and_its_stream_say_the_same() -> None:
    whole = formats.read((SAMPLES / "responses.json").read_bytes())
    streamed = formats.read((SAMPLES / "responses-stream.sse").read_bytes())
    assert whole.transcript.messages == streamed.transcript.messages
    assert [step.name for step in extract(whole).steps] == ["find_order"]
    (turn,) = whole.transcript.messages
    assert isinstance(turn, AssistantMessage)
    assert turn.usage == Usage(60, 20, 0, 40)


def test_an_item_that_stands_for_others_is_a_serious_note() -> None:
    assert [note.weight for note in read({"type": "item_reference", "id": "x"}, CALL).notes] == ["serious"]


ASKED = {"type": "mcp_approval_request", "id": "a1", "name": "pay", "arguments": "{}", "server_label": "shop"}
APPROVED = {"type": "mcp_approval_response", "id": "r1", "approval_request_id": "a1", "approve": True}
PAID = {"type": "mcp_call", "id": "m1", "name": "pay", "arguments": "{}", "approval_request_id": "a1", "output": "ok"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "May I?"}]}


@pytest.mark.parametrize(
    ("items", "waits"),
    [
        ([SAID, ASKED], True),
        ([ASKED, SAID], True),
        ([ASKED, APPROVED, PAID, {**ASKED, "id": "a2"}], True),
        ([{**ASKED, "id": None}, APPROVED], True),
        ([ASKED, APPROVED, PAID, SAID], False),
        ([ASKED, APPROVED, SAID], False),
        ([ASKED, PAID, SAID], False),
        ([SAID], False),
    ],
)
def test_a_request_for_an_approval_that_nobody_answered_waits_for_input(items: list[Any], *, waits: bool) -> None:
    for record in (items, {"input": items, "output": []}, {"output_messages": items}):
        reading = formats.read(json.dumps(record).encode())
        assert ("waits_for_input" in [note.code for note in reading.notes if note.serious]) is waits


@pytest.mark.parametrize(
    ("items", "level"),
    [
        ([ASKED, APPROVED, SAID], "partial"),
        ([ASKED, {**APPROVED, "approve": None}, SAID], "partial"),
        ([APPROVED, SAID], "partial"),
        ([ASKED, APPROVED, PAID, {**ASKED, "id": "a2"}, {**APPROVED, "approval_request_id": "a2"}, SAID], "partial"),
        ([ASKED, {**APPROVED, "approve": False}, SAID], "complete"),
        ([ASKED, APPROVED, PAID, SAID], "complete"),
    ],
)
def test_a_call_that_was_approved_must_be_in_the_record_and_one_that_was_denied_was_not_made(
    items: list[Any], level: str
) -> None:
    found = extract(formats.read(json.dumps(items).encode()))
    assert found.completeness.level == level
    assert [step.name for step in found.steps] == ["pay"] * items.count(PAID)
