"""Which form of a stream a client gets."""

from __future__ import annotations

import pytest

from seatrial.errors import SeatrialError
from seatrial.server.native_stream import chosen_form
from seatrial.server.run_feed import FrameForm


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "sse"),
        ("", "sse"),
        ("*/*", "sse"),
        ("text/event-stream", "sse"),
        ("application/x-ndjson", "ndjson"),
        ("application/*", "ndjson"),
        ("text/*;q=0.3, application/x-ndjson;q=0.2", "sse"),
        ("text/event-stream;q=0.5, application/x-ndjson", "ndjson"),
        ("text/event-stream;q=0, */*", "ndjson"),
        ("application/x-ndjson, text/event-stream", "sse"),
        ("TEXT/EVENT-STREAM ; Q=1", "sse"),
        ("application/x-ndjson; charset=utf-8", "ndjson"),
        ("text/event-stream;q=nonsense, application/x-ndjson;q=0.1", "ndjson"),
    ],
)
def test_the_preferred_form_is_chosen(accept: str | None, form: FrameForm) -> None:
    assert chosen_form(accept) == form


@pytest.mark.parametrize(
    "accept", ["application/json", "text/html, image/*", "text/event-stream;q=0", "*/*;q=nan", ",", ";;q", "\x00"]
)
def test_a_client_that_accepts_neither_form_is_told_so(accept: str) -> None:
    with pytest.raises(SeatrialError, match="text/event-stream or application/x-ndjson"):
        chosen_form(accept)
