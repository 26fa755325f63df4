"""Parts of one run that its page asks for: its steps as bars of a timeline, its failed calls, its gradings, and the
other runs of its case. None of it reads the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import sqlalchemy as sa

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.chat.calls import ExecutedBy
from seatrial.runs import Outcome, Verdict
from seatrial.store import rows
from seatrial.store.documents import column_text
from seatrial.store.items import StoredStep, cut_texts
from seatrial.store.rollups import known_steps
from seatrial.store.rows import RunSummary
from seatrial.store.schema import runs, steps, verdicts
from seatrial.trajectory.step import FAILED, Moment, ProxyMode, Source, Status, Step

MAX_TRIALS = 500


class StepLine(msgspec.Struct, frozen=True, gc=False):
    """A step without its arguments and its result."""

    index: int
    name: str
    source: Source = "trace"
    status: Status = "unknown"
    id: str | None = None
    started_at: Moment | None = None
    ended_at: Moment | None = None
    duration_ms: float | None = None
    actor: str | None = None
    mode: ProxyMode | None = None
    executed_by: ExecutedBy = "agent"
    arguments_text: str | None = None
    """The arguments as sent, when they are not JSON; of long ones, the beginning."""


class GradingSummary(msgspec.Struct, frozen=True):
    """One grading of a run, of which only the latest counts."""

    number: int
    """From 0."""
    outcomes: dict[Outcome, int]
    """How many verdicts there are of each outcome."""


_LINE = msgspec.json.Decoder(StepLine)


def step_lines(connection: sa.Connection, run_id: str, first: int, count: int) -> list[StepLine]:
    """So many steps of a run, from one on."""
    query = sa.select(steps.c.data).where(steps.c.position.between(first, first + count - 1))
    found = connection.execute(_of(connection, query, run_id, steps).order_by(steps.c.position))
    return [wire.decode(row.data, _LINE) for row in found]


def failed_steps(connection: sa.Connection, run_id: str, limit: int) -> list[StoredStep]:
    """The first so many steps that failed."""
    query = sa.select(steps).where(steps.c.status.in_(sorted(FAILED)))
    return _steps(connection, _of(connection, query, run_id, steps).order_by(steps.c.position).limit(limit))


def good_calls(connection: sa.Connection, run_id: str, name: str, after: int, limit: int) -> list[StoredStep]:
    """The first so many calls of a tool that went well, behind a step."""
    same = steps.c.name == column_text(name)
    query = sa.select(steps).where(same, steps.c.status == "ok", steps.c.position > after)
    return _steps(connection, _of(connection, query, run_id, steps).order_by(steps.c.position).limit(limit))


def _steps(connection: sa.Connection, query: sa.Select[Any]) -> list[StoredStep]:
    return [
        StoredStep(wire.decode(row.data, rows.STEP), [cut.text for cut in cut_texts(row)])
        for row in connection.execute(query)
    ]


def whole_arguments(stored: StoredStep) -> Step:
    """A step to be compared with others: long parts of its arguments, which are not at hand, by their address."""
    cut = {text.pointer: text.address for text in stored.long_texts if text.pointer.startswith("/arguments")}
    if not cut:
        return stored.step
    return msgspec.structs.replace(stored.step, arguments=[stored.step.arguments, cut])


def gradings(connection: sa.Connection, run_id: str) -> list[GradingSummary]:
    """All gradings of a run, the first one first."""
    count = sa.func.count().label("number")
    query = sa.select(verdicts.c.grading, verdicts.c.outcome, count).group_by(verdicts.c.grading, verdicts.c.outcome)
    found: dict[int, dict[Outcome, int]] = {}
    for row in connection.execute(_of(connection, query, run_id, verdicts).order_by(verdicts.c.grading)):
        found.setdefault(row.grading, {})[row.outcome] = row.number
    return [GradingSummary(number, outcomes) for number, outcomes in found.items()]


def verdicts_of(connection: sa.Connection, run_id: str, grading: int) -> list[Verdict]:
    """The verdicts of one grading of a run, in the order of the graders."""
    query = sa.select(verdicts.c.data).where(verdicts.c.grading == grading)
    found = connection.execute(_of(connection, query, run_id, verdicts).order_by(verdicts.c.position))
    return [rows.decode_verdict(row.data) for row in found]


def failed_verdicts(connection: sa.Connection, run_ids: Sequence[str]) -> dict[str, list[Verdict]]:
    """The verdicts of these runs that did not pass, in the grading that counts and in the order of the graders."""
    query = (
        sa.select(runs.c.run_id, verdicts.c.data)
        .join(verdicts, (verdicts.c.run == runs.c.id) & (verdicts.c.grading == runs.c.grading))
        .where(runs.c.run_id.in_(run_ids), verdicts.c.outcome != "passed")
        .order_by(runs.c.id, verdicts.c.position)
    )
    found: dict[str, list[Verdict]] = {}
    for row in connection.execute(query):
        with suppress(SeatrialError, ValueError):  # a damaged one is reported where the whole run is read
            found.setdefault(row.run_id, []).append(rows.decode_verdict(row.data))
    return found


def step_names(connection: sa.Connection, wanted: Mapping[str, Iterable[int]]) -> dict[str, dict[int, str]]:
    """The tools of these steps of these runs."""
    places = sorted({index for some in wanted.values() for index in some})
    found: dict[str, dict[int, str]] = {}
    if places:
        query = (
            sa.select(runs.c.run_id, steps.c.position, steps.c.name)
            .join(steps, steps.c.run == runs.c.id)
            .where(runs.c.run_id.in_(sorted(wanted)), steps.c.position.in_(places))
        )
        for row in connection.execute(query):
            found.setdefault(row.run_id, {})[row.position] = row.name
    return found


def case_runs(connection: sa.Connection, experiment: int, case_id: str) -> list[RunSummary]:
    """The runs of one case by all agents, in the order of agents and trials."""
    query = sa.select(*[runs.c[field] for field in RunSummary.__struct_fields__])
    query = query.where(runs.c.experiment == experiment, runs.c.case_id == case_id)
    found = []
    for row in connection.execute(query.order_by(runs.c.agent, runs.c.trial).limit(MAX_TRIALS)):
        summary = RunSummary(**{field: getattr(row, field) for field in RunSummary.__struct_fields__})
        summary.steps = known_steps(summary)
        found.append(summary)
    return found


def _of(connection: sa.Connection, query: sa.Select[Any], run_id: str, table: sa.Table) -> sa.Select[Any]:
    number = connection.execute(sa.select(runs.c.id).where(runs.c.run_id == run_id)).scalar()
    if number is None:
        raise rows.no_run(run_id)
    return query.where(table.c.run == number)
