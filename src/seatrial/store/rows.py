"""Runs as rows, and back."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats.call_facts import CallFacts
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.nesting import MAX_WRITTEN_DEPTH, is_too_deep
from seatrial.runs import Attempt, Case, Fault, Grade, Judgement, Run, RunKey, RunStatus, Verdict
from seatrial.runs.signature import signature_of
from seatrial.trajectory.completeness import Completeness, Level
from seatrial.trajectory.step import Status, Step
from seatrial.transcript import Note, Transcript, Weight

T = TypeVar("T")

Outcome: TypeAlias = Literal["passed", "failed", "errored", "skipped", "ungraded", "cancelled", "unfinished"]
"""What came of a run, in one word: its status and its grade taken together."""

CallsKnown: TypeAlias = Literal["complete", "partial", "none", "not recorded", "no answer"]
"""How much is known of the calls of a run: a level; or nothing, because the version that recorded it did not check, or
because there was no answer to read."""

MAX_ID_BYTES = 1024
"""Any id of 256 characters fits, and two of them fit into an index entry of PostgreSQL."""
_MAX_NAME = 256
_MAX_INT = 2**63 - 1
_MAX_NUMBER = 1e15

AGENT_NOTES = "agent_notes"
"""Key of the stored suite under which earlier versions have the notes of an experiment."""

UNCOUNTED, COUNTED, NEVER_COUNTED = range(3)
"""What `runs.counted` says."""

UNFINISHED = ("pending", "running")
_WITHOUT_ANSWER: dict[RunStatus, Outcome] = {
    "pending": "unfinished",
    "running": "unfinished",
    "failed": "failed",
    "errored": "errored",
    "cancelled": "cancelled",
}


class RunColumns(msgspec.Struct, gc=False):
    """A row of `runs` from its column `status` on; the fields are the columns."""

    status: RunStatus
    outcome: Outcome
    score: float | None
    error_class: str | None
    started_at: int | None
    duration_ms: float | None
    attempts: int
    steps: int
    calls: Level | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    grading: int
    grade: bytes | None
    body: bytes | None
    data: bytes
    signature: str | None
    counted: int
    """`COUNTED` or `NEVER_COUNTED`."""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run as a line of a table."""

    run_id: str
    agent: str
    case_id: str
    trial: int
    status: RunStatus
    outcome: Outcome
    score: float | None = None
    error_class: str | None = None
    signature: str | None = None
    """Where it first goes wrong, when it failed or errored; see `seatrial.runs.signature`."""
    started_at: int | None = None
    duration_ms: float | None = None
    attempts: int = 1
    steps: int | None = None
    """None when unknown; when `calls` is not `complete`, there may be more."""
    calls: Level | None = None
    """How complete the steps are; None when there was no answer to read, or nobody had worked it out."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def key(self) -> RunKey:
        """Which run of its experiment this is."""
        return RunKey(self.agent, self.case_id, self.trial)

    @property
    def calls_known(self) -> CallsKnown:
        """How much is known of its calls."""
        return calls_known(self.status, self.calls)


class RunData(msgspec.Struct, omit_defaults=True):
    """What of a run has no table and is not asked for by queries."""

    steps_source: str | None = None
    fault: Fault | None = None
    metadata: dict[str, Any] = {}
    completeness: Completeness | None = None
    reported: list[Step] | None = None


class StoredReading(msgspec.Struct, omit_defaults=True):
    """A reading without its notes and events, which have tables of their own."""

    format: str
    transcript: Transcript
    id: str | None = None
    trace: list[TraceEvent] | None = None
    trace_ref: str | None = None
    calls: dict[str, CallFacts] = {}
    answer_only: bool = False
    single_turn: bool = False


ATTEMPT = msgspec.json.Decoder(Attempt)
CASE = msgspec.json.Decoder(Case)
GRADE = msgspec.json.Decoder(Grade)
NOTE = msgspec.json.Decoder(Note)
READING = msgspec.json.Decoder(StoredReading)
RUN_DATA = msgspec.json.Decoder(RunData)
STEP = msgspec.json.Decoder(Step)
SUITE = msgspec.json.Decoder(dict[str, Any])
VERDICT = msgspec.json.Decoder(Verdict)
_encode = msgspec.json.Encoder().encode


def encode(value: object) -> bytes:
    """JSON of a value of ours; `unstorable` when something in it is not JSON."""
    try:
        written = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _encode_mended(value)
    if len(written) > MAX_WRITTEN_DEPTH and is_too_deep(written, MAX_WRITTEN_DEPTH):
        raise wire.too_deep(MAX_WRITTEN_DEPTH)
    return written


def identifier(kind: str, text: str) -> str:
    """The text, when both databases can keep it as an id and compare it."""
    if len(text) <= MAX_ID_BYTES and text.isascii() and "\0" not in text and text:
        return text
    try:
        fits = 0 < len(text.encode()) <= MAX_ID_BYTES and "\0" not in text
    except UnicodeEncodeError:
        fits = False
    if not fits:
        hint = f"1 to {MAX_ID_BYTES} bytes of UTF-8, without NUL"
        raise SeatrialError("unstorable", f"{text[:80]!r} cannot be the {kind} of anything", hint=hint)
    return text


def outcome(status: RunStatus, judgement: Judgement | None) -> Outcome:
    """A run without an answer is what its status says; of the others the grade has the word."""
    return _WITHOUT_ANSWER.get(status) or judgement or "ungraded"


def column_text(text: str) -> str:
    """Text of an agent as a column can have it; the whole of it, as it was, is in the JSON beside."""
    text = text[:_MAX_NAME]
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def calls_known(status: RunStatus, calls: Level | None) -> CallsKnown:
    """How much is known of the calls of a run."""
    return calls or ("not recorded" if status == "completed" else "no answer")


def run_columns(run: Run, body: bytes | None = None, *, counted: int = COUNTED) -> RunColumns:
    """A row of `runs` without what says which run it is."""
    grade = run.grade
    reading = run.reading
    fault = run.fault
    tokens_in, tokens_out = _tokens(reading.transcript) if reading is not None else (None, None)
    came_of_it = outcome(run.status, grade.judgement if grade is not None else None)
    steps = run.steps
    signature = None
    if came_of_it == "failed" or came_of_it == "errored":
        signature = signature_of(
            came_of_it, fault, run.verdicts, lambda index: steps[index].name if 0 <= index < len(steps) else None
        )
    return RunColumns(
        status=run.status,
        outcome=came_of_it,
        score=number(grade.score if grade is not None else None),
        error_class=fault.error_class if fault is not None else None,
        started_at=run.started_at,
        duration_ms=number(run.duration_ms),
        attempts=len(run.attempts),
        steps=len(steps),
        calls=run.completeness.level if run.completeness is not None else None,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost_usd=number(reading.transcript.cost_usd if reading is not None else None),
        grading=0,
        grade=encode(grade) if grade is not None else None,
        body=body,
        data=encode(RunData(run.steps_source, fault, run.metadata, run.completeness, run.reported)),
        signature=signature,
        counted=counted,
    )


def reading_of(document: bytes, notes: list[Note]) -> Reading:
    """The reading of a stored document; its events are to be read from their own table."""
    return read(wire.decode(document, READING), notes)


def read(stored: StoredReading, notes: list[Note]) -> Reading:
    """The reading that was stored; its events are to be read from their own table."""
    return Reading(
        format=stored.format,
        transcript=stored.transcript,
        notes=notes,
        id=stored.id,
        trace=stored.trace,
        trace_ref=stored.trace_ref,
        calls=stored.calls,
        answer_only=stored.answer_only,
        single_turn=stored.single_turn,
    )


def attempt_values(attempt: Attempt) -> tuple[int, str | None, bytes]:
    """A row of `attempts` without its run."""
    return attempt.number, attempt.fault.error_class if attempt.fault is not None else None, encode(attempt)


def step_values(position: int, step: Step) -> tuple[int, str, Status, float | None, bytes]:
    """A row of `steps` without its run."""
    return position, column_text(step.name), step.status, number(step.duration_ms), encode(step)


def note_values(position: int, note: Note) -> tuple[int, str, Weight | None, bytes]:
    """A row of `notes` without its run."""
    return position, column_text(note.code), note.weight, encode(note)


def verdict_values(position: int, verdict: Verdict) -> tuple[int, str, Judgement, float | None, bytes]:
    """A row of `verdicts` without its run and its grading."""
    return position, column_text(verdict.grader), verdict.judgement, number(verdict.score), encode(verdict)


def no_run(run_id: str) -> SeatrialError:
    """The error for a run that is not there."""
    return SeatrialError("not_found", f"there is no run {run_id!r} in the store")


def _encode_mended(value: object) -> bytes:
    try:
        return wire.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise SeatrialError("unstorable", f"{type(value).__name__} has a part that is not JSON: {error}") from None


def number(value: float | None) -> float | None:
    """A number for counting: an absurd one would spoil every sum. What an agent really said is in its document."""
    return float(value) if value is not None and abs(value) <= _MAX_NUMBER else None


def _tokens(transcript: Transcript) -> tuple[int | None, int | None]:
    """Tokens read and written; unknown when some of the messages do not say."""
    used = transcript.tokens()
    if used is None or not used.exact:
        return None, None
    return min(used.input, _MAX_INT), min(used.output, _MAX_INT)
