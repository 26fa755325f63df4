"""The rows of a store: a type for each table, whose fields are its columns, and how rows go into the tables.

What is written is made of these rows, and what is read comes back as them: their fields are named in one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.ledger.record import WorldRecord
from seatrial.runs import Attempt, Case, Exchange, Fault, Grade, Outcome, Run, RunKey, RunStatus, Verdict, WorkspaceDiff
from seatrial.runs.signature import signature_of
from seatrial.store import schema
from seatrial.store.documents import (
    MAX_TEXT,
    CutText,
    Document,
    column_text,
    digest,
    encode,
    without_long_texts,
    without_long_values,
)
from seatrial.trajectory.completeness import Completeness, Level
from seatrial.trajectory.step import Status, Step
from seatrial.transcript import AssistantMessage, Note, Transcript, Weight
from seatrial.transcript.call_facts import CallFacts, PlacedFacts

R = TypeVar("R", bound=msgspec.Struct)

StoredOutcome: TypeAlias = Literal["passed", "failed", "errored", "skipped", "ungraded", "cancelled", "unfinished"]
"""What came of a run, in one word: its status and its grade taken together."""

CallsKnown: TypeAlias = Literal["complete", "partial", "none", "not recorded", "no answer"]
"""How much is known of the calls of a run: a level; or nothing, because the version that recorded it did not check, or
because there was no answer to read."""

TallyKind: TypeAlias = Literal[
    "outcome", "left_out", "error_class", "calls", "sum", "bin", "trials", "note", "noted", "grader", "signature"
]
"""What a tally counts."""

_MAX_INT = 2**63 - 1
_MAX_NUMBER = 1e15

AGENT_NOTES = "agent_notes"
SELECTED = "selected"
"""Keys of the stored suite under which earlier versions have the notes of an experiment, and the cases of its agents
where these are not all."""

UNCOUNTED, COUNTED, NEVER_COUNTED = range(3)
"""What `runs.counted` says."""

SCORE_UNITS = 10**9
COST_UNITS = 10**9
DURATION_UNITS = 10**6
"""Parts of 1, of a dollar and of a millisecond that sums count."""

UNFINISHED = ("pending", "running")


class CaseRow(Document, kw_only=True):
    """A row of `cases`."""

    experiment: int
    position: int = 0
    case_id: str


class AgentNoteRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `agent_notes`."""

    experiment: int = 0
    agent: str
    position: int
    code: str
    weight: Weight | None
    data: bytes


class SelectionRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `selections`."""

    experiment: int = 0
    agent: str
    case_id: str


class CaseTagRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `case_tags`."""

    experiment: int
    tag: str
    case_id: str


class BodyRow(Document, kw_only=True):
    """A row of `bodies`."""

    hash: bytes
    size: int


class RunSummary(msgspec.Struct, gc=False, kw_only=True):
    """A run as a line of a table."""

    run_id: str
    agent: str
    case_id: str
    trial: int
    status: RunStatus
    outcome: StoredOutcome
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
        return self.calls or ("not recorded" if self.status == "completed" else "no answer")


class RunColumns(RunSummary, kw_only=True):
    """A row of `runs`."""

    id: int = 0
    experiment: int = 0
    grading: int = 0
    grade: bytes | None = None
    body: bytes | None = None
    data: bytes = b""
    counted: int = COUNTED
    """`COUNTED` or `NEVER_COUNTED`."""
    texts: bytes | None = None


class AttemptRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `attempts`."""

    run: int = 0
    exchange: int
    number: int
    error_class: str | None
    data: bytes


class EventsRow(Document, kw_only=True):
    """A row of `events`: events that follow each other, a line each."""

    run: int = 0
    first: int = 0
    count: int


class StepRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `steps`."""

    run: int = 0
    position: int
    name: str
    status: Status
    duration_ms: float | None
    data: bytes
    texts: bytes | None = None


class NoteRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `notes`."""

    run: int = 0
    position: int
    code: str
    weight: Weight | None
    data: bytes


class VerdictRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `verdicts`."""

    run: int = 0
    grading: int = 0
    position: int
    grader: str
    outcome: Outcome
    score: float | None
    data: bytes


class SplitRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `split_votes`."""

    run: int = 0
    grading: int = 0
    position: int
    grader: str
    agreement: float


class ReadingRow(Document, kw_only=True):
    """A row of `readings`."""

    run: int = 0
    messages: int | None = None
    """How many messages are in rows; None when they are in the document."""
    trace: int | None = None
    """How many entries of the trace are in rows; None when they are in the document, or there is no trace."""
    texts: bytes | None = None


class ItemsRow(Document, kw_only=True):
    """A row of `items`."""

    run: int = 0
    part: int
    first: int
    count: int
    texts: bytes | None


class OutlineRow(Document, kw_only=True):
    """A row of `outlines`."""

    run: int = 0
    level: int
    first: int
    count: int


class ServedRunRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `served_runs`."""

    run: int
    thread_id: str
    position: int
    agent: str
    status: str
    created_at: int
    ended_at: int | None = None
    pushed: int
    server_id: str | None
    idempotency_key: str | None
    request: bytes
    resume: bytes | None
    cancel_requested: int = 0
    trimmed: int = 0
    input: bytes
    data: bytes = b"{}"


class CellRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `cells`: what one agent made of one case, over all trials; or what is to be added to it."""

    experiment: int = 0
    case_id: str
    agent: str
    runs: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    incomplete: int = 0
    """Runs with an answer whose calls are not all known."""
    scored: int = 0
    """Runs that passed or failed and have a score; like the next ones, the number of those that are in the sum."""
    score_sum: int = 0
    stepped: int = 0
    step_sum: int = 0
    priced: int = 0
    cost_sum: int = 0
    timed: int = 0
    duration_sum: int = 0


class Cell(CellRow, kw_only=True):
    """What one agent made of one case, over all trials, with runs to look at."""

    passed_run: str | None = None
    failed_run: str | None = None
    errored_run: str | None = None
    """The first run that passed, failed, errored. Only where they were asked for."""

    @property
    def other(self) -> int:
        """Runs that were skipped, not graded, cancelled, or have not ended."""
        return self.runs - self.passed - self.failed - self.errored

    @property
    def graded(self) -> int:
        """Runs that say something of the agent."""
        return self.passed + self.failed

    @property
    def rate(self) -> float | None:
        """Share of the graded runs that passed."""
        return self.passed / self.graded if self.graded else None

    @property
    def flaky(self) -> bool:
        """Whether some trials passed and some failed."""
        return self.passed > 0 and self.failed > 0

    @property
    def score(self) -> float | None:
        """Mean score of the graded runs that have one."""
        return self.score_sum / SCORE_UNITS / self.scored if self.scored else None

    @property
    def steps(self) -> int | None:
        """Of all its runs together, like the next two; None when it is not known of any of them."""
        return self.step_sum if self.stepped else None

    @property
    def cost_usd(self) -> float | None:
        """Dollars."""
        return self.cost_sum / COST_UNITS if self.priced else None

    @property
    def duration_ms(self) -> float | None:
        """Milliseconds."""
        return self.duration_sum / DURATION_UNITS if self.timed else None


class TallyRow(msgspec.Struct, gc=False, kw_only=True):
    """A row of `tallies`, or what is to be added to it."""

    experiment: int = 0
    kind: TallyKind
    agent: str
    name: str
    runs: int = 0
    """Runs that are counted here; for `trials`, cases."""
    counted: int = 0
    """How many numbers are in the total."""
    total: int = 0


class RunData(msgspec.Struct, omit_defaults=True):
    """What of a run has no table and is not asked for by queries."""

    steps_source: str | None = None
    fault: Fault | None = None
    metadata: dict[str, Any] = {}
    completeness: Completeness | None = None
    reported: list[Step] | None = None
    diff: WorkspaceDiff | None = None
    world: WorldRecord | None = None


class StoredReading(msgspec.Struct, omit_defaults=True):
    """A reading without its notes and events, which have tables of their own."""

    format: str
    transcript: Transcript
    id: str | None = None
    trace: list[TraceEvent] | None = None
    trace_ref: str | None = None
    facts: list[PlacedFacts] = []
    calls: dict[str, CallFacts] = {}
    """What earlier versions have in the place of `facts`: by call id."""
    answer_only: bool = False
    single_turn: bool = False


ATTEMPT = msgspec.json.Decoder(Attempt)
CASE = msgspec.json.Decoder(Case)
NOTE = msgspec.json.Decoder(Note)
READING = msgspec.json.Decoder(StoredReading)
RUN_DATA = msgspec.json.Decoder(RunData)
STEP = msgspec.json.Decoder(Step)
SUITE = msgspec.json.Decoder(dict[str, Any])
_GRADE = msgspec.json.Decoder(Grade)
_VERDICT = msgspec.json.Decoder(Verdict)
_EARLIER_WORD = "judgement"
"""What earlier versions call the outcome of a verdict and of a grade."""


class Insert(Generic[R]):
    """Rows of one table, and what becomes of a row that is there already: without a clause it is an error."""

    def __init__(self, table: sa.Table, row: type[R], on_conflict: str = "", *, returning: Sequence[str] = ()) -> None:
        self.table = table.name
        self.columns = list(row.__struct_fields__)
        self.types = [table.columns[name].type for name in self.columns]
        self.binary = {name for name in self.columns if isinstance(table.columns[name].type, sa.LargeBinary)}
        """Which of the columns hold bytes."""
        self.key = [self.columns.index(column.name) for column in table.primary_key]
        """Which of them say which row it is."""
        self.finds_position = row is RunColumns
        """Whether the database is to add where in its experiment the case of a run is."""
        self.on_conflict = on_conflict
        self.returning = f"RETURNING {', '.join(returning)}" if returning else ""


def _replaced(table: sa.Table, key: str) -> str:
    columns = [column.name for column in table.columns if column.name != key]
    return f"ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in columns)}"


def _added(table: sa.Table) -> str:
    key = [column.name for column in table.primary_key]
    sums = [column.name for column in table.columns if column.name not in key]
    added = [f"{name} = {table.name}.{name} + excluded.{name}" for name in sums]
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(added)}"


# The same case again is the same case; two cases of one id are an error.
INSERT_CASE = Insert(schema.cases, CaseRow, "ON CONFLICT (experiment, position) DO NOTHING")
INSERT_CASE_TAG = Insert(schema.case_tags, CaseTagRow, "ON CONFLICT (experiment, tag, case_id) DO NOTHING")
INSERT_AGENT_NOTE = Insert(schema.agent_notes, AgentNoteRow)
INSERT_SELECTION = Insert(schema.selections, SelectionRow)
INSERT_BODY = Insert(schema.bodies, BodyRow, "ON CONFLICT (hash) DO NOTHING")
INSERT_RUN = Insert(schema.runs, RunColumns)
FINISH_RUN = Insert(schema.runs, RunColumns, _replaced(schema.runs, "id"))
"""A run that was begun before and is finished by this row."""
INSERT_ATTEMPT = Insert(schema.attempts, AttemptRow)
INSERT_EVENTS = Insert(schema.events, EventsRow)
INSERT_STEP = Insert(schema.steps, StepRow)
INSERT_NOTE = Insert(schema.notes, NoteRow)
INSERT_VERDICT = Insert(schema.verdicts, VerdictRow)
INSERT_SPLIT = Insert(schema.split_votes, SplitRow)
INSERT_READING = Insert(schema.readings, ReadingRow)
INSERT_ITEMS = Insert(schema.items, ItemsRow)
INSERT_OUTLINE = Insert(schema.outlines, OutlineRow)
INSERT_SERVED_RUN = Insert(schema.served_runs, ServedRunRow)
ADD_TO_CELL = Insert(
    schema.cells,
    CellRow,
    _added(schema.cells),
    returning=("experiment", "case_id", "agent", "runs", "passed", "failed"),
)
"""Numbers that are added to those of a cell; gives the new ones."""
ADD_TO_TALLY = Insert(schema.tallies, TallyRow, _added(schema.tallies))
"""Numbers that are added to those of a tally."""

INSERTS: tuple[Insert[Any], ...] = (
    INSERT_CASE,
    INSERT_CASE_TAG,
    INSERT_AGENT_NOTE,
    INSERT_SELECTION,
    INSERT_BODY,
    INSERT_RUN,
    FINISH_RUN,
    INSERT_ATTEMPT,
    INSERT_EVENTS,
    INSERT_STEP,
    INSERT_NOTE,
    INSERT_VERDICT,
    INSERT_SPLIT,
    INSERT_READING,
    INSERT_ITEMS,
    INSERT_OUTLINE,
    INSERT_SERVED_RUN,
    ADD_TO_CELL,
    ADD_TO_TALLY,
)
"""In the order in which they are sent: what is referred to comes first."""


def outcome(status: RunStatus, graded: Outcome | None, *, errored: bool = False) -> StoredOutcome:
    """The outcome of a run with this status and grade; `errored`: it failed through no fault of the agent's."""
    if status == "cancelled":
        return "cancelled"
    if status in UNFINISHED:
        return "unfinished"
    if status == "failed" and graded != "errored":
        return "errored" if errored else "failed"  # whatever a grade says, a run without an answer has not passed
    return graded or "ungraded"


def served_key(run_id: str, agent: str) -> RunKey:
    """What the columns have for a run of the run service, which has no case: a case of its own, and one trial of it.

    Nothing outside the store sees it: a run that is in `served_runs` is read with a `ServedKey`.
    """
    return RunKey(agent, run_id, 1)


def run_row(run: Run, texts: dict[str, bytes], body: bytes | None = None, *, counted: int = COUNTED) -> RunColumns:
    """A run; the integers of the run and its experiment are given to it when it is written.

    Its long texts are added to `texts`, by their addresses.
    """
    key = run.key if isinstance(run.key, RunKey) else served_key(run.run_id, run.agent)
    grade, fault, steps = run.grade, run.fault, run.steps
    tokens_in, tokens_out, cost_usd = _used(run)
    result = outcome(run.status, grade.outcome if grade is not None else None, errored=run.errored)
    signature = None
    if result == "failed" or result == "errored":
        signature = signature_of(
            result, fault, run.verdicts, lambda index: steps[index].name if 0 <= index < len(steps) else None
        )
    data = encode(RunData(run.steps_source, fault, run.metadata, run.completeness, run.reported, run.diff, run.world))
    data, cut = without_long_texts(data, 0, texts)
    return RunColumns(
        run_id=run.run_id,
        agent=key.agent,
        case_id=key.case_id,
        trial=key.trial,
        status=run.status,
        outcome=result,
        score=number(grade.score if grade is not None else None),
        error_class=fault.error_class if fault is not None else None,
        signature=signature,
        started_at=run.started_at,
        duration_ms=number(run.duration_ms),
        attempts=len(run.attempts),
        steps=len(steps),
        calls=run.completeness.level if run.completeness is not None else None,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cost_usd=cost_usd,
        grade=encode(grade) if grade is not None else None,
        body=body,
        data=data,
        counted=counted,
        texts=encode(cut) if cut else None,
    )


def attempt_row(exchange: Exchange, attempt: Attempt) -> AttemptRow:
    """An attempt at an exchange of a run."""
    error_class = attempt.fault.error_class if attempt.fault is not None else None
    return AttemptRow(exchange=exchange.number, number=attempt.number, error_class=error_class, data=encode(attempt))


def step_row(position: int, step: Step, texts: dict[str, bytes]) -> StepRow:
    """A step of a run. Long arguments, a long result and long texts are added to `texts`, by their addresses."""
    data = encode(step)
    cut: list[CutText] = []
    if len(data) > MAX_TEXT:
        values = {"arguments": step.arguments, "result": step.result}
        values = {key: value for key, value in values.items() if value is not msgspec.UNSET}
        data, cut = without_long_values(data, values, texts)
    return StepRow(
        position=position,
        name=column_text(step.name),
        status=step.status,
        duration_ms=number(step.duration_ms),
        data=data,
        texts=encode(cut) if cut else None,
    )


def note_row(position: int, note: Note) -> NoteRow:
    """A note on a run."""
    return NoteRow(position=position, code=column_text(note.code), weight=note.weight, data=encode(note))


def agent_note_rows(agent: str, notes: Iterable[Note]) -> list[AgentNoteRow]:
    """Notes on an agent that belong to no run."""
    return [
        AgentNoteRow(agent=agent, position=position, code=column_text(note.code), weight=note.weight, data=encode(note))
        for position, note in enumerate(notes)
    ]


def text_rows(texts: dict[str, bytes]) -> list[BodyRow]:
    """Long texts, which are given as JSON and by their addresses."""
    return [BodyRow(hash=digest(name), size=len(data), data=data) for name, data in texts.items()]


def verdict_row(position: int, verdict: Verdict) -> VerdictRow:
    """A verdict on a run."""
    return VerdictRow(
        position=position,
        grader=column_text(verdict.grader),
        outcome=verdict.outcome,
        score=number(verdict.score),
        data=encode(verdict),
    )


def split_rows(verdicts: Sequence[Verdict]) -> list[SplitRow]:
    """Those of the verdicts of judges whose votes were not all alike."""
    found = []
    for position, verdict in enumerate(verdicts):
        agreement = _agreement(verdict) if verdict.kind == "judge" else None
        if agreement is not None and agreement < 1:
            found.append(SplitRow(position=position, grader=column_text(verdict.grader), agreement=agreement))
    return found


def _agreement(verdict: Verdict) -> float | None:
    """The share of a judge's votes that the majority has. Details are foreign data, also from earlier versions."""
    details = verdict.details
    judge = details.get("judge") if isinstance(details, dict) else getattr(details, "judge", None)
    agreement = judge.get("agreement") if isinstance(judge, dict) else getattr(judge, "agreement", None)
    return float(agreement) if isinstance(agreement, int | float) and 0 <= agreement <= 1 else None


def decode_verdict(data: bytes) -> Verdict:
    """A stored verdict, also one of an earlier version. Raises `SeatrialError`."""
    return _decoded(data, _VERDICT, Verdict)


def decode_grade(data: bytes) -> Grade:
    """A stored grade, also one of an earlier version. Raises `SeatrialError`."""
    return _decoded(data, _GRADE, Grade)


def _decoded(data: bytes, decoder: msgspec.json.Decoder[R], kind: type[R]) -> R:
    if b'"%s":' % _EARLIER_WORD.encode() not in data:
        return wire.decode(data, decoder)
    try:
        return msgspec.convert(_in_todays_words(wire.decode(data)), kind)
    except msgspec.ValidationError as error:
        raise wire.invalid_document(error) from None


def _in_todays_words(stored: Any) -> Any:
    """A verdict or a grade with its outcome. Whatever else is in it is a grader's own, but the verdicts in a composite
    one."""
    if not isinstance(stored, dict):
        return stored
    renamed = {"outcome" if key == _EARLIER_WORD else key: value for key, value in stored.items()}
    if renamed.get("kind") == "composite" and isinstance(details := renamed.get("details"), list):
        renamed["details"] = [_in_todays_words(inner) for inner in details]
    return renamed


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
        facts=stored.facts or _placed(stored.calls, stored.transcript),
        answer_only=stored.answer_only,
        single_turn=stored.single_turn,
    )


def _placed(by_id: dict[str, CallFacts], transcript: Transcript) -> list[PlacedFacts]:
    """The facts of an earlier version. Where several calls have the id, nobody knows whose they are: such a call is the
    agent's, and is not said to have succeeded."""
    if not by_id:
        return []
    calls = [
        (index, number, call.id)
        for index, message in enumerate(transcript.messages)
        if isinstance(message, AssistantMessage)
        for number, call in enumerate(message.tool_calls())
        if call.id in by_id
    ]
    times = Counter([call_id for _, _, call_id in calls])
    return [
        PlacedFacts(index, by_id[call_id] if times[call_id] == 1 else CallFacts(status="unknown"), number)
        for index, number, call_id in calls
    ]


def no_run(run_id: str) -> SeatrialError:
    """The error for a run that is not there."""
    return SeatrialError("not_found", f"there is no run {run_id!r} in the store")


def number(value: float | None) -> float | None:
    """A number for counting: an absurd one would spoil every sum. What an agent really said is in its document."""
    return float(value) if value is not None and abs(value) <= _MAX_NUMBER else None


def _used(run: Run) -> tuple[int | None, int | None, float | None]:
    """Tokens read and written, and the cost; unknown when some of the messages, or of the attempts, do not say."""
    if run.reading is None or run.has_uncounted_attempts:
        return None, None, None
    transcript = run.reading.transcript
    used, cost = transcript.tokens(), number(transcript.cost_usd)
    if used is None or not used.exact:
        return None, None, cost
    return min(used.input, _MAX_INT), min(used.output, _MAX_INT), cost
