"""Runs and their parts, read from a store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from types import NoneType
from typing import Any, TypeVar, get_args

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.events.types import RunStatus
from seatrial.runs import Exchange, Fault, Grade, Run, RunKey, ServedKey, Verdict, WorkspaceDiff
from seatrial.store import rows, schema
from seatrial.store.counts import all_counted, run_note_counts
from seatrial.store.database import Database
from seatrial.store.documents import LongText, digest, restored, unpack
from seatrial.store.filter.conditions import conditions
from seatrial.store.filter.language import FilterTerm
from seatrial.store.items import READING_OF_RUN, Readings, addresses, cut_texts, long_texts
from seatrial.store.rollups import known_steps, weight_of
from seatrial.store.rows import RunSummary, StoredOutcome
from seatrial.store.schema import bodies, cases, experiments, notes, runs, served_runs, verdicts
from seatrial.store.search import Hit, phrases, pieces, snippet
from seatrial.trajectory.completeness import Completeness
from seatrial.transcript import Note, Usage, Weight, note_code

BODY_DAMAGED = note_code("body_damaged", "The store has the run, but not the bytes that the agent sent.", "look")

T = TypeVar("T")

OUTCOMES: tuple[StoredOutcome, ...] = get_args(StoredOutcome)


class RunFilter(msgspec.Struct, frozen=True):
    """Which runs of an experiment; an empty set asks for nothing in particular."""

    outcomes: frozenset[StoredOutcome] = frozenset()
    agents: frozenset[str] = frozenset()
    run_ids: frozenset[str] = frozenset()
    cases: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    """Runs of cases with one of these."""
    error_classes: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    """Runs with a call of one of these."""
    terms: tuple[FilterTerm, ...] = ()
    """Whatever else was asked for in the filter language."""

    def conditions(self) -> Iterator[sa.ColumnElement[bool]]:
        """What a row of `runs` must meet, but for its outcome."""
        for column, wanted in (
            (runs.c.agent, self.agents),
            (runs.c.run_id, self.run_ids),
            (runs.c.case_id, self.cases),
            (runs.c.error_class, self.error_classes),
        ):
            if wanted:
                yield column.in_(sorted(wanted))
        if self.tags:
            tags = schema.case_tags
            same = (tags.c.experiment == runs.c.experiment) & (tags.c.case_id == runs.c.case_id)
            yield sa.exists().where(same, tags.c.tag.in_(sorted(self.tags)))
        if self.tools:
            steps = schema.steps
            yield sa.exists().where(steps.c.run == runs.c.id, steps.c.name.in_(sorted(self.tools)))
        yield from conditions(self.terms)


class RunRecord(msgspec.Struct, kw_only=True):
    """A run without what it may have any amount of: its messages, its trace, its steps, its notes, its events."""

    experiment_id: str | None
    """None for a run of the run service."""
    key: RunKey | ServedKey
    summary: RunSummary
    """Of a run of the run service, which has no case and no trial, it says nothing of these."""
    fault: Fault | None = None
    completeness: Completeness | None = None
    grade: Grade | None = None
    verdicts: list[Verdict] = []
    exchanges: list[Exchange] = []
    metadata: dict[str, Any] = {}
    diff: WorkspaceDiff | None = None
    """What the agent changed in its workspace."""
    format: str | None = None
    """The format of the agent's record; None when there was no answer to read."""
    messages: int = 0
    """How many there are: `Store.items` gives them."""
    answer: str | None = None
    """The answer that the source named outside the messages; of a long one, the beginning."""
    usage: Usage | None = None
    given: list[int] = []
    """Indices of the messages that the run started from."""
    source_metadata: dict[str, Any] = {}
    """What else the source said about the run."""
    long_texts: list[LongText] = []
    """What of these is cut: pointers are into the run (`/metadata/log`) or its reading (`/transcript/answer`)."""


class RunNotes(msgspec.Struct, frozen=True):
    """What had to be dropped, guessed or repaired to read a run, and what that leaves unknown of its calls."""

    completeness: Completeness | None
    notes: list[Note]
    """The first of them, the most serious before the others."""
    counts: dict[tuple[str, Weight], int]
    """All of them, by code and weight."""


def done_keys(connection: sa.Connection, experiment: int) -> dict[RunKey, StoredOutcome]:
    """What came of every run that has ended."""
    found = connection.execute(
        sa.select(runs.c.agent, runs.c.case_id, runs.c.trial, runs.c.outcome).where(
            runs.c.experiment == experiment, runs.c.outcome != "unfinished"
        )
    )
    return {RunKey(row.agent, row.case_id, row.trial): row.outcome for row in found}


def unfinished_runs(connection: sa.Connection, experiment: int) -> dict[RunKey, str]:
    """The ids of the runs that were begun and have not ended."""
    found = connection.execute(
        sa.select(runs.c.agent, runs.c.case_id, runs.c.trial, runs.c.run_id).where(
            runs.c.experiment == experiment, runs.c.outcome == "unfinished"
        )
    )
    return {RunKey(row.agent, row.case_id, row.trial): row.run_id for row in found}


def run_page(
    connection: sa.Connection,
    experiment: int,
    where: RunFilter,
    after: RunKey | None,
    limit: int,
    *,
    by_cases: bool = False,
) -> list[RunSummary]:
    """Runs in the order of the suite's cases, then by agent and trial; those behind the run `after`. With `by_cases`,
    the places of the cases count, and not those that the runs say, which may be damaged; that takes longer."""
    query = sa.select(*[runs.c[field] for field in RunSummary.__struct_fields__])
    if not by_cases and all_counted(connection, experiment):
        found = _merged_page(connection, query, experiment, where, after, limit)
    else:
        found, orphans = _page_with_orphans(connection, query, experiment, where, after, limit)
        found = [*found, *orphans]
    return [_summary(row) for row in found]


def run_count(connection: sa.Connection, experiment: int, where: RunFilter, limit: int) -> int:
    """How many runs of an experiment there are, up to the limit."""
    found = _filtered(sa.select(runs.c.id).where(runs.c.experiment == experiment), where).limit(limit).subquery()
    return connection.execute(sa.select(sa.func.count()).select_from(found)).scalar_one()


def cases_with_runs(connection: sa.Connection, experiment: int, where: RunFilter) -> frozenset[str]:
    """The cases of which there is such a run."""
    query = _filtered(sa.select(runs.c.case_id).distinct().where(runs.c.experiment == experiment), where)
    return frozenset(connection.scalars(query))


def has_tag(connection: sa.Connection, experiment: int, tags: Iterable[str]) -> bool:
    """Whether a case of an experiment has one of these tags."""
    of = schema.case_tags.c
    found = sa.select(of.tag).where(of.experiment == experiment, of.tag.in_(sorted(tags))).limit(1)
    return connection.execute(found).first() is not None


def _summary(row: sa.Row[Any]) -> RunSummary:
    summary = RunSummary(**{field: getattr(row, field) for field in RunSummary.__struct_fields__})
    summary.steps = known_steps(summary)
    return summary


def whole_page(
    connection: sa.Connection,
    experiment: int,
    where: RunFilter,
    after: RunKey | None,
    limit: int,
    *,
    to_grade: bool = False,
) -> list[Run]:
    """The same with all their parts but the bodies. Those that are to be graded need no verdicts: damaged ones are
    left out."""
    found, orphans = _page_with_orphans(connection, _WHOLE, experiment, where, after, limit)
    lost = [_damaged(row, SeatrialError("damaged", "its case is not in the store any more")) for row in orphans]
    return [*_whole(connection, found, to_grade=to_grade), *lost]


def run_notes(connection: sa.Connection, run_ids: list[str], limit: int) -> dict[str, RunNotes]:
    """The notes of each of these runs, at most so many of one."""
    found = connection.execute(sa.select(runs.c.id, runs.c.run_id, runs.c.data).where(runs.c.run_id.in_(run_ids))).all()
    numbers = [row.id for row in found]
    counts = run_note_counts(connection.execute, numbers)
    order = (sa.case({"harmless": 2, "look": 1}, value=notes.c.weight, else_=0), notes.c.position)
    place = sa.func.row_number().over(partition_by=notes.c.run, order_by=order).label("place")
    ranked = sa.select(notes, place).where(notes.c.run.in_(numbers)).subquery()
    first: defaultdict[int, list[Note]] = defaultdict(list)
    for row in connection.execute(
        sa.select(ranked).where(ranked.c.place <= limit).order_by(ranked.c.run, ranked.c.place)
    ):
        try:
            note = wire.decode(row.data, rows.NOTE)
        except (SeatrialError, ValueError):
            note = Note(row.code, "", "this note is damaged in the store", weight_of(row.code, row.weight))
        first[row.run].append(note)
    return {row.run_id: RunNotes(_completeness(row.data), first[row.id], counts.get(row.id, {})) for row in found}


def _completeness(data: bytes) -> Completeness | None:
    try:
        return wire.decode(data, rows.RUN_DATA).completeness
    except (SeatrialError, ValueError):
        return None  # the run is damaged, which is said where the whole of it is read


def run(connection: sa.Connection, run_id: str) -> Run:
    """One run with all its parts."""
    found = _whole(connection, connection.execute(_WHOLE.where(runs.c.run_id == run_id)).all())
    if not found:
        raise rows.no_run(run_id)
    held = sa.select(bodies.c.packed, bodies.c.data).join(runs, runs.c.body == bodies.c.hash)
    if (body := connection.execute(held.where(runs.c.run_id == run_id)).first()) is not None:
        try:
            found[0].body = unpack(body.packed, body.data)
        except SeatrialError as error:
            # What was read of it is whole; only the bytes themselves are gone.
            if found[0].reading is not None:
                found[0].reading.notes.append(Note(BODY_DAMAGED, "", error.message))
    return found[0]


def body(connection: sa.Connection, address: str) -> bytes:
    """The bytes with this content address."""
    found = connection.execute(
        sa.select(bodies.c.packed, bodies.c.data).where(bodies.c.hash == digest(address))
    ).first()
    if found is None:
        raise SeatrialError("not_found", f"there is no body {address} in the store")
    return unpack(found.packed, found.data)


def known_verdicts(connection: sa.Connection, run_id: str) -> dict[str, Verdict]:
    """Every verdict ever given on a run, by its content key; the latest of those that share one."""
    found = connection.execute(
        sa.select(verdicts.c.data)
        .join(runs, runs.c.id == verdicts.c.run)
        .where(runs.c.run_id == run_id)
        .order_by(verdicts.c.grading, verdicts.c.position)
    )
    known: dict[str, Verdict] = {}
    for row in found:
        # One that cannot be read is as good as none: it is found again.
        with suppress(SeatrialError):
            verdict = rows.decode_verdict(row.data)
            if verdict.key:
                known[verdict.key] = verdict
    return known


def search(
    connection: sa.Connection,
    dialect: Database,
    text: str,
    experiment: int | None,
    where: RunFilter,
    before: str | None,
    limit: int,
) -> list[Hit]:
    """Runs that contain what was typed, the newest first; those that are older than the run `before`."""
    wanted = phrases(text)
    if not wanted:
        return []
    matching = dialect.matching(wanted).subquery()
    query = _filtered(_WHOLE.join(matching, matching.c.run == runs.c.id), where)
    # By the index's own number of a run, which is the same: SQLite then walks the index backwards and stops at the
    # limit, where it would sort every run that has a common word.
    query = query.order_by(matching.c.run.desc()).limit(limit)
    if experiment is not None:
        query = query.where(runs.c.experiment == experiment)
    if before is not None:
        number = connection.execute(sa.select(runs.c.id).where(runs.c.run_id == before)).scalar()
        if number is None:
            raise rows.no_run(before)
        query = query.where(matching.c.run < number)
    return [
        Hit(run.run_id, run.experiment_id, run.key, *snippet(wanted, pieces(run.reading, run.steps)))
        for run in _whole(connection, connection.execute(query).all())
    ]


_WHOLE = (
    sa.select(experiments.c.experiment_id, served_runs.c.thread_id, runs)
    .join_from(runs, experiments, experiments.c.id == runs.c.experiment)
    .outerjoin(served_runs, served_runs.c.run == runs.c.id)
)


def _experiment_of(row: sa.Row[Any]) -> str | None:
    # The rows of served runs are kept together in an experiment that nobody ran.
    return row.experiment_id if row.thread_id is None else None


def _key(row: sa.Row[Any]) -> RunKey | ServedKey:
    if row.thread_id is not None:
        return ServedKey(row.agent, row.thread_id)
    return RunKey(row.agent, row.case_id, row.trial)


def _merged_page(
    connection: sa.Connection,
    query: sa.Select[Any],
    experiment: int,
    where: RunFilter,
    after: RunKey | None,
    limit: int,
) -> Sequence[sa.Row[Any]]:
    """A page of runs by the index that has them by outcome, in the order of the suite: one query for each outcome."""
    query = query.add_columns(runs.c.position).where(runs.c.experiment == experiment)
    query = query.where(*where.conditions())
    if after is not None:
        here = sa.select(cases.c.position).where(cases.c.experiment == experiment, cases.c.case_id == after.case_id)
        place = connection.execute(here).scalar()
        if place is None:  # the case is gone, but its runs keep their places
            same = (runs.c.experiment == experiment) & (runs.c.case_id == after.case_id)
            place = connection.execute(sa.select(runs.c.position).where(same).limit(1)).scalar()
        if place is None:
            return []
        behind = sa.tuple_(runs.c.position, runs.c.agent, runs.c.trial) > (place, after.agent, after.trial)
        query = query.where(runs.c.position >= place, behind)
    query = query.order_by(runs.c.position, runs.c.agent, runs.c.trial).limit(limit)
    found: list[sa.Row[Any]] = []
    for outcome in sorted(where.outcomes) or OUTCOMES:
        found += connection.execute(query.where(runs.c.outcome == outcome))
    return sorted(found, key=lambda row: [_rank(value) for value in (row.position, row.agent, row.trial)])[:limit]


def _rank(value: Any) -> tuple[int, Any]:
    """For sorting as SQLite does, which lets a damaged column have a value of any type."""
    if value is None:
        return 0, 0
    return (1 if isinstance(value, int | float) else 2 if isinstance(value, str) else 3), value


def _page(query: sa.Select[Any], experiment: int, where: RunFilter, after: RunKey | None, limit: int) -> sa.Select[Any]:
    # From the cases to their runs, by two indexes that have both in this order already.
    query = query.join(cases, (cases.c.experiment == runs.c.experiment) & (cases.c.case_id == runs.c.case_id))
    query = query.add_columns(cases.c.position.label("case_position"))
    query = _filtered(query.where(runs.c.experiment == experiment), where)
    if after is not None:
        position = (
            sa.select(cases.c.position)
            .where(cases.c.experiment == experiment, cases.c.case_id == after.case_id)
            .scalar_subquery()
        )
        later = (cases.c.position > position) | (sa.tuple_(runs.c.agent, runs.c.trial) > (after.agent, after.trial))
        query = query.where(cases.c.position >= position, later)
    return query.order_by(cases.c.position, runs.c.agent, runs.c.trial).limit(limit)


def _page_with_orphans(
    connection: sa.Connection,
    query: sa.Select[Any],
    experiment: int,
    where: RunFilter,
    after: RunKey | None,
    limit: int,
) -> tuple[Sequence[sa.Row[Any]], Sequence[sa.Row[Any]]]:
    """A page of runs; and, behind the last of them, runs that name a case which is not in the store."""
    found: Sequence[sa.Row[Any]] = []
    if after is None or _has_case(connection, experiment, after.case_id):
        found = connection.execute(_page(query, experiment, where, after, limit)).all()
        after = None
    if len(found) == limit:
        return found, []
    same = (cases.c.experiment == runs.c.experiment) & (cases.c.case_id == runs.c.case_id)
    query = query.where(runs.c.experiment == experiment, ~sa.exists().where(same))
    query = _filtered(query, where)
    place = sa.tuple_(runs.c.case_id, runs.c.agent, runs.c.trial)
    if after is not None:
        query = query.where(place > (after.case_id, after.agent, after.trial))
    query = query.order_by(runs.c.case_id, runs.c.agent, runs.c.trial).limit(limit - len(found))
    return found, connection.execute(query).all()


def _has_case(connection: sa.Connection, experiment: int, case_id: str) -> bool:
    query = sa.select(cases.c.position).where(cases.c.experiment == experiment, cases.c.case_id == case_id)
    return connection.execute(query).first() is not None


def _filtered(query: sa.Select[Any], where: RunFilter) -> sa.Select[Any]:
    if where.outcomes:
        query = query.where(runs.c.outcome.in_(sorted(where.outcomes)))
    return query.where(*where.conditions())


def _whole(connection: sa.Connection, found: Sequence[sa.Row[Any]], *, to_grade: bool = False) -> list[Run]:
    numbers = [row.id for row in found]
    documents = Readings(connection, numbers)
    parts = {
        table.name: _parts(connection, table, numbers) for table in (schema.attempts, schema.steps, notes, verdicts)
    }
    texts = long_texts(connection, addresses(chain(found, *parts["steps"].values())))
    whole = []
    for row in found:
        try:
            its_parts = {name: some[row.id] for name, some in parts.items()}
            whole.append(_run(row, documents, its_parts, texts, to_grade=to_grade))
        except (SeatrialError, TypeError, ValueError) as error:
            whole.append(_damaged(row, error))
    return whole


def _run(
    row: sa.Row[Any],
    documents: Readings,
    parts: dict[str, list[sa.Row[Any]]],
    texts: Mapping[str, bytes],
    *,
    to_grade: bool,
) -> Run:
    """The run of a row and its parts; `SeatrialError` when something in it cannot be read."""
    for name, count in (("steps", row.steps), ("attempts", row.attempts)):
        # What is missing is no less damage than what is broken: a call that was made must not be gone unnoticed.
        if len(parts[name]) != count:
            raise SeatrialError("damaged", f"it has {len(parts[name])} of {count} {name}")
    with _part("data"):
        data = wire.decode(restored(row.data, cut_texts(row), texts), rows.RUN_DATA)
    grade: Grade | None = None
    given: list[Verdict] = []
    try:
        with _part("grade"):
            grade = _grade(row, parts["verdicts"])
        given = _decoded(parts["verdicts"], rows.decode_verdict, "verdict")
    except SeatrialError:
        if not to_grade:
            raise
        grade = None
    noted = _decoded(parts["notes"], _decoding(rows.NOTE), "note")
    reading = None
    with _part("reading"):
        stored = documents.reading(row.id)
        if stored is not None:
            reading = rows.read(stored, noted)
    if reading is None and row.status == "completed" and data.completeness is not None:
        # What was read is gone: without it, a check on the answer or on the calls would look at nothing.
        raise SeatrialError("damaged", "its reading is missing")
    if reading is not None and data.completeness is not None and data.completeness.level == "none":
        reading.answer_only = True  # earlier versions did not store it
    run = Run(
        run_id=row.run_id,
        experiment_id=_experiment_of(row),
        key=_key(row),
        status=row.status,
        reading=reading,
        unread_notes=noted if reading is None else [],
        steps=_decoded(parts["steps"], _decoding(rows.STEP), "step", texts),
        steps_source=data.steps_source,
        reported=data.reported,
        completeness=data.completeness,
        exchanges=_exchanges(parts["attempts"]),
        fault=data.fault,
        verdicts=given,
        grade=grade,
        started_at=row.started_at,
        duration_ms=row.duration_ms,
        metadata=data.metadata,
        diff=data.diff,
        world=data.world,
    )
    _check_columns(row, run, graded=not to_grade)
    return run


def _check_columns(row: sa.Row[Any], run: Run, *, graded: bool) -> None:
    """Raise `SeatrialError` when a column, which counts and lists go by, cannot be what was written with the run."""
    for name, kind in _TYPES.items():
        if not isinstance(getattr(row, name), kind):
            raise SeatrialError("damaged", f"its column `{name}` has a value of another type")
    if row.status not in _STATUSES:
        raise SeatrialError("damaged", "its column `status` has an unknown value")
    expected: dict[str, Any] = {"error_class": None if run.fault is None else run.fault.error_class}
    if row.calls is not None and run.completeness is not None:  # earlier versions have one without the other
        expected["calls"] = run.completeness.level
    if row.counted == rows.COUNTED:
        expected["position"] = getattr(row, "case_position", row.position)
    if graded:
        grade = run.grade
        expected["score"] = rows.number(None if grade is None else grade.score)
        outcome = rows.outcome(run.status, None if grade is None else grade.outcome, errored=run.errored)
        # Earlier versions drew the line between the others elsewhere.
        if row.outcome not in OUTCOMES or "passed" in (outcome, row.outcome):
            expected["outcome"] = outcome
    for name, value in expected.items():
        if getattr(row, name) != value:
            raise SeatrialError("damaged", f"its column `{name}` contradicts the rest of it")


_STATUSES = get_args(RunStatus)
_NUMBER = (int, float, NoneType)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("agent", "case_id"), (str,)),
    "trial": (int,),
    **dict.fromkeys(("started_at", "input_tokens", "output_tokens"), (int, NoneType)),
    **dict.fromkeys(("score", "duration_ms", "cost_usd"), _NUMBER),
    **dict.fromkeys(("calls", "signature"), (str, NoneType)),
}
"""What the columns of a run can be; SQLite lets them be anything."""


def _grade(row: sa.Row[Any], verdicts: Sequence[sa.Row[Any]]) -> Grade | None:
    """The grade of a run, which counts only with all the verdicts that it was made of."""
    grade = None if row.grade is None else rows.decode_grade(row.grade)
    if grade is not None and not grade.has_all(len(verdicts)):
        raise SeatrialError("damaged", f"it has {len(verdicts)} of {grade.verdicts or 'its'} verdicts")
    return grade


def run_record(connection: sa.Connection, run_id: str) -> RunRecord:
    """A run without its messages, its trace and its steps."""
    row = connection.execute(_WHOLE.where(runs.c.run_id == run_id)).first()
    if row is None:
        raise rows.no_run(run_id)
    try:
        return _record(connection, row)
    except (SeatrialError, TypeError, ValueError) as error:
        raise SeatrialError("damaged", f"the stored record of run {run_id} is damaged: {error}") from None


def _record(connection: sa.Connection, row: sa.Row[Any]) -> RunRecord:
    head = connection.execute(READING_OF_RUN.where(runs.c.id == row.id)).one()
    parts = {table.name: _parts(connection, table, [row.id])[row.id] for table in (schema.attempts, verdicts)}
    data = wire.decode(row.data, rows.RUN_DATA)
    record = RunRecord(
        experiment_id=_experiment_of(row),
        key=_key(row),
        summary=_summary(row),
        fault=data.fault,
        completeness=data.completeness,
        grade=_grade(row, parts["verdicts"]),
        verdicts=_decoded(parts["verdicts"], rows.decode_verdict, "verdict"),
        exchanges=_exchanges(parts["attempts"]),
        metadata=data.metadata,
        diff=data.diff,
        long_texts=[cut.text for cut in cut_texts(row) if not cut.text.pointer.startswith("/reported/")],
    )
    if head.run is not None:
        stored = wire.decode(unpack(head.packed, head.data), rows.READING)
        transcript = stored.transcript
        record.format = stored.format
        record.messages = len(transcript.messages) if head.messages is None else head.messages
        record.answer = transcript.answer
        record.usage = transcript.usage
        record.given = transcript.given
        record.source_metadata = transcript.metadata
        record.long_texts += [cut.text for cut in cut_texts(head)]
    return record


def text(connection: sa.Connection, address: str) -> str:
    """A long text."""
    found = wire.decode(body(connection, address))
    if not isinstance(found, str):
        raise SeatrialError("not_found", f"there is no text {address} in the store")
    return found


def _damaged(row: sa.Row[Any], error: Exception) -> Run:
    """What is left of a run that cannot be read: which one it is, and that nothing can be said of it."""
    fault = Fault("record_damaged", f"the stored record of run {row.run_id} is damaged: {error}")
    return Run(
        run_id=row.run_id,
        experiment_id=_experiment_of(row),
        key=_key(row),
        status="failed",
        fault=fault,
        grade=Grade(outcome="errored", reasons=[f"{fault.error_class}: {fault.message}"]),
        started_at=row.started_at if isinstance(row.started_at, int) else None,
        duration_ms=row.duration_ms if isinstance(row.duration_ms, _NUMBER) else None,
    )


@contextmanager
def _part(name: str) -> Iterator[None]:
    """Say which part of a run cannot be read."""
    try:
        yield
    except (SeatrialError, TypeError, ValueError) as error:
        raise SeatrialError("damaged", f"its {name} cannot be read: {error}") from error


def _decoding(decoder: msgspec.json.Decoder[T]) -> Callable[[bytes], T]:
    return lambda data: wire.decode(data, decoder)


def _decoded(
    parts: list[sa.Row[Any]], decode: Callable[[bytes], T], name: str, texts: Mapping[str, bytes] | None = None
) -> list[T]:
    """The values of rows; with these long texts, where their table has such."""
    found: list[T] = []
    for number, row in enumerate(parts, 1):
        try:
            data = row.data if texts is None else restored(row.data, cut_texts(row), texts)
            found.append(decode(data))
        except (SeatrialError, TypeError, ValueError) as error:
            raise SeatrialError("damaged", f"its {name} {number} cannot be read: {error}") from error
    return found


def _exchanges(attempts: list[sa.Row[Any]]) -> list[Exchange]:
    """The exchanges of a run, by the rows of its attempts in order."""
    found: dict[int, Exchange] = {}
    for row, attempt in zip(attempts, _decoded(attempts, _decoding(rows.ATTEMPT), "attempt"), strict=True):
        found.setdefault(row.exchange, Exchange(number=row.exchange)).attempts.append(attempt)
    return list(found.values())


def _parts(connection: sa.Connection, table: sa.Table, numbers: list[int]) -> defaultdict[int, list[sa.Row[Any]]]:
    """The rows of one of a run's tables, in order, by the integer of the run."""
    query = sa.select(table).where(table.c.run.in_(numbers)).order_by(*table.primary_key)
    if table is verdicts:
        query = query.join(runs, (runs.c.id == table.c.run) & (runs.c.grading == table.c.grading))
    parts: defaultdict[int, list[sa.Row[Any]]] = defaultdict(list)
    for row in connection.execute(query):
        parts[row.run].append(row)
    return parts
