"""Experiments and their cases: writing and reading them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.runs import Case, Experiment
from seatrial.store import rows
from seatrial.store.database import Operation, Transaction
from seatrial.store.documents import Packer, encode, identifier, packed, unpack
from seatrial.store.filter.conditions import conditions
from seatrial.store.filter.language import FilterTerm
from seatrial.store.schema import agent_notes, cases, experiments, runs, selections
from seatrial.transcript import Note

# Integers are given in the order of creation, whatever the clocks of their creators said.
_NEWEST_FIRST = (experiments.c.id.desc(),)
_COMPLETE = experiments.c.cases.is_not(None)
_CASES: sa.Select[Any] = sa.select(cases.c.case_id, cases.c.packed, cases.c.data)


CASES_AT_ONCE = 500
MAX_CASES_AT_ONCE = 20_000
CASE_BYTES_AT_ONCE = 4 << 20
"""What is read of the cases before one is asked for, as it is stored; up to `CASES_AT_ONCE` more in any case."""


class ExperimentSummary(msgspec.Struct, frozen=True):
    """An experiment without its suite."""

    experiment_id: str
    name: str
    suite_hash: str
    created_at: int
    finished_at: int | None
    status: str
    stop_reason: str | None
    version: str
    cases: int


class CaseTags(msgspec.Struct, frozen=True):
    """The tags of the cases of an experiment."""

    of: dict[str, tuple[str, ...]] = {}
    """By the id of the case, each tag once; cases without tags are left out."""
    cases: int = 0
    """All cases, those without tags included."""
    unread: int = 0
    """Cases that are damaged, so that nobody knows their tags."""


class CreateExperiment(Operation[int]):
    """Store an experiment; its cases follow. Gives its integer."""

    def __init__(self, experiment: Experiment) -> None:
        identifier("id", experiment.experiment_id)
        identifier("name", experiment.name)
        self._experiment = experiment
        self._suite = encode(experiment.suite)
        self._selection = [
            rows.SelectionRow(agent=identifier("name of an agent", agent), case_id=identifier("id", case_id))
            for agent, chosen in (experiment.selected or {}).items()
            for case_id in chosen
        ]
        self._notes = [row for agent, notes in experiment.notes.items() for row in rows.agent_note_rows(agent, notes)]

    def run(self, to: Transaction) -> int:
        number: int
        experiment = self._experiment
        table = experiments
        found = to.execute(
            sa.select(table.c.id, table.c.cases).where(table.c.experiment_id == experiment.experiment_id)
        ).first()
        if found is not None:
            if found.cases is not None:
                raise SeatrialError("conflict", f"there is an experiment {experiment.experiment_id!r} already")
            # Somebody died, or gave up, before the last case was in.
            to.execute(sa.delete(table).where(table.c.id == found.id))
        suite = packed(self._suite)
        number = to.execute(
            sa.insert(table)
            .values(
                experiment_id=experiment.experiment_id,
                name=experiment.name,
                suite_hash=experiment.suite_hash,
                created_at=experiment.created_at,
                finished_at=experiment.finished_at,
                status=experiment.status,
                stop_reason=experiment.stop_reason,
                version=experiment.version,
                packed=suite.packed,
                suite=suite.data,
                selective=int(experiment.selected is not None),
            )
            .returning(table.c.id)
        ).scalar_one()
        for note in self._notes:
            note.experiment = number
        for chosen in self._selection:
            chosen.experiment = number
        to.add(rows.INSERT_AGENT_NOTE, self._notes)
        to.add(rows.INSERT_SELECTION, self._selection)
        return number


class AddCases(Operation[None]):
    """Store cases of an experiment, the first of them at this position."""

    def __init__(self, experiment: int, first: int, cases: Iterable[Case]) -> None:
        self._rows: list[rows.CaseRow] = []
        self._tags: list[rows.CaseTagRow] = []
        for position, case in enumerate(cases, first):
            case_id = identifier("id", case.id)
            self._rows.append(
                rows.CaseRow(experiment=experiment, position=position, case_id=case_id, data=encode(case))
            )
            self._tags += [
                rows.CaseTagRow(experiment=experiment, tag=identifier("tag", tag), case_id=case_id)
                for tag in dict.fromkeys(case.tags)
            ]
        self.size = sum([len(row.data) for row in self._rows])

    def prepare(self, packer: Packer) -> None:
        packer.add(self._rows)

    def run(self, to: Transaction) -> None:
        to.add(rows.INSERT_CASE, self._rows)
        to.add(rows.INSERT_CASE_TAG, self._tags)


class MarkExperiment(Operation[None]):
    """Change what an experiment says of itself."""

    def __init__(self, experiment: int, **values: object) -> None:
        self._statement = sa.update(experiments).where(experiments.c.id == experiment).values(**values)

    def run(self, to: Transaction) -> None:
        to.execute(self._statement)


class AddNotes(Operation[None]):
    """Store more of what an agent said that belongs to no run of the experiment."""

    def __init__(self, experiment: int, agent: str, notes: Iterable[Note]) -> None:
        self._experiment = experiment
        self._agent = identifier("name of an agent", agent)
        self._notes = rows.agent_note_rows(agent, notes)

    def run(self, to: Transaction) -> None:
        table = agent_notes
        here = (table.c.experiment == self._experiment) & (table.c.agent == self._agent)
        # Another process that adds some at the same time collides with this one at their places, and looks again.
        last = to.execute(sa.select(sa.func.max(table.c.position)).where(here)).scalar()
        first = 0 if last is None else last + 1
        for position, note in enumerate(self._notes, first):
            note.experiment, note.position = self._experiment, position
        to.add(rows.INSERT_AGENT_NOTE, self._notes)


def latest(connection: sa.Connection, limit: int) -> list[ExperimentSummary]:
    """The newest first."""
    return _page(connection, limit)


def earlier_of_suite(
    connection: sa.Connection, experiment: int, suite_hash: str, limit: int
) -> list[ExperimentSummary]:
    """Experiments that ran the same suite before this one, the newest first."""
    return _page(connection, limit, experiments.c.suite_hash == suite_hash, experiments.c.id < experiment)


def page(
    connection: sa.Connection, before: int | None, limit: int, terms: Sequence[FilterTerm] = ()
) -> list[ExperimentSummary]:
    """The newest first, those created before this one; with terms, only those with a run that matches."""
    where = [] if before is None else [experiments.c.id < before]
    if terms:
        where.append(sa.exists().where(runs.c.experiment == experiments.c.id, *conditions(terms)))
    return _page(connection, limit, *where)


def _page(connection: sa.Connection, limit: int, *where: sa.ColumnElement[bool]) -> list[ExperimentSummary]:
    columns = [experiments.c[field] for field in ExperimentSummary.__struct_fields__]
    found = connection.execute(sa.select(*columns).where(_COMPLETE, *where).order_by(*_NEWEST_FIRST).limit(limit))
    return [ExperimentSummary(**row) for row in found.mappings()]


def suite_names(connection: sa.Connection, experiment_ids: Sequence[str]) -> dict[str, str]:
    """The names of the suites of these experiments; those of which the suite has none, or is damaged, are left out."""
    query = sa.select(experiments.c.experiment_id, experiments.c.packed, experiments.c.suite)
    found: dict[str, str] = {}
    for row in connection.execute(query.where(experiments.c.experiment_id.in_(experiment_ids))):
        with suppress(SeatrialError, msgspec.DecodeError, UnicodeDecodeError):
            if name := _NAMED.decode(unpack(row.packed, row.suite)).name:
                found[row.experiment_id] = name
    return found


def resolve(connection: sa.Connection, ref: str) -> Experiment:
    """The experiment meant by `latest`, an id, a name (the newest of that name) or the beginning of an id."""
    newest = sa.select(experiments).where(_COMPLETE).order_by(*_NEWEST_FIRST).limit(1)
    if ref == "latest":
        found = connection.execute(newest).first()
    else:
        found = (
            connection.execute(newest.where(experiments.c.experiment_id == ref)).first()
            or connection.execute(newest.where(experiments.c.name == ref)).first()
            or _begun_with(connection, ref)
        )
    if found is None:
        hint = "name one by `latest`, by its name, or by its id or the beginning of it"
        raise SeatrialError("not_found", f"there is no experiment {ref!r} in the store", hint=hint)
    try:
        suite = wire.decode(unpack(found.packed, found.suite), rows.SUITE)
        notes = msgspec.convert(suite.pop(rows.AGENT_NOTES, {}), dict[str, list[Note]])
        query = sa.select(agent_notes.c.agent, agent_notes.c.data).where(agent_notes.c.experiment == found.id)
        for row in connection.execute(query.order_by(agent_notes.c.agent, agent_notes.c.position)):
            notes.setdefault(row.agent, []).append(wire.decode(row.data, rows.NOTE))
        selected = msgspec.convert(suite.pop(rows.SELECTED, None), dict[str, list[str]] | None)
        if found.selective:
            selected = _selected(connection, found.id)
    except (SeatrialError, msgspec.ValidationError) as error:
        raise _damaged(f"the stored suite of the experiment {found.experiment_id}", error) from None
    return Experiment(
        experiment_id=found.experiment_id,
        name=found.name,
        suite=suite,
        suite_hash=found.suite_hash,
        created_at=found.created_at,
        finished_at=found.finished_at,
        status=found.status,
        stop_reason=found.stop_reason,
        version=found.version,
        notes=notes,
        selected=selected,
    )


def _selected(connection: sa.Connection, experiment: int) -> dict[str, list[str]]:
    """The cases of each agent that has any."""
    selected: dict[str, list[str]] = {}
    query = sa.select(selections).where(selections.c.experiment == experiment)
    for row in connection.execute(query.order_by(selections.c.agent, selections.c.case_id)):
        selected.setdefault(row.agent, []).append(row.case_id)
    return selected


def number(connection: sa.Connection, experiment_id: str) -> int:
    """The integer of an experiment."""
    query = sa.select(experiments.c.id).where(experiments.c.experiment_id == experiment_id)
    found: int | None = connection.execute(query).scalar()
    if found is None:
        raise SeatrialError("not_found", f"there is no experiment {experiment_id!r} in the store")
    return found


def case_count(connection: sa.Connection, experiment: int) -> int:
    """How many cases an experiment has."""
    return int(connection.execute(sa.select(experiments.c.cases).where(experiments.c.id == experiment)).scalar() or 0)


def case_page(connection: sa.Connection, experiment: int, first: int) -> list[sa.Row[Any]]:
    """Rows of cases in the order of the suite, from the position `first` on; none at the end.

    As many as are light: SQLite's driver gives up Python's lock for every row, and beside a busy writer it takes longer
    to have it back than to read the row. So rows are best read before there is anything to write.
    """
    found = connection.execution_options(stream_results=True).execute(
        _CASES.where(cases.c.experiment == experiment, cases.c.position >= first)
        .order_by(cases.c.position)
        .limit(MAX_CASES_AT_ONCE)
    )
    page: list[sa.Row[Any]] = []
    size = 0
    while size < CASE_BYTES_AT_ONCE and (some := found.fetchmany(CASES_AT_ONCE)):
        page += some
        size += sum([len(row.data) for row in some])
    found.close()
    return page


def case_of(row: sa.Row[Any]) -> Case:
    """The case of a row; `damaged` when it cannot be read."""
    try:
        return wire.decode(unpack(row.packed, row.data), rows.CASE)
    except SeatrialError as error:
        raise _damaged(f"the stored case {row.case_id!r}", error) from None


class _Tagged(msgspec.Struct):
    tags: list[str] = []


class _Named(msgspec.Struct):
    name: str = ""


_NAMED = msgspec.json.Decoder(_Named)
_TAGGED = msgspec.json.Decoder(_Tagged)


def tags_of(row: sa.Row[Any]) -> list[str]:
    """The tags of the case of a row, without reading the rest of it."""
    return tags_in(unpack(row.packed, row.data))


def tags_in(data: bytes) -> list[str]:
    """The tags of a stored case, each once."""
    return list(dict.fromkeys(_TAGGED.decode(data).tags))


def _damaged(what: str, error: Exception) -> SeatrialError:
    hint = "everything else in the store can be read; a copy of the store may still have it"
    return SeatrialError("damaged", f"{what} is damaged: {error}", hint=hint)


def case(connection: sa.Connection, experiment: int, case_id: str) -> Case:
    """One case."""
    found = connection.execute(_CASES.where(cases.c.experiment == experiment, cases.c.case_id == case_id)).first()
    if found is None:
        raise SeatrialError("not_found", f"the experiment has no case {case_id!r}")
    return case_of(found)


def _begun_with(connection: sa.Connection, start: str) -> sa.Row[tuple[object, ...]] | None:
    begins = sa.func.substr(experiments.c.experiment_id, 1, len(start)) == start
    found = connection.execute(sa.select(experiments).where(_COMPLETE, begins).limit(2)).all() if start else []
    if len(found) > 1:
        raise SeatrialError("ambiguous", f"the ids of several experiments begin with {start!r}")
    return found[0] if found else None
