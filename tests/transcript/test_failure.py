"""Which results failed, in every spelling that records have for it."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.trajectory.sources import steps_from_objects
from seatrial.transcript.failure import find_failure

FAILED = [
    *({"status": word} for word in ("error", " Error ", "permission_denied", "blocked", "killed", "unauthorized")),
    *({"status": word} for word in ("terminated", "not_found", "cancelled", "timeout", 500, "500", 404)),
    *({"success": word} for word in (False, "false", " False", 0)),
    *({"error": word} for word in (1, True, "no", {"message": "no"}, ["no"])),
    *({"exit_code": word} for word in (1, "1", 1.0, -9, "-9")),
    *({key: "no"} for key in ("errorText", "error_message", "exception", "errorMessage")),
    *({"is_error": word} for word in (True, 1, "true", " TRUE", [True], {"code": 7}, "no such account")),
    *({"status": {key: "failed"}} for key in ("state", "status", "type", "code")),
    *({key: {"is_error": True}} for key in ("metadata", "artifact", "additional_kwargs")),
    *({key: True} for key in ("failed", "errored", "has_error", "timed_out", "denied", "aborted")),
    *({key: "no"} for key in ("error_code", "error_type", "failure", "traceback")),
    *({"errors": ["no"]}, {"ok": False}, {"status_code": 500}, {"exit_status": 1}, {"_meta": {"isError": True}}),
    {"status": "ok", "is_error": True},
    {"status": "weird", "is_error": True},
]
UNKNOWN = [{"status": word} for word in ("pending", "in_progress", "unknown", "weird")] + [{"outcome": "weird"}]
UNRAISED: list[Any] = [False, None, "", "no", "False", "0", 0, [], {}]
FINE: list[dict[str, Any]] = [
    {},
    {"status": "success"},
    *({"ok": True}, {"failed": 0}, {"failed": False}, {"errors": []}, {"status_code": 204}),
    {"metadata": {"failed": 3, "ok": False, "errors": ["of the page"]}},
    {"status": " OK "},
    {"status": 200},
    {"status": ""},
    {"status": None},
    {"success": True},
    {"success": "true"},
    {"error": None},
    {"error": ""},
    {"error": 0},
    {"error": False},
    {"error": {}},
    {"exit_code": 0},
    {"exit_code": "0"},
    *({"is_error": flag} for flag in UNRAISED),
    *({"status": word} for word in ({"state": "completed"}, {"state": "weird"}, {"mood": "failed"}, ["failed"])),
    {"metadata": {"is_error": False}},
    {"artifact": {"error": "a value of the tool's own"}},
]


@pytest.mark.parametrize("said", FAILED, ids=str)
def test_a_result_that_is_said_to_have_failed_has_failed(said: dict[str, Any]) -> None:
    failure = find_failure(said)
    assert failure is not None
    assert failure.status in ("error", "timeout", "cancelled")


@pytest.mark.parametrize("said", UNKNOWN, ids=str)
def test_of_a_word_that_nobody_knows_nobody_knows_what_it_means(said: dict[str, Any]) -> None:
    failure = find_failure(said)
    assert failure is not None
    assert failure.status == "unknown"


@pytest.mark.parametrize("said", FINE, ids=str)
def test_a_usual_result_has_not_failed(said: dict[str, Any]) -> None:
    assert find_failure(said) is None


def status(**keys: Any) -> str:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    steps, _ = steps_from_objects(
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "x", **keys},
        ]
    )
    return steps[0].status


def test_a_step_has_the_status_of_its_result() -> None:
    assert status() == "ok"
    assert status(status="success") == "ok"
    assert status(status="permission_denied") == "error"
    assert status(status="weird") == "unknown"
    assert status(status="cancelled") == "cancelled"


def test_a_call_that_was_under_way_when_it_was_written_down_has_the_status_of_its_result() -> None:
    call = {"id": "c", "name": "f", "arguments": {}, "status": "pending"}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    assert steps_from_objects(messages)[0][0].status == "ok"
