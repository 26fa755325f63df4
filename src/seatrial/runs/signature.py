"""Signatures of runs that did not pass: where a run first goes wrong, normalised, so that runs that fail alike are
counted together.

Parts are separated by `|`, the most telling first: what judged, the tool, the place, the kind of difference.

    tool_trajectory|refund|/arguments/amount|differs
    fault|agent_timeout
    honesty|send_email|reported_call_not_observed
    judge|wrong tone
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from seatrial.runs.fault import Fault
from seatrial.runs.verdict import JudgeDetails, Verdict
from seatrial.trajectory.result import MatchResult

MAX_SIGNATURE = 200
"""Characters; what is longer is cut, and stays the same for the same run."""
_MAX_PART = 80

NameOfStep = Callable[[int], str | None]
"""The tool of a step, by its place in the run; None when there is no such step."""

_SPACE = re.compile(r"\s+")
_INDEX = re.compile(r"/[0-9]+(?=/|$)")
_STEP = re.compile(r"/steps/([0-9]{1,9})")


def signature_of(outcome: str, fault: Fault | None, verdicts: Sequence[Verdict], name_of: NameOfStep) -> str | None:
    """The signature of a run; None unless it failed or errored."""
    if outcome != "failed" and outcome != "errored":
        return None
    if fault is not None:
        return _joined("fault", fault.error_class)
    # A required grader decides alone; otherwise the first one that agrees with the outcome speaks for it.
    speaking = sorted([verdict for verdict in verdicts if verdict.outcome == outcome], key=_not_required)
    if not speaking and outcome == "errored":
        speaking = [verdict for verdict in verdicts if verdict.outcome == "skipped"]
    if not speaking:
        return _joined("grade", outcome)
    return _joined(*_parts(speaking[0], name_of))


def _not_required(verdict: Verdict) -> bool:
    return not verdict.required


def _parts(verdict: Verdict, name_of: NameOfStep) -> list[str | None]:
    if verdict.outcome != "failed":
        return [verdict.kind, verdict.grader, verdict.outcome]
    find = _FINDERS.get(verdict.kind)
    # Details of a grader's own are foreign data, and may be from an earlier version.
    found = find(verdict, _plain(verdict.details), name_of) if find is not None else None
    return [verdict.kind, verdict.grader] if found is None else found


def _plain(details: Any) -> Any:
    """The details as JSON has them: a run that was just graded has structs, one from a store has dicts."""
    if details is None or (isinstance(details, dict | list) and not _has_structs(details)):
        return details
    try:
        return msgspec.to_builtins(details, builtin_types=(msgspec.Raw,))
    except (TypeError, ValueError, RecursionError):
        return None


def _has_structs(details: dict[str, Any] | list[Any]) -> bool:
    return isinstance(details, list) and any(isinstance(item, msgspec.Struct) for item in details)


def _trajectory(verdict: Verdict, details: Any, name_of: NameOfStep) -> list[str | None] | None:
    try:
        result = msgspec.convert(details, MatchResult, strict=False)
    except (msgspec.ValidationError, RecursionError):
        return None
    kind = verdict.kind
    if result.violations:
        first = result.violations[0]
        return [kind, name_of(first.actual) if first.actual is not None else None, first.constraint, "violated"]
    if result.mismatches:
        near = result.mismatches[0]
        if not near.differences:
            return [kind, name_of(near.actual), "out of order"]
        difference = near.differences[0]
        missing, extra = difference.actual is msgspec.UNSET, difference.expected is msgspec.UNSET
        how = "missing" if missing else "extra" if extra else "differs"
        return [kind, name_of(near.actual), _INDEX.sub("/*", difference.pointer), how]
    if result.missing:
        return [kind, None, f"/expected/{result.missing[0]}", "missing"]
    if result.extra:
        return [kind, name_of(result.extra[0]), "extra"]
    return None


def _honesty(verdict: Verdict, details: Any, name_of: NameOfStep) -> list[str | None] | None:
    if not isinstance(details, list) or not details or not isinstance(details[0], dict):
        return None
    pointer, code = details[0].get("pointer"), details[0].get("code")
    place = _STEP.match(pointer) if isinstance(pointer, str) else None
    return [verdict.kind, name_of(int(place[1])) if place is not None else None, str(code)]


def _judge(verdict: Verdict, details: Any, name_of: NameOfStep) -> list[str | None] | None:
    try:
        mode = msgspec.convert(details, JudgeDetails).failure_mode
    except (msgspec.ValidationError, RecursionError):
        return None
    return [verdict.kind, mode.lower()] if mode and mode.strip() else None


def _fields(verdict: Verdict, details: Any, name_of: NameOfStep) -> list[str | None] | None:
    for result in details if isinstance(details, list) else ():
        if isinstance(result, dict) and result.get("passed") is False and isinstance(path := result.get("path"), str):
            return [verdict.kind, _INDEX.sub("/*", path), "differs" if "actual" in result else "missing"]
    return None


def _contract(verdict: Verdict, details: Any, name_of: NameOfStep) -> list[str | None] | None:
    violation = details.get("violation") if isinstance(details, dict) else None
    return [verdict.kind, violation] if isinstance(violation, str) else None


def _composite(verdict: Verdict, details: Any, name_of: NameOfStep) -> list[str | None] | None:
    for inner in details if isinstance(details, list) else ():
        if isinstance(inner, dict) and inner.get("outcome") == "failed":
            try:
                return _parts(msgspec.convert(inner, Verdict), name_of)
            except (msgspec.ValidationError, RecursionError):
                return None
    return None


_FINDERS: Mapping[str, Callable[[Verdict, Any, NameOfStep], list[str | None] | None]] = {
    "tool_trajectory": _trajectory,
    "calls": _trajectory,
    "never_calls": _trajectory,
    "honesty": _honesty,
    "judge": _judge,
    "field_accuracy": _fields,
    "contract": _contract,
    "composite": _composite,
}


def _joined(*parts: str | None) -> str:
    text = "|".join(
        _SPACE.sub(" ", part[:_MAX_PART].replace("|", "/").replace("\0", " ")).strip() for part in parts if part
    )
    return text[:MAX_SIGNATURE].encode("utf-8", "replace").decode()
