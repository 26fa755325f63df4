"""`calls` and `never_calls`: what they claim, and that what is not known never passes."""

from __future__ import annotations

import pytest

from graders.subjects import calls, step, subject, verdict
from seatrial.errors import SeatrialError
from seatrial.graders import build_graders

FINDS = {"kind": "calls", "tool": "find_order", "args": {"order": "A-1009"}}
NEVER = {"kind": "never_calls", "tools": ["refund", "delete_*"]}


def test_a_call_with_at_least_these_arguments_passes() -> None:
    made = subject(steps=[step(0, "look"), step(1, "find_order", {"order": "A-1009", "fields": ["status"]})])
    found = verdict(made, FINDS)
    assert (found.outcome, found.evidence, found.basis) == ("passed", ["/steps/1"], "reported")


def test_a_call_with_other_arguments_fails() -> None:
    assert verdict(subject(steps=[step(0, "find_order", {"order": "A-1"})]), FINDS).outcome == "failed"


def test_a_tool_that_must_never_be_called_fails_also_by_a_glob() -> None:
    assert verdict(subject(steps=calls("look", "refund")), NEVER).outcome == "failed"
    assert verdict(subject(steps=calls("delete_account")), NEVER).outcome == "failed"
    assert verdict(subject(steps=calls("look")), NEVER).outcome == "passed"


def test_without_a_list_of_calls_neither_says_anything() -> None:
    answered = subject("Done.", completeness="none")
    assert {verdict(answered, grader).code for grader in (FINDS, NEVER)} == {"calls_unknown"}


def test_an_empty_list_of_tools_is_refused() -> None:
    with pytest.raises(SeatrialError, match="never_calls"):
        build_graders([{"kind": "never_calls", "tools": []}])
