"""What came of putting an agent to a case, for a test to look at."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from seatrial.errors import SeatrialError
from seatrial.printable import printable
from seatrial.runs import Case, Fault, Judgement, Run, Verdict
from seatrial.testing.calls import Calls
from seatrial.testing.expected import step_line
from seatrial.trajectory import Completeness, Step
from seatrial.trajectory.claims import NO_ANSWER_TO_READ, known_calls, what_is_missing
from seatrial.transcript import Note

MAX_ANSWER = 2000
MAX_CALLS = 50


class Outcome(msgspec.Struct, frozen=True):
    """A run that has ended, with what a test asks of it at hand."""

    run: Run
    """All of it: transcript, notes, attempts, verdicts."""
    case: Case

    @property
    def answer(self) -> str:
        """The agent's answer; empty when there is none: with `check=False`, look at `fault` first."""
        reading = self.run.reading
        return "" if reading is None else reading.transcript.final_text() or ""

    @property
    def calls(self) -> Calls[Step]:
        """The agent's tool calls, in order; compare them with `in_order(...)` and its like. Where not all are known,
        what depends on the others raises `NoVerdictError`."""
        return Calls(self._known_calls(), self._completeness())

    @property
    def tools(self) -> Calls[str]:
        """The names of the tools that were called, in order; the same goes for them."""
        return Calls([step.name for step in self._known_calls()], self._completeness())

    @property
    def fault(self) -> Fault | None:
        """Why there is no answer, where there is none."""
        return self.run.fault

    @property
    def judgement(self) -> Judgement:
        """What all graders together say."""
        return "skipped" if self.run.grade is None else self.run.grade.judgement

    @property
    def passed(self) -> bool:
        """Whether the graders passed it; without graders nothing is passed."""
        return self.judgement == "passed"

    def check(self) -> None:
        """Fail the test, with the whole story, unless the graders passed it."""
        __tracebackhide__ = True
        if self.judgement == "skipped" and not self.run.verdicts and self.run.status == "completed":
            raise AssertionError(
                "no graders were given, so there is nothing to check: see `graders=` of `seatrial.run`"
            )
        if not self.passed:
            raise AssertionError(str(self))

    def __repr__(self) -> str:
        key = self.run.key
        return f"<Outcome: {key.agent} on {key.case_id}: {self.judgement}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The whole story: what it came to, every grader that did not pass and why, the calls, the answer."""
        grade = self.run.grade
        yield printable("; ".join(grade.reasons)) if grade is not None and grade.reasons else self.judgement
        if self.fault is not None and self.fault.detail:
            yield from _indented(self.fault.detail[-MAX_ANSWER:])
        if self.run.status == "completed":
            for verdict in self.run.verdicts:
                if verdict.judgement in ("failed", "errored", "skipped"):
                    yield from _verdict_lines(verdict)
        calls, known = self._known_calls(), self._completeness()
        if self.run.status == "completed" and known.level != "complete":
            yield printable(what_is_missing(known))
        if calls:
            yield "calls:" if known.level == "complete" else "calls that are known:"
            yield from (f"  {step_line(step)}" for step in calls[:MAX_CALLS])
            if len(calls) > MAX_CALLS:
                yield f"  and {len(calls) - MAX_CALLS} more"
        if self.answer:
            yield "answer:"
            cut = (
                "" if len(self.answer) <= MAX_ANSWER else f" (the first {MAX_ANSWER} of {len(self.answer)} characters)"
            )
            yield from _indented(self.answer[:MAX_ANSWER] + cut)

    def _known_calls(self) -> list[Step]:
        return [step for step in self.run.steps if step.executed_by != "user"]

    def _completeness(self) -> Completeness:
        run = self.run
        if run.reading is None and run.completeness is None:
            text = "the run has no answer, so nothing is known of the calls that it may have made"
            return Completeness("none", reasons=[Note(NO_ANSWER_TO_READ, "", text)])
        return known_calls(run.completeness, run.steps_source)


class AgentFailedError(SeatrialError):
    """An agent raised, did not answer in time, or broke its contract, in a test that did not ask for that outcome."""

    def __init__(self, outcome: Outcome) -> None:
        fault = outcome.fault
        told = outcome.run.status if fault is None else f"{fault.error_class}: {fault.message}"
        detail = "" if fault is None or not fault.detail else f"\n{fault.detail.rstrip()}"
        hint = "to test the failure itself, use `check=False`"
        super().__init__("agent_failed", printable(f"the agent failed, {told}{detail}\n{hint}"))
        self.outcome = outcome
        """The run, with its fault."""


def _verdict_lines(verdict: Verdict) -> Iterator[str]:
    score = "" if verdict.score is None else f", score {verdict.score:.3g}"
    code = f" ({verdict.code})" if verdict.code else ""
    yield printable(f"{verdict.grader}: {verdict.judgement}{code}{score}")
    for reason in verdict.reasons:
        yield from _indented(reason)


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}" for line in printable(text).splitlines())
