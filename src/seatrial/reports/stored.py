"""Rows of an experiment as a store has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache

import msgspec
from msgspec.structs import asdict

from seatrial.errors import SeatrialError
from seatrial.reports.detail import detail_of, note_line
from seatrial.reports.report import RECORD_DAMAGED, Report, report_on
from seatrial.reports.rows import (
    MAX_FLAKY,
    CompletenessLine,
    CountedRows,
    NoteCount,
    ReportSource,
    RunDetail,
    RunRow,
)
from seatrial.runs import Attempt, Case, Experiment, Run, RunKey
from seatrial.store import CaseTags, Cell, RunFilter, RunNotes, RunSummary, Store, StoredOutcome, Totals
from seatrial.store.rows import UNFINISHED
from seatrial.trajectory.completeness import Completeness
from seatrial.transcript import Note

RUNS_AT_ONCE = 500
CHECKED_RUNS = 10_000
"""Up to this many runs, all are read to find damaged ones, which takes a second; beyond it, only those that did not
pass."""
DETAILS_AT_ONCE = 100
"""Runs whose transcripts are in memory together."""
UNREADABLE = "(damaged)"
"""The agent or case of a run of which the store cannot say it any more."""
NOTES_OF_A_RUN = 100
"""Notes of one run that a report can have, the most serious first; all are counted."""


def stored_report(store: Store, reference: str, *, checked: bool = True) -> Report:
    """The report on an experiment of a store, however it is named; see `Store.resolve_experiment`."""
    return report_on(stored(store, store.resolve_experiment(reference), checked=checked))


def stored(store: Store, experiment: Experiment, *, checked: bool = True) -> ReportSource:
    """An experiment of a store, to be reported. Its rows are read anew each time they are asked for.

    A run of which any part cannot be read any more is errored, whatever was said of it before. Experiments of more than
    `CHECKED_RUNS` runs are not looked through for that, nor any with `checked=False`: what this process has just
    written, and what a page shows at once.
    """
    experiment_id = experiment.experiment_id
    seen = _checked(store, experiment_id) if checked else _Checked()
    damaged = seen.damaged

    @cache
    def tags() -> CaseTags:
        return store.case_tags(experiment_id)

    def rows(
        *,
        agent: str | None = None,
        detailed: bool = False,
        outcomes: frozenset[StoredOutcome] = frozenset(),
        run_ids: frozenset[str] = frozenset(),
    ) -> Iterator[RunRow]:
        # What is damaged of a run may be its agent or its outcome: those are chosen below.
        agents = frozenset({agent} if agent is not None and not damaged else ())
        where = RunFilter(frozenset() if damaged else outcomes, agents, run_ids)
        limit = DETAILS_AT_ONCE if detailed else RUNS_AT_ONCE
        after: RunKey | None = None
        while page := store.runs(experiment_id, where, after=after, limit=limit, by_cases=bool(damaged)):
            after, count = page[-1].key, len(page)
            page = [_errored(summary) if summary.run_id in damaged else summary for summary in page]
            page = [summary for summary in page if agent is None or summary.agent == agent]
            page = [summary for summary in page if not outcomes or summary.outcome in outcomes]
            of_page = _detailed(store, experiment, page) if detailed else map(_row, page)
            for row in of_page:
                row.tags = tags().of.get(row.case_id, ())
                yield row
            if count < limit:
                return

    # The store has counted what was written, and cannot know what was damaged or removed later.
    counts = CountedRows(rows) if damaged or seen.miscounted else _StoredCounts(store, experiment_id)
    return ReportSource(
        experiment,
        rows,
        counts,
        store.grader_counts(experiment_id, damaged),
        store.note_totals(experiment_id),
        store.errored_with_failure(experiment_id),
        experiment.planned_runs(store.case_count(experiment_id)) or None,
        judges=store.agent_model_costs(experiment_id),
        tags=tags,
        cases=lambda: store.cases(experiment_id, damaged=[]),
    )


class NamedAgents(msgspec.Struct, frozen=True):
    """An experiment, and those of its agents that a reference means."""

    experiment: Experiment
    agents: list[str]
    of_experiment: list[str]
    """All agents that it has runs of."""

    @property
    def all_agents(self) -> bool:
        """Whether the reference names no agent in particular."""
        return self.agents is self.of_experiment


def named_experiment(store: Store, reference: str) -> tuple[Experiment, str]:
    """What `EXPERIMENT` or `EXPERIMENT:AGENT` means; "" for no agent in particular. The experiment however it is named,
    see `Store.resolve_experiment`; whether it has that agent is not looked at."""
    try:
        return store.resolve_experiment(reference), ""
    except SeatrialError as error:
        name, _, agent = reference.rpartition(":")
        if error.code != "not_found" or not name:
            raise
        return store.resolve_experiment(name), agent


def named_agents(store: Store, reference: str) -> NamedAgents:
    """The same, with the agents that it means."""
    experiment, agent = named_experiment(store, reference)
    agents = [totals.agent for totals in store.totals(experiment.experiment_id, flaky=0).agents]
    check_agent(experiment, agent, agents)
    return NamedAgents(experiment, [agent] if agent else agents, agents)


def check_agent(experiment: Experiment, agent: str, agents: Sequence[str]) -> None:
    """Raise `SeatrialError` for an agent that an experiment has no runs of."""
    if agent and agent not in agents:
        raise SeatrialError(
            "not_found",
            f"the experiment {experiment.name!r} has no runs of an agent {agent!r}",
            hint=f"one of {', '.join(agents)}" if agents else None,
        )


class _StoredCounts:
    """What the store has counted."""

    def __init__(self, store: Store, experiment_id: str) -> None:
        self._store = store
        self._experiment_id = experiment_id

    def totals(self) -> Totals:
        return self._store.totals(self._experiment_id, flaky=MAX_FLAKY)

    def cells(self, agent: str) -> list[Cell]:
        return self._store.agent_cells(self._experiment_id, agent)

    def add_examples(self, cells: list[Cell]) -> None:
        self._store.add_examples(self._experiment_id, cells)


class _Checked(msgspec.Struct, frozen=True):
    """What looking through the runs of an experiment has shown."""

    damaged: Collection[str] = frozenset()
    """The runs that cannot be read whole any more."""
    miscounted: bool = False
    """Whether there are not as many that have ended as the store has counted."""


def _checked(store: Store, experiment_id: str) -> _Checked:
    agents = store.totals(experiment_id, flaky=0).agents
    counted = sum(agent.runs - agent.outcomes.get("unfinished", 0) for agent in agents)
    if counted > CHECKED_RUNS:
        return _Checked()
    damaged: set[str] = set()
    ended = 0
    for run in store.whole_runs(experiment_id):
        ended += run.status not in UNFINISHED
        if run.fault is not None and run.fault.error_class == RECORD_DAMAGED:
            damaged.add(run.run_id)
    return _Checked(damaged, ended != counted)


def _errored(summary: RunSummary) -> RunSummary:
    """What is said of a damaged run: which one it is, as far as that can be read."""
    return RunSummary(
        run_id=summary.run_id,
        agent=summary.agent if isinstance(summary.agent, str) else UNREADABLE,
        case_id=summary.case_id if isinstance(summary.case_id, str) else UNREADABLE,
        trial=summary.trial if isinstance(summary.trial, int) else 0,
        status="failed",
        outcome="errored",
        error_class=RECORD_DAMAGED,
    )


_NOTHING_NOTED = RunNotes(None, [], {})


def _detailed(store: Store, experiment: Experiment, page: list[RunSummary]) -> Iterator[RunRow]:
    wanted = {summary.run_id: summary.key.case_id for summary in page if summary.outcome != "passed"}
    details = {}
    if wanted:
        cases = {case_id: _case(store, experiment, case_id) for case_id in set(wanted.values())}
        for run in store.whole_runs(experiment.experiment_id, RunFilter(run_ids=frozenset(wanted))):
            details[run.run_id] = detail_of(
                run, cases[wanted[run.run_id]], experiment.suite, _messages_sent(store, run)
            )
    run_ids = [summary.run_id for summary in page]
    noted, judges = store.run_notes(run_ids, limit=NOTES_OF_A_RUN), store.run_model_costs(run_ids)
    for summary in page:
        row = _row(summary, details.get(summary.run_id), noted.get(summary.run_id, _NOTHING_NOTED))
        row.judges = judges.get(summary.run_id)
        yield row


def _case(store: Store, experiment: Experiment, case_id: str) -> Case:
    try:
        return store.case(experiment.experiment_id, case_id)
    except SeatrialError as error:
        if error.code not in ("damaged", "not_found"):
            raise
        return Case(id=case_id, instruction=f"({error.message})")


class _Sent(msgspec.Struct):
    messages: list[msgspec.Raw] | None = None


def _messages_sent(store: Store, run: Run) -> int | None:
    """How many messages the agent sent; asked only where notes point at them."""
    if run.reading is None or not run.attempts:
        return None
    return messages_sent(store, run.reading.notes, run.attempts[-1])


def messages_sent(store: Store, notes: Sequence[Note], attempt: Attempt, most: int | None = None) -> int | None:
    """How many messages the agent sent in an attempt, where notes point at them, and its body has at most so many
    bytes."""
    if attempt.body_hash is None or not any(note.pointer.startswith("/messages/") for note in notes):
        return None
    if most is not None and (attempt.body_bytes is None or attempt.body_bytes > most):
        return None
    try:
        sent = msgspec.json.decode(store.body(attempt.body_hash), type=_Sent)
    except (SeatrialError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if sent.messages is None else len(sent.messages)


def _row(summary: RunSummary, detail: RunDetail | None = None, noted: RunNotes = _NOTHING_NOTED) -> RunRow:
    return RunRow(
        **asdict(summary),
        detail=detail,
        completeness=_completeness(noted.completeness),
        notes=[note_line(note) for note in noted.notes],
        note_counts=[NoteCount(code, weight, count) for (code, weight), count in noted.counts.items()],
    )


def _completeness(found: Completeness | None) -> CompletenessLine | None:
    if found is None:
        return None
    return CompletenessLine(
        level=found.level,
        basis=found.basis if found.level != "none" else None,
        source=found.source,
        sources=found.sources,
        reasons=[note_line(reason) for reason in found.reasons],
        omitted=found.omitted,
    )
