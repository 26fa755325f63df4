"""The response contract as a grader."""

from __future__ import annotations

import pytest

from graders.subjects import subject, verdict
from seatrial.formats.agent_response import read
from seatrial.graders import Subject

RICH = b'{"final_response": "done", "messages": [{"role": "assistant", "content": "done"}]}'
THIN = b'{"final_response": "done"}'
SILENT = b'{"final_response": "done", "messages": [{"role": "user", "content": "hello"}]}'


def answered(body: bytes) -> Subject:
    found = subject()
    found.run.reading = read(body)
    return found


@pytest.mark.parametrize(
    ("body", "response_mode", "strictness", "passes"),
    [
        (RICH, "rich", "strict", True),
        (THIN, "rich", "strict", False),
        (SILENT, "rich", "strict", False),
        (THIN, "rich", "soft", True),
        (SILENT, "rich", "soft", True),
        (THIN, "thin", "strict", True),
    ],
)
def test_the_table_of_response_mode_and_strictness_holds(
    body: bytes, response_mode: str, strictness: str, passes: bool
) -> None:
    grader = {"kind": "contract", "response_mode": response_mode, "strictness": strictness}
    assert verdict(answered(body), grader).outcome == ("passed" if passes else "failed")


def test_messages_that_the_agent_was_given_are_not_its_own() -> None:
    found = answered(RICH)
    assert found.run.reading is not None
    found.run.reading.transcript.given = [0]
    assert verdict(found, {"kind": "contract", "response_mode": "rich"}).outcome == "failed"


def test_a_transport_that_asked_for_less_takes_nothing_from_the_check() -> None:
    found = answered(THIN)
    assert found.run.reading is not None
    found.run.reading.notes = []
    assert verdict(found, {"kind": "contract", "response_mode": "rich"}).outcome == "failed"


def test_what_is_only_told_is_in_the_reasons() -> None:
    found = verdict(answered(THIN), {"kind": "contract", "response_mode": "rich", "strictness": "soft"})
    assert "messages_missing" in found.reasons[1]
