"""The calls of a run as graders go by them: the agent's own, with how much is known of them and from whom."""

from __future__ import annotations

from typing import Literal, TypeAlias

from seatrial.graders.grader import Finding, Subject
from seatrial.trajectory.claims import known_calls, what_is_missing, what_to_do
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step

BasisWanted: TypeAlias = Literal["any", "observed"]
"""`observed`: calls that only the agent reports are not enough."""

_OBSERVE = "run the agent behind the tool proxy or the model proxy"


def known_of(subject: Subject) -> Completeness:
    """How much is known of the calls of a run."""
    return known_calls(subject.run.completeness, subject.run.steps_source)


def agent_calls(subject: Subject) -> list[Step]:
    """The calls that are the agent's doing; those of a user's own tools are not."""
    return [step for step in subject.run.steps if step.executed_by != "user"]


def based(reason: str, known: Completeness) -> str:
    """A reason that says what it rests on."""
    return f"{reason} (basis: {known.basis})"


def calls_unknown(reason: str, known: Completeness) -> Finding:
    """The finding of a grader that knows too little of the calls to say either way."""
    reasons = [based(f"{reason}: {what_is_missing(known)}", known), to_do(what_to_do(known))]
    return Finding(judgement="errored", reasons=reasons, basis=known.basis)


def not_observed(known: Completeness, wanted: BasisWanted) -> Finding | None:
    """The finding of a grader that asks for observed calls, of a run that has none."""
    if wanted == "any" or known.basis == "observed":
        return None
    reason = based("the grader asks for observed calls, and only the agent reports calls of this run", known)
    return Finding(judgement="errored", reasons=[reason, to_do(_OBSERVE)], basis=known.basis)


def to_do(hint: str) -> str:
    """A reason that says what to do about it."""
    return f"To do: {hint}."
