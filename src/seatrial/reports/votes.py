"""What the votes of judges said, for people: who was asked, what each vote came to, and why."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from seatrial.reports.figures import decimal, plural
from seatrial.runs import JudgeDetails, JudgeVote, Verdict
from seatrial.trajectory.completeness import reaches

MAX_VOTES = 25
MAX_TEXT = 2000


class CriterionLine(msgspec.Struct, frozen=True):
    """What a vote said of one criterion."""

    name: str
    score: float
    reason: str


class VoteLine(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One vote."""

    passed: bool | None = None
    """Whether it was for the run; None when it does not count."""
    score: float | None = None
    outcome_met: bool | None = None
    criteria: list[CriterionLine] = []
    failure_mode: str | None = None
    reasoning: str = ""
    problem: str = ""
    """Why it does not count."""

    @property
    def said(self) -> str:
        """`for the run, score 0.9`; `against it, score 0 (outcome wrong, false_claim)`; `none: the model refused`."""
        if self.passed is None:
            return f"none: {self.problem}" if self.problem else "none"
        why = ["outcome wrong"] if self.outcome_met is False else []
        why += [self.failure_mode] if self.failure_mode and not self.passed else []
        beside = f" ({', '.join(why)})" if why else ""
        return f"{'for the run' if self.passed else 'against it'}, score {decimal(self.score)}{beside}"


class JudgeLine(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A judge that was asked for a verdict."""

    grader: str
    """Its name; that of several graders together, and its own, where it is one of them."""
    model: str
    agreement: float | None = None
    """The share of the votes that the majority has."""
    asked: int = 1
    """How often the model was asked."""
    votes: list[VoteLine] = []

    @property
    def head(self) -> str:
        """`3 votes of gpt-5-mini, 2 of them agree`."""
        agreement = ""
        if self.asked > 1 and self.agreement is not None:
            agree = round(self.agreement * self.asked)
            agreement = ", all agree" if reaches(self.agreement, 1.0) else f", {agree} of them agree"
        return f"{plural(self.asked, 'vote')} of {self.model}{agreement}"


def judge_lines(verdict: Verdict, name: str = "") -> list[JudgeLine]:
    """The judges of a verdict: one of a judge, all that were asked of several graders together, none of others."""
    name = f"{name} / {verdict.grader}" if name else verdict.grader
    if verdict.kind == "composite":
        return [line for inner in inner_verdicts(verdict) for line in judge_lines(inner, name)]
    details = judge_details(verdict)
    if details is None:
        return []
    votes = details.votes if isinstance(details.votes, list) else []
    return [
        JudgeLine(
            grader=name,
            model=details.judge.model[:200],
            agreement=details.judge.agreement,
            asked=details.judge.votes,
            votes=[_vote_line(vote) for vote in votes[:MAX_VOTES]],
        )
    ]


def judge_details(verdict: Verdict) -> JudgeDetails | None:
    """What a judge kept of how it came to its verdict; None of other graders, and where no model was asked."""
    if verdict.kind != "judge" or verdict.details is None:
        return None
    try:
        return msgspec.convert(msgspec.to_builtins(verdict.details), JudgeDetails)
    except (msgspec.ValidationError, RecursionError):
        return None


def vote_text(line: JudgeLine, *, besides: str = "") -> Iterator[tuple[int, str]]:
    """The votes as lines, each with how deep it stands. What is said in `besides` already is not said again."""
    yield 0, line.head
    for number, vote in enumerate(line.votes, 1):
        detailed = len(line.votes) > 1 or vote.passed is None
        if detailed:
            yield 1, f"vote {number}: {vote.said}"
        for criterion in vote.criteria:
            reason = f": {criterion.reason}" if criterion.reason else ""
            yield 1 + detailed, f"{criterion.name} {decimal(criterion.score)}{reason}"
        if vote.reasoning and vote.reasoning not in besides:
            yield 1 + detailed, vote.reasoning


def _vote_line(vote: JudgeVote) -> VoteLine:
    return VoteLine(
        passed=vote.passed,
        score=vote.score,
        outcome_met=vote.outcome_met,
        criteria=[CriterionLine(name, said.score, said.reason[:MAX_TEXT]) for name, said in vote.criteria.items()],
        failure_mode=vote.failure_mode,
        reasoning=vote.reasoning[:MAX_TEXT],
        problem=vote.problem[:MAX_TEXT],
    )


def inner_verdicts(verdict: Verdict) -> list[Verdict]:
    """The verdicts that one of several graders together was made of."""
    try:
        return msgspec.convert(msgspec.to_builtins(verdict.details), list[Verdict])
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError):
        return []
