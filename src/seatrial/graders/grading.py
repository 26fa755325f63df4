"""Grading a run: every grader's verdict, and what they come to.

A case is `errored` when a required grader errored or was skipped, whatever the others say; `failed` when a required
grader failed or the weighted score is below the threshold; `passed` when something was there to decide that, and
`skipped` when nothing was. A grader that is not required may be absent: what it would have scored is unknown then, and
a threshold that depends on it is an error too; so is one that depends on where in its range a score lies.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from seatrial._support import wire
from seatrial.graders.grader import Grader, Subject, Surroundings
from seatrial.graders.key import content_digest
from seatrial.graders.prepared import Prepared, prepare_all
from seatrial.graders.registry import build_graders
from seatrial.graders.together import GRADER_ERRORED, all_verdicts, weighted_score
from seatrial.runs import Grade, Outcome, Verdict

Graded: TypeAlias = tuple[list[Verdict], Grade]

MAX_CACHED = 512
"""Cases whose own graders are kept compiled."""


class GradingPlan:
    """The graders of an experiment, compiled once; those of single cases when they are met."""

    def __init__(
        self,
        graders: Sequence[Mapping[str, Any] | Grader],
        *,
        threshold: float | None = None,
        directory: Path | None = None,
        grades: bool = True,
    ) -> None:
        """Graders that are classes of the suite's author are looked for in `directory` first.

        Without `grades`, no grader is asked, and no run that completed is passed.
        """
        self._grades = grades
        self._threshold = threshold
        self._directory = directory
        self._shared = prepare_all(build_graders(graders, directory)) if grades else []
        self._of_cases: OrderedDict[bytes, list[Prepared]] = OrderedDict()

    def grade(
        self, subject: Subject, surroundings: Surroundings, earlier: Mapping[str, Verdict] | None = None
    ) -> Graded | Awaitable[Graded]:
        """Grade a run; to be awaited only where a grader waits. `earlier` are verdicts by their content key."""
        if not self._grades:
            return _ungraded(subject)
        case = subject.case
        graders = self._with(case.graders) if case.graders else self._shared
        threshold = self._threshold if case.threshold is None else case.threshold
        return grade_run(subject, graders, surroundings, threshold, earlier)

    def _with(self, configs: list[dict[str, Any]]) -> list[Prepared]:
        key = wire.encode(configs)
        cached = self._of_cases
        if key in cached:
            cached.move_to_end(key)
            return cached[key]
        own = prepare_all(build_graders(configs, self._directory), [grader.name for grader in self._shared])
        cached[key] = [*self._shared, *own]
        if len(cached) > MAX_CACHED:
            cached.popitem(last=False)
        return cached[key]


def grade_run(
    subject: Subject,
    graders: Sequence[Prepared],
    surroundings: Surroundings,
    threshold: float | None = None,
    earlier: Mapping[str, Verdict] | None = None,
) -> Graded | Awaitable[Graded]:
    """Grade a run with these graders; to be awaited only where one of them waits."""
    if subject.run.status != "completed":
        return _without_answer(subject, graders, threshold)
    content = content_digest(subject)
    found: list[Verdict | Awaitable[Verdict]] = []
    keys: list[str] = []
    for grader in graders:
        key = grader.key(content, surroundings)
        keys.append(key)
        known = earlier.get(key) if earlier and key else None
        # What could not run may run now.
        if known is not None and known.outcome in ("passed", "failed"):
            found.append(grader.adopt(known))
        else:
            found.append(grader.judge(subject, surroundings))
    verdicts = [verdict for verdict in found if isinstance(verdict, Verdict)]
    return _graded(verdicts, keys, threshold) if len(verdicts) == len(found) else _graded_later(found, keys, threshold)


def conclude(verdicts: Sequence[Verdict], threshold: float | None = None) -> Grade:
    """What the verdicts on a run come to."""
    weighted = weighted_score(verdicts)
    score = None if weighted is None else weighted.value
    grade = Grade(outcome="passed", score=score, threshold=threshold, verdicts=len(verdicts))
    if threshold is None and _all_pass(verdicts):
        return grade
    required = [verdict for verdict in verdicts if verdict.required]
    absent = [verdict for verdict in verdicts if verdict.outcome in ("errored", "skipped")]
    failed = _names(required, "failed")
    if failed:
        count = sum([verdict.outcome == "failed" for verdict in required])
        grade.outcome = "failed"
        grade.reasons.append(f"{count} of {len(required)} required graders failed: {failed}")
    if missing := [verdict for verdict in absent if verdict.required]:
        # verdicts.md 4: whatever the others say. What failed is named first, and is not forgotten.
        grade.outcome = "errored"
        grade.code = missing[0].code
        named = [f"{verdict.grader} {_absence(verdict)}" for verdict in missing]
        grade.reasons.append(f"could not be graded: {', '.join(named)}")
    elif not verdicts:
        grade.outcome = "skipped"
        grade.reasons.append("nothing was checked: no graders")
    elif threshold is None and not required:
        grade.outcome = "skipped"
        grade.reasons.append("nothing decides: no grader is required, and there is no threshold")
    elif threshold is not None and weighted is None:
        grade.outcome = "errored"
        grade.code = GRADER_ERRORED
        grade.reasons.append(f"there is no score to hold against threshold {threshold:g}: no grader weighs anything")
    elif threshold is not None and weighted is not None:
        reached = weighted.reaches(threshold)
        grade.reasons.append(weighted.against(threshold))
        if not failed and not reached:
            grade.outcome = "errored" if reached is None else "failed"
            if reached is None:
                grade.code = weighted.code
    if left_out := [f"{verdict.grader} {_absence(verdict)}" for verdict in absent if not verdict.required]:
        grade.reasons.append(f"left out, not required: {', '.join(left_out)}")
    return grade


def _all_pass(verdicts: Sequence[Verdict]) -> bool:
    """Whether every verdict is a pass, and one of them had to be."""
    required = False
    for verdict in verdicts:
        if verdict.outcome != "passed":
            return False
        required = required or verdict.required
    return required


def _absence(verdict: Verdict) -> str:
    return "was skipped" if verdict.outcome == "skipped" else "errored"


def _names(verdicts: Sequence[Verdict], outcome: Outcome) -> str:
    return ", ".join([verdict.grader for verdict in verdicts if verdict.outcome == outcome])


def _graded(verdicts: list[Verdict], keys: list[str], threshold: float | None) -> Graded:
    for verdict, key in zip(verdicts, keys, strict=True):
        verdict.key = key
    return verdicts, conclude(verdicts, threshold)


async def _graded_later(
    found: Sequence[Verdict | Awaitable[Verdict]], keys: list[str], threshold: float | None
) -> Graded:
    return _graded(await all_verdicts(found), keys, threshold)


def _ungraded(subject: Subject) -> Graded:
    if subject.run.status != "completed":
        return _without_answer(subject, (), None)
    return [], Grade(outcome="skipped", reasons=["not graded, as it was asked for"], verdicts=0)


def _without_answer(subject: Subject, graders: Sequence[Prepared], threshold: float | None) -> Graded:
    run = subject.run
    fault = run.fault
    why = f"the run is {run.status}" if fault is None else f"{fault.error_class}: {fault.message}"
    grade = Grade(outcome="errored", threshold=threshold, verdicts=len(graders))
    if run.status == "failed" and not run.errored:
        grade.outcome, grade.score, reason = "failed", 0.0, f"the run failed, {why}"
        verdicts = [grader.unjudged("failed", reason) for grader in graders]
    else:
        reason = f"there is no answer to grade, {why}"
        verdicts = [grader.unjudged("skipped", reason) for grader in graders]
    grade.reasons = [reason]
    return verdicts, grade
