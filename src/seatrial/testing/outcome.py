"""What came of putting an agent to a case, for a test to look at."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from seatrial.errors import SeatrialError
from seatrial.printable import printable
from seatrial.runs import Case, Fault, Judgement, Run, Verdict
from seatrial.testing.expected import step_line
from seatrial.trajectory import Step

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
    def calls(self) -> list[Step]:
        """The tool calls, in order; compare them with `in_order(...)` and its like."""
        return self.run.steps

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were called, in order."""
        return [step.name for step in self.run.steps]

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
        if not self.passed:
            raise AssertionError(str(self))

    def __repr__(self) -> str:
        key = self.run.key
        return f"<Outcome: {key.agent} on {key.case_id}: {self.judgement}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The whole story: what it came to, every grader that failed or errored and why, the calls, the answer."""
        grade = self.run.grade
        yield printable("; ".join(grade.reasons)) if grade is not None and grade.reasons else self.judgement
        if self.fault is not None and self.fault.detail:
            yield from _indented(self.fault.detail[-MAX_ANSWER:])
        if self.run.status == "completed":
            for verdict in self.run.verdicts:
                if verdict.judgement in ("failed", "errored"):
                    yield from _verdict_lines(verdict)
        if self.calls:
            yield "calls:"
            yield from (f"  {step_line(step)}" for step in self.calls[:MAX_CALLS])
            if len(self.calls) > MAX_CALLS:
                yield f"  and {len(self.calls) - MAX_CALLS} more"
        if self.answer:
            yield "answer:"
            cut = (
                "" if len(self.answer) <= MAX_ANSWER else f" (the first {MAX_ANSWER} of {len(self.answer)} characters)"
            )
            yield from _indented(self.answer[:MAX_ANSWER] + cut)


class AgentFailedError(SeatrialError):
    """An agent raised, did not answer in time, or broke its contract, in a test that did not ask for that outcome."""

    def __init__(self, outcome: Outcome) -> None:
        fault = outcome.fault
        told = outcome.run.status if fault is None else f"{fault.error_class}: {fault.message}"
        detail = "" if fault is None or not fault.detail else f"\n{fault.detail.rstrip()}"
        hint = "a test that is about this asks for the outcome: `seatrial.run(..., check=False)`"
        super().__init__("agent_failed", printable(f"the agent failed, {told}{detail}\n{hint}"))
        self.outcome = outcome
        """The run, with its fault."""


def _verdict_lines(verdict: Verdict) -> Iterator[str]:
    score = "" if verdict.score is None else f", score {verdict.score:.3g}"
    yield printable(f"{verdict.grader}: {verdict.judgement}{score}")
    for reason in verdict.reasons:
        yield from _indented(reason)


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}" for line in printable(text).splitlines())
