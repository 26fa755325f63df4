"""The page of reviews: how far graders agree with people, which runs to look at next, and a person's word on one.

What a grader and other people say of a run is hidden until the person has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from markupsafe import Markup

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.explorer.plots.interval import PlotAxis, interval_plot
from seatrial.explorer.render import address
from seatrial.explorer.transcript import FIRST_ITEMS, TranscriptRange, transcript_range
from seatrial.reports.agreement import agreement
from seatrial.reports.review_queue import random_sample, review_queue
from seatrial.reports.reviews import ENOUGH, ReviewedGrader, kappa_text, reviewed_graders, reviews_sentence
from seatrial.reports.sentences import HeadSentence
from seatrial.runs import Experiment, Outcome, RunKey, Verdict
from seatrial.store import Chosen, ReviewCandidate, ReviewedRun, ReviewWord, RunFilter, Store
from seatrial.store.filter import FilterTerm

MAX_GRADERS = 30
QUEUE = 6
REVIEWED = 4
"""Runs that are listed: those to look at next, and those that the person looked at last."""
BLIND_ITEMS = 2 * FIRST_ITEMS
"""Items of a transcript that are shown; the page of the run has all, with the verdicts."""

_CHOSEN: dict[Chosen, str] = {
    "split": "votes are split",
    "contradicts": "graders contradict each other",
    "random": "random sample",
    "own": "found by the reviewer",
}
_NEW = ReviewedGrader(grader=None, agreement=agreement([]), random=agreement([]))


class ReviewedRow(msgspec.Struct, frozen=True):
    """A grader in the table."""

    found: ReviewedGrader
    name: str
    kind: str
    kappa: str
    interval: str
    plot: Markup
    href: str | None
    """None for all graders together."""
    current: bool


class PersonsWord(msgspec.Struct, frozen=True):
    """What a person says of a run."""

    reviewer: str
    word: ReviewWord
    at: int
    comment: str
    agrees: bool | None
    """With the grader; None where one of both says nothing."""


class QueuedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run to look at, or one that was looked at."""

    run_id: str
    key: RunKey
    why: str
    href: str
    current: bool
    answered: bool
    """Whether the person has answered; until then, the next two are empty."""
    said: Outcome | None
    words: list[PersonsWord]


class RunToReview(msgspec.Struct, frozen=True, kw_only=True):
    """The run that the person's word is asked for."""

    queued: QueuedRun
    transcript: TranscriptRange
    more: bool
    """Whether the transcript goes on."""
    verdict: Verdict | None
    """Of the grader, once the person has answered."""


class ReviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    experiment: Experiment
    grader: str | None
    asks: str
    """What the grader is told to look at, as the suite has it."""
    reviewer: str
    sentence: HeadSentence
    graders: list[ReviewedRow]
    more_graders: int
    chosen: ReviewedGrader
    random_kappa: str
    queue: list[QueuedRun]
    left: int
    """Runs of the queue that the person has not answered."""
    reviewed: list[QueuedRun]
    current: RunToReview | None
    next: str
    """The page with the next run."""
    here: str
    """The page with this one."""


def review_page(
    store: Store,
    ref: str = "latest",
    *,
    grader: str | None = None,
    reviewer: str = "",
    run_id: str | None = None,
    terms: tuple[FilterTerm, ...] = (),
    query: str = "",
    complaints: list[str] | None = None,
) -> ReviewPage:
    """The reviews of an experiment, and of one grader of it; `run_id` is the run to look at."""
    experiment = store.resolve_experiment(ref)
    experiment_id = experiment.experiment_id
    kinds = _kinds(store, experiment)
    if grader is not None and grader not in kinds and complaints is not None:
        complaints.append(f"No grader “{grader[:80]}” judged a run here.")
    if grader not in kinds:
        grader = min(kinds, key=lambda name: (kinds[name] != "judge", name), default=None)
    reviews = store.reviews(experiment_id)
    asked = {each.review.grader for each in reviews if each.review.grader is None or each.review.grader in kinds}
    samples = {each: [drawn.run_id for drawn in random_sample(store, experiment_id, each)] for each in asked}
    found = reviewed_graders(reviews, samples)

    def link(run: str | None = None, of: str | None = grader) -> str:
        return address("review", experiment=experiment_id, grader=of, q=query or None, by=reviewer or None, run=run)

    of_grader: dict[str, list[ReviewedRun]] = {}
    for each in reviews:
        if each.review.grader == grader:
            of_grader.setdefault(each.run_id, []).append(each)

    def queued(candidate: ReviewCandidate) -> QueuedRun:
        return _queued(candidate, of_grader.get(candidate.run_id, ()), reviewer, run_id, link(candidate.run_id))

    candidates = _matching(store, experiment_id, review_queue(store, experiment_id, grader), terms)
    every = [queued(candidate) for candidate in candidates]
    waiting = [each for each in every if not each.answered]
    listed = {each.run_id for each in every}
    done = [each for each in every if each.answered] + [
        queued(ReviewCandidate(said[0].run_id, said[0].key, said[-1].review.chosen))
        for run, said in of_grader.items()
        if run not in listed
    ]
    done = [each for each in done if each.answered]
    done.sort(key=lambda each: -max(word.at for word in each.words))
    current = next((each for each in [*every, *done] if each.run_id == run_id), None)
    if run_id is None:
        current = waiting[0] if waiting else None
    elif current is None:
        current = queued(_named_run(store, experiment_id, run_id))
    following = [each for each in waiting if current is None or each.run_id != current.run_id]
    chosen = found.get(grader, _NEW)
    rows = _rows(found, kinds, grader, lambda name: link(of=name))
    return ReviewPage(
        experiment=experiment,
        grader=grader,
        asks=_asks(experiment, grader),
        reviewer=reviewer,
        sentence=reviews_sentence([row.found for row in rows]),
        graders=rows[:MAX_GRADERS],
        more_graders=max(0, len(rows) - MAX_GRADERS),
        chosen=chosen,
        random_kappa=kappa_text(chosen.random.kappa),
        queue=waiting[:QUEUE],
        left=len(waiting),
        reviewed=done[:REVIEWED],
        current=None if current is None else _current(store, current, grader),
        next=link(following[0].run_id if following else None),
        here=link(None if current is None else current.run_id),
    )


def _kinds(store: Store, experiment: Experiment) -> dict[str, str]:
    """The graders that judged runs of the experiment, each with its kind, where the suite says it."""
    configured = experiment.suite.get("graders")
    kinds = {
        str(config.get("name") or config.get("kind")): str(config.get("kind") or "")
        for config in (configured if isinstance(configured, list) else ())
        if isinstance(config, dict)
    }
    return {
        name: kinds.get(name, "")
        for name in sorted({each.grader for each in store.grader_counts(experiment.experiment_id)})
    }


def _asks(experiment: Experiment, grader: str | None) -> str:
    configured = experiment.suite.get("graders")
    for config in configured if isinstance(configured, list) else ():
        if isinstance(config, dict) and grader is not None and grader == (config.get("name") or config.get("kind")):
            return msgspec.json.format(wire.encode(config), indent=2).decode("utf-8", "replace")[:4000]
    return ""


def _matching(
    store: Store, experiment_id: str, candidates: Sequence[ReviewCandidate], terms: tuple[FilterTerm, ...]
) -> list[ReviewCandidate]:
    if not terms or not candidates:
        return list(candidates)
    where = RunFilter(run_ids=frozenset(each.run_id for each in candidates), terms=terms)
    some = {run.run_id for run in store.runs(experiment_id, where, limit=len(candidates))}
    return [each for each in candidates if each.run_id in some]


def _queued(
    candidate: ReviewCandidate, said: Sequence[ReviewedRun], reviewer: str, run_id: str | None, href: str
) -> QueuedRun:
    answered = bool(reviewer) and any(each.review.reviewer == reviewer for each in said)
    latest = {each.review.reviewer: each for each in said}
    outcome = said[-1].said if said else None
    judged = {"passed": "right", "failed": "wrong"}.get(outcome or "")
    words = [
        PersonsWord(
            each.review.reviewer,
            each.review.word,
            each.review.at,
            each.review.comment,
            None if judged is None or each.review.word == "unsure" else each.review.word == judged,
        )
        for each in latest.values()
    ]
    return QueuedRun(
        run_id=candidate.run_id,
        key=candidate.key,
        why=_CHOSEN[candidate.chosen],
        href=href,
        current=candidate.run_id == run_id,
        answered=answered,
        said=outcome if answered else None,
        words=words if answered else [],
    )


def _named_run(store: Store, experiment_id: str, run_id: str) -> ReviewCandidate:
    """A run that somebody came across."""
    record = store.run_record(run_id)
    if record.experiment_id != experiment_id or not isinstance(record.key, RunKey):
        raise SeatrialError("not_found", f"the experiment has no run {run_id!r}")
    return ReviewCandidate(run_id, record.key, "own")


def _current(store: Store, queued: QueuedRun, grader: str | None) -> RunToReview:
    record = store.run_record(queued.run_id)
    verdict = next((each for each in record.verdicts if each.grader == grader), None)
    # Without verdicts, nothing in the transcript is marked as wrong.
    blind = msgspec.structs.replace(record, verdicts=[], grade=None)
    transcript = transcript_range(store, queued.run_id, 0, BLIND_ITEMS, record=blind)
    return RunToReview(
        queued=queued,
        # Nothing leads on from here: the page of the run shows the verdicts.
        transcript=msgspec.structs.replace(transcript, total=transcript.end),
        more=transcript.end < transcript.total,
        verdict=verdict if queued.answered else None,
    )


def _rows(
    found: Mapping[str | None, ReviewedGrader],
    kinds: Mapping[str, str],
    grader: str | None,
    link: Callable[[str], str],
) -> list[ReviewedRow]:
    """Those that were reviewed most, first."""
    rows = []
    for name in [*kinds, *([None] if None in found else [])]:
        one = found.get(name) or msgspec.structs.replace(_NEW, grader=name)
        kappa, interval = one.agreement.kappa, one.agreement.kappa_interval
        told = "" if interval is None else f"{kappa_text(interval.low)} to {kappa_text(interval.high)}"
        rows.append(
            ReviewedRow(
                one,
                "all graders together" if name is None else name,
                "" if name is None else kinds[name],
                kappa_text(kappa),
                told,
                interval_plot(
                    None if one.few else kappa,
                    None if one.few else interval,
                    PlotAxis(0.0, 1.0),
                    words=f"κ {kappa_text(kappa)}, 95% interval {told}" if told and not one.few else "too few to say",
                    tone="bad" if one.trusted is False else "",
                    lines=(ENOUGH,),
                ),
                None if name is None else link(name),
                name == grader,
            )
        )
    return sorted(rows, key=lambda row: (-row.found.runs, row.name))
