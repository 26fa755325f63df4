"""Recorded runs are graded again without running anything."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agents.setting import a_case, a_request, ask, error_class
from agents.test_stream import WHOLE, sse
from seatrial.agents.agent import Reply
from seatrial.agents.replay.agent import ReplayAgent, unused_records
from seatrial.agents.replay.config import ReplayConfig
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response
from seatrial.runs import Fault, Run, RunKey
from seatrial.trajectory import extract
from seatrial.trajectory.completeness import what_to_do
from seatrial.transcript import Note

RESPONSE = {"final_response": "Done.", "messages": [{"role": "assistant", "content": "Done."}]}

WHOLE_RECORD = json.dumps(RESPONSE)[1:-1]


def replayed(
    folder: Path, case_id: str = "case-1", trial: int = 1, stored: Any = None, trials: int | None = None, **config: Any
) -> Reply:
    config.setdefault("path", None if stored else "records")

    async def play() -> Reply:
        async with ReplayAgent(ReplayConfig(**config), directory=folder, stored=stored, trials=trials) as agent:
            return await ask(agent, a_request(a_case(case_id), trial=trial))

    return asyncio.run(play())


def answer_of(reply: Reply) -> str | None:
    assert reply.fault is None, reply.fault
    assert reply.reading is not None
    return reply.reading.transcript.final_text()


# Where records are


def test_a_directory_has_a_file_for_each_case(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    body = json.dumps(RESPONSE).encode()
    (tmp_path / "records" / "case-1.json").write_bytes(body)
    (tmp_path / "records" / "case-2.sse").write_bytes(b"".join(map(sse, WHOLE)))
    reply = replayed(tmp_path)
    assert answer_of(reply) == "Done."
    assert reply.body == body
    assert not reply.streamed
    streamed = replayed(tmp_path, "case-2")
    assert answer_of(streamed) == "Done."
    assert streamed.reading is not None
    assert streamed.reading.format == "agui"
    assert [step.name for step in extract(streamed.reading).steps] == ["search"]


def test_a_file_of_lines_has_records_by_the_id_of_their_case(tmp_path: Path) -> None:
    lines = [{"id": "a", "text": "one"}, {"id": 7, **RESPONSE}, {"id": "a", "text": "two"}]
    (tmp_path / "records").write_text("\n\n".join(map(json.dumps, lines)) + "\nnot JSON\n{}\n")
    assert answer_of(replayed(tmp_path, "a")) == "one"
    assert answer_of(replayed(tmp_path, "7")) == "Done."
    assert answer_of(replayed(tmp_path, "a", trial=2)) == "two"
    assert replayed(tmp_path, "a").body == b'{"id": "a", "text": "one"}'


def test_a_mapping_names_a_file_for_each_case(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x").write_text(json.dumps(RESPONSE))
    (tmp_path / "runs" / "y").write_text('{"text": "second"}')
    (tmp_path / "map.json").write_text('{"a": "runs/x", "b": ["runs/x", "runs/y"]}')
    assert answer_of(replayed(tmp_path, "a", path="map.json")) == "Done."
    assert answer_of(replayed(tmp_path, "b", trial=2, path="map.json")) == "second"


def test_the_only_record_of_a_case_serves_every_trial(tmp_path: Path) -> None:
    (tmp_path / "records").write_text('{"id": "a", "text": "one"}\n')
    assert answer_of(replayed(tmp_path, "a", trial=5)) == "one"


def test_a_case_without_a_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "records").write_text('{"id": "a", "text": "one"}\nnonsense\n')
    reply = replayed(tmp_path, "b")
    assert error_class(reply) == "record_missing"
    assert reply.fault is not None
    assert "line 2 of the records: not JSON, or without an id" in reply.fault.message


def test_a_trial_beyond_the_records_is_told(tmp_path: Path) -> None:
    (tmp_path / "records").write_text('{"id": "a", "text": "one"}\n{"id": "a", "text": "two"}\n')
    reply = replayed(tmp_path, "a", trial=3)
    assert reply.fault is not None
    assert "trial 3" in reply.fault.message


def serious_notes(reply: Reply) -> list[tuple[str, str]]:
    assert reply.reading is not None
    return [(note.code, note.message) for note in reply.reading.notes if note.serious]


@pytest.mark.parametrize("line", ['{"id": "a", "text": "on', '{"text": "no id"}', '{"id": [], "text": "x"}', "word"])
def test_a_line_that_belongs_to_no_case_may_be_a_record_of_any(tmp_path: Path, line: str) -> None:
    (tmp_path / "records").write_text(f'{{"id": "a", {WHOLE_RECORD}}}\n\n{line}\n')
    text = "line 3 of the records: not JSON, or without an id"
    assert serious_notes(replayed(tmp_path, "a")) == [("record_line_unusable", text)]


def test_records_beyond_the_trials_are_not_left_out_silently(tmp_path: Path) -> None:
    (tmp_path / "records").write_text(f'{{"id": "a", {WHOLE_RECORD}}}\n' * 2 + f'{{"id": "b", {WHOLE_RECORD}}}\n')
    text = "there are 2 records of the case, and the suite has `trials: 1`"
    assert serious_notes(replayed(tmp_path, "a", trials=1)) == [("record_left_out", text)]
    left_out = replayed(tmp_path, "a", trials=1).reading
    assert left_out is not None
    assert "as many `trials` as a case has records" in what_to_do(extract(left_out).completeness)
    assert serious_notes(replayed(tmp_path, "a", trials=2)) == []
    assert serious_notes(replayed(tmp_path, "b", trials=1)) == []


def test_records_of_no_case_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "typo.json").write_text("{}")
    (tmp_path / ".DS_Store").write_bytes(b"\0")
    (note,) = unused_records(tmp_path, {"a", "b"})
    assert (note.code, note.message) == ("record_of_no_case", "1 ids of records are not those of a case: 'typo'")
    assert unused_records(tmp_path, {"a", "typo"}) == []


def test_a_mapping_that_has_a_case_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('{"a": "x", "a": "y"}')
    with pytest.raises(SeatrialError, match="the key 'a' occurs twice"):
        replayed(tmp_path, "a", path="map.json")


# What records say


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"".join(map(sse, WHOLE[:-1])), "stream_truncated"),
        (sse(WHOLE[0]) + sse({"type": "RUN_ERROR", "message": "no"}), "agent_reported_error"),
        (b'{"final_response": ""}', "agent_bad_response"),
    ],
)
def test_a_record_of_a_failed_run_is_one_again(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "case-1.txt").write_bytes(content)
    reply = replayed(tmp_path)
    assert error_class(reply) == expected
    assert reply.body == content


@pytest.mark.parametrize("content", [b'{"final_response": "x"', b"<html>", b"", b"\xff\xfe"])
def test_a_record_that_we_cannot_read_is_not_held_against_the_agent(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "case-1.txt").write_bytes(content)
    reply = replayed(tmp_path)
    assert reply.fault is not None
    assert (reply.fault.error_class, reply.fault.blame, reply.fault.retryable) == (
        *("record_unreadable", "infrastructure", False),
    )
    assert reply.fault.message.startswith("the record cannot be read: ")
    assert reply.body == content


def test_a_record_that_is_gone_is_not_held_against_the_agent(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text('{"case-1": "gone.json"}')
    reply = replayed(tmp_path, path="map.json")
    assert error_class(reply) == "record_unreadable"


def test_a_format_that_is_named_counts(tmp_path: Path) -> None:
    (tmp_path / "records").write_text('{"id": "a", "text": "one", "final_response": "two"}\n')
    assert answer_of(replayed(tmp_path, "a")) == "two"
    assert answer_of(replayed(tmp_path, "a", format="output-messages")) == "one"


@pytest.mark.parametrize("beside", [{"trace": []}, {"trace_ref": "t.json"}, {"output_messages": []}])
def test_a_record_with_final_response_is_an_agent_response_whatever_is_beside_it(
    beside: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "t.json").write_text("[]")
    (tmp_path / "records" / "case-1.json").write_text(json.dumps({**beside, "final_response": "ok"}))
    reply = replayed(tmp_path)
    assert (answer_of(reply), reply.fault) == ("ok", None)
    assert reply.reading is not None
    assert reply.reading.format == "agent-response"
    assert reply.trace_file == (b"[]" if "trace_ref" in beside else None)


def test_a_trace_file_lies_beside_the_record(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "case-1.json").write_text('{"text": "x", "trace_ref": "t.json"}')
    (tmp_path / "records" / "t.json").write_text('[{"type": "tool_call", "name": "search"}]')
    reply = replayed(tmp_path)
    assert isinstance(reply.trace_file, bytes)
    (tmp_path / "records" / "case-1.json").write_text('{"text": "x", "trace_ref": "/etc/passwd"}')
    assert isinstance(replayed(tmp_path).trace_file, Note)


# Runs of an experiment


def test_runs_of_an_experiment_come_from_the_store(tmp_path: Path) -> None:
    asked = []
    body = json.dumps(RESPONSE).encode()

    def stored(experiment: str, agent: str | None, case_id: str, trial: int) -> Run | None:
        asked.append((experiment, agent, case_id, trial))
        if case_id == "other":
            return None
        run = Run(run_id="r", experiment_id=experiment, key=RunKey("a", case_id, trial), status="completed", body=body)
        run.reading = agent_response.read(body)
        if case_id == "failed":
            run.fault = Fault("agent_exception", "no")
        return run

    config: Any = {"experiment": "exp-1", "agent": "shop"}
    assert answer_of(replayed(tmp_path, trial=2, stored=stored, **config)) == "Done."
    assert error_class(replayed(tmp_path, "failed", stored=stored, **config)) == "agent_exception"
    assert error_class(replayed(tmp_path, "other", stored=stored, **config)) == "record_missing"
    assert asked[0] == ("exp-1", "shop", "case-1", 2)


def test_a_stored_run_that_cannot_be_read_is_not_held_against_the_agent(tmp_path: Path) -> None:
    def stored(experiment: str, agent: str | None, case_id: str, trial: int) -> Run | None:
        raise SeatrialError("invalid_document", "a damaged row")

    reply = replayed(tmp_path, stored=stored, experiment="exp-1")
    assert error_class(reply) == "record_unreadable"
    assert "a damaged row" in str(reply.fault)


@pytest.mark.parametrize(
    ("stored_class", "status", "today", "blame"),
    [
        ("agent_timeout", 504, "agent_unavailable", "infrastructure"),
        ("agent_5xx", 503, "agent_unavailable", "infrastructure"),
        ("agent_4xx", 429, "rate_limited", "infrastructure"),
        ("agent_5xx", 500, "agent_5xx", "agent"),
        ("agent_timeout", None, "agent_timeout", "agent"),
        ("transport_error", None, "transport_error", "infrastructure"),
        ("agent_batch_died", None, "agent_exit", "agent"),
    ],
)
def test_a_fault_of_an_older_store_is_judged_by_the_rules_of_today(
    tmp_path: Path, stored_class: str, status: int | None, today: str, blame: str
) -> None:
    def stored(experiment: str, agent: str | None, case_id: str, trial: int) -> Run | None:
        fault = Fault(stored_class, "no", http_status=status, moved_to="agent")
        return Run(run_id="r", experiment_id=experiment, key=RunKey("a", case_id, 1), status="failed", fault=fault)

    fault = replayed(tmp_path, stored=stored, experiment="exp-1").fault
    assert fault is not None
    assert (fault.error_class, fault.blame) == (today, blame)


@pytest.mark.parametrize(
    "config",
    [{}, {"path": "x", "experiment": "e"}, {"experiment": "e"}, {"path": "x", "format": "csv"}],
)
def test_a_replay_that_cannot_be_is_an_error_before_anything_runs(tmp_path: Path, config: dict[str, Any]) -> None:
    with pytest.raises(SeatrialError):
        ReplayAgent(ReplayConfig(**config), directory=tmp_path, stored=None)


@pytest.mark.parametrize("content", [None, b'["a"]', b'{"a": 7}', b"not JSON"])
def test_records_that_are_not_there_are_an_error_before_anything_runs(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "records.json").write_bytes(content)
    with pytest.raises(SeatrialError):
        replayed(tmp_path, path="records.json")
