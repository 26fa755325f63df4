"""The calls of a run as graders go by them: the agent's own, with how much is known of them and from whom."""

from __future__ import annotations

from typing import Literal, TypeAlias

from seatrial.graders.grader import Finding, Subject
from seatrial.trajectory.completeness import (
    CALLS_NOT_LISTED,
    CALLS_UNKNOWN,
    Basis,
    Completeness,
    known_calls,
    what_is_missing,
    what_to_do,
)
from seatrial.trajectory.step import Step
from seatrial.transcript import Note

BasisWanted: TypeAlias = Literal["any", "observed"]
"""`observed`: calls that only the agent reports are not enough."""

NOT_OBSERVED = "calls_not_observed"
# The proxy records calls, and has no tools yet: an agent that has its own has to send each call there besides.
_OBSERVE = "leave out `basis: observed`, or let the agent send its calls to the tool proxy too, which records them"
_ONLY_OBSERVED = f"{_OBSERVE}, and declare `tool_access: world` if it has no other tools than those of the world"


def known_of(subject: Subject) -> Completeness:
    """How much is known of the calls of a run."""
    return known_calls(subject.run.completeness, subject.run.steps_source)


def agent_calls(subject: Subject) -> list[Step]:
    """The calls that are the agent's doing; those of a user's own tools are not."""
    return [step for step in subject.run.steps if step.executed_by != "user"]


def report_is_complete(subject: Subject) -> bool:
    """Whether all that the agent reports was read. Where calls were observed, all may be known without that."""
    reading = subject.run.reading
    return known_of(subject).level == "complete" and not (
        reading is not None and any(note.serious for note in reading.notes)
    )


def observed_alone(subject: Subject) -> list[Step] | None:
    """The observed calls of a run whose calls are known from the agent's report too; None when there are none."""
    return (subject.run.observed or None) if known_of(subject).basis == "reported" else None


OBSERVED_ALONE = Completeness(
    "partial",
    "observed",
    ["observed"],
    [Note(CALLS_NOT_LISTED, "", "the agent may have tools of its own, whose calls only it reports")],
)
"""What is known when only the observed calls of an agent count that may have tools of its own."""


def based(reason: str, basis: Basis) -> str:
    """A reason that says what it rests on, before its full stop if it has one."""
    stop = "." if reason.endswith(".") else ""
    return f"{reason.removesuffix(stop)} (basis: {basis}){stop}"


def calls_unknown(reason: str, known: Completeness) -> Finding:
    """The finding of a grader that knows too little of the calls to say either way."""
    reasons = [based(f"{reason}: {what_is_missing(known)}.", known.basis), to_do(what_to_do(known))]
    return Finding(outcome="errored", reasons=reasons, code=CALLS_UNKNOWN, basis=known.basis)


def not_observed(subject: Subject, wanted: BasisWanted) -> Finding | None:
    """The finding of a grader that asks for observed calls, of a run that has none."""
    known = known_of(subject)
    if wanted == "any" or known.basis == "observed" or subject.run.observed:
        return None
    reason = based("the grader asks for observed calls, and only the agent reports calls of this run.", known.basis)
    reasons = [reason, to_do(_OBSERVE)]
    return Finding(outcome="errored", reasons=reasons, code=NOT_OBSERVED, basis=known.basis)


def passed_by_report(found: Finding, wanted: BasisWanted) -> Finding:
    """A finding, unless it passed by what only the agent reports and the grader asks for observed calls."""
    if wanted == "any" or found.basis == "observed" or found.outcome != "passed":
        return found
    reason = "the grader asks for observed calls, and it passes only by what the agent reports."
    return Finding(
        outcome="errored",
        reasons=[*found.reasons, reason, to_do(_ONLY_OBSERVED)],
        code=NOT_OBSERVED,
        details=found.details,
        basis="reported",
    )


def to_do(hint: str) -> str:
    """A reason that says what to do about it."""
    return f"To do: {hint}."
