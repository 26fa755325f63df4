"""What the runs of an experiment add up to: read from the rollups, or counted anew from the rows of its runs.

The rows are what is true. They are counted where the rollups do not have all of them yet, which is so for a while in a
store that an earlier version wrote (see `conversion`), and to check the rollups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import sqlalchemy as sa
from msgspec.structs import asdict

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.runs import ModelCosts, Outcome, Verdict, model_costs
from seatrial.runs.signature import signature_of
from seatrial.store import rows
from seatrial.store.rollups import (
    OF_AGENTS,
    AgentTotals,
    Changes,
    Counted,
    GraderCounts,
    NoteCounts,
    NoteTotals,
    SignatureCount,
    TallyKey,
    Totals,
    agent_totals,
    cell_of,
    weight_of,
)
from seatrial.store.rows import SCORE_UNITS, Cell, CellRow, RunSummary, StoredOutcome, TallyKind, TallyRow
from seatrial.store.schema import (
    FLAKY,
    UNCOUNTED,
    cases,
    cells,
    experiments,
    notes,
    runs,
    steps,
    tallies,
    verdicts,
)
from seatrial.transcript import Weight

Execute: TypeAlias = Callable[[sa.Select[Any]], sa.CursorResult[Any]]
"""Runs a query: that of a connection, or of a transaction of the writer."""

WEIGHTS: tuple[Weight, ...] = ("serious", "look", "harmless")
RUNS_AT_ONCE = 500
EXACT_UP_TO = 2000
"""Runs of an experiment whose durations are all read for percentiles; of more, these come from the histogram."""
_FLAKY_AT_ONCE = 200

COUNTED_RUNS = sa.select(
    runs.c.id,
    runs.c.experiment,
    runs.c.grading,
    runs.c.counted,
    runs.c.grade,
    *[runs.c[field] for field in RunSummary.__struct_fields__],
)
"""Rows that `counted_runs` takes."""


def totals(connection: sa.Connection, experiment: int, flaky: int) -> Totals:
    """What all runs add up to, with the first flaky cells."""
    found = _Rollup(connection, experiment)
    tallied = found.tallies(*OF_AGENTS)
    count = sum(tally.runs for (kind, _, _), tally in tallied.items() if kind == "outcome")
    durations = _exact_durations(connection, experiment) if count <= EXACT_UP_TO else {}
    agents = agent_totals(tallied, durations)
    return Totals(
        agents=agents,
        cases=found.case_count([agent.cases for agent in agents]),
        most_trials=max([agent.most_trials for agent in agents], default=0),
        flaky=found.flaky(flaky),
    )


RATES: tuple[TallyKind, ...] = ("outcome", "trials")
"""Kinds of tallies that pass rates and their intervals need."""


def many_totals(
    connection: sa.Connection, experiment_ids: Sequence[str], *, rates_only: bool
) -> dict[str, list[AgentTotals]]:
    """What the runs of each agent add up to, of several experiments at once, from what is kept; percentiles are about
    right. Those that are not kept completely are counted one by one."""
    numbers = {
        row.id: row.experiment_id
        for row in connection.execute(
            sa.select(experiments.c.id, experiments.c.experiment_id).where(
                experiments.c.experiment_id.in_(experiment_ids)
            )
        )
    }
    kinds = RATES if rates_only else OF_AGENTS
    found: defaultdict[int, dict[TallyKey, TallyRow]] = defaultdict(dict)
    query = sa.select(tallies).where(
        tallies.c.experiment.in_(list(numbers)), tallies.c.kind.in_(kinds), tallies.c.runs != 0
    )
    for row in connection.execute(query).mappings():
        tally = TallyRow(**{**row, "total": int(row["total"])})
        found[tally.experiment][tally.kind, tally.agent, tally.name] = tally
    uncounted = sa.select(runs.c.experiment).where(runs.c.experiment.in_(list(numbers)), sa.text(UNCOUNTED)).distinct()
    for number in connection.scalars(uncounted):
        found[number] = dict(_Rollup(connection, number).tallies(*kinds))
    return {experiment_id: agent_totals(found[number], {}) for number, experiment_id in numbers.items()}


def matrix(connection: sa.Connection, experiment: int, first: int, limit: int) -> list[Cell]:
    """The cells of so many cases in the order of the suite, from the position `first` on."""
    return _Rollup(connection, experiment).page(first, limit)


def agent_cells(connection: sa.Connection, experiment: int, agent: str) -> list[Cell]:
    """All cells of one agent, in the order of the suite."""
    return _Rollup(connection, experiment).of_agent(agent)


def add_examples(connection: sa.Connection, experiment: int, given: Sequence[Cell]) -> None:
    """Say which runs of these cells to look at."""
    of_key = {(cell.case_id, cell.agent): cell for cell in given}
    case_ids = sorted({cell.case_id for cell in given})
    for start in range(0, len(case_ids), RUNS_AT_ONCE):
        # By the key of the runs, so that they come in the order of their trials.
        query = (
            sa.select(runs.c.case_id, runs.c.agent, runs.c.outcome, runs.c.run_id)
            .where(runs.c.experiment == experiment, runs.c.case_id.in_(case_ids[start : start + RUNS_AT_ONCE]))
            .order_by(runs.c.case_id, runs.c.agent, runs.c.trial)
        )
        for row in connection.execute(query):
            cell = of_key.get((row.case_id, row.agent))
            if cell is None:
                continue
            if row.outcome == "passed":
                cell.passed_run = cell.passed_run or row.run_id
            elif row.outcome == "failed":
                cell.failed_run = cell.failed_run or row.run_id
            elif row.outcome == "errored":
                cell.errored_run = cell.errored_run or row.run_id


def graders(connection: sa.Connection, experiment: int, without: Collection[str] = ()) -> list[GraderCounts]:
    """What each grader said of each agent, in the grading that counts; not counting what it said of these runs."""
    found: defaultdict[tuple[str, str], dict[Outcome, TallyRow]] = defaultdict(dict)
    for (_, agent, name), tally in _Rollup(connection, experiment, without).tallies("grader").items():
        outcome, _, grader = name.partition("|")
        found[agent, grader][outcome] = tally  # type: ignore[index]  # we wrote it
    return [
        GraderCounts(agent, grader, _mean(said.values()), {word: tally.runs for word, tally in sorted(said.items())})
        for (agent, grader), said in sorted(found.items())
    ]


def errored_with_failure(connection: sa.Connection, experiment: int) -> dict[str, int]:
    """Of each agent, how many runs errored although a grader failed them; agents without any are left out."""
    query = (
        sa.select(runs.c.agent, sa.func.count(sa.distinct(runs.c.id)).label("runs"))
        .join(verdicts, (verdicts.c.run == runs.c.id) & (verdicts.c.grading == runs.c.grading))
        .where(runs.c.experiment == experiment, runs.c.outcome == "errored", verdicts.c.outcome == "failed")
        .group_by(runs.c.agent)
    )
    return {row.agent: row.runs for row in connection.execute(query)}


def agent_model_costs(connection: sa.Connection, experiment: int) -> dict[str, ModelCosts]:
    """What asking models to grade the runs of each agent cost; agents for which none was asked are left out."""
    return _model_costs(connection, runs.c.agent, runs.c.experiment == experiment)


def run_model_costs(connection: sa.Connection, run_ids: Sequence[str]) -> dict[str, ModelCosts]:
    """The same of each of these runs."""
    found: dict[str, ModelCosts] = {}
    for start in range(0, len(run_ids), RUNS_AT_ONCE):
        found |= _model_costs(connection, runs.c.run_id, runs.c.run_id.in_(run_ids[start : start + RUNS_AT_ONCE]))
    return found


def _model_costs(connection: sa.Connection, of: sa.Column[str], where: sa.ColumnElement[bool]) -> dict[str, ModelCosts]:
    """Of every grading: those that count no more were paid for, too."""
    index = sa.func.instr if connection.dialect.name == "sqlite" else _position
    # Of most verdicts nothing is said, and they need not be decoded to see that.
    figures = [index(verdicts.c.data, sa.literal(key, sa.LargeBinary)) > 0 for key in (b'cost_usd":', b'tokens":')]
    query = (
        sa.select(of.label("of"), verdicts.c.data)
        .join(verdicts, verdicts.c.run == runs.c.id)
        .where(where, sa.or_(*figures))
        .execution_options(yield_per=RUNS_AT_ONCE)
    )
    found: defaultdict[str, ModelCosts] = defaultdict(ModelCosts)
    for row in connection.execute(query):
        try:
            costs = model_costs([rows.decode_verdict(row.data)])
        except (SeatrialError, ValueError):
            costs = ModelCosts()
            costs.add(None, None)
        if costs.asked:
            found[row.of].add_all(costs)
    return dict(found)


def _position(column: sa.ColumnElement[bytes], part: sa.ColumnElement[bytes]) -> sa.ColumnElement[int]:
    return sa.func.position(part.op("IN")(column), type_=sa.Integer)


def note_totals(connection: sa.Connection, experiment: int) -> NoteTotals:
    """What was noted on the runs of each agent, by code."""
    found: list[NoteCounts] = []
    heaviest: defaultdict[str, int] = defaultdict(int)
    for (kind, agent, name), tally in _Rollup(connection, experiment).tallies("note", "noted").items():
        if kind == "noted":
            heaviest[name] += tally.runs
        else:
            weight, _, code = name.partition("|")
            found.append(NoteCounts(agent, code, weight, tally.total, tally.runs))  # type: ignore[arg-type]
    return NoteTotals(
        sorted(found, key=lambda counted: (WEIGHTS.index(counted.weight), counted.agent, counted.code)),
        runs=heaviest["look"] + heaviest["serious"],
        serious_runs=heaviest["serious"],
    )


def signatures(
    connection: sa.Connection, experiment: int, limit: int, agent: str | None = None
) -> list[SignatureCount]:
    """In which ways runs fail, of all agents or of one, the most frequent first."""
    found = [
        SignatureCount(of_agent, name, tally.runs)
        for (_, of_agent, name), tally in _Rollup(connection, experiment).tallies("signature", agent=agent).items()
    ]
    return sorted(found, key=lambda counted: (-counted.runs, counted.agent, counted.signature))[:limit]


def recount(
    connection: sa.Connection, experiment: int, without: Collection[str] = (), *, kept_only: bool = False
) -> Changes:
    """What the rollups of an experiment are to be, from the rows of its runs, but for some of them; or (`kept_only`)
    from those of the runs that they have already."""
    counted = Changes(experiment)
    last = 0
    query = COUNTED_RUNS.where(runs.c.experiment == experiment).order_by(runs.c.id).limit(RUNS_AT_ONCE)
    if kept_only:
        query = query.where(runs.c.counted == rows.COUNTED)
    while found := connection.execute(query.where(runs.c.id > last)).all():
        counted.add(counted_runs(connection.execute, [row for row in found if row.run_id not in without]))
        last = found[-1].id
    counted.close()
    return counted


def counted_runs(execute: Execute, found: Sequence[sa.Row[Any]], *, notes: bool = True) -> Iterator[Counted]:
    """What is counted of the runs of these rows, which are of `COUNTED_RUNS`."""
    numbers = [row.id for row in found]
    graded: defaultdict[int, list[tuple[str, Outcome, float | None]]] = defaultdict(list)
    noted: dict[int, dict[tuple[str, Weight], int]] = {}
    if numbers:
        for said in execute(_VERDICTS.where(verdicts.c.run.in_(numbers))):
            graded[said.run].append((said.grader, said.outcome, said.score))
        if notes:
            noted = run_note_counts(execute, numbers)
    for row in found:
        run = RunSummary(**{field: getattr(row, field) for field in RunSummary.__struct_fields__})
        yield Counted(run, graded[row.id], noted.get(row.id, {}), _has_all(row.grade, len(graded[row.id])))


def _has_all(grade: bytes | None, count: int) -> bool:
    """Whether a stored grade was made from exactly this many verdicts."""
    try:
        return grade is None or rows.decode_grade(grade).has_all(count)
    except (SeatrialError, ValueError):
        return False


def run_note_counts(execute: Execute, numbers: Sequence[int]) -> dict[int, dict[tuple[str, Weight], int]]:
    """The notes of each of these runs, by code and weight, in the order in which they first occur."""
    query = (
        sa.select(notes.c.run, notes.c.code, notes.c.weight, sa.func.count().label("notes"))
        .where(notes.c.run.in_(numbers))
        .group_by(notes.c.run, notes.c.code, notes.c.weight)
        .order_by(notes.c.run, sa.func.min(notes.c.position))
    )
    found: defaultdict[int, dict[tuple[str, Weight], int]] = defaultdict(dict)
    for row in execute(query):
        key = row.code, weight_of(row.code, row.weight)
        found[row.run][key] = found[row.run].get(key, 0) + row.notes
    return found


def signature_in(execute: Execute, number: int, outcome: StoredOutcome, given: Sequence[Verdict]) -> str | None:
    """The signature of a stored run with these verdicts."""
    if outcome not in ("failed", "errored"):
        return None
    fault = None
    with suppress(SeatrialError):  # the run is damaged, which is said where the whole of it is read
        data = execute(sa.select(runs.c.data).where(runs.c.id == number)).scalar_one()
        fault = wire.decode(data, rows.RUN_DATA).fault

    def name_of(index: int) -> str | None:
        found: str | None = execute(
            sa.select(steps.c.name).where(steps.c.run == number, steps.c.position == index)
        ).scalar()
        return found

    return signature_of(outcome, fault, given, name_of)


def all_counted(connection: sa.Connection, experiment: int) -> bool:
    """Whether the rollups have all runs of an experiment."""
    query = sa.select(runs.c.id).where(runs.c.experiment == experiment, sa.text(UNCOUNTED)).limit(1)
    return connection.execute(query).first() is None


class _Rollup:
    """The rollups of an experiment: those that are kept, or counted now where these are not complete."""

    def __init__(self, connection: sa.Connection, experiment: int, without: Collection[str] = ()) -> None:
        self._connection = connection
        self._experiment = experiment
        kept = not without and all_counted(connection, experiment)
        self._counted = None if kept else recount(connection, experiment, without)

    def tallies(self, *kinds: TallyKind, agent: str | None = None) -> Mapping[TallyKey, TallyRow]:
        """The tallies of these kinds that are not 0; of one agent, where that is all that is asked for."""
        if self._counted is not None:
            every = self._counted.tallies.items()
            return {key: row for key, row in every if key[0] in kinds and row.runs and agent in (None, key[1])}
        query = sa.select(tallies).where(
            tallies.c.experiment == self._experiment, tallies.c.kind.in_(kinds), tallies.c.runs != 0
        )
        found = self._connection.execute(query if agent is None else query.where(tallies.c.agent == agent))
        # Of large sums PostgreSQL gives decimals.
        made = [TallyRow(**{**row, "total": int(row["total"])}) for row in found.mappings()]
        return {(tally.kind, tally.agent, tally.name): tally for tally in made}

    def page(self, first: int, limit: int) -> list[Cell]:
        """The cells of the cases from one position on, in the order of the suite."""
        here = (cases.c.experiment == self._experiment) & cases.c.position.between(first, first + limit - 1)
        # The limit is for PostgreSQL: it takes positions to be independent of experiments, expects thousands of cases,
        # and would start another process to read them.
        page = sa.select(cases.c.case_id, cases.c.position).where(here).order_by(cases.c.position).limit(limit)
        if self._counted is not None:
            return self._of_cases(list(self._connection.scalars(page)))
        some = page.subquery()
        query = (
            sa.select(cells)
            .join(some, some.c.case_id == cells.c.case_id)
            .where(cells.c.experiment == self._experiment, cells.c.runs > 0)
            .order_by(some.c.position, cells.c.agent)
        )
        return [cell_of(row) for row in self._connection.execute(query).mappings()]

    def of_agent(self, agent: str) -> list[Cell]:
        """The cells of one agent, in the order of the suite."""
        here = cases.c.experiment == self._experiment
        if self._counted is None:
            query = _CELLS.where(here, cells.c.agent == agent).order_by(cases.c.position)
            return [cell_of(row) for row in self._connection.execute(query).mappings()]
        every = self._connection.scalars(sa.select(cases.c.case_id).where(here).order_by(cases.c.position))
        return self._of_cases(list(every), agent)

    def flaky(self, limit: int) -> list[Cell]:
        """The first cells in which some trials passed and some failed, in the order of the suite."""
        if self._counted is not None:
            found = [_cell(row) for row in self._counted.cells.values() if row.passed > 0 < row.failed]
        else:
            # Of thousands, the first by their ids have to do: nobody reads the list to its end.
            query = sa.select(cells).where(cells.c.experiment == self._experiment, sa.text(FLAKY))
            query = query.order_by(cells.c.case_id, cells.c.agent).limit(_FLAKY_AT_ONCE)
            found = [cell_of(row) for row in self._connection.execute(query).mappings()]
        places: dict[str, int] = {}
        case_ids = list({cell.case_id for cell in found})
        for start in range(0, len(case_ids), RUNS_AT_ONCE):
            some = cases.c.case_id.in_(case_ids[start : start + RUNS_AT_ONCE])
            query = sa.select(cases.c.case_id, cases.c.position).where(cases.c.experiment == self._experiment, some)
            places.update({row.case_id: row.position for row in self._connection.execute(query)})
        last = len(places)  # of a case that is not in the store any more
        return sorted(found, key=lambda cell: (places.get(cell.case_id, last), cell.agent))[:limit]

    def case_count(self, of_agents: Sequence[int]) -> int:
        """How many cases have a run, when each agent has runs of so many."""
        most = max(of_agents, default=0)
        if len(of_agents) < 2:
            return most
        if self._counted is not None:
            return len({case_id for (case_id, _), cell in self._counted.cells.items() if cell.runs})
        planned = sa.select(experiments.c.cases).where(experiments.c.id == self._experiment)
        if most == self._connection.execute(planned).scalar():
            return most
        # Not all was run, and not the same by all agents.
        ran = sa.select(sa.func.count(sa.distinct(cells.c.case_id))).where(
            cells.c.experiment == self._experiment, cells.c.runs > 0
        )
        return int(self._connection.execute(ran).scalar() or 0)

    def _of_cases(self, case_ids: list[str], only: str | None = None) -> list[Cell]:
        counted = {} if self._counted is None else self._counted.cells
        agents = sorted({agent for _, agent in counted}) if only is None else [only]
        return [
            _cell(counted[case_id, agent]) for case_id in case_ids for agent in agents if (case_id, agent) in counted
        ]


def _exact_durations(connection: sa.Connection, experiment: int) -> dict[str, list[float]]:
    """How long the timed runs of each agent took, in ascending order."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for run in connection.execute(_DURATIONS.where(runs.c.experiment == experiment)):
        if isinstance(run.duration_ms, int | float):  # a damaged one is reported where the whole run is read
            found[run.agent].append(run.duration_ms)
    return found


def _cell(row: CellRow) -> Cell:
    return cell_of(asdict(row))


def _mean(tallied: Iterable[TallyRow]) -> float | None:
    some = list(tallied)
    count = sum(tally.counted for tally in some)
    return sum(tally.total for tally in some) / SCORE_UNITS / count if count else None


_CELLS = (
    sa.select(cells)
    .join(cases, (cases.c.experiment == cells.c.experiment) & (cases.c.case_id == cells.c.case_id))
    .where(cells.c.runs > 0)
)
_DURATIONS = (
    sa.select(runs.c.agent, runs.c.duration_ms)
    .where(runs.c.outcome.in_(("passed", "failed")), runs.c.error_class.is_(None), runs.c.duration_ms.is_not(None))
    .order_by(runs.c.duration_ms)
)
_VERDICTS = sa.select(verdicts.c.run, verdicts.c.grader, verdicts.c.outcome, verdicts.c.score).join(
    runs, (runs.c.id == verdicts.c.run) & (runs.c.grading == verdicts.c.grading)
)
