"""What a grader says of a run, and what all graders together say of a case."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from seatrial.trajectory.completeness import Basis

Judgement = Literal["passed", "failed", "errored", "skipped"]


class Verdict(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One grader's word on one run."""

    grader: str
    """The grader's name in the suite."""
    kind: str
    """The grader's kind: `tool_trajectory`, `equals`, `judge`, ..."""
    judgement: Judgement
    """`errored`: the grader could not run. `skipped`: it had nothing to say, and says why."""
    score: float | None = None
    """0 to 1; None when errored or skipped."""
    reasons: list[str] = []
    """Sentences that show the arithmetic."""
    code: str = ""
    """Why it errored or was skipped, for programs: `calls_unknown`, `calls_not_observed`, `judge_skipped`,
    `no_answer`, `grader_timeout`, else `grader_errored` or `grader_skipped`."""
    evidence: list[str] = []
    """JSON pointers into the run (`/messages/3`, `/steps/0`, `/answer`)."""
    details: Any = None
    """The grader's own result as data (a trajectory match, a judge's votes)."""
    basis: Basis | None = None
    """Of a verdict on calls: whether they were `observed`, or only `reported` by the agent."""
    weight: float = 1.0
    required: bool = False
    key: str = ""
    """Content key: what was graded, by which configuration. Equal keys mean equal verdicts."""
    cost_usd: float | None = None
    tokens: int | None = None
    """Input and output tokens of the models that were asked."""
    duration_ms: float | None = None


class Grade(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What all graders together say of one run."""

    judgement: Judgement
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
        return verdicts == self.verdicts if self.verdicts is not None else self.judgement != "passed" or verdicts > 0
