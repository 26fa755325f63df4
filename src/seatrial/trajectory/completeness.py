"""What is known of a run's calls, and what may be said of them (`verdicts.md` 1).

A run whose calls could not all be read must not look like one that made none. So every check on calls asks how much is
known before it says that something did not happen.

Every check on calls claims that something was done, or that something was not. A call that is known was made, whatever
else was: so a positive claim that is met stays met, and a negative one that is broken stays broken, however many calls
the record lacks. Everything else can be said only when the record is complete; until then it is unknown, and the
verdict is `errored` with `calls_unknown`.

A claim is `True` (it holds, whatever is missing), `False` (it does not, whatever is missing) or `None` (unknown).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from seatrial.trajectory.observed import CALLS_IN_EARLIER_ATTEMPT, OBSERVED_CALLS_CUT, REPORTED_CALL_NOT_OBSERVED
from seatrial.trajectory.step import Source
from seatrial.transcript.note import Note, note_code

if TYPE_CHECKING:
    # Not at run time: matching needs to know what is known of calls, and none of the readers.
    from seatrial.formats.reading import Reading
    from seatrial.trajectory.extraction import FoundSteps

Level: TypeAlias = Literal["complete", "partial", "none"]
Basis: TypeAlias = Literal["observed", "reported"]
"""`observed`: our tool plane saw the calls. `reported`: the agent says so."""
ToolAccess: TypeAlias = Literal["none", "world", "own"]
"""Which tools an agent has: none at all, only those of the world that it is run in, or any."""
MAX_REASONS = 20
Claim: TypeAlias = bool | None
Judged: TypeAlias = Literal["passed", "failed", "errored"]
CALLS_UNKNOWN = "calls_unknown"
"""The code of every verdict that is `errored` because too little is known of the calls."""
SHOWN_REASONS = 3
ROUNDING = 1e-9
"""By how much sums of floats may differ from what they are on paper."""

CALLS_NOT_LISTED = note_code(
    "calls_not_listed", "The agent gave an answer, and nothing that lists its tool calls.", "look"
)
SINGLE_TURN = note_code(
    "single_turn",
    "The agent gave one turn of a model, or one message: what it did in other turns is not in it.",
    "look",
)
CALL_WITHOUT_TOOLS = note_code(
    "call_without_tools", "The suite says that the agent has no tools, but it made a call.", "look"
)
COMPLETENESS_NOT_RECORDED = note_code(
    "completeness_not_recorded",
    "The run was recorded by a version that did not compute how complete its calls are.",
    "serious",
)
NO_ANSWER_TO_READ = note_code(
    "no_answer_to_read", "The run has no answer, so nothing is known of the calls that it may have made.", "serious"
)

UNRECORDED = frozenset(
    {
        OBSERVED_CALLS_CUT,
        CALLS_IN_EARLIER_ATTEMPT,
        REPORTED_CALL_NOT_OBSERVED,
        "waits_for_input",
        "secret_removed",
    }
)
"""What makes observed calls partial. A call that the agent reports beside them: either it was never made, or the agent
has other tools than those of the world, and nobody observed what it did with them."""

_RETURN_MESSAGES = "return the messages or a trace with the answer"
_NO_TOOLS = "declare `tool_access: none` if it has no tools"
_ONLY_WORLD = "declare `tool_access: world` if it has no other tools than those of the world"
_NAME_FORMAT = "name the format of the record, or return it in one that Seatrial reads"


class Completeness(msgspec.Struct, omit_defaults=True):
    """How much is known of the calls of a run."""

    level: Level
    """`complete`: a source that lists calls was there, and all of it was understood. `partial`: something that may be,
    or hold, a call was dropped or is missing. `none`: nothing lists calls."""
    source: Source | None = None
    """By which source the list of calls is complete, or not: the agent's report, unless only what was observed counts.
    A step says itself where it is from."""
    sources: list[Source] = []
    """All sources that there were."""
    reasons: list[Note] = []
    """Why it is not complete, the first of them."""
    omitted: int = 0
    """How many reasons are left out."""

    @property
    def basis(self) -> Basis:
        """What a verdict on these calls rests on."""
        return "observed" if self.source == "observed" else "reported"


class ScoreRange(msgspec.Struct, frozen=True, gc=False):
    """What a score can be, where not all that it depends on is known."""

    lowest: float
    highest: float
    code: str = CALLS_UNKNOWN
    """Why it is not known, as an errored verdict has it."""


COMPLETE = Completeness("complete")
"""For steps that are all there are, because whoever gives them says so."""


def doubt(known: Completeness, reason: Note) -> Completeness:
    """What is known of calls, less what a further reason leaves unknown."""
    serious = [note for note in known.reasons if note.serious]
    reasons = [*serious, reason]
    omitted = known.omitted + max(len(reasons) - MAX_REASONS, 0)
    return Completeness("partial", known.source, known.sources, reasons[:MAX_REASONS], omitted)


def lists_calls(reading: Reading, found: FoundSteps) -> bool:
    """Whether the agent itself says which calls it made: a trace, events or messages, with calls or without."""
    return bool(_reporting(reading, found))


def assess(reading: Reading, found: FoundSteps, notes: Iterable[Note], tool_access: ToolAccess = "own") -> Completeness:
    """How complete the steps are that were found in a reading; `notes` are all notes of the run.

    Of an agent that may have tools of its own, the calls are as complete as its own report: what was observed is
    certain, and says nothing of the rest.
    """
    sources: list[Source] = ["observed"] if "observed" in found.sources else []
    sources += _reporting(reading, found)
    source = found.source if found.source in sources else None
    dropped = [note for note in notes if note.serious]
    if tool_access == "world" and source == "observed":
        # What could not be read of the agent's report has no part in it.
        dropped = [note for note in dropped if note.code in UNRECORDED]
    if tool_access == "none":
        from seatrial.formats.reading import EARLIER_TURNS_MISSING

        # In turns that are not there, an agent without tools called nothing.
        dropped = [note for note in dropped if note.code != EARLIER_TURNS_MISSING]
    if dropped:
        return Completeness("partial", source, sources, dropped[:MAX_REASONS], max(len(dropped) - MAX_REASONS, 0))
    # A trace or events beside the one turn list the calls of all of them.
    alone = reading.single_turn and not {"trace", "events"} & {*sources}
    reported = not alone and sources not in ([], ["observed"])
    if reported or tool_access == "none" or (tool_access == "world" and source == "observed"):
        return Completeness("complete", source, sources)
    reason = Note(CALLS_NOT_LISTED, "", "the agent returned an answer and nothing that lists its calls")
    if reading.single_turn:
        text = "the agent returned one turn of a model, or one message, and not the whole list of messages"
        reason = Note(SINGLE_TURN, "", text)
    # What went through our tool plane is known, but the agent may have tools of its own.
    return Completeness("partial" if sources else "none", source, sources, [reason])


def _reporting(reading: Reading, found: FoundSteps) -> list[Source]:
    """The sources by which the agent reports its calls."""
    from seatrial.transcript import AssistantMessage

    # An answer may come as events, and lists no calls all the same.
    listing: tuple[Source, ...] = ("trace",) if reading.answer_only else ("trace", "events")
    sources: list[Source] = [source for source in listing if source in found.sources]
    listed = not reading.answer_only and any(type(message) is AssistantMessage for message in reading.transcript.done())
    if listed or found.others.get("messages") or ("messages" in found.others and sources):
        sources.append("messages")
    return sources


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


def reaches(score: float, bar: float) -> bool:
    """Whether a score is not below a bar. Scores are quotients of sums, so one that is below it by nothing but
    rounding reaches it."""
    return score >= bar - ROUNDING


def reached(lowest: float, highest: float, bar: float) -> Claim:
    """That a score reaches a bar; it is known that it lies between these two."""
    if reaches(lowest, bar):
        return True
    return None if reaches(highest, bar) else False


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
    if {COMPLETENESS_NOT_RECORDED, NO_ANSWER_TO_READ, "secret_removed"} & codes:
        return "run it again"
    if REPORTED_CALL_NOT_OBSERVED in codes:
        return "make every tool of the agent go through the tool proxy, or declare `tool_access: own` if it has others"
    if {"record_left_out", "record_line_unusable"} & codes:
        return (
            "give the suite as many `trials` as a case has records, and every line of the records the `id` of its case"
        )
    if "waits_for_input" in codes:
        return (
            "answer what the agent asks for in the case itself, or configure it so that it does not ask; if it was not "
            "waiting, return the results of its calls and its answer"
        )
    if CALLS_NOT_LISTED in codes or known.level == "none":
        world = f", {_ONLY_WORLD}" if "observed" in known.sources else ""
        return f"{_RETURN_MESSAGES}{world}, or {_NO_TOOLS}"
    return f"{_NAME_FORMAT}; or {_RETURN_MESSAGES}"
