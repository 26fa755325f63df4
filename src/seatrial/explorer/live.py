"""Runs that are running: what stands beside a page of one, and the list of all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.explorer.run_events import EventLine, event_line
from seatrial.explorer.so_far import RunningStore
from seatrial.reports.sentences import running_sentence
from seatrial.runs import Case, Experiment
from seatrial.store import RunFilter, RunSummary, Store

EVENTS_SHOWN = 8
RUNS_AT_ONCE = 50
MAX_EXPERIMENTS = 100
"""Newest experiments of which running runs are looked for."""
ALIKE_AT_ONCE = 200


class LiveState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a page of a running run has come."""

    run_id: str
    shown: int
    """The sequence of the first event that it does not show."""
    head: int
    """That of the next event that will be stored."""
    changing: int
    """The first item that may still change."""
    cut: bool
    """Whether the log is longer than what is shown of a run while it is running."""
    behind: bool
    started_at: int | None
    now: int
    events: list[EventLine]
    """The last ones, the newest first."""


class RunningLine(msgspec.Struct, frozen=True, kw_only=True):
    """A running run in the list."""

    run_id: str
    title: str
    """Its case, or its thread."""
    agent: str
    trial: int | None
    experiment_id: str | None
    experiment: str
    status: str
    started_at: int | None
    elapsed: float | None
    events: int
    """How many there are so far."""
    last: float | None
    """How long ago the last one was recorded: a run whose process has died has none for long."""


class RunningPage(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that are running, the newest first."""

    runs: list[RunningLine]
    before: str | None
    """What gives the next page."""
    agent: str | None


def live_state(view: RunningStore, run_id: str, now: float) -> LiveState:
    """How far a page of a run has come that is made of this view."""
    so_far, head = view.so_far, view.run_head(run_id)
    some = view.events(run_id, after=max(-1, head.following - EVENTS_SHOWN - 1), limit=EVENTS_SHOWN)
    return LiveState(
        run_id=run_id,
        shown=so_far.following,
        head=max(head.following, so_far.following),
        changing=so_far.changing,
        cut=so_far.cut,
        behind=so_far.behind,
        started_at=view.run_record(run_id).summary.started_at,
        now=int(now),
        events=[_without_type(event_line(sequence, event)) for sequence, event in reversed(some)],
    )


def _without_type(line: EventLine) -> EventLine:
    """An event whose type stands beside it."""
    return msgspec.structs.replace(line, text=_TYPE.sub("{", line.text, count=1))


_TYPE = re.compile(r'\A\{"type": ?"[A-Z_]*",? ?')


def expectations(
    store: Store, summary: RunSummary, experiment: Experiment | None, case: Case | None, own: Sequence[RunSummary]
) -> str:
    """How long a run has taken, how long others took, and how long it may take."""
    took = [run.duration_ms for run in own if run.run_id != summary.run_id and run.duration_ms is not None]
    alike = "Runs of this case"
    if not took and experiment is not None:
        where = RunFilter(agents=frozenset({summary.agent}), outcomes=frozenset({"passed", "failed"}))
        others = store.runs(experiment.experiment_id, where, limit=ALIKE_AT_ONCE)
        took = [run.duration_ms for run in others if run.duration_ms is not None]
        alike = "Other runs of this agent"
    return running_sentence(summary.duration_ms, took, alike, _deadline_s(experiment, case, summary.agent))


def _deadline_s(experiment: Experiment | None, case: Case | None, agent: str) -> float | None:
    if experiment is None:
        return None
    agents = experiment.suite.get("agents")
    config = agents.get(agent) if isinstance(agents, dict) else None
    timeouts = experiment.suite.get("timeouts")
    found: Any = case.timeout_s if case is not None else None
    found = found or (config.get("run_timeout_s") if isinstance(config, dict) else None)
    found = found or (timeouts.get("run_s") if isinstance(timeouts, dict) else None)
    return float(found) if isinstance(found, int | float) else None


def running_page(store: Store, now: float, *, agent: str | None = None, before: str | None = None) -> RunningPage:
    """Runs that are running: those of experiments on the first page, those of the run service on all."""
    served, following = store.served_runs(
        agent=agent, statuses=frozenset({"pending", "running"}), before=before, limit=RUNS_AT_ONCE
    )
    lines = [] if before is not None else [*_of_experiments(store, now, agent)]
    for run in served:
        began = round(run.created_at.timestamp() * 1000)
        events, last = _log(store, run.run_id, now)
        lines.append(
            RunningLine(
                run_id=run.run_id,
                title=run.thread_id,
                agent=run.agent,
                trial=None,
                experiment_id=None,
                experiment="",
                status=run.status,
                started_at=began,
                elapsed=max(0.0, now - began),
                events=events,
                last=last,
            )
        )
    return RunningPage(runs=lines, before=following, agent=agent)


def _of_experiments(store: Store, now: float, agent: str | None) -> Iterator[RunningLine]:
    found = 0
    for experiment in store.experiments(limit=MAX_EXPERIMENTS):
        if experiment.status != "running":
            continue
        where = RunFilter(
            outcomes=frozenset({"unfinished"}), agents=frozenset() if agent is None else frozenset({agent})
        )
        for run in store.runs(experiment.experiment_id, where, limit=RUNS_AT_ONCE - found):
            found += 1
            began = run.started_at if run.started_at is not None else _stamp(store, run.run_id, -1)
            events, last = _log(store, run.run_id, now)
            yield RunningLine(
                run_id=run.run_id,
                title=run.case_id,
                agent=run.agent,
                trial=run.trial,
                experiment_id=experiment.experiment_id,
                experiment=experiment.name,
                status=run.status,
                started_at=began,
                elapsed=None if began is None else max(0.0, now - began),
                events=events,
                last=last,
            )
        if found >= RUNS_AT_ONCE:
            return


def _log(store: Store, run_id: str, now: float) -> tuple[int, float | None]:
    """How many events a run has, and how long ago the last one was recorded."""
    try:
        head = store.run_head(run_id)
    except SeatrialError:
        return 0, None  # another run has taken its place meanwhile
    last = _stamp(store, run_id, head.following - 2)
    return head.following, None if last is None else max(0.0, now - last)


class _Stamped(msgspec.Struct):
    timestamp: float | None = None


_STAMP = msgspec.json.Decoder(_Stamped)


def _stamp(store: Store, run_id: str, after: int) -> int | None:
    """When an event of a run was recorded: the one behind this sequence."""
    try:
        [(_, data)] = store.events(run_id, after=max(-1, after), limit=1)
        stamp = _STAMP.decode(data).timestamp
    except (SeatrialError, ValueError):
        return None
    return None if stamp is None else int(stamp)
