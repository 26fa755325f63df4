"""What matching gives, as data. Items and steps are named by their index in what was given."""

from __future__ import annotations

from typing import Literal

import msgspec

from seatrial.trajectory.completeness import Basis, Level, ScoreRange
from seatrial.trajectory.expectation import Mode
from seatrial.trajectory.values import Difference


class Pair(msgspec.Struct, gc=False):
    """An expected item and the step that was matched with it."""

    expected: int
    actual: int


class Mismatch(msgspec.Struct, gc=False):
    """A missing item and the nearest step of that name which nothing else was matched with."""

    expected: int
    actual: int
    differences: list[Difference]
    """Empty when the step fits but stands in the wrong place."""


class ConstraintViolation(msgspec.Struct, omit_defaults=True, gc=False):
    """A constraint that does not hold."""

    constraint: str
    """The key of the configuration: `forbidden`, `allowed`, ..."""
    message: str
    actual: int | None = None
    """The step that violates it, where it is one."""


class Assertion(msgspec.Struct, omit_defaults=True, gc=False):
    """One thing that was checked, in words."""

    text: str
    passed: bool
    skipped: bool = False
    """Too little is known to check it."""


class Undecided(msgspec.Struct, omit_defaults=True, gc=False):
    """A claim that neither holds nor is broken by what is known of the calls."""

    claim: str
    """What of the expectation it is: the mode, or a key of the configuration (`forbidden`, `max_duration_ms`, ...)."""
    message: str
    actual: int | None = None
    """The step of which too little is known, where it is one."""


class Divergence(msgspec.Struct, omit_defaults=True, gc=False):
    """Where expectation and trajectory part for the first time; a side that has nothing there is left out."""

    expected: int | None = None
    actual: int | None = None


class MatchResult(msgspec.Struct, omit_defaults=True):
    """The verdict and everything it rests on."""

    mode: Mode
    passed: bool
    score: float
    """0 to 1, by what is known; 0 when a constraint is violated."""
    precision: float
    """Matched steps among all; 1 when there are no steps."""
    recall: float
    """Matched items among all; 1 when there are no items."""
    f1: float
    matched: list[Pair]
    """By expected item. For `any_order`, which counts and matches nothing one to one, this and the next are empty."""
    missing: list[int]
    extra: list[int]
    """Steps that were matched with nothing. For `any_order`: that count for nothing, or are beyond a maximum."""
    mismatches: list[Mismatch]
    violations: list[ConstraintViolation]
    assertions: list[Assertion]
    prose: str
    """What was expected, what happened and where they part, in one paragraph."""
    first_divergence: Divergence | None = None
    errored: str | None = None
    """Why there is no verdict: neither passed nor failed then. The figures are those of the calls that are known."""
    error_code: str | None = None
    """`calls_unknown`: too little is known of the calls. Others: the match passed one of its limits."""
    hint: str | None = None
    """What to do about it."""
    undecided: list[Undecided] = []
    """With `calls_unknown`: every claim that could not be decided."""
    user_calls: int = 0
    """Steps that are calls of a user's own tools; they count for nothing."""
    level: Level = "complete"
    """How much is known of the calls."""
    basis: Basis | None = None
    """What the calls are known from; None for calls that were given as such."""
    score_range: ScoreRange | None = None
    """What the score would be if all were known of the calls; None when it is the score."""

    @property
    def outcome(self) -> Literal["passed", "failed", "errored"]:
        """The verdict in one word."""
        return "errored" if self.errored is not None else "passed" if self.passed else "failed"
