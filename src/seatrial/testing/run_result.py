"""The result of a run, for a test to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from seatrial._support.printable import is_blank, printable
from seatrial.errors import SeatrialError
from seatrial.runs import Case, Fault, Outcome, Run, Verdict
from seatrial.testing.expected import step_line
from seatrial.trajectory import Step
from seatrial.trajectory.calls import Calls, NoVerdictError
from seatrial.trajectory.completeness import what_is_missing

MAX_ANSWER = 2000
MAX_CALLS = 50


class RunResult(msgspec.Struct, frozen=True):
    """A run that has ended, with what a test asks of it at hand."""

    run: Run
    """All of it, as the agent said it: transcript, notes, attempts, verdicts."""
    case: Case
    kept: Run | None = None
    """What is stored of it, without secrets of the suite: what is printed is made of this."""
    redact: Callable[[str], str] = str
    """Gives a text about it without secrets."""

    @property
    def answer(self) -> str:
        """The agent's answer. Raises `NoVerdictError` when there is none (see `has_answer`): what no answer says must
        not pass as what an answer does not say."""
        __tracebackhide__ = True
        answer = _answer(self.run)
        if is_blank(answer):
            fault = self._shown.fault
            why = "the agent ended without one" if fault is None else f"{fault.error_class}: {fault.message}"
            told = f"there is no answer to look at, {why}; `has_answer` says whether there is one"
            raise NoVerdictError(printable(told))
        return answer

    @property
    def has_answer(self) -> bool:
        """Whether the agent gave an answer, with text that can be seen."""
        return not is_blank(_answer(self.run))

    @property
    def calls(self) -> Calls[Step]:
        """The agent's tool calls, in order; compare them with `in_order(...)` and its like. Where not all are known,
        what depends on the others raises `NoVerdictError`."""
        calls = self.run.calls
        return Calls(calls.known, calls.completeness, self._shown.calls.known, self.redact)

    @property
    def tools(self) -> Calls[str]:
        """The names of the tools that were called, in order; the same goes for them."""
        names, shown = ([step.name for step in run.calls.known] for run in (self.run, self._shown))
        return Calls(names, self.run.calls.completeness, shown, self.redact)

    @property
    def fault(self) -> Fault | None:
        """Why there is no answer, where there is none."""
        return self.run.fault

    @property
    def outcome(self) -> Outcome:
        """What all graders together say, in one word."""
        return "skipped" if self.run.grade is None else self.run.grade.outcome

    @property
    def passed(self) -> bool:
        """Whether the graders passed it; without graders nothing is passed."""
        return self.outcome == "passed"

    def check(self) -> None:
        """Fail the test, with the whole story, unless the graders passed it."""
        __tracebackhide__ = True
        if self.outcome == "skipped" and not self.run.verdicts and self.run.status == "completed":
            raise AssertionError(
                "no graders were given, so there is nothing to check: see `graders=` of `seatrial.run`"
            )
        if not self.passed:
            raise AssertionError(str(self))

    def __repr__(self) -> str:
        return f"<RunResult: {self.run.agent} on {self.run.case_id}: {self.outcome}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The whole story: what it came to, every grader that did not pass and why, the calls, the answer."""
        run = self._shown
        grade = run.grade
        yield printable("; ".join(grade.reasons)) if grade is not None and grade.reasons else self.outcome
        if run.fault is not None and run.fault.detail:
            yield from _indented(run.fault.detail[-MAX_ANSWER:])
        if run.status == "completed":
            for verdict in run.verdicts:
                if verdict.outcome in ("failed", "errored", "skipped"):
                    yield from _verdict_lines(verdict)
        calls, known = run.calls.known, self.run.calls.completeness
        if run.status == "completed" and known.level != "complete":
            yield printable(self.redact(what_is_missing(known)))
        if calls:
            yield "calls:" if known.level == "complete" else "calls that are known:"
            yield from (f"  {step_line(step)}" for step in calls[:MAX_CALLS])
            if len(calls) > MAX_CALLS:
                yield f"  and {len(calls) - MAX_CALLS} more"
        if answer := _answer(run):
            yield "answer:"
            cut = "" if len(answer) <= MAX_ANSWER else f" (the first {MAX_ANSWER} of {len(answer)} characters)"
            yield from _indented(answer[:MAX_ANSWER] + cut)

    @property
    def _shown(self) -> Run:
        return self.run if self.kept is None else self.kept


class AgentFailedError(SeatrialError):
    """An agent raised, did not answer in time, or broke its contract, in a test that did not ask for that outcome."""

    def __init__(self, result: RunResult) -> None:
        fault = result.fault
        told = result.run.status if fault is None else f"{fault.error_class}: {fault.message}"
        detail = "" if fault is None or not fault.detail else f"\n{fault.detail.rstrip()}"
        hint = "to test the failure itself, use `check=False`"
        super().__init__("agent_failed", printable(f"the agent failed, {told}{detail}\n{hint}"))
        self.result = result
        """The run, with its fault."""


def _answer(run: Run) -> str:
    return "" if run.reading is None else run.reading.transcript.final_text() or ""


def _verdict_lines(verdict: Verdict) -> Iterator[str]:
    score = "" if verdict.score is None else f", score {verdict.score:.3g}"
    code = f" ({verdict.code})" if verdict.code else ""
    yield printable(f"{verdict.grader}: {verdict.outcome}{code}{score}")
    for reason in verdict.reasons:
        yield from _indented(reason)


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}" for line in printable(text).splitlines())
