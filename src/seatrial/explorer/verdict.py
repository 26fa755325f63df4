"""The page of one verdict: expected against actual calls, the ballots of judges, or what the grader says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from markupsafe import Markup

from seatrial.errors import SeatrialError
from seatrial.explorer.expected import ExpectedPage, expected_page
from seatrial.explorer.json_view import json_view
from seatrial.explorer.markup import visible
from seatrial.explorer.render import address
from seatrial.explorer.run import belongs_to, older_grading
from seatrial.reports.findings import match_result, place_text, step_of
from seatrial.reports.stored_findings import grader_configs
from seatrial.reports.votes import JudgeLine, inner_verdicts, judge_lines
from seatrial.runs import Case, Experiment, RunKey, Verdict
from seatrial.store import GradingSummary, RunRecord, Store

MAX_REASONS = 50
MAX_REASON = 4000
MAX_EVIDENCE = 60
MAX_INNER = 60
MAX_NAMES = 20


class VerdictPage(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict on one run."""

    run_id: str
    record: RunRecord
    title: str
    """The case of the run, or its thread."""
    experiment: Experiment | None
    verdict: Verdict
    reasons: list[str]
    more_reasons: int
    evidence: list[tuple[str, str]]
    """The words and the pointer of each place that it points at."""
    more_evidence: int
    expected: ExpectedPage | None
    negated: bool
    """Whether the verdict is the opposite of what the calls came to."""
    judges: list[JudgeLine]
    inner: list[Verdict]
    """The verdicts of the graders that it is made of."""
    more_inner: int
    details: Markup | None
    """What the grader kept beside its reasons."""
    suite: Markup | None
    """The grader as the suite has it, where it is not shown otherwise."""
    grading: int | None
    gradings: list[GradingSummary]
    at: str | None


def verdict_page(
    store: Store,
    run_id: str,
    grader: str,
    *,
    at: str | None = None,
    first: int | None = None,
    grading: int | None = None,
) -> VerdictPage:
    """What a grader says of a run; `not_found`, with the nearest name, when it says nothing."""
    record = store.run_record(run_id)
    experiment, case = belongs_to(store, record)
    gradings = store.gradings(run_id) if record.grade is not None else []
    older = older_grading(gradings, grading)
    verdicts = record.verdicts if older is None else store.verdicts_of(run_id, older)
    verdict = next((each for each in verdicts if each.grader.strip("/") == grader.strip("/")), None)
    if verdict is None:
        names = [each.grader for each in verdicts][:MAX_NAMES]
        hint = f"it was graded by {', '.join(map(visible, names))}" if names else "the run was not graded"
        raise SeatrialError("not_found", f"no grader {grader[:80]!r} graded run {run_id}", hint=hint)
    configs = _configs(experiment, case, verdict)
    result = match_result(verdict)
    expected = None
    if result is not None:
        expected = expected_page(store, record, result, configs, step=step_of(at), first=first)
    judges = judge_lines(verdict)
    inner = inner_verdicts(verdict) if verdict.kind == "composite" else []
    bare = result is None and not judges and not inner
    return VerdictPage(
        run_id=run_id,
        record=record,
        title=record.key.case_id if isinstance(record.key, RunKey) else record.key.thread_id,
        experiment=experiment,
        verdict=verdict,
        reasons=[visible(reason[:MAX_REASON]) for reason in verdict.reasons[:MAX_REASONS]],
        more_reasons=max(0, len(verdict.reasons) - MAX_REASONS),
        evidence=[(place_text(place), place) for place in verdict.evidence[:MAX_EVIDENCE]],
        more_evidence=max(0, len(verdict.evidence) - MAX_EVIDENCE),
        expected=expected,
        negated=result is not None and {result.outcome, verdict.outcome} == {"passed", "failed"},
        judges=judges,
        inner=inner[:MAX_INNER],
        more_inner=max(0, len(inner) - MAX_INNER),
        details=_json(run_id, verdict.details) if bare and verdict.details is not None else None,
        suite=_json(run_id, configs[0]) if len(configs) == 1 and expected is None else None,
        grading=older,
        gradings=gradings if len(gradings) > 1 else [],
        at=at,
    )


def _configs(experiment: Experiment | None, case: Case | None, verdict: Verdict) -> list[Mapping[str, Any]]:
    """The graders of the suite that have the name and the kind of a verdict."""
    return [
        config
        for config in grader_configs(experiment, case)
        if isinstance(config, dict)
        and config.get("kind") == verdict.kind
        and str(config.get("name") or config.get("kind")) == verdict.grader
    ]


def _json(run_id: str, value: Any) -> Markup:
    # What is cut off here is in the run as a whole.
    return json_view(msgspec.to_builtins(value), "", lambda place: address("runs", run_id, "download"))
