"""How far the judges of a suite agree with people, as figures and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from seatrial._support.printable import one_line
from seatrial.engine import Opinion
from seatrial.reports.agreement import Agreement, agreement
from seatrial.reports.figures import decimal, judges, p_value, percent, percent_range, plural
from seatrial.reports.layout import prose, table
from seatrial.reports.statistics.intervals import Interval
from seatrial.reports.votes import judge_details
from seatrial.runs import ModelCosts, model_costs

FEW = 20
"""Fewer labels than this say too little of a judge to go by."""
MAX_SHOWN = 20
"""Disagreements, and runs that were not judged, that are shown in the terminal."""
NOT_JUDGED = "not_judged"


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A run of which the judge and a person said different things."""

    line: int
    """Of the file of labels."""
    case_id: str
    run: str | None
    """As the file names it; None for an answer alone."""
    judge_passed: bool
    score: float | None
    reasons: list[str]
    reasoning: str | None
    """Of the vote that speaks for the majority; None where the grader is not a `judge`."""
    answer: str | None
    comment: str


class NotJudged(msgspec.Struct, frozen=True, kw_only=True):
    """A labelled run of which the judge said nothing."""

    line: int
    case_id: str
    run: str | None
    code: str
    reason: str


class CheckedJudge(msgspec.Struct, kw_only=True):
    """How far one judge agrees with people. In `agreement`, the first rater is the judge, and the second the people."""

    grader: str
    labels: int
    """Labels that say passed or failed."""
    agreement: Agreement
    disagreements: list[Disagreement]
    not_judged: list[NotJudged]
    costs: ModelCosts
    reused: int = 0
    """Verdicts that were stored already: no model was asked again."""

    @property
    def few(self) -> bool:
        """Whether too few labels were judged to go by the figures."""
        return self.agreement.pairs < FEW

    def data(self) -> dict[str, Any]:
        """As JSON."""
        found, counts = self.agreement, self.agreement.confusion
        return {
            "grader": self.grader,
            "labels": self.labels,
            "judged": found.pairs,
            "too_few": self.few,
            "agreed": found.agreed,
            "agreed_interval": _ends(found.agreed_interval if found.pairs else None),
            "kappa": found.kappa,
            "kappa_interval": _ends(found.kappa_interval),
            "confusion": {
                "both_passed": counts.both_passed,
                "only_judge_passed": counts.only_first_passed,
                "only_people_passed": counts.only_second_passed,
                "both_failed": counts.both_failed,
            },
            "stricter": {"first": "judge", "second": "people", None: None}[found.stricter],
            "stricter_p_value": found.stricter_p_value,
            "cost_usd": self.costs.cost_usd,
            "least_cost_usd": self.costs.least_cost_usd,
            "tokens": self.costs.tokens,
            "least_tokens": self.costs.least_tokens,
            "reused": self.reused,
            "disagreements": self.disagreements,
            NOT_JUDGED: self.not_judged,
        }


def checked_judges(opinions: Iterable[Opinion]) -> list[CheckedJudge]:
    """What each judge's opinions come to, judges in the order in which they occur."""
    by_grader: dict[str, list[Opinion]] = {}
    for opinion in opinions:
        by_grader.setdefault(opinion.grader, []).append(opinion)
    return [_checked(grader, of_grader) for grader, of_grader in by_grader.items()]


def _checked(grader: str, opinions: Sequence[Opinion]) -> CheckedJudge:
    pairs: list[tuple[bool, bool]] = []
    apart: list[Disagreement] = []
    missing: list[NotJudged] = []
    for opinion in opinions:
        label, verdict, judged = opinion.labelled.label, opinion.verdict, opinion.judged
        if label.passed is None:
            continue
        case_id = opinion.labelled.case.id
        if judged is None:
            code = verdict.code or verdict.outcome
            reason = " ".join(verdict.reasons)
            missing.append(NotJudged(line=label.line, case_id=case_id, run=label.run, code=code, reason=reason))
            continue
        pairs.append((judged, label.passed))
        if judged != label.passed:
            reading = opinion.labelled.run.reading
            details = judge_details(verdict)
            apart.append(
                Disagreement(
                    line=label.line,
                    case_id=case_id,
                    run=label.run,
                    judge_passed=judged,
                    score=verdict.score,
                    reasons=verdict.reasons,
                    reasoning=(details.reasoning or None) if details is not None else None,
                    answer=None if reading is None else reading.transcript.final_text(),
                    comment=label.comment,
                )
            )
    return CheckedJudge(
        grader=grader,
        labels=len(pairs) + len(missing),
        agreement=agreement(pairs),
        disagreements=apart,
        not_judged=missing,
        costs=model_costs(opinion.verdict for opinion in opinions if opinion.asked),
        reused=sum(not opinion.asked and opinion.judged is not None for opinion in opinions),
    )


def judge_text(checked: CheckedJudge, width: int) -> str:
    """What one judge's check came to, for people."""
    return "\n".join(_lines(checked, width)) + "\n"


def _lines(checked: CheckedJudge, width: int) -> Iterator[str]:
    found, counts = checked.agreement, checked.agreement.confusion
    yield f"judge {one_line(checked.grader, 60)}: {plural(checked.labels, 'label')}, {found.pairs:,} judged"
    if checked.not_judged:
        why = Counter(each.code for each in checked.not_judged)
        listed = ", ".join(f"{code} ({count:,})" for code, count in why.most_common())
        yield from prose(f"{len(checked.not_judged):,} not judged, and in no figure: {listed}.", width, "  ", "")
    if found.pairs:
        agreed = counts.both_passed + counts.both_failed
        interval = percent_range(found.agreed_interval)
        yield f"  agreement  {agreed:,} of {found.pairs:,}, {percent(found.agreed)} (95% interval {interval})"
        yield from prose(_kappa(found), width, "             ", "  kappa      ")
        if checked.few:
            yield from prose(f"Fewer than {FEW} labels were judged: too few to go by.", width, "  ")
        yield ""
        rows = [
            ["people passed", f"{counts.both_passed:,}", f"{counts.only_second_passed:,}"],
            ["people failed", f"{counts.only_first_passed:,}", f"{counts.both_failed:,}"],
        ]
        yield from table(["", "judge passed", "judge failed"], rows, left=1, width=width, indent="  ")
        yield ""
        yield from prose(_strictness(found), width, "  ")
    if checked.costs.asked:
        yield f"  cost of asking  {judges(checked.costs)}"
    if checked.reused:
        yield f"  {plural(checked.reused, 'verdict')} known already, and not asked for again"
    yield from _disagreements(checked, width)
    if checked.not_judged:
        yield f"\nnot judged ({len(checked.not_judged):,})"
        for each in checked.not_judged[:MAX_SHOWN]:
            yield from prose(each.reason, width, "    ", f"  line {each.line}  {_of(each)}  {each.code}: ")
        yield from _more(len(checked.not_judged))


def _disagreements(checked: CheckedJudge, width: int) -> Iterator[str]:
    if not checked.disagreements:
        return
    yield f"\ndisagreements ({len(checked.disagreements):,})"
    # What a judge let pass is worse than what it was too strict on.
    for each in sorted(checked.disagreements, key=lambda each: not each.judge_passed)[:MAX_SHOWN]:
        said = "passed" if each.judge_passed else "failed"
        people = "failed" if each.judge_passed else "passed"
        yield f"  line {each.line}  {_of(each)}  judge {said} (score {decimal(each.score)}), people {people}"
        judge = each.reasoning or "; ".join(each.reasons)
        for title, text in (("answer", each.answer), ("judge", judge), ("people", each.comment)):
            if text:
                yield from prose(one_line(text, 400), width, "      ", f"    {title}: ")
    yield from _more(len(checked.disagreements))


def _more(count: int) -> Iterator[str]:
    if count > MAX_SHOWN:
        yield f"  … and {count - MAX_SHOWN:,} more: `--json` has them all"


def _of(each: Disagreement | NotJudged) -> str:
    return one_line(each.run or each.case_id, 60)


def _kappa(found: Agreement) -> str:
    if found.kappa is None or found.kappa_interval is None:
        return "unknown: both said one and the same of every run, so there is nothing to tell chance from agreement"
    low, high = found.kappa_interval.low, found.kappa_interval.high
    return f"{found.kappa:.2f} (95% interval {low:.2f} to {high:.2f}; 1 is perfect, 0 is chance)".replace("-", "−")


def _strictness(found: Agreement) -> str:
    counts = found.confusion
    failed, passed = counts.only_first_passed + counts.both_failed, counts.both_passed + counts.only_second_passed
    parts = []
    if failed:
        share = percent(counts.only_first_passed / failed)
        parts.append(f"Of {failed:,} that people failed, the judge passed {counts.only_first_passed:,} ({share}).")
    if passed:
        share = percent(counts.only_second_passed / passed)
        parts.append(f"Of {passed:,} that people passed, it failed {counts.only_second_passed:,} ({share}).")
    if found.stricter is not None:
        who = "The judge is stricter" if found.stricter == "first" else "People are stricter"
        parts.append(f"{who} ({p_value(found.stricter_p_value)}).")
    return " ".join(parts)


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]
