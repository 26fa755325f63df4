"""dispatch.md 6.4, row by row."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seatrial.errors import SeatrialError
from seatrial.formats.agent_response import read
from seatrial.formats.contract import ContractReport, ResponseMode, Strictness, check

SAID = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
PARTS = [{"role": "assistant", "content": [{"type": "image"}, {"type": "text", "text": "hello"}]}]
SILENT = [{"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "name": "f"}]}]
NOBODY = [{"role": "user", "content": "hi"}]


def report(messages: Any, mode: ResponseMode | None, strictness: Strictness = "soft") -> ContractReport:
    return check(read(msgspec.json.encode({"final_response": "a", "messages": messages})), mode, strictness)


def codes(report: ContractReport) -> list[str]:
    return [note.code for note in report.notes]


def test_without_a_contract_missing_messages_are_noted_and_graded() -> None:
    found = report(None, None)
    assert (found.ok, found.gradeable, codes(found)) == (True, False, ["messages_missing"])


def test_without_a_contract_malformed_messages_are_noted_and_graded() -> None:
    found = report("text", None)
    assert (found.ok, codes(found)) == (True, ["messages_invalid"])


def test_without_a_contract_nothing_needs_to_be_said_by_the_assistant() -> None:
    found = report(NOBODY, None)
    assert (found.ok, found.gradeable, codes(found)) == (True, False, [])


@pytest.mark.parametrize("strictness", ["soft", "strict"])
@pytest.mark.parametrize("messages", [None, SILENT, NOBODY, [], SAID])
def test_thin_asks_for_no_messages(messages: Any, strictness: Strictness) -> None:
    found = report(messages, "thin", strictness)
    assert (found.ok, codes(found)) == (True, [])


def test_thin_still_tells_of_messages_that_are_no_array() -> None:
    found = report("text", "thin", "strict")
    assert (found.ok, codes(found)) == (True, ["messages_invalid"])


@pytest.mark.parametrize(
    ("messages", "code"),
    [(None, "messages_missing"), ("text", "messages_invalid"), ([], "not_gradeable"), (SILENT, "not_gradeable")],
)
def test_rich_and_soft_notes_what_is_missing(messages: Any, code: str) -> None:
    found = report(messages, "rich", "soft")
    assert (found.ok, found.gradeable, codes(found)) == (True, False, [code])


@pytest.mark.parametrize("messages", [None, "text", {}, [], SILENT, NOBODY, ["text"]])
def test_rich_and_strict_fails_without_a_gradeable_message(messages: Any) -> None:
    found = report(messages, "rich", "strict")
    assert (found.ok, found.violation, found.gradeable) == (False, "response_contract_violation", False)


@pytest.mark.parametrize("messages", [SAID, PARTS, [{"no": "role"}, *SAID]])
def test_rich_and_strict_passes_with_any_assistant_text(messages: Any) -> None:
    found = report(messages, "rich", "strict")
    assert (found.ok, found.violation, found.gradeable) == (True, None, True)


@pytest.mark.parametrize("strictness", ["soft", "strict"])
@pytest.mark.parametrize("mode", [None, "thin", "rich"])
@pytest.mark.parametrize("body", [{}, {"final_response": ""}, {"final_response": 5}, {"final_response": None}])
def test_no_final_response_is_a_bad_response_in_every_row(
    body: dict[str, Any], mode: ResponseMode | None, strictness: Strictness
) -> None:
    found = check(read(msgspec.json.encode({**body, "messages": SAID})), mode, strictness)
    assert (found.ok, found.violation, found.gradeable) == (False, "agent_bad_response", True)
    assert codes(found) == ["final_response_missing"]


def test_an_unknown_contract_is_an_error() -> None:
    reading = read(b'{"final_response": "a"}')
    with pytest.raises(SeatrialError) as caught:
        check(reading, "full")  # type: ignore[arg-type]  # what a configuration file may say
    assert caught.value.code == "invalid_config"
