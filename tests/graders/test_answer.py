"""Graders of the answer as text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.subjects import subject, verdict
from seatrial._support import wire
from seatrial._support.patterns import MAX_SUBJECT
from seatrial._support.printable import is_blank
from seatrial.errors import SeatrialError
from seatrial.formats import agent_response
from seatrial.graders import GradingPlan


@pytest.mark.parametrize(
    ("grader", "answer", "passes"),
    [
        ({"kind": "equals", "value": "Paris"}, " Paris\n", True),
        ({"kind": "equals", "value": "Paris"}, "paris", False),
        ({"kind": "equals", "value": "Paris", "trim": False}, "Paris\n", False),
        ({"kind": "equals", "value": "STRASSE", "ignore_case": True}, "straße", True),
        ({"kind": "equals", "value": 3}, "3.0", True),
        ({"kind": "equals", "value": True}, "1", False),
        ({"kind": "equals", "value": {"a": 1, "b": [2]}}, '{"b": [2.0], "a": 1}', True),
        ({"kind": "equals", "value": {"a": 1}}, "a is 1", False),
        ({"kind": "equals", "value": "1"}, "1", True),
        ({"kind": "contains", "value": "refund"}, "I refunded it", True),
        ({"kind": "contains", "value": "Refund"}, "I refunded it", False),
        ({"kind": "icontains", "value": "REFUND"}, "I refunded it", True),
        ({"kind": "icontains", "value": "x"}, "I refunded it", False),
        ({"kind": "contains_any", "values": ["no", "fund"]}, "I refunded it", True),
        ({"kind": "contains_any", "values": ["no", "FUND"]}, "I refunded it", False),
        ({"kind": "contains_any", "values": ["no", "FUND"], "ignore_case": True}, "I refunded it", True),
        ({"kind": "starts_with", "value": "I re"}, "  I refunded it", True),
        ({"kind": "starts_with", "value": "I re", "trim": False}, "  I refunded it", False),
        ({"kind": "starts_with", "value": "i RE", "ignore_case": True}, "I refunded it", True),
        ({"kind": "ends_with", "value": "it"}, "I refunded it\n", True),
        ({"kind": "ends_with", "value": "it", "trim": False}, "I refunded it\n", False),
        ({"kind": "ends_with", "value": "IT"}, "I refunded it", False),
        ({"kind": "regex", "pattern": r"o-\d+"}, "order o-17 is done", True),
        ({"kind": "regex", "pattern": r"o-\d+", "whole": True}, "order o-17 is done", False),
        ({"kind": "regex", "pattern": r"o-\d+", "whole": True}, " o-17\n", True),
        ({"kind": "regex", "pattern": r"(?i)ORDER"}, "order o-17", True),
        ({"kind": "contains", "value": "x"}, None, False),
    ],
)
def test_answers_are_judged_as_the_keys_say(grader: dict[str, Any], answer: str | None, passes: bool) -> None:
    found = verdict(subject(answer), grader)
    assert (found.outcome, found.score) == (("passed", 1.0) if passes else ("failed", 0.0))
    assert found.evidence == ["/answer"]
    assert found.reasons


def test_contains_all_scores_the_share_that_is_found() -> None:
    found = verdict(subject("one and two"), {"kind": "contains_all", "values": ["one", "two", "three"]})
    assert found.outcome == "failed"
    assert found.score == pytest.approx(2 / 3)
    assert found.reasons == ['2 of 3 texts are in the answer: 0.667; missing: "three"']


@pytest.mark.parametrize("kind", ["equals", "contains", "icontains", "starts_with", "ends_with"])
def test_what_the_case_expects_is_looked_for_when_the_grader_names_nothing(kind: str) -> None:
    assert verdict(subject("42", expected="42"), {"kind": kind}).outcome == "passed"
    assert verdict(subject("41", expected="42"), {"kind": kind}).outcome == "failed"


@pytest.mark.parametrize("kind", ["equals", "contains"])
def test_nothing_to_compare_with_is_errored_and_not_passed(kind: str) -> None:
    found = verdict(subject("42"), {"kind": kind})
    assert found.outcome == "errored"
    assert "nothing to compare with" in found.reasons[0]


@pytest.mark.parametrize("expected", [7, "", ["a"]])
def test_a_text_grader_is_errored_when_the_case_expects_no_text(expected: Any) -> None:
    assert verdict(subject("7", expected=expected), {"kind": "contains"}).outcome == "errored"


@pytest.mark.parametrize(
    ("grader", "passes"),
    [
        ({"kind": "contains", "value": "password", "negate": True}, False),
        ({"kind": "icontains", "value": "PASSWORD", "negate": True}, False),
        ({"kind": "contains_any", "values": ["password"], "negate": True}, False),
        ({"kind": "regex", "pattern": "hunter2", "negate": True}, False),
        ({"kind": "ends_with", "value": "DONE"}, True),
        ({"kind": "contains_all", "values": ["a a", "hunter2"]}, True),
    ],
)
def test_what_stands_at_the_end_of_a_long_answer_counts(grader: dict[str, Any], passes: bool) -> None:
    answer = "a " * 30_000 + "the password is hunter2 DONE"
    transcript = agent_response.read(wire.encode({"final_response": answer})).transcript
    found = verdict(subject(transcript.answer, messages=transcript.messages), grader)
    assert found.outcome == ("passed" if passes else "failed")


@pytest.mark.parametrize("negate", [False, True])
def test_a_pattern_is_not_matched_with_a_huge_answer(negate: bool) -> None:
    found = verdict(subject("a" * (MAX_SUBJECT + 1)), {"kind": "regex", "pattern": "a", "negate": negate})
    assert found.outcome == "errored"
    assert "100,001 characters" in found.reasons[0]


@pytest.mark.parametrize(
    "grader",
    [
        {"kind": "regex", "pattern": ".*"},
        {"kind": "regex", "pattern": "(?i)x*|y"},
        {"kind": "regex", "pattern": "("},
        {"kind": "regex", "pattern": ""},
        {"kind": "contains", "value": ""},
        {"kind": "contains_any", "values": []},
        {"kind": "contains_all", "values": ["a", ""]},
        {"kind": "equals", "value": 3, "ignore_case": True},
    ],
)
def test_what_could_never_fail_or_never_work_is_refused(grader: dict[str, Any]) -> None:
    with pytest.raises(SeatrialError) as caught:
        GradingPlan([grader])
    assert caught.value.code == "invalid_config"


@given(st.text(max_size=40), st.text(min_size=1, max_size=3))
def test_contains_is_the_operator_in(answer: str, value: str) -> None:
    found = verdict(subject(answer), {"kind": "contains", "value": value})
    # A blank answer is none, and what is blank cannot be found in it.
    assert (found.outcome == "passed") == (value in answer and not is_blank(answer))


def test_hostile_text_is_escaped_and_cut_in_reasons() -> None:
    found = verdict(subject("\x1b[31m\u202e" + "x" * 10_000), {"kind": "contains", "value": "yes"})
    assert "\x1b" not in found.reasons[0]
    assert "\u202e" not in found.reasons[0]
    assert len(found.reasons[0]) < 300


@pytest.mark.parametrize("pattern", ["^$", r"\b", r"\A(?!.*password)", r"\Ax*$", r"\A[^@]*\Z"])
def test_a_pattern_that_may_match_nothing_at_one_place_is_not_taken_for_one_that_always_does(pattern: str) -> None:
    GradingPlan([{"kind": "regex", "pattern": pattern}])
