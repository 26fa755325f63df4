"""Answers that are not 2xx: whose fault they are, whether they pass, and no more of their text than is good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.messages import json_values

from seatrial._support.retry_after import retry_after_s
from seatrial.client.refusal import MAX_DETAILS, MAX_NAME, MAX_TEXT, refusal


def body(**members: Any) -> bytes:
    return msgspec.json.encode({"title": "Conflict", "status": 409, "code": "conflict", "detail": "no", **members})


def test_the_code_the_text_and_the_details_are_the_services() -> None:
    told = body(code="cursor_expired", detail="too old", hint="start anew", pointer="/x", first=12, runId="r", no=[1])
    error = refusal(410, {}, told).error
    assert (error.code, error.message, error.hint, error.pointer) == ("cursor_expired", "too old", "start anew", "/x")
    assert error.details == {"first": 12, "runId": "r"}


def test_a_code_that_is_unknown_here_is_a_failure_of_the_service() -> None:
    error = refusal(418, {}, body(code="teapot")).error
    assert (error.code, error.message) == ("service_failed", "the service answered 418 teapot: no")


@pytest.mark.parametrize(
    ("status", "code"), [(401, "unauthorized"), (403, "forbidden"), (429, "rate_limited"), (502, "service_failed")]
)
@pytest.mark.parametrize("said", [b"", b"<html>\n no </html>", b"[]", b'{"code": 1}', b"{" * 5000, b"\xff"])
def test_an_answer_of_something_on_the_way_is_known_by_its_status(status: int, code: str, said: bytes) -> None:
    error = refusal(status, {}, said).error
    assert error.code == code
    assert len(str(error)) < 300


@pytest.mark.parametrize("status", [400, 401, 403, 404, 406, 409, 410, 413, 422])
def test_a_refusal_of_the_request_is_final(status: int) -> None:
    assert not refusal(status, {"Retry-After": "1"}, body()).may_pass


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 599])
def test_a_refusal_for_now_may_pass(status: int) -> None:
    attempt = refusal(status, {"Retry-After": "7"}, body())
    assert (attempt.may_pass, attempt.wait_s) == (True, 7.0)


def test_a_redirect_is_final_and_says_what_to_do() -> None:
    attempt = refusal(307, {"Location": "http://evil"}, b"")
    assert (attempt.may_pass, attempt.error.code) == (False, "service_failed")
    assert "redirects are not followed" in attempt.error.message


@pytest.mark.parametrize("text", [None, "soon", "nan", "", "Sun, 99 Nov"])
def test_a_retry_after_that_says_nothing_is_none(text: str | None) -> None:
    assert retry_after_s(text) is None


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("-5", 0.0), ("2.5", 2.5), ("1e300", 86_400.0)])
def test_a_retry_after_is_a_number_of_seconds_within_bounds(text: str, seconds: float) -> None:
    assert retry_after_s(text) == seconds


def test_a_retry_after_may_be_a_date() -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    seconds = retry_after_s(at)
    assert seconds is not None
    assert 55 < seconds <= 60


def test_whatever_the_service_says_is_bounded() -> None:
    flood = {f"member{number}": "x" * 10_000 for number in range(1000)}
    told = body(code="c" * 9000, detail="d" * 9000, hint="h" * 9000, pointer="p" * 9000, n=2**80, **{"k" * 100: 1})
    error = refusal(500, {}, msgspec.json.encode({**msgspec.json.decode(told), **flood})).error
    assert len(error.message) < MAX_TEXT + 200
    assert len(str(error)) < 4 * MAX_TEXT
    assert len(error.details) <= MAX_DETAILS
    assert all(len(name) <= MAX_NAME and len(str(value)) <= MAX_TEXT for name, value in error.details.items())


@given(st.integers(300, 599), json_values().map(msgspec.json.encode) | st.binary(max_size=50))
def test_no_answer_makes_it_raise(status: int, said: bytes) -> None:
    str(refusal(status, {"Retry-After": said.decode("latin-1")}, said).error)
