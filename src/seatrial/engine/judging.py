"""Asking the judges of a suite what people have said already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from seatrial._support import wire
from seatrial.driver.redaction import Redaction
from seatrial.engine.stop import Stop
from seatrial.errors import first_error
from seatrial.formats import read
from seatrial.graders import Subject, Surroundings
from seatrial.graders.grading import grade_run
from seatrial.graders.prepared import Prepared, prepare_all
from seatrial.graders.registry import build_graders
from seatrial.runs import Case, Run, RunKey, Verdict
from seatrial.suites import HumanLabel, Secrets, Suite


class LabelledRun(msgspec.Struct):
    """A run, and what a person said of it."""

    label: HumanLabel
    run: Run
    case: Case
    known: Mapping[str, Verdict] = {}
    """Verdicts that are stored, by their content key."""


class Opinion(msgspec.Struct):
    """What a judge and a person said of the same run."""

    grader: str
    labelled: LabelledRun
    verdict: Verdict
    asked: bool = True
    """Whether a model was asked now: a verdict that is known costs nothing again."""

    @property
    def judged(self) -> bool | None:
        """Whether the judge said passed; None when it said nothing."""
        return {"passed": True, "failed": False}.get(self.verdict.outcome) if self._answered else None

    @property
    def _answered(self) -> bool:
        # What a run without an answer fails by is no word of the judge.
        return self.labelled.run.status == "completed"


def answered_run(case: Case, answer: str, number: int) -> Run:
    """A run of which nothing is known but its answer."""
    body = wire.encode({"final_response": answer})
    return Run(
        run_id=f"answer-{number}",
        experiment_id=None,
        key=RunKey("labelled", case.id, number),
        status="completed",
        reading=read(body, "agent-response"),
    )


def judges_of(suite: Suite, cases: Sequence[Case]) -> dict[str, list[Prepared]]:
    """The graders that ask a model, by the id of the case that they judge."""
    shared = prepare_all(build_graders(suite.graders, suite.directory))
    found: dict[str, list[Prepared]] = {}
    for case in cases:
        own = prepare_all(build_graders(case.graders, suite.directory), [grader.name for grader in shared])
        found[case.id] = [grader for grader in (*shared, *own) if grader.check.asks_model]
    return found


async def opinions(
    wanted: Sequence[tuple[LabelledRun, Prepared]],
    surroundings: Surroundings,
    *,
    secrets: Secrets | None = None,
    concurrency: int = 1,
    finished: Callable[[], None] | None = None,
    stop: Stop | None = None,
) -> list[Opinion]:
    """What judges say of labelled runs, in this order, so many asked at once; nothing is stored. A stop lets those end
    that were begun."""
    redaction = Redaction(secrets)
    if surroundings.model is not None and redaction.active:
        surroundings = msgspec.structs.replace(surroundings, model=redaction.model(surroundings.model))
    found: dict[int, Opinion] = {}
    left = iter(enumerate(wanted))

    async def work() -> None:
        for number, (each, judge) in left:  # the next free task takes the next one
            if stop is not None and stop.reason is not None:
                return
            graded = grade_run(Subject(each.run, each.case), [judge], surroundings, None, each.known)
            verdicts, given = graded if isinstance(graded, tuple) else await graded
            (verdict,), _ = redaction.graded(verdicts, given)
            stored = each.known.get(verdict.key)
            reused = stored is not None and stored.outcome in ("passed", "failed")
            found[number] = Opinion(judge.name, each, verdict, each.run.status == "completed" and not reused)
            if finished is not None:
                finished()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    return [found[number] for number in sorted(found)]
