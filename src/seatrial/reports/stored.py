"""Rows of an experiment as a store has them."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.errors import SeatrialError
from seatrial.reports.detail import detail_of
from seatrial.reports.report import Report, report_on
from seatrial.reports.rows import RunDetail, RunRow, Source
from seatrial.runs import Case, Experiment
from seatrial.store import RunFilter, RunSummary, Store

RUNS_AT_ONCE = 500
DETAILS_AT_ONCE = 100
"""Runs whose transcripts are in memory together."""


def stored_report(store: Store, reference: str) -> Report:
    """The report on an experiment of a store, however it is named; see `Store.resolve_experiment`."""
    return report_on(stored(store, store.resolve_experiment(reference)))


def stored(store: Store, experiment: Experiment) -> Source:
    """An experiment of a store, to be reported. Its rows are read anew each time they are asked for."""

    def rows(*, agent: str | None = None, detailed: bool = False) -> Iterator[RunRow]:
        where = RunFilter(agents=frozenset({agent} if agent is not None else ()))
        limit = DETAILS_AT_ONCE if detailed else RUNS_AT_ONCE
        page = store.runs(experiment.experiment_id, where, limit=limit)
        while page:
            yield from _detailed(store, experiment, page) if detailed else map(_row, page)
            if len(page) < limit:
                return
            page = store.runs(experiment.experiment_id, where, after=page[-1].key, limit=limit)

    return Source(experiment, rows, store.grader_counts(experiment.experiment_id))


def _detailed(store: Store, experiment: Experiment, page: list[RunSummary]) -> Iterator[RunRow]:
    wanted = {summary.run_id: summary.key.case_id for summary in page if summary.outcome != "passed"}
    details = {}
    if wanted:
        cases = {case_id: _case(store, experiment, case_id) for case_id in set(wanted.values())}
        for run in store.whole_runs(experiment.experiment_id, RunFilter(run_ids=frozenset(wanted))):
            details[run.run_id] = detail_of(run, cases[run.key.case_id], experiment.suite)
    for summary in page:
        yield _row(summary, details.get(summary.run_id))


def _case(store: Store, experiment: Experiment, case_id: str) -> Case:
    try:
        return store.case(experiment.experiment_id, case_id)
    except SeatrialError as error:
        if error.code != "damaged":
            raise
        return Case(id=case_id, instruction=f"({error.message})")


def _row(summary: RunSummary, detail: RunDetail | None = None) -> RunRow:
    key = summary.key
    return RunRow(
        run_id=summary.run_id,
        agent=key.agent,
        case_id=key.case_id,
        trial=key.trial,
        status=summary.status,
        outcome=summary.outcome,
        score=summary.score,
        error_class=summary.error_class,
        started_at=summary.started_at,
        duration_ms=summary.duration_ms,
        attempts=summary.attempts,
        steps=summary.steps,
        input_tokens=summary.input_tokens,
        output_tokens=summary.output_tokens,
        cost_usd=summary.cost_usd,
        detail=detail,
    )
