"""Errors as responses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from litestar.types import HTTPScope, Message, ReceiveMessage

from seatrial.errors import ERROR_CODES, SeatrialError
from seatrial.server.problems import STATUSES, RefusedError, problem_body, problem_response


def answered(error: SeatrialError) -> tuple[int, dict[str, str], dict[str, Any]]:
    sent: list[Any] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> ReceiveMessage:
        raise AssertionError("nothing is to be read")

    scope: HTTPScope = {"path": "/v1/runs"}  # type: ignore[typeddict-item]  # no more is looked at
    asyncio.run(problem_response(error, scope)(scope, receive, send))
    start, body = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, json.loads(body["body"])


def test_a_problem_has_the_code_to_match_on_and_what_a_program_needs() -> None:
    error = SeatrialError("thread_busy", "the thread has a run", hint="wait", details={"runId": "r1", "head": 7})
    status, headers, body = answered(error)
    assert status == 409
    assert headers["content-type"] == "application/problem+json"
    assert body == {
        "title": "Conflict",
        "status": 409,
        "code": "thread_busy",
        "detail": "the thread has a run",
        "hint": "wait",
        "runId": "r1",
        "head": 7,
    }


def test_a_detail_never_replaces_a_member_of_the_standard() -> None:
    error = SeatrialError("conflict", "x", details={"status": 200, "code": "fine"})
    body = json.loads(problem_body(error, 409))
    assert (body["status"], body["code"]) == (409, "conflict")


def test_every_status_is_of_a_declared_code() -> None:
    assert STATUSES.keys() <= ERROR_CODES.keys()


def test_a_code_that_no_client_caused_is_a_fault_of_the_server() -> None:
    assert answered(SeatrialError("invalid_suite", "x"))[0] == 500


@pytest.mark.parametrize(
    ("error", "header", "value"),
    [
        (SeatrialError("unauthorized", "x"), "www-authenticate", 'Bearer realm="seatrial"'),
        (SeatrialError("shutting_down", "x"), "retry-after", "2"),
        (RefusedError(405, "invalid_request", "x", headers={"allow": "GET"}), "allow", "GET"),
    ],
)
def test_a_problem_has_the_headers_that_its_status_wants(error: SeatrialError, header: str, value: str) -> None:
    assert answered(error)[1][header] == value


def test_text_that_is_not_unicode_does_not_break_the_answer() -> None:
    assert answered(SeatrialError("not_found", "there is no \ud800"))[2]["detail"] == "there is no \ufffd"
