"""Claims: what may be said of calls when not all of them are known (`verdicts.md` 1).

Every check on calls says that something was done, or that something was not. A call that is known was made, whatever
else was: so a positive claim that is met stays met, and a negative one that is broken stays broken, however many calls
the record lacks. Everything else can be said only when the record is complete; until then it is unknown, and the
verdict is `errored` with `calls_unknown`.

A claim is `True` (it holds, whatever is missing), `False` (it does not, whatever is missing) or `None` (unknown).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from seatrial.trajectory.completeness import CALLS_NOT_LISTED, Completeness
from seatrial.trajectory.observed import REPORTED_CALL_NOT_OBSERVED
from seatrial.transcript.note import Note, note_code

Claim: TypeAlias = bool | None
Judged: TypeAlias = Literal["passed", "failed", "errored"]

CALLS_UNKNOWN = "calls_unknown"
"""The code of every verdict that is `errored` because too little is known of the calls."""
SHOWN_REASONS = 3

COMPLETENESS_NOT_RECORDED = note_code(
    "completeness_not_recorded",
    "The run was recorded by a version that did not compute how complete its calls are.",
    "serious",
)
NO_ANSWER_TO_READ = note_code(
    "no_answer_to_read", "The run has no answer, so nothing is known of the calls that it may have made.", "serious"
)

COMPLETE = Completeness("complete")
"""For steps that are all there are, because whoever gives them says so."""

_RETURN_MESSAGES = "return the messages or a trace with the answer"
_NO_TOOLS = "declare `tool_access: none` if it has no tools"
_ONLY_WORLD = "declare `tool_access: world` if it has no other tools than those of the world"
_NAME_FORMAT = "name the format of the record, or return it in one that Seatrial reads"


def all_of(claims: Iterable[Claim]) -> Claim:
    """Whether all claims hold: one that does not decides, and then one that is unknown."""
    unknown = False
    for claim in claims:
        if claim is False:
            return False
        unknown = unknown or claim is None
    return None if unknown else True


def at_most(count: float, most: float | None, complete: bool) -> Claim:
    """That there are no more than so many; `count` are those that are known."""
    if most is None:
        return True
    if count > most:
        return False
    return True if complete else None


def at_least(count: float, least: float | None, complete: bool) -> Claim:
    """That there are so many or more."""
    if least is None or count >= least:
        return True
    return False if complete else None


def judged(claim: Claim) -> Judged:
    """What a claim comes to."""
    return "errored" if claim is None else "passed" if claim else "failed"


def known_calls(completeness: Completeness | None, source: str | None = None) -> Completeness:
    """What is known of a run's calls. Where nobody worked it out, that is not all of them."""
    if completeness is not None:
        return completeness
    text = "the run was recorded before Seatrial computed how complete its calls are"
    reasons = [Note(COMPLETENESS_NOT_RECORDED, "", text)]
    return Completeness("partial", "observed" if source == "observed" else None, reasons=reasons)


def what_is_missing(known: Completeness) -> str:
    """Why not all calls are known, with the first reasons: code, pointer, sentence."""
    head = "the agent's calls are unknown" if known.level == "none" else "not all of the agent's calls are known"
    shown = known.reasons[:SHOWN_REASONS]
    reasons = [f"{note.message} ({note.code}{f' at {note.pointer}' if note.pointer else ''})" for note in shown]
    left = len(known.reasons) - len(shown) + known.omitted
    more = f"; and {left} more" if left > 0 else ""
    return f"{head}: {'; '.join(reasons)}{more}" if reasons else head


def what_to_do(known: Completeness) -> str:
    """How the next run can be one whose calls are known."""
    codes = {note.code for note in known.reasons}
    if COMPLETENESS_NOT_RECORDED in codes or NO_ANSWER_TO_READ in codes:
        return "run it again"
    if REPORTED_CALL_NOT_OBSERVED in codes:
        return "make every tool of the agent go through the tool proxy, or declare `tool_access: own` if it has others"
    if "waits_for_input" in codes:
        return "answer what the agent asks for in the case itself, or configure it so that it does not ask"
    if CALLS_NOT_LISTED in codes or known.level == "none":
        world = f", {_ONLY_WORLD}," if "observed" in known.sources else ""
        return f"{_RETURN_MESSAGES}{world} or {_NO_TOOLS}"
    return f"{_NAME_FORMAT}; or {_RETURN_MESSAGES}"
