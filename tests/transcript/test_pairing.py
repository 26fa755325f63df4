"""Which call a result belongs to."""

from __future__ import annotations

from seatrial.transcript.pairing import OpenCalls


def test_a_result_belongs_to_the_call_of_its_id_whatever_tool_it_names() -> None:
    calls: OpenCalls[int] = OpenCalls()
    calls.add([("a", "find", 1), ("b", "pay", 2)])
    assert [calls.take("b", "pay"), calls.take("a", "other"), calls.take("a", None)] == [2, 1, 1]
    assert calls.take("c", "find") is None


def test_an_id_that_is_used_again_means_the_latest_call_unless_the_tool_says_otherwise() -> None:
    calls: OpenCalls[int] = OpenCalls()
    calls.add([("a", "find", 1)])
    assert calls.take("a", "find") == 1
    calls.add([("a", "pay", 2), ("b", "pay", 3)])
    assert [calls.take("a", "find"), calls.take("a", "pay"), calls.take("a", "other")] == [1, 2, 2]
    calls.add([("b", "find", 4)])
    assert [calls.take("b", "pay"), calls.take("b", None)] == [3, 4]


def test_calls_of_one_message_that_share_an_id_get_their_results_in_order() -> None:
    calls: OpenCalls[int] = OpenCalls()
    calls.add([("a", "find", 1), ("a", "find", 2), ("a", "pay", 3)])
    assert [calls.take("a", "find"), calls.take("a", None), calls.take("a", "pay")] == [1, 2, 3]
