"""The commands that work on one record: what they print, where, and how they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seatrial import __version__
from seatrial.cli import main

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


class Ended:
    """How a command ended."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out.decode()
        self.err = err.decode()

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def seatrial(capfdbinary: pytest.CaptureFixture[bytes]) -> Any:
    def run(*arguments: str | Path) -> Ended:
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return Ended(code, captured.out, captured.err)

    return run


def test_help_lists_every_command_and_version_is_told(seatrial: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    ran = seatrial()
    assert ran.code == 2
    for name in ("lint", "convert", "events", "steps", "match", "schema"):
        assert name in ran.out
    process = subprocess.run(
        [Path(sys.executable).with_name("seatrial"), "--version"], capture_output=True, text=True, check=True
    )
    assert process.stdout == f"seatrial {__version__}\n"


def test_an_unknown_command_names_the_nearest_one(seatrial: Any) -> None:
    ran = seatrial("covert")
    assert ran.code == 2
    assert "did you mean `convert`?" in ran.err


def test_an_unknown_option_is_a_usage_error(seatrial: Any) -> None:
    ran = seatrial("lint", SAMPLES / "agent-response.json", "--strictnes", "strict", "--what")
    assert ran.code == 2
    assert "--help" in ran.err


@pytest.mark.parametrize(
    "command",
    [["steps"], ["lint"], ["events"], ["match"], ["convert", "--to", "openai"], ["run"], ["doctor"], ["serve"]],
)
def test_a_file_that_does_not_exist_is_a_usage_error(seatrial: Any, tmp_path: Path, command: list[str]) -> None:
    ran = seatrial(*command, tmp_path / "nothing.json")
    assert ran.code == 2
    assert "nothing.json cannot be read" in ran.err
    assert "[unreadable_file]" in ran.err


def test_lint_passes_a_response_that_keeps_its_contract(seatrial: Any) -> None:
    ran = seatrial(
        "lint", SAMPLES / "agent-response.json", "--response-mode", "rich", "--strictness", "strict", "--json"
    )
    assert ran.code == 0
    assert ran.json() == {"ok": True, "message": "within the contract", "gradeable": True}


def test_lint_fails_a_strict_violation_and_points_at_what_is_missing(seatrial: Any) -> None:
    ran = seatrial("lint", SAMPLES / "agent-response-thin.json", "--response-mode", "rich", "--strictness", "strict")
    assert ran.code == 1
    assert "note messages_missing at /messages" in ran.out
    assert "response_contract_violation" in ran.out


@pytest.mark.parametrize("body", [b"<html>oops</html>", b"[]", b"", b"{}", b'{"final_response": ""}', b"[" * 100_000])
def test_lint_fails_what_is_no_agent_response(seatrial: Any, tmp_path: Path, body: bytes) -> None:
    file = tmp_path / "body"
    file.write_bytes(body)
    ran = seatrial("lint", file, "--json")
    assert ran.code == 1
    assert ran.json()["violation"] == "agent_bad_response"


def test_convert_writes_the_result_to_the_output_and_the_report_to_standard_error(seatrial: Any) -> None:
    ran = seatrial("convert", SAMPLES / "openrouter-request.json", "--to", "anthropic")
    assert ran.code == 0
    assert ran.json()["messages"][0]["role"] == "user"
    assert ran.err.startswith("read as openrouter (")
    assert "loss not_carried at /metadata" in ran.err


def test_convert_reports_as_json_when_asked(seatrial: Any) -> None:
    ran = seatrial("convert", SAMPLES / "agent-response-flawed.json", "--to", "openai", "--json")
    report = json.loads(ran.err)
    assert report["from"] == "agent-response"
    assert {"code", "pointer", "message", "weight"} == set(report["notes"][0])


def test_convert_replaces_its_output_file_whole(seatrial: Any, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    output.write_text("old")
    ran = seatrial("convert", SAMPLES / "transcript.jsonl", "--to", "transcript", "-o", output)
    assert (ran.code, ran.out) == (0, "")
    assert isinstance(json.loads(output.read_bytes()), list)
    assert list(tmp_path.iterdir()) == [output]


def test_convert_reads_standard_input() -> None:
    ran = subprocess.run(
        [Path(sys.executable).with_name("seatrial"), "convert", "-", "--to", "transcript"],
        input=(SAMPLES / "agui-run.sse").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert [message["role"] for message in json.loads(ran.stdout)] == ["user", "assistant", "tool_result", "assistant"]


@pytest.mark.parametrize("command", [["steps"], ["convert", "--to", "openai"]])
def test_a_file_that_was_not_copied_whole_is_said_to_be_cut_off(
    seatrial: Any, tmp_path: Path, command: list[str]
) -> None:
    file = tmp_path / "half.json"
    file.write_bytes((SAMPLES / "agent-response.json").read_bytes()[:99])
    ran = seatrial(*command, file)
    assert ran.code == 3
    assert "the JSON is cut off at byte 99: it ends before it is complete" in ran.err


def test_convert_says_how_to_name_a_format_that_it_cannot_find_out(seatrial: Any, tmp_path: Path) -> None:
    file = tmp_path / "unknown.json"
    file.write_text('{"colour": "blue"}')
    ran = seatrial("convert", file, "--to", "openai")
    assert ran.code == 3
    assert "--from" in ran.err
    assert "[undetected_format]" in ran.err


def test_every_sample_converts_to_every_format(seatrial: Any) -> None:
    names = ["agent-response", "output-messages", "openai", "openrouter", "anthropic", "transcript", "agui", "events"]
    for sample in SAMPLES.iterdir():
        if sample.name in ("match.jsonl", "output-messages-batch.jsonl"):
            continue
        for name in names:
            ran = seatrial("convert", sample, "--to", name)
            assert ran.code == 0, (sample.name, name, ran.err)


def test_events_tells_the_first_violation_with_its_index(seatrial: Any) -> None:
    ran = seatrial("events", SAMPLES / "events-violation.ndjson", "--json")
    assert ran.code == 1
    shown = ran.json()
    assert set(shown) == {"ok", "repaired", "error", "index", "repairs", "notes", "messages", "state", "pending"}
    assert (shown["ok"], shown["repaired"], shown["index"]) == (False, False, 3)


def test_events_that_a_client_refuses_are_read_and_called_repaired_not_ok(seatrial: Any, tmp_path: Path) -> None:
    stream = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "a", "delta": "hello", "timestamp": "now"},
        {"type": "RUN_FINISHED", "threadId": "t"},
    ]
    (tmp_path / "run.ndjson").write_text("".join(json.dumps(event) + "\n" for event in stream))
    ran = seatrial("events", tmp_path / "run.ndjson", "--json")
    shown = ran.json()
    assert (ran.code, shown["ok"], shown["repaired"], shown["index"]) == (1, False, True, 1)
    assert [repair["pointer"] for repair in shown["repairs"]] == ["/1/timestamp", "/2/runId"]
    assert shown["messages"][0]["content"][0]["text"] == "hello"
    printed = seatrial("events", tmp_path / "run.ndjson")
    assert "repaired event_refused at /2/runId: a required field is missing" in printed.out
    assert "event 1: timestamp: expected an integer" in printed.out


def test_a_stream_without_its_end_is_not_ok(seatrial: Any, tmp_path: Path) -> None:
    (tmp_path / "run.ndjson").write_text('{"type":"RUN_STARTED","threadId":"t","runId":"r"}\n')
    ran = seatrial("events", tmp_path / "run.ndjson", "--json")
    assert (ran.code, ran.json()["ok"], ran.json()["repaired"], ran.json()["index"]) == (1, False, False, 1)


def test_events_of_unknown_types_are_dropped_before_the_order_is_verified(seatrial: Any, tmp_path: Path) -> None:
    stream = [
        {"type": "HELLO", "version": 2},
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
        {"type": "GOODBYE"},
    ]
    (tmp_path / "run.ndjson").write_text("".join(json.dumps(event) + "\n" for event in stream))
    shown = seatrial("events", tmp_path / "run.ndjson", "--json").json()
    assert (shown["ok"], shown["repaired"]) == (True, False)
    assert [(note["code"], note["pointer"], note["weight"]) for note in shown["notes"]] == [
        ("unknown_event_type", "/0", "serious"),
        ("unknown_event_type", "/3", "serious"),
    ]


def test_events_folds_to_agui_messages_from_the_input_it_is_given(seatrial: Any, tmp_path: Path) -> None:
    start = {
        "threadId": "t",
        "runId": "r",
        "state": {"n": 1},
        "messages": [{"id": "u", "role": "user", "content": "hi"}],
    }
    (tmp_path / "input.json").write_text(json.dumps(start))
    stream = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "a", "delta": "hello"},
        {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]
    (tmp_path / "run.ndjson").write_text("".join(json.dumps(event) + "\n" for event in stream))
    ran = seatrial("events", tmp_path / "run.ndjson", "--json", "--view", "agui", "--input", tmp_path / "input.json")
    shown = ran.json()
    assert (ran.code, shown["ok"], shown["state"], shown["pending"]) == (0, True, {"n": 2}, ["c"])
    assert [message["id"] for message in shown["messages"]] == ["u", "a", "c"]
    assert "error" not in shown


def test_steps_prints_source_steps_summary_and_notes(seatrial: Any) -> None:
    shown = seatrial("steps", SAMPLES / "agent-response.json", "--json").json()
    assert set(shown) == {"source", "basis", "completeness", "steps", "summary", "notes"}
    assert [step["name"] for step in shown["steps"]] == ["get_order", "refund"]
    assert shown["summary"]["by_name"] == {"get_order": 1, "refund": 1}


def test_steps_reads_a_trace_file_only_from_below_the_record(seatrial: Any, tmp_path: Path) -> None:
    below = tmp_path / "record"
    below.mkdir()
    (tmp_path / "outside.json").write_text('[{"type": "tool_call", "name": "secret"}]')
    (below / "trace.json").write_text('[{"type": "tool_call", "name": "search"}]')
    (below / "link.json").symlink_to(tmp_path / "outside.json")
    for ref, names in (("trace.json", ["search"]), ("../outside.json", []), ("link.json", [])):
        record = below / "record.json"
        record.write_text(json.dumps({"text": "done", "trace_ref": ref}))
        shown = seatrial("steps", record, "--json").json()
        assert [step["name"] for step in shown["steps"]] == names, ref
        assert ("trace_ref_not_read" in [note["code"] for note in shown["notes"]]) == (not names)


def test_a_trace_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trace.json")
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"text": "done", "trace_ref": "trace.json"}))
    program = Path(sys.executable).with_name("seatrial")
    ran = subprocess.run([program, "steps", record], capture_output=True, text=True, timeout=60, check=True)
    assert "trace_ref_not_read at /trace_ref: it is not a regular file" in ran.stderr


def test_match_exits_by_the_worst_line_and_still_writes_the_good_ones(seatrial: Any, tmp_path: Path) -> None:
    passing = '{"mode": "exact", "expected": [{"tool": "a"}], "actual": [{"name": "a", "arguments": {}}]}\n'
    failing = '{"mode": "exact", "expected": [{"tool": "a"}], "actual": []}\n'
    broken = '{"mode": "exactly", "expected": [{"tool": "a"}], "actual": []}\n'
    for text, code in ((passing, 0), (passing + failing, 1), (passing + broken + failing, 2)):
        file = tmp_path / "lines.jsonl"
        file.write_text(text)
        ran = seatrial("match", file)
        assert ran.code == code
        results = [json.loads(line) for line in ran.out.splitlines()]
        assert [result["line"] for result in results] == list(range(1, len(results) + 1))
        assert len(results) == text.count("\n")
    assert "line 2" in ran.err


def test_schemas_are_listed_and_printed(seatrial: Any) -> None:
    assert "transcript" in seatrial("schema", "--json").json()
    assert seatrial("schema", "envelope").json()["title"] == "Seatrial envelope"
    assert seatrial("schema", "envelop").code == 2


def test_text_from_an_agent_cannot_steer_the_terminal(seatrial: Any, tmp_path: Path) -> None:
    file = tmp_path / "hostile.json"
    call = {"name": "a\x1b[2Jb\u202e", "arguments": {}}
    file.write_text(json.dumps({"final_response": "x", "messages": [{"role": "assistant", "tool_calls": [call]}]}))
    ran = seatrial("steps", file)
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert "a\\x1b[2Jb\\u202e" in ran.out


def test_a_reader_that_goes_away_is_not_an_error() -> None:
    program = Path(sys.executable).with_name("seatrial")
    line = '{"mode": "exact", "expected": [{"tool": "a"}], "actual": [{"name": "a", "arguments": {}}]}'
    command = f"yes '{line}' | head -n 20000 | {program} match - | head -n 1; exit ${{PIPESTATUS[2]}}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


def test_a_full_disk_behind_the_output_is_told_in_one_line() -> None:
    program = Path(sys.executable).with_name("seatrial")
    with open("/dev/full", "wb") as full:
        ran = subprocess.run([program, "schema", "step"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 3
    assert ran.stderr == "seatrial: the output cannot be written: No space left on device\n"


# Batches, and what is known of calls

BATCH = b"""{"final_response": "a", "messages": [{"role": "assistant", "content": "a"}]}
not json
{"final_response": "b"}
"""


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    path = tmp_path / "batch.jsonl"
    path.write_bytes(BATCH)
    return path


def test_steps_says_how_complete_the_calls_are_and_what_they_rest_on(seatrial: Any, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text('{"final_response": "done"}')
    ran = seatrial("steps", path)
    assert ran.code == 0
    assert "no calls are known (calls: none, basis: reported)" in ran.out
    assert "0 steps" not in ran.out
    assert "To do: return the messages or a trace with the answer" in ran.out
    found = seatrial("steps", path, "--json").json()
    assert found["completeness"]["level"] == "none"
    assert found["basis"] == "reported"
    assert found["summary"]["steps"] is found["summary"]["errors"] is found["summary"]["model_calls"] is None
    path.write_bytes(BATCH.splitlines()[0])
    whole = seatrial("steps", path)
    assert "0 steps from messages, 0 failed (calls: complete, basis: reported)" in whole.out


def test_steps_gives_one_result_for_each_line_and_a_bad_line_spoils_only_itself(seatrial: Any, batch: Path) -> None:
    ran = seatrial("steps", batch, "--json")
    assert ran.code == 3
    first, bad, last = [json.loads(line) for line in ran.out.splitlines()]
    assert (first["line"], first["completeness"]["level"]) == (1, "complete")
    assert (bad["line"], bad["error"]["code"]) == (2, "not_json")
    assert (last["line"], last["completeness"]["level"]) == (3, "none")
    assert "line 2" in ran.err
    text = seatrial("steps", batch)
    assert text.code == 3
    assert "line 1:" in text.out
    assert "line 3:" in text.out


def test_a_batch_whose_first_line_is_bad_is_a_batch(seatrial: Any, tmp_path: Path) -> None:
    path = tmp_path / "batch.jsonl"
    path.write_bytes(b"oops\n" + BATCH)
    for arguments in (("steps", path, "--json"), ("steps", path, "--json", "--from", "agent-response")):
        ran = seatrial(*arguments)
        assert ran.code == 3
        assert ["error" in json.loads(line) for line in ran.out.splitlines()] == [True, False, True, False]


def test_convert_gives_a_line_for_each_line_and_a_bad_line_spoils_only_itself(seatrial: Any, batch: Path) -> None:
    ran = seatrial("convert", batch, "--to", "output-messages", "--json")
    assert ran.code == 3
    assert [json.loads(line)["text"] for line in ran.out.splitlines()] == ["a", "b"]
    reports = [json.loads(line) for line in ran.err.splitlines()]
    assert [(report["line"], "error" in report) for report in reports] == [(1, False), (2, True), (3, False)]


def test_convert_keeps_the_ids_of_a_batch(seatrial: Any, tmp_path: Path) -> None:
    path = tmp_path / "batch.jsonl"
    path.write_text('{"id": "one", "text": "a"}\n{"id": "two", "text": "b"}\n')
    ran = seatrial("convert", path, "--to", "output-messages")
    assert ran.code == 0
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == ["one", "two"]


def test_convert_does_not_write_a_batch_in_a_format_of_many_lines(seatrial: Any, batch: Path) -> None:
    ran = seatrial("convert", batch, "--to", "agui")
    assert ran.code == 2
    assert "one at a time" in ran.err
    assert ran.out == ""


def test_lint_checks_each_line_and_a_bad_line_is_a_violation_of_its_own(seatrial: Any, batch: Path) -> None:
    ran = seatrial("lint", batch, "--json")
    assert ran.code == 1
    reports = [json.loads(line) for line in ran.out.splitlines()]
    assert [(report["line"], report["ok"]) for report in reports] == [(1, True), (2, False), (3, True)]
    text = seatrial("lint", batch)
    assert text.code == 1
    assert "agent_bad_response: line 2" in text.out
    assert "line 3:" in text.out


def test_match_ends_with_three_when_a_line_has_no_verdict_and_with_one_when_another_failed(
    seatrial: Any, tmp_path: Path
) -> None:
    path = tmp_path / "lines.jsonl"
    unknown = {"mode": "any_order", "maximums": {"delete": 0}, "actual": [], "level": "partial"}
    path.write_text(json.dumps(unknown))
    ran = seatrial("match", path)
    assert ran.code == 3
    assert (ran.json()["passed"], ran.json()["error_code"]) == (False, "calls_unknown")
    told = seatrial("match", path, "--text")
    assert "errored line 1:" in told.out
    assert "To do:" in told.out
    failed = {**unknown, "actual": [{"name": "delete"}]}
    path.write_text(f"{json.dumps(unknown)}\n{json.dumps(failed)}")
    assert seatrial("match", path).code == 1
