"""The page of one grader in an experiment: what it says of each agent, how far people agree, and what to look at."""

from __future__ import annotations

from typing import Final

import msgspec

from seatrial.errors import SeatrialError
from seatrial.explorer import numbers
from seatrial.reports import figures
from seatrial.reports.reviews import ReviewedGrader, kappa_text, reviewed_graders
from seatrial.reports.sentences import HeadSentence, grader_sentence
from seatrial.runs import Experiment
from seatrial.store import GraderCounts, ReviewCandidate, RunFilter, RunSummary, Store
from seatrial.store.filter import FilterTerm, parse_filter, written_term

RUNS: Final = 50
DOUBTFUL: Final = 20


class JudgedAgent(msgspec.Struct, frozen=True):
    """What it says of one agent."""

    counts: GraderCounts
    judged: int
    share: str


class GraderPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    experiment: Experiment
    name: str
    kind: str
    sentence: HeadSentence
    rows: list[JudgedAgent]
    reviewed: ReviewedGrader | None
    agreement: str
    doubtful: list[ReviewCandidate]
    """Runs of which its votes are split, or of which all graders together say another thing."""
    runs: list[RunSummary]
    """Of those that it failed, those that match."""
    failed: int
    more: bool

    @property
    def running(self) -> bool:
        """Whether figures will change."""
        return self.experiment.status == "running"


def grader_page(
    store: Store, ref: str, name: str, terms: tuple[FilterTerm, ...] = (), *, after: str | None = None, most: int
) -> GraderPage:
    """A grader of an experiment; of the runs that it failed, those behind the run `after`, counted up to `most`."""
    experiment = store.resolve_experiment(ref)
    experiment_id = experiment.experiment_id
    counts = [counted for counted in store.grader_counts(experiment_id) if counted.grader == name]
    configs = experiment.suite.get("graders")
    config = next(
        (
            each
            for each in (configs if isinstance(configs, list) else [])
            if isinstance(each, dict) and (each.get("name") or each.get("kind")) == name
        ),
        None,
    )
    if not counts and config is None:
        raise SeatrialError("not_found", f"no grader {name!r} judged a run of the experiment {experiment.name!r}")
    where = RunFilter(terms=(*parse_filter(written_term("grader", name), 0), *terms))
    behind = None if after is None else store.run_record(after).summary.key
    found = store.runs(experiment_id, where, after=behind, limit=RUNS + 1)
    reviewed = reviewed_graders(store.reviews(experiment_id), {}).get(name)
    return GraderPage(
        experiment=experiment,
        name=name,
        kind="" if config is None else str(config.get("kind") or ""),
        sentence=grader_sentence(name, counts, running=experiment.status == "running"),
        rows=[_row(counted) for counted in counts],
        reviewed=reviewed,
        agreement=_agreement(reviewed),
        doubtful=store.doubtful_runs(experiment_id, name, limit=DOUBTFUL)[:DOUBTFUL],
        runs=found[:RUNS],
        failed=store.count_runs(experiment_id, where, limit=most),
        more=len(found) > RUNS,
    )


def _row(counted: GraderCounts) -> JudgedAgent:
    passed, judged = (
        counted.outcomes.get("passed", 0),
        counted.outcomes.get("passed", 0) + counted.outcomes.get("failed", 0),
    )
    return JudgedAgent(counted, judged, numbers.percent(passed / judged if judged else None, judged))


def _agreement(found: ReviewedGrader | None) -> str:
    """How far people agree, with what that rests on."""
    if found is None or not found.agreement.pairs:
        return "No run was reviewed yet: whether people agree with it is not known."
    interval = found.agreement.kappa_interval
    kappa = ""
    if interval is not None:
        range_ = f"{kappa_text(interval.low)} to {kappa_text(interval.high)}"
        kappa = f", κ {kappa_text(found.agreement.kappa)} (95% interval {range_})"
    told = f"People agree with it in {found.agrees:,} of {figures.plural(found.agreement.pairs, 'run')}{kappa}"
    return f"{told}{f': {found.words}' if found.words else ''}."
