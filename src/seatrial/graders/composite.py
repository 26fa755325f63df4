"""`composite`: several graders that count as one."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from math import inf
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from seatrial._support import wire
from seatrial._support.nesting import is_value_too_deep
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Finding, Grader, Share, Subject, Surroundings, errored, skipped
from seatrial.graders.prepared import prepare_all
from seatrial.graders.registry import build_graders
from seatrial.graders.together import all_verdicts, score_range, weighted_score, why_inexact
from seatrial.runs import Verdict, model_costs
from seatrial.trajectory.completeness import Claim, ScoreRange, judged, reached


class Composite(Grader):
    """What several graders say together. Where one of them errored or was skipped, the whole passes or fails only if
    that one could not change it, and is errored otherwise. Each has a time limit of its own."""

    kind: ClassVar[str] = "composite"
    version: ClassVar[int] = 3
    default_timeout_s: ClassVar[float] = inf

    graders: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    """The graders, each with its `kind`, as in a suite; without `required`, which the rule decides."""
    rule: Literal["all", "any", "weighted", "threshold"] = "all"
    """`all`: every grader passes. `any`: at least one does. `weighted`: the weighted mean of their scores reaches
    `threshold`. `threshold`: the share of those that pass, by weight, reaches `threshold`."""
    threshold: Share | None = None
    """What `weighted` and `threshold` have to reach."""

    def prepare(self) -> Check:
        self._check_keys()
        if is_value_too_deep(self.graders):
            raise wire.too_deep()
        try:
            children = prepare_all(build_graders(self.graders))
        except SeatrialError as error:
            error.pointer = f"/graders{error.pointer or ''}"
            raise

        def find(subject: Subject, surroundings: Surroundings) -> Finding | Awaitable[Finding]:
            found = [child.judge(subject, surroundings) for child in children]
            verdicts = [verdict for verdict in found if isinstance(verdict, Verdict)]
            return self._together(verdicts) if len(verdicts) == len(found) else self._later(found)

        return Check(
            find,
            repeatable=all(child.check.repeatable for child in children),
            asks_model=any(child.check.asks_model for child in children),
            of_answer=any(child.check.of_answer for child in children),
            reads=frozenset().union(*(child.check.reads for child in children)),
            needs=frozenset().union(*(child.check.needs for child in children)),
            parts=b"".join(child.configuration + child.check.parts for child in children),
        )

    def _check_keys(self) -> None:
        weighs = self.rule in ("weighted", "threshold")
        if weighs and self.threshold is None:
            raise SeatrialError("invalid_config", f"the rule `{self.rule}` needs `threshold`")
        if not weighs and self.threshold is not None:
            raise SeatrialError(
                "invalid_config", f"the rule `{self.rule}` does not take `threshold`", pointer="/threshold"
            )
        for index, config in enumerate(self.graders):
            for key in ("required",) if weighs else ("required", "weight"):
                if key in config:
                    message = f"the rule `{self.rule}` does not take `{key}`"
                    raise SeatrialError("invalid_config", message, pointer=f"/graders/{index}/{key}")
        if weighs and not any(config.get("weight", 1) for config in self.graders):
            raise SeatrialError("invalid_config", "none of the graders weighs anything", pointer="/graders")

    async def _later(self, found: Sequence[Verdict | Awaitable[Verdict]]) -> Finding:
        return self._together(await all_verdicts(found))

    def _together(self, verdicts: list[Verdict]) -> Finding:
        finding = self._conclude(verdicts)
        finding.add_costs(model_costs(verdicts))
        finding.evidence = list(dict.fromkeys(pointer for verdict in verdicts for pointer in verdict.evidence))
        finding.details = verdicts
        bases = {verdict.basis for verdict in verdicts}
        finding.basis = "reported" if "reported" in bases else "observed" if "observed" in bases else None
        return finding

    def _conclude(self, verdicts: list[Verdict]) -> Finding:
        if all(verdict.outcome == "skipped" for verdict in verdicts):
            return skipped("every grader in it was skipped", *_reasons(verdicts, "skipped"), code=verdicts[0].code)
        absent = [verdict for verdict in verdicts if verdict.outcome in ("errored", "skipped")]
        count = sum(verdict.outcome == "passed" for verdict in verdicts)
        arithmetic = f"{count} of {len(verdicts)} graders passed"
        passed: Claim
        if self.rule == "all":
            lowest, highest = count / len(verdicts), (count + len(absent)) / len(verdicts)
            passed, score = reached(lowest, highest, 1.0), lowest
        elif self.rule == "any":
            ranges = [score_range(verdict) for verdict in verdicts]
            lowest, highest = max(low for low, _ in ranges), max(high for _, high in ranges)
            passed, score = (True if count else None if absent else False), max(v.score or 0.0 for v in verdicts)
        else:
            weighted = weighted_score(verdicts if self.rule == "weighted" else [_whole(v) for v in verdicts])
            if weighted is None:
                return errored("none of the graders weighs anything")
            threshold = self.threshold or 1.0
            lowest, highest = weighted.lowest, weighted.highest
            passed, score = weighted.reaches(threshold), lowest
            arithmetic += f"; {weighted.against(threshold)}"
        code = why_inexact(verdicts)
        if self.min_score is not None:
            passed = reached(lowest, highest, self.min_score)
        told = [reason for word in ("failed", "errored", "skipped") for reason in _reasons(verdicts, word)]
        return Finding(
            outcome=judged(passed),
            score=score,
            score_range=None if lowest == highest else ScoreRange(lowest, highest, code),
            reasons=[f"{arithmetic} (rule {self.rule})", *told],
            code=code if passed is None else "",
        )


def _whole(verdict: Verdict) -> Verdict:
    """The verdict as a plain yes or no."""
    return Verdict(
        grader=verdict.grader,
        kind=verdict.kind,
        outcome=verdict.outcome,
        score=None if verdict.score is None else 1.0 if verdict.outcome == "passed" else 0.0,
        weight=verdict.weight,
    )


def _reasons(verdicts: list[Verdict], outcome: str) -> list[str]:
    return [
        f"{verdict.grader} {outcome}: {' '.join(verdict.reasons)}" for verdict in verdicts if verdict.outcome == outcome
    ]
