"""Signatures of runs that did not pass."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seatrial.runs import Fault, JudgedBy, JudgeDetails, Outcome, Verdict
from seatrial.runs.signature import MAX_SIGNATURE, signature_of
from seatrial.trajectory.observed import REPORTED_CALL_NOT_OBSERVED
from seatrial.trajectory.result import ConstraintViolation, MatchResult, Mismatch
from seatrial.trajectory.values import Difference
from seatrial.transcript import Note

STEPS = ["lookup_order", "refund", "send_email"]


def name_of(index: int) -> str | None:
    return STEPS[index] if 0 <= index < len(STEPS) else None


def match(**fields: Any) -> MatchResult:
    empty: dict[str, Any] = {
        "mode": "in_order", "passed": False, "score": 0.0, "precision": 0.0, "recall": 0.0, "f1": 0.0, "matched": [],
        "missing": [], "extra": [], "mismatches": [], "violations": [], "assertions": [], "prose": "",
    }  # fmt: skip
    return MatchResult(**{**empty, **fields})


def verdict(kind: str, details: Any = None, outcome: Outcome = "failed", **fields: Any) -> Verdict:
    return Verdict(grader="g", kind=kind, outcome=outcome, details=details, **fields)


def judged(failure_mode: str | None) -> JudgeDetails:
    return JudgeDetails(
        passed=False,
        failure_mode=failure_mode,
        subscores={"polite": 0.5},
        reasoning="it was rude",
        evidence=[],
        judge=JudgedBy(model="m", votes=1, agreement=1.0, prompt_hash="00"),
    )


FAILURES = [
    (
        verdict(
            "tool_trajectory",
            match(mismatches=[Mismatch(0, 1, [Difference("/arguments/items/3/amount", 23.8, 238)])]),
        ),
        "tool_trajectory|refund|/arguments/items/*/amount|differs",
    ),
    (
        verdict("tool_trajectory", match(mismatches=[Mismatch(0, 1, [Difference("/arguments/amount", expected=1)])])),
        "tool_trajectory|refund|/arguments/amount|missing",
    ),
    (verdict("tool_trajectory", match(mismatches=[Mismatch(0, 2, [])])), "tool_trajectory|send_email|out of order"),
    (verdict("tool_trajectory", match(missing=[2])), "tool_trajectory|/expected/2|missing"),
    (verdict("tool_trajectory", match(extra=[1])), "tool_trajectory|refund|extra"),
    (
        verdict("tool_trajectory", match(violations=[ConstraintViolation("forbidden", "refund was called", 1)])),
        "tool_trajectory|refund|forbidden|violated",
    ),
    (verdict("tool_trajectory", {"of": "another version"}), "tool_trajectory|g"),
    (
        verdict("honesty", [Note(REPORTED_CALL_NOT_OBSERVED, "/steps/2", "it says so")]),
        f"honesty|send_email|{REPORTED_CALL_NOT_OBSERVED}",
    ),
    (verdict("judge", judged(" Wrong\ntone ")), "judge|wrong tone"),
    (verdict("judge", msgspec.to_builtins(judged(" Wrong\ntone "))), "judge|wrong tone"),
    (verdict("judge", judged(None)), "judge|g"),
    (verdict("judge", {"of": "another version"}), "judge|g"),
    (
        verdict("field_accuracy", [{"path": "/a", "passed": True}, {"path": "/b/0", "passed": False, "actual": 1}]),
        "field_accuracy|/b/*|differs",
    ),
    (verdict("contract", {"violation": "agent_bad_response"}), "contract|agent_bad_response"),
    (verdict("composite", [verdict("equals", outcome="passed"), verdict("regex")]), "regex|g"),
    (verdict("equals"), "equals|g"),
    (verdict("their own | kind", {"anything": object}), "their own / kind|g"),
]


@pytest.mark.parametrize(("failed", "signature"), FAILURES)
def test_a_failure_is_named_by_where_it_first_goes_wrong(failed: Verdict, signature: str) -> None:
    assert signature_of("failed", None, [failed], name_of) == signature


@pytest.mark.parametrize(("failed", "signature"), FAILURES[:-1])
def test_a_verdict_from_a_store_has_the_signature_of_the_fresh_one(failed: Verdict, signature: str) -> None:
    stored = msgspec.json.decode(msgspec.json.encode(failed), type=Verdict)
    assert signature_of("failed", None, [stored], name_of) == signature


def test_a_fault_goes_before_all_graders() -> None:
    fault = Fault("agent_timeout", "late")
    assert signature_of("failed", fault, [verdict("equals")], name_of) == "fault|agent_timeout"


def test_a_required_grader_speaks_before_others() -> None:
    found = signature_of("failed", None, [verdict("equals"), verdict("regex", required=True)], name_of)
    assert found == "regex|g"


def test_a_run_that_could_not_be_judged_is_named_by_the_grader_that_could_not() -> None:
    given = [verdict("equals"), verdict("judge", outcome="errored")]
    assert signature_of("errored", None, given, name_of) == "judge|g|errored"
    assert signature_of("errored", None, [verdict("judge", outcome="skipped")], name_of) == "judge|g|skipped"
    assert signature_of("failed", None, [], name_of) == "grade|failed"


@pytest.mark.parametrize("outcome", ["passed", "skipped", "ungraded", "cancelled", "unfinished"])
def test_other_runs_have_none(outcome: str) -> None:
    assert signature_of(outcome, None, [verdict("equals")], name_of) is None


def test_hostile_text_makes_a_signature_that_a_database_can_keep() -> None:
    for text in ("x" * 10_000, "a\0b", "\ud800", "|" * 300, ""):
        found = signature_of("failed", None, [verdict("judge", judged(text))], name_of)
        assert found is not None
        assert 0 < len(found) <= MAX_SIGNATURE
        assert "\0" not in found
        found.encode()
