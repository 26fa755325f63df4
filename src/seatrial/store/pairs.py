"""Cells of an agent beside those of a base: how many cases changed which way, and pages of cases in any order.

Everything is read from the cells, of which there is one for each case and agent, however many trials it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import sqlalchemy as sa

from seatrial.events.types import RunStatus
from seatrial.store.documents import column_text
from seatrial.store.filter.conditions import conditions
from seatrial.store.filter.language import FilterTerm
from seatrial.store.rollups import cell_of
from seatrial.store.rows import Cell, StoredOutcome
from seatrial.store.schema import case_tags, cases, cells, runs

CaseTab: TypeAlias = Literal["worse", "better", "flaky", "errored", "all"]
CaseSort: TypeAlias = Literal["change", "flaky", "cost", "duration", "steps", "score", "suite"]
TABS: Final[tuple[CaseTab, ...]] = get_args(CaseTab)
SORTS: Final[tuple[CaseSort, ...]] = get_args(CaseSort)


class CellsOf(msgspec.Struct, frozen=True):
    """The cells of one agent in one experiment."""

    experiment_id: str
    agent: str


class CaseOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Which cases of an experiment, and in which order."""

    agent: str
    """The agent that tabs and orders are about."""
    base: CellsOf | None = None
    tab: CaseTab = "all"
    sort: CaseSort = "change"
    """`change`: what dropped most before the rest; without a base, what passes least."""
    by_tag: bool = False
    """A case is then under each of its tags, those without a tag at the end."""
    terms: tuple[FilterTerm, ...] = ()
    """Cases with a run of one of `agents` that matches."""
    agents: tuple[str, ...] = ()


class CasePlace(msgspec.Struct, frozen=True):
    """A line of a page of cases."""

    case_id: str
    position: int
    tag: str | None = None


class CaseTallies(msgspec.Struct, frozen=True):
    """What the cells of an agent come to, beside those of a base."""

    pairs: dict[tuple[int, int, int, int], int]
    """How many cases passed and were graded so often in the base, and here; of those that both sides have a graded run
    of."""
    cases: int
    """Cases that the agent has a run of."""
    flaky: int
    errored: int
    """Cases with a run that errored."""


def case_tallies(
    connection: sa.Connection, experiment: int, agent: str, base: tuple[int, str] | None = None
) -> CaseTallies:
    """Count the cells of an agent."""
    here, there = cells.alias("here"), cells.alias("there")
    graded = here.c.passed + here.c.failed
    columns = [here.c.passed, graded, here.c.errored > 0]
    source: sa.FromClause = here
    if base is not None:
        columns += [there.c.passed, there.c.passed + there.c.failed]
        same = (there.c.experiment == base[0]) & (there.c.agent == column_text(base[1]))
        source = here.outerjoin(there, same & (there.c.case_id == here.c.case_id))
    wanted = (here.c.experiment == experiment) & (here.c.agent == column_text(agent)) & (here.c.runs > 0)
    query: sa.Select[Any] = sa.select(*columns, sa.func.count()).select_from(source).where(wanted).group_by(*columns)
    pairs: dict[tuple[int, int, int, int], int] = {}
    every = flaky = errored = 0
    for row in connection.execute(query):
        passed, of, has_errored, *beside, count = row
        every += count
        flaky += count if 0 < passed < of else 0
        errored += count if has_errored else 0
        if beside and of and beside[1]:
            key = beside[0], beside[1], passed, of
            pairs[key] = pairs.get(key, 0) + count
    return CaseTallies(pairs, every, flaky, errored)


def case_page(
    connection: sa.Connection, experiment: int, base: int | None, order: CaseOrder, first: int, limit: int
) -> list[CasePlace]:
    """So many cases, behind the first so many."""
    query = _ordered(experiment, base, order)
    return [
        CasePlace(row.case_id, row.position, row.tag) for row in connection.execute(query.offset(first).limit(limit))
    ]


def matching_cases(connection: sa.Connection, experiment: int, base: int | None, order: CaseOrder, limit: int) -> int:
    """How many lines there are in all, up to the limit."""
    some = _ordered(experiment, base, order).order_by(None).limit(limit).subquery()
    return int(connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one())


def _ordered(experiment: int, base: int | None, order: CaseOrder) -> sa.Select[Any]:
    here, there = cells.alias("here"), cells.alias("there")
    same = (here.c.experiment == cases.c.experiment) & (here.c.case_id == cases.c.case_id)
    source = cases.outerjoin(here, same & (here.c.agent == column_text(order.agent)))
    rate, before = _share(here.c.passed, here.c.passed + here.c.failed), None
    if order.base is not None and base is not None:
        paired = (there.c.experiment == base) & (there.c.case_id == cases.c.case_id)
        source = source.outerjoin(there, paired & (there.c.agent == column_text(order.base.agent)))
        before = _share(there.c.passed, there.c.passed + there.c.failed)
    tag: sa.ColumnElement[Any] = sa.null().label("tag")
    if order.by_tag:
        tagged = (case_tags.c.experiment == cases.c.experiment) & (case_tags.c.case_id == cases.c.case_id)
        source = source.outerjoin(case_tags, tagged)
        tag = case_tags.c.tag
    query = sa.select(cases.c.case_id, cases.c.position, tag).select_from(source)
    query = query.where(cases.c.experiment == experiment)
    if (condition := _tab(order.tab, here, there if before is not None else None)) is not None:
        query = query.where(condition)
    if order.terms:
        some = sa.select(runs.c.case_id).where(runs.c.experiment == experiment, *conditions(order.terms))
        if order.agents:
            some = some.where(runs.c.agent.in_([column_text(agent) for agent in order.agents]))
        query = query.where(cases.c.case_id.in_(some))
    if order.by_tag:
        query = query.order_by(sa.case((tag.is_(None), 1), else_=0), tag)
    if order.sort != "suite":
        value = _value(order, here, rate, before)
        query = query.order_by(sa.case((value.is_(None), 1), else_=0), value)
    return query.order_by(cases.c.position)


def _tab(tab: CaseTab, here: sa.FromClause, there: sa.FromClause | None) -> sa.ColumnElement[bool] | None:
    if tab == "flaky":
        return (here.c.passed > 0) & (here.c.failed > 0)
    if tab == "errored":
        return here.c.errored > 0
    if tab == "all":
        return None
    if there is None:
        return sa.false()
    now = here.c.passed * (there.c.passed + there.c.failed)
    then = there.c.passed * (here.c.passed + here.c.failed)
    both = (here.c.passed + here.c.failed > 0) & (there.c.passed + there.c.failed > 0)
    return both & (now < then if tab == "worse" else now > then)


def _value(
    order: CaseOrder, here: sa.FromClause, rate: sa.ColumnElement[Any], before: sa.ColumnElement[Any] | None
) -> sa.ColumnElement[Any]:
    """What is sorted by, the smallest first."""
    if order.sort == "flaky":
        # Halves are the flakiest.
        return sa.case(((here.c.passed > 0) & (here.c.failed > 0), sa.func.abs(rate - 0.5)), else_=None)
    if order.sort == "score":
        return _share(here.c.score_sum, here.c.scored)
    if order.sort in ("cost", "duration", "steps"):
        total, count = {
            "cost": (here.c.cost_sum, here.c.priced),
            "duration": (here.c.duration_sum, here.c.timed),
            "steps": (here.c.step_sum, here.c.stepped),
        }[order.sort]
        return -_share(total, count)
    if before is None:
        return rate
    return before - rate if order.tab == "better" else rate - before


def _share(part: sa.ColumnElement[Any], whole: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """NULL of nothing."""
    return sa.cast(part, sa.Double) / sa.func.nullif(sa.cast(whole, sa.Double), 0.0)


def cells_of(connection: sa.Connection, experiment: int, case_ids: Sequence[str], agents: Sequence[str]) -> list[Cell]:
    """The cells of these cases and agents."""
    query = sa.select(cells).where(
        cells.c.experiment == experiment,
        cells.c.case_id.in_(case_ids),
        cells.c.agent.in_([column_text(agent) for agent in agents]),
        cells.c.runs > 0,
    )
    return [cell_of(row) for row in connection.execute(query).mappings()]


class TrialLine(msgspec.Struct, frozen=True, gc=False):
    """A run as one of the trials of a case."""

    case_id: str
    agent: str
    trial: int
    run_id: str
    status: RunStatus
    outcome: StoredOutcome
    score: float | None
    error_class: str | None


def trials_of(
    connection: sa.Connection, experiment: int, case_ids: Sequence[str], agents: Sequence[str], most: int
) -> list[TrialLine]:
    """The first so many trials of these cases by these agents, in the order of cases, agents and trials."""
    query = (
        sa.select(*[runs.c[field] for field in TrialLine.__struct_fields__])
        .where(
            runs.c.experiment == experiment,
            runs.c.case_id.in_(case_ids),
            runs.c.agent.in_([column_text(agent) for agent in agents]),
            runs.c.trial <= most,
        )
        .order_by(runs.c.case_id, runs.c.agent, runs.c.trial)
    )
    return [TrialLine(*row) for row in connection.execute(query)]
