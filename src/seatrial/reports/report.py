"""A report: an experiment with its summary, ready to be written in any form."""

from __future__ import annotations

import msgspec

from seatrial.reports import figures
from seatrial.reports.rows import ReportSource, Rows, RunRow
from seatrial.reports.summary import Summary, summary_of
from seatrial.reports.tags import ByTag, by_tag
from seatrial.runs import Experiment
from seatrial.store import GraderCounts, NoteTotals, StoredOutcome

RECORD_DAMAGED = "record_damaged"

ERRORED_NOTE = (
    "Errored runs are excluded from rates and scores: the fault was not the agent's, or there was no verdict."
)
MAX_IDS = 20_000
"""Runs of one group whose ids are kept; all are counted."""
MAX_NAMED = 20

UNPASSED: frozenset[StoredOutcome] = frozenset({"failed", "errored"})


_JUDGED: frozenset[StoredOutcome] = frozenset({"passed", "failed", "errored"})


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What every form of a report is made from."""

    experiment: Experiment
    summary: Summary
    graders: list[GraderCounts]
    notes: NoteTotals
    rows: Rows
    planned: int | None = None
    """How many runs the experiment comes to, where that is known."""
    by_tag: ByTag = ByTag()

    @property
    def unfinished(self) -> str | None:
        """Why runs of the experiment are missing, in a sentence; None when all were run."""
        if self.experiment.status == "finished":
            return self.lost
        return f"{self.stopped}: {self.experiment.stop_reason or 'the process ended'}"

    @property
    def lost(self) -> str | None:
        """That runs of an experiment which was finished are not in the store, in a sentence; None when all are."""
        if self.experiment.status != "finished" or self.progress is None:
            return None
        return f"the store has {self.progress}: the others were lost after the experiment was finished"

    @property
    def damaged(self) -> int:
        """Runs that cannot be read any more."""
        return sum(agent.left_out.get(RECORD_DAMAGED, 0) for agent in self.summary.agents)

    @property
    def stopped(self) -> str:
        """`stopped after 16 of 40 runs`; for an experiment of which runs are missing."""
        return "stopped before all was run" if self.progress is None else f"stopped after {self.progress}"

    @property
    def counted_runs(self) -> str:
        """`40 runs`, or `16 of 40 runs`."""
        return self.progress or figures.plural(self.summary.runs, "run")

    @property
    def progress(self) -> str | None:
        """`16 of 40 runs`, those that have ended; None when none is missing, or nobody knows how many there are."""
        ended = self.summary.runs - sum(agent.left_out.get("unfinished", 0) for agent in self.summary.agents)
        if self.planned is None or ended >= self.planned:
            return None
        return f"{ended:,} of {figures.plural(self.planned, 'run')}"

    @property
    def duration_ms(self) -> float | None:
        """How long the experiment took."""
        finished = self.experiment.finished_at
        return None if finished is None else float(max(0, finished - self.experiment.created_at))


def report_on(source: ReportSource) -> Report:
    """Sum up what the runs of an experiment add up to."""
    summary = summary_of(source.counts.totals(), source.errored_with_failure, source.judges)
    return Report(
        experiment=source.experiment,
        summary=summary,
        graders=source.graders,
        notes=source.notes,
        rows=source.rows,
        planned=source.planned,
        by_tag=by_tag(source, [agent.agent for agent in summary.agents]),
    )


def not_judged(report: Report) -> tuple[str, RunRow] | None:
    """How many runs neither passed nor failed nor errored, in words, and the first of them; None when all did."""
    count = report.summary.other
    if not count:
        return None
    first = next(row for row in report.rows(detailed=True) if row.outcome not in _JUDGED)
    return f"{figures.plural(count, 'run')} {'was' if count == 1 else 'were'} not judged", first


def reason(row: RunRow) -> str:
    """Why a run did not pass, in a sentence or a few."""
    if row.detail is not None:
        return row.detail.message
    return row.error_class or row.outcome


def headline(row: RunRow) -> str:
    """The same in one sentence, with the first place where it went wrong, if any is known."""
    if row.detail is not None and row.detail.sentence and any(found.wrong for found in row.detail.findings):
        return row.detail.sentence
    return reason(row)


class Alike(msgspec.Struct):
    """Runs of the same outcome that first go wrong in the same way."""

    outcome: StoredOutcome
    signature: str | None
    """None for a run that has none, which is alone."""
    count: int = 0
    run_ids: list[str] = []
    """In the order of the suite; the first of them."""
    named: list[tuple[str, str, int]] = []
    """Agent, case and trial of the first of these."""

    @property
    def first(self) -> str:
        """The run that stands for all of them."""
        return self.run_ids[0]


def runs_alike(rows: Rows, outcomes: frozenset[StoredOutcome] = UNPASSED) -> list[Alike]:
    """Failed runs first, then errored ones, then others; of these the largest group first, else as in the suite."""
    groups: dict[tuple[str, str], Alike] = {}
    for row in rows(outcomes=outcomes):
        # One without a signature was stored by an earlier version, or neither failed nor errored.
        key = (row.outcome, row.signature if row.signature is not None else f"\0{row.run_id}")
        group = groups.get(key)
        if group is None:
            group = groups[key] = Alike(row.outcome, row.signature)
        group.count += 1
        if len(group.run_ids) < MAX_IDS:
            group.run_ids.append(row.run_id)
        if len(group.named) < MAX_NAMED:
            group.named.append((row.agent, row.case_id, row.trial))
    order = {"failed": 0, "errored": 1}
    return sorted(groups.values(), key=lambda group: (order.get(group.outcome, 2), -group.count))
