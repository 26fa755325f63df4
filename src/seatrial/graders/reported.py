"""What code of the user's says of a run, as a finding."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Finding
from seatrial.runs import Outcome, Verdict
from seatrial.trajectory.completeness import reaches


class ReportedVerdict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The keys of a verdict that a command prints or a function returns. One of the first three says it."""

    passed: bool | None = None
    score: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Alone, it passes when it is 1; `min_score` of the grader sets another bar."""
    outcome: Outcome | None = None
    """Instead of `passed`, for `errored` and `skipped`."""
    reason: str | None = None
    reasons: list[str] = []
    evidence: list[str] = []
    details: Any = None
    cost_usd: Annotated[float, Meta(ge=0)] | None = None


def finding_of(value: Any) -> Finding:
    """A finding from `True`, a score, one of both with a reason, a mapping of `ReportedVerdict`'s keys, a finding or a
    verdict. Raises `SeatrialError`."""
    if isinstance(value, Finding):
        return _checked(value)
    if isinstance(value, Verdict):
        return _checked(
            Finding(
                outcome=value.outcome,
                score=value.score,
                reasons=value.reasons,
                code=value.code,
                evidence=value.evidence,
                details=value.details,
                cost_usd=value.cost_usd,
                least_cost_usd=value.least_cost_usd,
                tokens=value.tokens,
                least_tokens=value.least_tokens,
            )
        )
    reasons: list[str] = []
    if isinstance(value, tuple) and [*map(type, value)] in ([bool, str], [int, str], [float, str]):
        value, reasons = value[0], [value[1]]
    if isinstance(value, bool):
        value = {"passed": value, "reasons": reasons}
    elif isinstance(value, int | float):
        value = {"score": value, "reasons": reasons}
    if not isinstance(value, dict):
        raise SeatrialError(
            "invalid_document",
            f"a verdict is true, false or a score, perhaps with a reason, a mapping or a `Verdict`, not {_kind(value)}",
        )
    if "judgement" in value:
        raise SeatrialError("invalid_document", "a verdict has no `judgement`: its key is `outcome`")
    try:
        report = msgspec.convert(value, ReportedVerdict)
    except msgspec.ValidationError as error:
        raise wire.invalid_document(error) from None
    return _checked(
        Finding(
            outcome=_outcome(report),
            score=report.score,
            reasons=report.reasons if report.reason is None else [report.reason, *report.reasons],
            evidence=report.evidence,
            details=report.details,
            cost_usd=report.cost_usd,
        )
    )


def _checked(finding: Finding) -> Finding:
    """The finding, if it is one that can be stored: a struct takes whatever it is made of, and `outcome="fail"` must
    not pass for a pass, nor may details that are no JSON cost the whole run."""
    try:
        checked = wire.decode_input(wire.encode(finding), _FINDING)
    except (TypeError, ValueError, OverflowError) as error:
        raise SeatrialError("invalid_document", f"it has a part that is not JSON: {error}") from None
    # As it was given: JSON has no NaN, which is null there.
    if finding.score is not None and not 0 <= finding.score <= 1:
        raise SeatrialError("invalid_document", f"a score is from 0 to 1, not {finding.score}")
    if (finding.outcome, finding.score) in (("passed", 0), ("failed", 1)):
        # One of the two is a mistake, and which one nobody knows.
        message = f"a verdict that {finding.outcome} with the score {finding.score:g} contradicts itself"
        raise SeatrialError("invalid_document", message)
    return checked


def _outcome(report: ReportedVerdict) -> Outcome:
    if report.outcome is not None:
        if report.passed is not None:
            raise SeatrialError("invalid_document", "a verdict has `outcome` or `passed`, not both")
        return report.outcome
    if report.passed is not None:
        return "passed" if report.passed else "failed"
    if report.score is None:
        raise SeatrialError("invalid_document", "a verdict needs `passed`, `score` or `outcome`")
    return "passed" if reaches(report.score, 1.0) else "failed"


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


_FINDING = msgspec.json.Decoder(Finding)
