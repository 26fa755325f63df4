"""Graders of the tool calls: `tool_trajectory`, and `calls` and `never_calls`, the two commonest checks in short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seatrial.graders.calls import (
    OBSERVED_ALONE,
    BasisWanted,
    based,
    known_of,
    not_observed,
    observed_alone,
    passed_by_report,
    to_do,
)
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings
from seatrial.trajectory.completeness import Basis
from seatrial.trajectory.expectation import CONFIG_KEYS, Mode, compile_expectation
from seatrial.trajectory.matching import match
from seatrial.trajectory.result import MatchResult

MAX_EVIDENCE = 20
ToolName = Annotated[str, Meta(min_length=1)]


class ToolTrajectory(Grader):
    """Whether the agent called the right tools, with the right arguments, in the right order. Errored when that
    depends on calls that are not known."""

    kind: ClassVar[str] = "tool_trajectory"
    version: ClassVar[int] = 6

    mode: Mode
    """How calls and expectation are compared."""
    expected: list[str | dict[str, Any]] | UnsetType = UNSET
    """The expected calls: `tool`, and where it matters `args`, `args_match`, `result`, `status`, `actor`, ...; or only
    the name of the tool."""
    minimums: dict[str, int] | UnsetType = UNSET
    """For `any_order`: how often each tool is called at least."""
    maximums: dict[str, int] | UnsetType = UNSET
    """For `any_order`: how often each tool is called at most."""
    defaults: dict[str, Any] | UnsetType = UNSET
    """Keys for all items that do not have them themselves."""
    args_match: str | list[str] | UnsetType = UNSET
    """`exact`, `superset`, `subset`, `ignore`, or the dotted paths to compare; for all items."""
    forbidden: list[str | dict[str, Any]] | UnsetType = UNSET
    """Calls that must not be made: the same keys, but a call with more arguments than these is forbidden, too."""
    allowed: list[str] | UnsetType = UNSET
    """Tools that may be called besides the expected ones; no others may."""
    max_calls: int | UnsetType = UNSET
    """How many calls may be made."""
    min_calls: int | UnsetType = UNSET
    """How many calls must be made."""
    no_errors: bool | UnsetType = UNSET
    """Whether no call may fail."""
    failed_calls: Literal["count", "ignore"] | UnsetType = UNSET
    """Whether failed calls count as calls. `forbidden`, `allowed` and a maximum of 0 see them in any case."""
    retries: Literal["count", "collapse"] | UnsetType = UNSET
    """Whether a failed call is one with the equal call that follows it."""
    basis: BasisWanted = "any"
    """`observed`: errored when it would pass only by calls that the agent reports, and that our proxies did not see."""

    def expectation(self) -> dict[str, Any]:
        """What is expected, as `compile_expectation` takes it."""
        values = {name: getattr(self, name) for name in CONFIG_KEYS}
        return {name: value for name, value in values.items() if value is not UNSET and value is not None}

    def prepare(self) -> Check:
        expectation = compile_expectation(self.expectation())

        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            if (refused := not_observed(subject, self.basis)) is not None:
                return refused
            known = known_of(subject)
            result = match(expectation, subject.run.steps, known)
            basis = known.basis
            observed = observed_alone(subject) if result.outcome != "errored" else None
            # What the observed calls decide by themselves does not rest on the agent's word.
            if observed and match(expectation, observed, OBSERVED_ALONE).outcome == result.outcome:
                basis = "observed"
            return passed_by_report(finding_of(result, basis), self.basis)

        return Check(find, of_calls=True)


def finding_of(result: MatchResult, basis: Basis = "reported") -> Finding:
    """A match as a finding."""
    result.basis = basis
    reasons = [based(result.prose, basis)]
    if result.errored is not None:
        if result.hint is not None:
            reasons.append(to_do(result.hint))
        doubtful = [undecided.actual for undecided in result.undecided if undecided.actual is not None]
        evidence = [f"/steps/{index}" for index in sorted({*doubtful})[:MAX_EVIDENCE]]
        return Finding(
            outcome="errored",
            reasons=reasons,
            code=result.error_code or "grader_errored",
            evidence=evidence,
            details=result,
            basis=basis,
        )
    return Finding(
        outcome="passed" if result.passed else "failed",
        score=result.score,
        score_range=result.score_range,
        reasons=reasons,
        evidence=[f"/steps/{index}" for index in _telling(result)],
        details=result,
        basis=basis,
    )


def _telling(result: MatchResult) -> list[int]:
    """The steps that show it: those that were matched, or else those that are wrong, or nearest to what is missing."""
    if result.passed:
        return [pair.actual for pair in result.matched[:MAX_EVIDENCE]]
    steps = {found.actual for found in result.mismatches}
    steps.update(violation.actual for violation in result.violations if violation.actual is not None)
    if result.mode in ("exact", "unordered", "subset"):
        steps.update(result.extra[:MAX_EVIDENCE])
    if result.first_divergence is not None and result.first_divergence.actual is not None:
        steps.add(result.first_divergence.actual)
    return sorted(steps)[:MAX_EVIDENCE]


class CallsMade(Grader):
    """Whether the agent called a tool, at least once, with at least these arguments. Errored where it is not among the
    calls that are known, and not all are."""

    kind: ClassVar[str] = "calls"

    tool: ToolName
    """The tool's name, or a glob."""
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    """Arguments that the call has, perhaps among others; values as in `tool_trajectory`."""
    basis: BasisWanted = "any"
    """As in `tool_trajectory`."""

    def trajectory(self) -> ToolTrajectory:
        """The same check, spelled out."""
        item: dict[str, Any] = {"tool": self.tool}
        if self.args:
            item |= {"args": self.args, "args_match": "superset"}
        return ToolTrajectory(mode="superset", expected=[item], basis=self.basis)

    def prepare(self) -> Check:
        return self.trajectory().prepare()


class NeverCalls(Grader):
    """Whether the agent called none of some tools. Errored where not all of its calls are known."""

    kind: ClassVar[str] = "never_calls"

    tools: Annotated[list[ToolName], Meta(min_length=1)]
    """The tools' names, or globs; `*` for any tool at all."""
    basis: BasisWanted = "any"
    """As in `tool_trajectory`."""

    def trajectory(self) -> ToolTrajectory:
        """The same check, spelled out."""
        # Forbidden besides, so that one such call is a score of 0: no share of the tools makes up for it.
        maximums = dict.fromkeys(self.tools, 0)
        return ToolTrajectory(mode="any_order", maximums=maximums, forbidden=list(self.tools), basis=self.basis)

    def prepare(self) -> Check:
        return self.trajectory().prepare()


def expected_calls(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a grader of a suite expects of the calls, as `compile_expectation` takes it; None when it is not of these
    kinds, or cannot be read."""
    kind = _KINDS.get(config.get("kind", ""))
    if kind is None:
        return None
    try:
        grader = msgspec.convert({key: value for key, value in config.items() if key != "kind"}, kind)
    except msgspec.ValidationError:
        return None
    return (grader if isinstance(grader, ToolTrajectory) else grader.trajectory()).expectation()


_KINDS: dict[str, type[ToolTrajectory | CallsMade | NeverCalls]] = {
    kind.kind: kind for kind in (ToolTrajectory, CallsMade, NeverCalls)
}
