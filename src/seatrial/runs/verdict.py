"""What a grader says of a run, and what all graders together say of a case."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from seatrial.trajectory.completeness import Basis, ScoreRange

Outcome = Literal["passed", "failed", "errored", "skipped"]
"""What a verdict, a grade and a graded run came to; `status` is about the life of a run."""


class Verdict(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One grader's word on one run."""

    grader: str = ""
    """The grader's name in the suite."""
    kind: str = ""
    """The grader's kind: `tool_trajectory`, `equals`, `judge`, ..."""
    outcome: Outcome
    """`errored`: the grader could not run. `skipped`: it had nothing to say, and says why."""
    score: float | None = None
    """0 to 1; None when errored or skipped."""
    score_range: ScoreRange | None = None
    """Between what the score lies, where not all that it depends on is known; None when it is exact."""
    reasons: list[str] = []
    """Sentences that show the arithmetic."""
    code: str = ""
    """Why it errored or was skipped, for programs: `calls_unknown`, `calls_not_observed`, `judge_skipped`,
    `no_answer`, `answer_incomplete`, `secret_removed`, `grader_timeout`, else `grader_errored` or `grader_skipped`."""
    evidence: list[str] = []
    """JSON pointers into the run (`/messages/3`, `/steps/0`, `/answer`)."""
    details: Any = None
    """The grader's own result as data (a `MatchResult`, a `JudgeDetails`); from a store, as plain JSON."""
    basis: Basis | None = None
    """Of a verdict on calls: whether they were `observed`, or only `reported` by the agent."""
    weight: float = 1.0
    required: bool = False
    key: str = ""
    """Content key: what was graded, by which configuration. Equal keys mean equal verdicts."""
    cost_usd: float | None = None
    """What asking models cost; None when none was asked, or not all of it is known."""
    least_cost_usd: float | None = None
    """What is known of it, where that is not all."""
    tokens: int | None = None
    """Input and output tokens of the models that were asked; None in the same way."""
    least_tokens: int | None = None
    """What is known of them, where that is not all."""
    duration_ms: float | None = None


class JudgedBy(msgspec.Struct, kw_only=True):
    """Who judged: the model, how often it was asked, and what that cost."""

    kind: str = "model"
    model: str
    """As its endpoint calls it, which may be more exact than how it was asked for."""
    votes: int
    agreement: float | None = None
    """The share of the votes that the majority has; None when there was a vote without an answer."""
    cost_usd: float | None = None
    """Of all votes; None when it is not known of one of them."""
    prompt_hash: str
    """Of the prompt, and of the schema that the answer must have."""


class CriterionScore(msgspec.Struct):
    """What one vote says of one criterion."""

    score: float
    reason: str = ""


class JudgeVote(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One vote of a judge."""

    passed: bool | None = None
    """Whether it is for the run; None when the model gave no answer that could be used."""
    score: float | None = None
    """The weighted mean of its criteria; 0 when it says that the outcome is wrong."""
    outcome_met: bool | None = None
    """Whether it says that the right outcome was reached."""
    criteria: dict[str, CriterionScore] = {}
    """By their names."""
    failure_mode: str | None = None
    reasoning: str = ""
    problem: str = ""
    """Why it does not count, when it does not."""


class JudgeDetails(msgspec.Struct, kw_only=True):
    """The details of a judge's verdict. Of a judge that errored there are only `votes` and `judge`."""

    passed: bool | UnsetType = UNSET
    failure_mode: str | UnsetType | None = UNSET
    """What went wrong, in a word or two, by the vote that speaks for the majority; None for a run that passed."""
    subscores: dict[str, float] | UnsetType = UNSET
    """The mean score of each criterion, by its name."""
    reasoning: str | UnsetType = UNSET
    """Of the vote that speaks for the majority."""
    evidence: list[str] | UnsetType = UNSET
    """What the votes point to that is in the run."""
    votes: list[JudgeVote] | UnsetType = UNSET
    """What each vote says; unset in records of earlier versions."""
    judge: JudgedBy
    unknown_evidence: list[str] | UnsetType = UNSET
    """What they point to that is not, if anything; the first of it."""


class Grade(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What all graders together say of one run."""

    outcome: Outcome
    score: float | None = None
    """Weighted mean of the graders that gave one."""
    threshold: float | None = None
    """The score that was to be reached; None when only the required graders decide."""
    code: str = ""
    """Why it errored, where graders are why: the code of the first verdict that is missing."""
    verdicts: int | None = None
    """How many verdicts it was made of, so that a lost one is noticed; None in records of earlier versions."""
    reasons: list[str] = []

    def has_all(self, verdicts: int) -> bool:
        """Whether it was made from exactly this many verdicts."""
        # Earlier versions did not count them, but nothing passes without one.
        return verdicts == self.verdicts if self.verdicts is not None else self.outcome != "passed" or verdicts > 0
