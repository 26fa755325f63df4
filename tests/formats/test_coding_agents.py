"""Records of Claude Code and of Codex: sessions, rollouts, and what they print."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from strategies.mutations import mutations
from verdicts.corpus import DELETE, FIND
from verdicts.shapes import claude_code, claude_stream, codex_exec, codex_rollout, lines
from zstandard import ZstdCompressor

from seatrial import formats
from seatrial.agents.output import reading_fault
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading
from seatrial.trajectory import Step, extract
from seatrial.transcript import CustomMessage

SAMPLES = Path(__file__).parent.parent.parent / "samples"
NAMES = ["claude-code-session.jsonl", "claude-stream-json.jsonl", "codex-exec.jsonl", "codex-rollout.jsonl"]
Json = dict[str, Any]


def read(records: list[Json]) -> Reading:
    return formats.read(lines(records))


def steps(reading: Reading) -> list[Step]:
    return extract(reading).steps


def codes(reading: Reading) -> list[str]:
    return [note.code for note in reading.notes]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_failed_is_a_failed_call_and_counts_are_not_doubled(name: str) -> None:
    reading = formats.read((SAMPLES / name).read_bytes())
    [step] = steps(reading)
    assert (
        step.name
        == {"claude": "Bash", "codex-e": "shell", "codex-r": "exec_command"}[
            "claude" if name.startswith("claude") else name[:7]
        ]
    )
    assert step.status == "error"
    assert reading.transcript.final_text() == "One test fails."
    tokens = reading.transcript.tokens()
    assert tokens is not None
    assert (tokens.input, tokens.output) == ((624, 14) if name.startswith("claude") else (900, 20))


@pytest.mark.parametrize("name", NAMES)
def test_a_record_that_is_cut_anywhere_is_refused_or_noted(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    for length in range(len(data)):
        try:
            reading = formats.read(data[:length], formats.detect(data).format)
        except SeatrialError:
            continue
        if data[:length].strip() != data.strip():
            assert any(note.serious for note in reading.notes), length


@pytest.mark.parametrize("name", NAMES)
def test_mutated_records_raise_nothing_but_our_error(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    format = formats.detect(data).format
    read_at_all = 0
    for mutation in mutations([data], 1500):
        with suppress(SeatrialError):
            extract(formats.read(mutation, format))
            read_at_all += 1
    assert read_at_all > 300


def test_many_lines_of_one_turn_are_read_in_time() -> None:
    session = claude_code([FIND])
    turn = [{**session[1], "uuid": f"t{number}"} for number in range(5000)]
    assert len(read([session[0], *turn, *session[2:]]).transcript.messages) == 4


# Claude Code


def test_lines_of_one_turn_are_one_message() -> None:
    reading = read(claude_code([FIND]))
    assert [type(message).__name__ for message in reading.transcript.messages] == [
        "UserMessage", "AssistantMessage", "ToolResultMessage", "AssistantMessage",
    ]  # fmt: skip
    tokens = reading.transcript.tokens()
    assert tokens is not None
    assert tokens.output == 4
    assert reading.notes == []


def test_the_calls_of_a_sub_agent_are_calls_with_an_actor() -> None:
    found = steps(read(claude_stream([DELETE], parent="task")))
    assert [(step.name, step.actor, step.parent) for step in found] == [
        ("Task", None, None),
        ("delete_account", "helper", "task"),
    ]


def test_a_sub_agent_whose_lines_are_elsewhere_is_noted_unless_it_called_nothing() -> None:
    session = claude_code([FIND._replace(name="Task")])
    assert codes(read(session)) == ["subagent_missing"]
    session[3]["toolUseResult"] = {"agentId": "a", "totalToolUseCount": 0}
    assert codes(read(session)) == []


def test_the_lines_of_a_sub_agent_beside_the_session_are_its_own() -> None:
    session = claude_code([FIND._replace(name="Task")])
    session[3]["toolUseResult"] = {"agentId": "a1", "totalToolUseCount": 1}
    side = [
        json.loads(
            json.dumps(line).replace('"c0"', '"side"').replace('"m', '"side-m').replace('"side-message"', '"message"')
        )
        for line in claude_code([DELETE])
    ]
    for line in side:
        line |= {"isSidechain": True, "agentId": "a1", "uuid": f"side-{line['uuid']}"}
        line["parentUuid"] = line["parentUuid"] and f"side-{line['parentUuid']}"
    reading = read([*session, *side])
    assert [(step.name, step.actor, step.parent) for step in steps(reading)] == [
        ("Task", None, None),
        ("delete_account", "a1", "c0"),
    ]
    assert not any(note.serious for note in reading.notes)
    assert reading.transcript.final_text() == "Done."


def test_branches_are_read_and_noted() -> None:
    session = claude_code([DELETE])
    again = {**session[0], "uuid": "again", "parentUuid": session[3]["uuid"]}
    reading = read([*session, again, {**session[-1], "uuid": "end", "parentUuid": "again"}])
    assert [step.name for step in steps(reading)] == ["delete_account"]
    assert codes(reading) == ["session_branches"]


def test_a_summary_of_what_is_here_is_kept_apart_and_one_of_what_is_not_is_noted() -> None:
    session = claude_code([FIND])
    summary = {**session[0], "isCompactSummary": True, "uuid": "c", "parentUuid": None}
    reading = read([*session, summary])
    assert type(reading.transcript.messages[-1]) is CustomMessage
    assert reading.notes == []
    assert codes(read([summary, *session])) == ["earlier_turns_missing"]


def test_a_line_whose_parent_is_missing_is_noted() -> None:
    assert codes(read(claude_code([FIND])[4:])) == ["earlier_turns_missing"]


def test_a_session_that_ends_with_an_error_of_the_provider_has_failed() -> None:
    session = claude_code([FIND])
    session[-1]["isApiErrorMessage"] = True
    fault = reading_fault(read(session))
    assert fault is not None
    assert fault.error_class == "agent_reported_error"


def test_an_interrupted_command_is_a_failed_call() -> None:
    session = claude_code([FIND])
    session[3]["toolUseResult"] = {"stdout": "", "interrupted": True}
    assert [step.status for step in steps(read(session))] == ["error"]


@pytest.mark.parametrize(
    "end", [{"is_error": True}, {"subtype": "error_max_turns", "result": None}, {"subtype": "error_during_execution"}]
)
def test_a_result_that_is_an_error_is_a_failed_run(end: Json) -> None:
    stream = claude_stream([FIND])
    fault = reading_fault(read([*stream[:-1], {**stream[-1], **end}]))
    assert fault is not None
    assert fault.error_class == "agent_reported_error"


def test_the_result_has_the_answer_the_cost_and_the_counts_and_alone_lists_no_calls() -> None:
    reading = formats.read(json.dumps(claude_stream([])[-1]).encode())
    run = reading.transcript
    assert (run.final_text(), run.cost_usd, run.duration_ms) == ("Done.", 0.25, 1200)
    assert reading.answer_only
    assert not read(claude_stream([])).answer_only


def test_a_call_that_was_streamed_and_is_in_no_message_is_noted() -> None:
    block = {"type": "tool_use", "id": "lost", "name": "delete_account"}
    event = {
        "type": "stream_event",
        "session_id": "s",
        "event": {"type": "content_block_start", "content_block": block},
    }
    assert codes(read([event, *claude_stream([FIND])])) == ["call_missing"]
    event["event"] = {"type": "content_block_start", "content_block": {**block, "id": "c0"}}
    assert codes(read([event, *claude_stream([FIND])])) == []


# Codex


def exec_with(*events: Json) -> Reading:
    return read([*codex_exec([])[:-1], *events, codex_exec([])[-1]])


@pytest.mark.parametrize(
    ("item", "name", "status"),
    [
        ({"type": "command_execution", "command": "ls", "exit_code": 0, "status": "completed"}, "shell", "ok"),
        ({"type": "command_execution", "command": "ls", "exit_code": 1, "status": "completed"}, "shell", "error"),
        ({"type": "command_execution", "command": "rm", "exit_code": None, "status": "declined"}, "shell", "error"),
        (
            {"type": "file_change", "changes": [{"path": "a", "kind": "add"}], "status": "completed"},
            "apply_patch",
            "ok",
        ),
        ({"type": "file_change", "changes": [], "status": "failed"}, "apply_patch", "error"),
        ({"type": "web_search", "query": "q"}, "web_search", "ok"),
        ({"type": "todo_list", "items": [{"text": "a", "completed": False}]}, "update_plan", "ok"),
    ],
)
def test_items_that_do_something_are_calls(item: Json, name: str, status: str) -> None:
    reading = exec_with({"type": "item.completed", "item": {"id": "i", **item}})
    assert [(step.name, step.status) for step in steps(reading)] == [(name, status)]
    assert not any(note.serious for note in reading.notes)


def test_a_turn_that_failed_is_a_failed_run_and_a_problem_on_the_way_is_not() -> None:
    failed = read([*codex_exec([FIND])[:-1], {"type": "turn.failed", "error": {"message": "no quota"}}])
    fault = reading_fault(failed)
    assert fault is not None
    assert (fault.error_class, "no quota" in fault.message) == ("agent_reported_error", True)
    assert reading_fault(read([*codex_exec([FIND])[:-1], {"type": "error", "message": "gone"}])) is not None
    problem = exec_with({"type": "error", "message": "Reconnecting"})
    assert (reading_fault(problem), codes(problem)) == (None, ["problem_reported"])
    problem = exec_with({"type": "item.completed", "item": {"id": "e", "type": "error", "message": "old model"}})
    assert (reading_fault(problem), codes(problem)) == (None, ["problem_reported"])


def test_a_rollout_of_which_a_turn_was_aborted_or_failed_is_a_failed_run() -> None:
    for event in ({"type": "turn_aborted", "reason": "interrupted"}, {"type": "error", "message": "no quota"}):
        rollout = codex_rollout([FIND])
        rollout.insert(-1, {"timestamp": "t", "type": "event_msg", "payload": event})
        fault = reading_fault(read(rollout))
        assert fault is not None
        assert fault.error_class == "agent_reported_error"


def test_what_codex_writes_in_the_name_of_the_user_is_a_prompt() -> None:
    reading = formats.read((SAMPLES / "codex-rollout.jsonl").read_bytes())
    kinds = [type(message).__name__ for message in reading.transcript.messages]
    assert kinds == [
        "SystemMessage",
        "SystemMessage",
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
        "AssistantMessage",
    ]


def test_a_packed_rollout_is_read_and_a_broken_one_is_refused() -> None:
    data = (SAMPLES / "codex-rollout.jsonl").read_bytes()
    packed = ZstdCompressor().compress(data)
    assert formats.detect(packed).format == "codex"
    assert formats.read(packed) == formats.read(data)
    assert [record.reading for record in formats.read_many(packed)] == [formats.read(data)]
    for broken in (packed[:4], packed[:20], packed[:10] + b"rest"):
        with pytest.raises(SeatrialError):
            formats.read(broken, "codex")
