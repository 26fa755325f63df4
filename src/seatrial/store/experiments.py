"""Experiments and their cases, read from a store."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.runs import Case, Experiment
from seatrial.store import rows
from seatrial.store.bodies import unpack
from seatrial.store.schema import agent_notes, cases, experiments
from seatrial.transcript import Note

# Integers are given in the order of creation, whatever the clock of whoever created it said.
_NEWEST_FIRST = (experiments.c.id.desc(),)
_COMPLETE = experiments.c.cases.is_not(None)


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


def latest(connection: sa.Connection, limit: int) -> list[ExperimentSummary]:
    """The newest first."""
    columns = [experiments.c[field] for field in ExperimentSummary.__struct_fields__]
    found = connection.execute(sa.select(*columns).where(_COMPLETE).order_by(*_NEWEST_FIRST).limit(limit))
    return [ExperimentSummary(*row) for row in found]


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
    )


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


def case_page(connection: sa.Connection, experiment: int, first: int) -> list[tuple[str, int, bytes]]:
    """Ids and documents of cases in the order of the suite, from the position `first` on; none at the end.

    As many as are light: SQLite's driver gives up Python's lock for every row, and beside a busy writer it takes longer
    to have it back than to read the row. So rows are best read before there is anything to write.
    """
    found = connection.execution_options(stream_results=True).execute(
        sa.select(cases.c.case_id, cases.c.packed, cases.c.data)
        .where(cases.c.experiment == experiment, cases.c.position >= first)
        .order_by(cases.c.position)
        .limit(MAX_CASES_AT_ONCE)
    )
    page: list[tuple[str, int, bytes]] = []
    size = 0
    while size < CASE_BYTES_AT_ONCE and (some := found.fetchmany(CASES_AT_ONCE)):
        page += [(case_id, packed, data) for case_id, packed, data in some]
        size += sum([len(data) for _, _, data in some])
    found.close()
    return page


def case_of(case_id: str, packed: int, data: bytes) -> Case:
    """The case of a document; `damaged` when it cannot be read."""
    try:
        return wire.decode(unpack(packed, data), rows.CASE)
    except SeatrialError as error:
        raise _damaged(f"the stored case {case_id!r}", error) from None


def _damaged(what: str, error: Exception) -> SeatrialError:
    hint = "everything else in the store can be read; a copy of the store may still have it"
    return SeatrialError("damaged", f"{what} is damaged: {error}", hint=hint)


def case(connection: sa.Connection, experiment: int, case_id: str) -> Case:
    """One case."""
    query = sa.select(cases.c.packed, cases.c.data)
    found = connection.execute(query.where(cases.c.experiment == experiment, cases.c.case_id == case_id)).first()
    if found is None:
        raise SeatrialError("not_found", f"the experiment has no case {case_id!r}")
    return case_of(case_id, found.packed, found.data)


def _begun_with(connection: sa.Connection, start: str) -> sa.Row[tuple[object, ...]] | None:
    begins = sa.func.substr(experiments.c.experiment_id, 1, len(start)) == start
    found = connection.execute(sa.select(experiments).where(_COMPLETE, begins).limit(2)).all() if start else []
    if len(found) > 1:
        raise SeatrialError("ambiguous", f"the ids of several experiments begin with {start!r}")
    return found[0] if found else None
