"""How far the graders of an experiment agree with the people who reviewed its runs.

Of several words that a person gave on a run, the latest counts; of several people, what most of them say. Who is unsure
is in no figure, nor is a run of which as many say right as wrong.

Runs that were chosen because graders are in doubt say nothing of how often a grader errs. So the agreement on a random
sample is given apart: on the draws from the first one on, up to the first that nobody has reviewed, however people came
to the others. What was answered out of turn would be a choice again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from seatrial._support.printable import one_line
from seatrial.reports import figures
from seatrial.reports.agreement import Agreement, agreement
from seatrial.reports.judge_check import FEW
from seatrial.reports.sentences import HeadSentence
from seatrial.store import ReviewedRun, ReviewWord

ENOUGH = 0.6
"""A kappa from which on a grader is said to agree with people."""
MAX_NAMED = 4


class ReviewedGrader(msgspec.Struct, frozen=True, kw_only=True):
    """How far one grader agrees with people. In `agreement`, the first rater is the grader, the second the people."""

    grader: str | None
    """None for what all graders together say of a run."""
    agreement: Agreement
    random: Agreement
    """The same of the random sample alone."""
    runs: int = 0
    """Runs of which somebody said something."""
    people: int = 0
    unsure: int = 0
    divided: int = 0
    """Runs of which as many people say right as wrong."""
    not_judged: int = 0
    """Runs of which people say right or wrong, and the grader nothing."""
    not_blind: int = 0
    """Runs of which somebody answered who could see what the grader said."""

    @property
    def few(self) -> bool:
        """Whether there is too little to go by."""
        return self.agreement.pairs < FEW

    @property
    def agrees(self) -> int:
        """On how many runs they said the same."""
        return self.agreement.confusion.both_passed + self.agreement.confusion.both_failed

    @property
    def trusted(self) -> bool | None:
        """Whether it may be relied on; None where that is not clear, or there is too little to go by."""
        interval = self.agreement.kappa_interval
        if self.few or interval is None:
            return None
        return True if interval.low >= ENOUGH else False if interval.low <= 0 or interval.high < ENOUGH else None

    @property
    def words(self) -> str:
        """What is to be said beside the figures."""
        if self.few:
            return f"too few to say: {FEW} are needed"
        if self.agreement.kappa is None:
            return "both said one and the same of every run"
        if self.agreement.stricter is not None:
            strict = self.agreement.stricter == "first"
            return "strict: fails what people pass" if strict else "lenient: passes what people fail"
        return ""


def reviewed_graders(
    reviews: Iterable[ReviewedRun], samples: Mapping[str | None, Sequence[str]]
) -> dict[str | None, ReviewedGrader]:
    """What the reviews of an experiment say of each grader that was reviewed; `samples` are the runs that were drawn
    for it, in the order of the draws."""
    latest: dict[tuple[str | None, str], dict[str, ReviewedRun]] = defaultdict(dict)
    for each in reviews:
        latest[each.review.grader, each.run_id][each.review.reviewer] = each
    by_grader: dict[str | None, dict[str, list[ReviewedRun]]] = defaultdict(dict)
    for (grader, run_id), said in latest.items():
        by_grader[grader][run_id] = list(said.values())
    return {grader: _reviewed(grader, runs, samples.get(grader, ())) for grader, runs in by_grader.items()}


def _reviewed(grader: str | None, runs: Mapping[str, list[ReviewedRun]], sample: Sequence[str]) -> ReviewedGrader:
    drawn: set[str] = set()
    for run_id in sample:
        if run_id not in runs:
            break
        drawn.add(run_id)
    pairs: list[tuple[bool, bool]] = []
    random: list[tuple[bool, bool]] = []
    unsure = divided = not_judged = 0
    for run_id, said in runs.items():
        word = together([each.review.word for each in said])
        judged = {"passed": True, "failed": False}.get(said[0].said or "")
        if word is None:
            divided += 1
        elif word == "unsure":
            unsure += 1
        elif judged is None:
            not_judged += 1
        else:
            pair = (judged, word == "right")
            pairs.append(pair)
            random += [pair] if run_id in drawn else []
    return ReviewedGrader(
        grader=grader,
        agreement=agreement(pairs),
        random=agreement(random),
        runs=len(runs),
        people=len({each.review.reviewer for said in runs.values() for each in said}),
        unsure=unsure,
        divided=divided,
        not_judged=not_judged,
        not_blind=sum(any(not each.review.blind for each in said) for said in runs.values()),
    )


def together(words: Sequence[ReviewWord]) -> ReviewWord | None:
    """What most of those who are sure say; None where they are divided."""
    right, wrong = words.count("right"), words.count("wrong")
    if right == wrong:
        return None if right else "unsure"
    return "right" if right > wrong else "wrong"


def reviews_sentence(graders: Sequence[ReviewedGrader]) -> HeadSentence:
    """Which graders can be relied on, as far as people have looked."""
    asked = [found for found in graders if found.runs]
    if not asked:
        return HeadSentence("No run was reviewed yet", ": whether graders agree with people is not known.")
    told = [found for found in asked if not found.few and found.agreement.kappa is not None]
    if not told and any(not found.few for found in asked):
        return HeadSentence("Agreement says nothing here", ": people and graders said one and the same of every run.")
    if not told:
        most = max(found.agreement.pairs for found in asked)
        rest = f": {FEW} runs that people and a grader judged are needed, and the most of any grader are {most:,}."
        return HeadSentence("Too few reviews to say", rest)
    distrusted = [found for found in told if found.trusted is False]
    others = [found for found in told if found.trusted is not False]
    sentences = []
    for found in distrusted[:MAX_NAMED]:
        interval = found.agreement.kappa_interval
        chance = interval is not None and interval.low <= 0
        how = "may do no better than chance" if chance else f"agrees too little with people, below {ENOUGH}"
        sentences.append(f"{_name(found)} {how} ({_kappa(found)}): do not gate on it.")
    sentences += [
        f"{_name(found)} agrees with people in {found.agrees:,} of {figures.plural(found.agreement.pairs, 'run')} "
        f"({_kappa(found)})."
        for found in others[:MAX_NAMED]
    ]
    if len(told) > MAX_NAMED:
        sentences.append("The others are in the table.")
    lead, _, rest = sentences[0].partition(" (")
    return HeadSentence(lead, f" ({rest} {' '.join(sentences[1:])}".rstrip(), "worse" if distrusted else "plain")


def _name(found: ReviewedGrader) -> str:
    return "The grade" if found.grader is None else one_line(found.grader, 60)


def _kappa(found: ReviewedGrader) -> str:
    interval = found.agreement.kappa_interval
    beside = "" if interval is None else f", 95% interval {kappa_text(interval.low)} to {kappa_text(interval.high)}"
    return f"κ {kappa_text(found.agreement.kappa)}{beside}"


def kappa_text(value: float | None) -> str:
    """`0.73`, `−0.06`; `–` where there is none."""
    return "–" if value is None else f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
