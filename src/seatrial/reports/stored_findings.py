"""Findings of a run in a store, by as much of it as they need: never the whole run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.reports.findings import RunEvidence, RunFindings, expected_tools, findings_of, match_result, not_repaired
from seatrial.runs import Case, Experiment, Verdict
from seatrial.store import RunRecord, RunSummary, StepLine, Store, TrialLine
from seatrial.store.of_run import whole_arguments
from seatrial.trajectory.step import Step
from seatrial.transcript.arguments import ARGUMENTS_NOT_JSON

MAX_FAILED = 50
MAX_REPAIRS = 200
MAX_NAMED = 40
"""Steps that verdicts point at, of which the names are read."""
MAX_LINES = 2000
"""Steps of a run that are read at once, without their arguments and results."""

_STEP = re.compile(r"/steps/([0-9]{1,9})(?:/.*)?", re.DOTALL)


def stored_findings(
    store: Store,
    record: RunRecord,
    experiment: Experiment | None = None,
    case: Case | None = None,
    *,
    lines: list[StepLine] | None = None,
    codes: Iterable[str] = (),
) -> RunFindings:
    """The findings of a run; `lines` are its steps, where they are at hand and all of them; `codes` those of its
    notes."""
    run_id = record.summary.run_id
    return findings_of(
        RunEvidence(
            outcome=record.summary.outcome,
            status=record.summary.status,
            fault=record.fault,
            grade=record.grade,
            verdicts=record.verdicts,
            names=_names(store, run_id, record.verdicts, lines),
            failed=failed_for_good(store, run_id) if lines is None or any(map(_failed, lines)) else [],
            unreadable=_unreadable(store, run_id, lines) if lines is not None or ARGUMENTS_NOT_JSON in codes else [],
            expected=expected_tools(grader_configs(experiment, case)),
        )
    )


class StoredFailure(msgspec.Struct, frozen=True):
    """Why a stored run did not pass, and where it first went wrong."""

    words: str
    place: str | None = None
    """JSON pointer into the run; None where nothing names a place."""


def _failure(found: RunFindings) -> StoredFailure:
    if found.first_wrong is not None:
        return StoredFailure(found.first_wrong.sentence, found.first_wrong.place)
    placed = next((finding.place for finding in found.findings if finding.wrong and finding.place is not None), None)
    return StoredFailure(found.sentence.text, placed)


def grader_configs(experiment: Experiment | None, case: Case | None) -> list[Any]:
    """The graders of a case as its suite has them: those of the suite, and its own."""
    configured = None if experiment is None else experiment.suite.get("graders")
    own = [] if case is None else case.graders
    return [*(configured if isinstance(configured, list) else ()), *own]


def failed_for_good(store: Store, run_id: str) -> list[Step]:
    """Calls that failed and that no equal call made good later; not those of which that is not certain."""
    failed = [found for found in store.failed_steps(run_id, MAX_FAILED) if found.step.executed_by != "user"]
    found: list[Step] = []
    for name in dict.fromkeys(each.step.name for each in failed):
        some = [each for each in failed if each.step.name == name]
        later = store.good_calls(run_id, name, some[0].step.index, MAX_REPAIRS)
        if len(later) == MAX_REPAIRS:
            continue
        both = sorted([*some, *later], key=lambda each: each.step.index)
        left = {step.index for step in not_repaired([whole_arguments(each) for each in both])}
        found += [each.step for each in some if each.step.index in left]
    return sorted(found, key=lambda step: step.index)


def _names(store: Store, run_id: str, verdicts: list[Verdict], lines: list[StepLine] | None) -> dict[int, str]:
    if lines is not None:
        return {line.index: line.name for line in lines}
    return store.step_names({run_id: _named(verdicts)}).get(run_id, {})


def _named(verdicts: Sequence[Verdict]) -> list[int]:
    """The steps that verdicts name, the first of them."""
    wanted: dict[int, None] = {}
    for verdict in verdicts:
        result = match_result(verdict) if verdict.outcome == "failed" else None
        if result is not None:
            wanted |= dict.fromkeys(near.actual for near in result.mismatches)
            wanted |= dict.fromkeys(result.extra[:MAX_NAMED])
        wanted |= {int(found[1]): None for pointer in verdict.evidence if (found := _STEP.fullmatch(pointer))}
    return sorted(list(wanted)[:MAX_NAMED])


def _unreadable(store: Store, run_id: str, lines: list[StepLine] | None) -> list[Step]:
    some = store.step_lines(run_id, 0, MAX_LINES) if lines is None else lines
    return [
        Step(line.index, line.name, None, arguments_text=line.arguments_text)
        for line in some
        if line.arguments_text is not None and line.executed_by != "user"
    ]


def _failed(line: StepLine) -> bool:
    return line.status in ("error", "timeout", "cancelled")


def stored_failures(
    store: Store, experiment_id: str, runs: Iterable[TrialLine | RunSummary]
) -> dict[str, StoredFailure]:
    """Why each of these runs of an experiment did not pass, with a few queries for all of them: by what graders say, or
    by the class of a fault."""
    some = {run.run_id: run for run in runs}
    verdicts = store.failed_verdicts(list(some))
    names = store.step_names({run_id: _named(found) for run_id, found in verdicts.items()})
    lacking = {some[run_id].case_id for run_id, found in verdicts.items() if any(map(_lacks_call, found))}
    expected = {case_id: expected_tools(configs) for case_id, configs in _configs(store, experiment_id, lacking)}
    found: dict[str, StoredFailure] = {}
    for run_id, run in some.items():
        if run.error_class is not None:
            found[run_id] = StoredFailure(run.error_class)
            continue
        evidence = RunEvidence(
            outcome=run.outcome,
            status=run.status,
            verdicts=verdicts.get(run_id, ()),
            names=names.get(run_id, {}),
            expected=expected.get(run.case_id, {}),
        )
        found[run_id] = _failure(findings_of(evidence))
    return found


def _lacks_call(verdict: Verdict) -> bool:
    result = match_result(verdict) if verdict.outcome == "failed" else None
    return result is not None and bool(result.missing)


def _configs(store: Store, experiment_id: str, case_ids: Collection[str]) -> Iterator[tuple[str, list[Any]]]:
    """The graders of these cases."""
    if not case_ids:
        return
    experiment = store.resolve_experiment(experiment_id)
    for case_id in case_ids:
        with suppress(SeatrialError):  # a damaged case is reported where it is shown
            yield case_id, grader_configs(experiment, store.case(experiment_id, case_id))
