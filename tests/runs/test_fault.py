"""The table of faults says what verdicts.md 3 says, and stays readable for older stores."""

from __future__ import annotations

import msgspec
import pytest

from seatrial.runs import FAULT_CLASSES, MOVABLE, Fault, FaultRules, class_of_status

AGENTS_DOING = {
    "agent_exception",
    "agent_exit",
    "agent_signal",
    "agent_5xx",
    "agent_4xx",
    "agent_bad_response",
    "agent_output_missing",
    "response_contract_violation",
    "response_too_large",
    "answer_cut_off",
    "stream_truncated",
    "agent_reported_error",
    "agent_timeout",
    "deadline_exceeded",
    "push_timeout",
}
NOT_THE_AGENTS = {408, 425, 429, 401, 403, 502, 503, 504, 529}


def test_what_the_agent_did_is_its_doing_and_nothing_else_is() -> None:
    assert {name for name, kind in FAULT_CLASSES.items() if kind.blame == "agent"} == AGENTS_DOING


@pytest.mark.parametrize("status", range(400, 600))
def test_every_error_status_is_the_agents_doing_but_those_that_say_that_it_could_not_be_asked(status: int) -> None:
    error_class = class_of_status(status)
    assert error_class is not None
    assert Fault(error_class, "").blame == ("infrastructure" if status in NOT_THE_AGENTS else "agent")


@pytest.mark.parametrize(("status", "expected"), [(200, None), (299, None), (302, "agent_redirected")])
def test_a_good_answer_is_no_fault_and_a_redirect_is_the_suites(status: int, expected: str | None) -> None:
    assert class_of_status(status) == expected


@pytest.mark.parametrize("status", [0, 99, 101, 600, 999])
def test_a_status_that_does_not_exist_is_a_bad_response(status: int) -> None:
    assert class_of_status(status) == "agent_bad_response"


@pytest.mark.parametrize("error_class", sorted(FAULT_CLASSES))
def test_what_the_agent_did_is_never_tried_again(error_class: str) -> None:
    fault = Fault(error_class, "")
    assert not (fault.retryable and fault.blame == "agent")
    fault.moved_to = "agent"
    assert not fault.retryable


def test_a_class_that_is_named_where_it_belongs_already_is_not_moved() -> None:
    fault = Fault("agent_timeout", "")
    FaultRules({"agent_timeout": "agent"}).apply(fault)
    assert (fault.blame, fault.moved_to) == ("agent", None)


def test_what_is_seatrials_own_cannot_be_moved() -> None:
    assert not {"internal_error", "recording_failed", "out_of_resources", "record_unreadable"} & set(MOVABLE)


@pytest.mark.parametrize(
    "error_class",
    [
        "auth_failed",
        "agent_timeout",
        "deadline_exceeded",
        "agent_5xx",
        "agent_4xx",
        "agent_redirected",
        "agent_bad_response",
        "response_contract_violation",
        "agent_exception",
        "agent_reported_error",
        "agent_exit",
        "agent_batch_died",
        "agent_output_missing",
        "agent_unreachable",
        "endpoint_refused",
        "stream_truncated",
        "transport_error",
        "response_too_large",
        "proxy_misconfigured",
        "recording_failed",
        "server_restarted",
        "server_stopped",
        "push_timeout",
        "internal_error",
    ],
)
def test_every_class_that_a_store_may_hold_is_still_read(error_class: str) -> None:
    stored = msgspec.json.encode({"error_class": error_class, "message": "no", "http_status": 500})
    assert msgspec.json.decode(stored, type=Fault) == Fault(error_class, "no", http_status=500)
