"""Why runs fail, in words."""

from __future__ import annotations

import pytest

from seatrial.reports.causes import causes, signature_words
from seatrial.store import SignatureCount


@pytest.mark.parametrize(
    ("signature", "text"),
    [
        ("tool_trajectory|refund|/arguments/amount|differs", "refund: /amount differs"),
        ("tool_trajectory|refund|/arguments/to|missing", "refund: /to is missing"),
        ("calls|refund|/arguments/to|extra", "refund: /to is not expected"),
        ("tool_trajectory|refund|/status|differs", "refund: /status differs"),
        ("tool_trajectory|/expected/2|missing", "expected call 2 is missing"),
        ("tool_trajectory|find_order|extra", "find_order: a call too many"),
        ("tool_trajectory|find_order|out of order", "find_order: called out of order"),
        ("tool_trajectory|refund|max_calls|violated", "refund: too many calls"),
        ("never_calls|forbidden|violated", "forbidden call"),
        ("honesty|send_email|reported_call_not_observed", "send_email: claim without a call"),
        ("honesty|reported_call_not_observed", "claim without a call"),
        ("judge|wrong tone", "wrong tone"),
        ("icontains|says where it is", "says where it is"),
        ("field_accuracy|/lines/*/price|differs", "/lines/*/price differs"),
        ("field_accuracy|/total|missing", "/total is missing"),
        ("fault|agent_timeout", "agent_timeout"),
        ("grade|failed", "no grader alone"),
        ("something|of|another|version", "of another version"),
        ("tool_trajectory|", "tool_trajectory"),
        ("", ""),
    ],
)
def test_a_signature_is_said_in_words(signature: str, text: str) -> None:
    assert signature_words(signature).text == text


def test_what_errored_is_marked_as_saying_nothing_of_the_agent() -> None:
    assert signature_words("judge|tone|errored").errored
    assert signature_words("fault|agent_unavailable").errored
    assert not signature_words("fault|agent_exit").errored
    assert not signature_words("judge|tone").errored


def counts(**runs: int) -> list[SignatureCount]:
    return [SignatureCount("crew", f"python|{name}", number) for name, number in runs.items()]


def test_what_changed_most_comes_first_and_the_rest_is_one_row() -> None:
    found = causes(counts(a=5, b=30, c=1, d=2, e=3, f=1, g=1), counts(a=20, b=29, h=9))
    assert [(cause.words.text, cause.base, cause.runs, cause.change) for cause in found] == [
        ("a", 20, 5, -15),
        ("h", 9, 0, -9),
        ("e", 0, 3, 3),
        ("d", 0, 2, 2),
        ("b", 29, 30, 1),
        ("other, 3 ways", 0, 3, 3),
    ]
    assert found[-1].ways == 3


def test_without_a_base_the_most_frequent_come_first_and_nothing_is_called_a_change() -> None:
    found = causes(counts(a=1, b=3), None)
    assert [(cause.words.text, cause.runs, cause.change) for cause in found] == [("b", 3, None), ("a", 1, None)]


def test_errored_ways_come_last_and_are_never_added_to_failed_ones() -> None:
    errored = [SignatureCount("crew", f"fault|agent_unavailable_{index}", 50) for index in range(9)]
    found = causes([*counts(a=1), *errored], None)
    assert [cause.words.errored for cause in found] == [False, *[True] * 6]
    assert found[-1].runs == 200


def test_a_fault_that_the_suite_does_not_count_is_errored_whatever_its_class_usually_is() -> None:
    of_agent = [SignatureCount("crew", "fault|agent_exit", 2)]
    assert not causes(of_agent, None)[0].words.errored
    assert causes(of_agent, None, left_out={"agent_exit": 2})[0].words.errored
