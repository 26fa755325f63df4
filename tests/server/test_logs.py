"""What a server says of its work."""

from __future__ import annotations

import io
import json
import logging

import pytest

from seatrial.server.logs import log, start_logging

pytestmark = pytest.mark.usefixtures("logs_as_before")


def test_a_json_line_is_one_object_with_its_fields() -> None:
    stream = io.StringIO()
    start_logging("json", stream)
    log("request", route="/v1/runs", status=200, ms=1.5, code=None)
    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert said.pop("time").endswith("Z")
    assert said == {"level": "info", "event": "request", "route": "/v1/runs", "status": 200, "ms": 1.5}


@pytest.mark.parametrize("form", ["text", "json"])
def test_hostile_text_stays_in_its_line(form: str) -> None:
    stream = io.StringIO()
    start_logging("json" if form == "json" else "text", stream)
    log("request", of="a\nFAKE LINE\x1b[2J\u2028" + "x" * 1000)
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert len(text) < 500


def test_an_exception_of_others_is_told_without_its_message() -> None:
    stream = io.StringIO()
    start_logging("text", stream)
    try:
        raise ValueError("the customer's secret")
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\nfuture: secret")
    text = stream.getvalue()
    assert "Exception in ASGI application" in text
    assert "kind=ValueError" in text
    assert "test_logs.py:" in text
    assert "secret" not in text


def test_a_line_is_written_once() -> None:
    stream = io.StringIO()
    start_logging("text", stream)
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert stream.getvalue().count("Invalid HTTP request") == 1
