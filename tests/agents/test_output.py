"""What a program gave as its answer."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from seatrial.agents.output import read_output, read_remains, reading_fault
from seatrial.errors import SeatrialError

VALUES = 3_000_000


@pytest.mark.parametrize(
    "begin",
    [b'{"output_messages":[', b'[{"role":"user"},', b'{"text":null,"a":[', b"[[["],
    ids=["a response", "messages", "no text", "arrays"],
)
@pytest.mark.parametrize("end", [b"", b"]}"], ids=["cut", "ended"])
def test_what_is_refused_for_its_size_is_not_opened_to_say_why(begin: bytes, end: bytes) -> None:
    # In a process of its own, whose peak is nobody else's.
    program = f"""
import resource
from seatrial.agents.output import read_output
from seatrial.errors import SeatrialError
data = {begin!r} + b"[1]," * {VALUES} + b"[1]" + {end!r}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    print(read_output(data).answer_only)
except SeatrialError as error:
    print(error.code)
used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
assert used <= 8 * len(data), (used, len(data))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("too_large", "not_json", "True")


def test_a_huge_text_that_begins_with_a_bracket_is_the_answer() -> None:
    text = "[a link](to it), " + "one, two, " * 300_000
    assert read_output(text.encode()).transcript.answer == text


def test_huge_json_is_refused_for_its_size() -> None:
    with pytest.raises(SeatrialError) as caught:
        read_output(b'{"output":[' + b"{}," * 600_000 + b"{}]}")
    assert caught.value.code == "too_large"


STARTED = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
SAID = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "hi"}
OUTPUT = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}]
UI_STREAM = [
    {"type": "start"},
    {"type": "text-start", "id": "1"},
    {"type": "text-delta", "id": "1", "delta": "hi"},
    {"type": "text-end", "id": "1"},
]


@pytest.mark.parametrize(
    ("lines", "error_class"),
    [
        ([STARTED, SAID, {"type": "RUN_ERROR", "message": "boom"}], "agent_reported_error"),
        (
            [STARTED, SAID, {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}}],
            "agent_reported_error",
        ),
        ([STARTED, SAID], "stream_truncated"),
        ([STARTED, SAID, {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}], None),
        (
            [{"id": "r", "object": "response", "status": "failed", "error": {"message": "x"}, "output": OUTPUT}],
            "agent_reported_error",
        ),
        ([{"id": "r", "object": "response", "status": "cancelled", "output": OUTPUT}], None),
        ([{"id": "r", "object": "response", "status": "completed", "output": OUTPUT}], None),
        ([*UI_STREAM, {"type": "error", "errorText": "boom"}, {"type": "finish"}], "agent_reported_error"),
        ([*UI_STREAM, {"type": "finish"}], None),
    ],
)
def test_a_record_that_says_that_the_run_failed_is_a_fault(
    lines: list[dict[str, Any]], error_class: str | None
) -> None:
    fault = reading_fault(read_output("\n".join(map(json.dumps, lines)).encode()))
    assert (None if fault is None else fault.error_class) == error_class


def test_a_response_that_failed_after_its_calls_failed() -> None:
    output = [
        {"type": "function_call", "call_id": "c", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
    ]
    error = {"code": "server_error", "message": "out of order"}
    response = {"id": "r", "object": "response", "status": "failed", "error": error, "output": output}
    fault = reading_fault(read_output(json.dumps(response).encode()))
    assert fault is not None
    assert (fault.error_class, fault.message) == ("agent_reported_error", "out of order")


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": "busy"}',
        b'{"error": {"message": "busy", "type": "server_error", "code": null}}',
        b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
        b'{"detail": [{"loc": ["body"], "msg": "missing", "type": "value_error"}]}',
        b'{"message": "Service Unavailable", "status": 503}',
        b'{"errors": [{"code": 1}]}',
        b"<html><body>503 {busy}</body></html>",
        b"[error] upstream connect failure",
        b'data: {"type": "RUN_ERROR", "message": "busy"}\n\n',
        b'{"level": "info", "msg": "started"}\n{"level": "error", "msg": "no network"}\n',
        b"busy",
        b"[]",
    ],
)
def test_a_page_that_says_what_went_wrong_holds_no_call(body: bytes) -> None:
    reading, in_doubt = read_remains(body)
    assert not in_doubt
    assert reading is None or not any(note.serious for note in reading.notes if note.code != "stream_truncated")


@pytest.mark.parametrize(
    "body",
    [
        b'{"final_response": "x", "messages": [{"role": "assistant", "tool_calls": [{"id": "c", "na',
        b'{"steps_taken": [{"tool_name": "delete_account", "arguments": {}}]}',
        b'data: {"kind": "step", "tool": "delete_account", "args": {}}\n\n',
        b'{"level": "info"}\n{"tool": "delete_acc',
        b'{"a": [' + b"{}," * 600_000 + b"{}]}",
    ],
    ids=["cut", "unknown", "unknown events", "cut line", "too much"],
)
def test_what_a_failed_attempt_left_is_in_doubt_when_it_may_hold_a_call_and_cannot_be_read(body: bytes) -> None:
    assert read_remains(body) == (None, True)
