"""What matching gives, as data. Items and steps are named by their index in what was given."""

from __future__ import annotations

import msgspec

from seatrial.trajectory.arguments import Difference
from seatrial.trajectory.expectation import Mode


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


class Violation(msgspec.Struct, omit_defaults=True, gc=False):
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
    """Nothing was known to check it by; it counts neither way."""


class Divergence(msgspec.Struct, omit_defaults=True, gc=False):
    """Where expectation and trajectory part for the first time; a side that has nothing there is left out."""

    expected: int | None = None
    actual: int | None = None


class MatchResult(msgspec.Struct, omit_defaults=True):
    """The verdict and everything it rests on."""

    mode: Mode
    passed: bool
    score: float
    """0 to 1; 0 when a constraint is violated."""
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
    violations: list[Violation]
    assertions: list[Assertion]
    prose: str
    """What was expected, what happened and where they part, in one paragraph."""
    first_divergence: Divergence | None = None
    errored: str | None = None
    """Why there is no verdict: the search passed its budget. Neither passed nor failed then."""
