"""Cases by agents: a page of cases in some order, each with its trials as marks, what changed, and why it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from seatrial.explorer import numbers
from seatrial.explorer.render import address
from seatrial.reports.stored_findings import StoredFailure, stored_failures
from seatrial.store import CaseOrder, CasePlace, Cell, CellsOf, Store, StoredOutcome, TrialLine

ROWS: Final = 50
MAX_MARKS: Final = 10
"""Trials of a cell that are drawn one by one; of more, they are counted."""
MARKS_OF_A_PAGE: Final = 550
"""Marks are most of what a page weighs: with many agents or trials it has fewer cases."""
LOOKED_AT: Final = 40
"""The first trials of a case, among which one is found to say why it fails."""


class TrialMark(msgspec.Struct, frozen=True):
    """A trial, as a link to its run."""

    run_id: str
    trial: int
    outcome: StoredOutcome


class MatrixCell(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent made of a case."""

    label: str
    """Its agent, for narrow screens."""
    base: bool
    trials: list[TrialMark]
    """None of many: then the numbers say it."""
    passed: int
    graded: int
    errored: int
    other: int
    lacking: int = 0
    """Trials that are still to come."""
    share: float | None = None


class MatrixRow(msgspec.Struct, frozen=True, kw_only=True):
    """A case."""

    case_id: str
    href: str
    tag: str | None
    """Only where it begins the cases of a tag."""
    begins: bool
    cells: list[MatrixCell | None]
    """As the columns; None where that agent has no run of the case."""
    change: float | None
    """How much more often the chosen agent passes it than its base."""
    why: str
    errored: bool
    """Whether that is why a run errored, which says nothing of the agent."""
    where: str | None
    """The place in words, and its address."""
    where_href: str | None
    compare: str | None
    """The address of a run of the base beside one that ended otherwise."""


class MatrixColumn(msgspec.Struct, frozen=True):
    """Whose cells they are."""

    experiment_id: str
    agent: str
    label: str
    base: bool


class MatrixPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some rows."""

    rows: list[MatrixRow]
    first: int
    """The place of the first of them, from 0."""
    more: bool


def matrix_page(
    store: Store,
    experiment_id: str,
    columns: Sequence[MatrixColumn],
    order: CaseOrder,
    first: int,
    *,
    trials: int,
    planned: int | None = None,
) -> MatrixPage:
    """So many cases, behind the first so many; `trials` is the most that a cell has."""
    drawn = trials <= MAX_MARKS
    count = max(10, min(ROWS, MARKS_OF_A_PAGE // max(1, len(columns) * (trials if drawn else 2))))
    places = store.case_page(experiment_id, order, first=first, limit=count + 1)
    shown = places[:count]
    cells, runs = _read(store, [place.case_id for place in shown], columns, MAX_MARKS if drawn else LOOKED_AT)
    own = MatrixColumn(experiment_id, order.agent, "", False)
    worst = {place.case_id: _worst(runs.get((*_key(own), place.case_id), ())) for place in shown}
    if not any(column.base for column in columns) and order.base is not None:
        raise AssertionError("a base is among the columns")
    # Without the chosen agent failing, another one may.
    for place in shown:
        if worst[place.case_id] is None:
            others = [runs.get((*_key(column), place.case_id), ()) for column in columns if not column.base]
            worst[place.case_id] = next(filter(None, map(_worst, others)), None)
    found = stored_failures(store, experiment_id, [run for run in worst.values() if run is not None])
    rows: list[MatrixRow] = []
    tag: str | None = None
    for place in shown:
        begins = order.by_tag and (not rows or place.tag != tag)
        tag = place.tag
        rows.append(
            _row(
                place, experiment_id, columns, order, cells, runs, worst, found, drawn, begins, planned if drawn else 0
            )
        )
    return MatrixPage(rows=rows, first=first, more=len(places) > count)


_Cells = Mapping[tuple[str, str, str], Cell]
_Runs = Mapping[tuple[str, str, str], Sequence[TrialLine]]


def _key(column: MatrixColumn | CellsOf) -> tuple[str, str]:
    return column.experiment_id, column.agent


def _read(store: Store, case_ids: list[str], columns: Sequence[MatrixColumn], most: int) -> tuple[_Cells, _Runs]:
    cells: dict[tuple[str, str, str], Cell] = {}
    runs: dict[tuple[str, str, str], list[TrialLine]] = {}
    for experiment_id in dict.fromkeys(column.experiment_id for column in columns):
        agents = [column.agent for column in columns if column.experiment_id == experiment_id]
        for cell in store.cells_of(experiment_id, case_ids, agents):
            cells[experiment_id, cell.agent, cell.case_id] = cell
        for run in store.trials_of(experiment_id, case_ids, agents, most=most):
            runs.setdefault((experiment_id, run.agent, run.case_id), []).append(run)
    return cells, runs


def _worst(runs: Sequence[TrialLine]) -> TrialLine | None:
    """The run to look at: the failed one with the lowest score; where none failed, the first that errored."""
    failed = [run for run in runs if run.outcome == "failed"]
    if failed:
        return min(failed, key=lambda run: (run.score is None, run.score or 0.0, run.trial))
    return next((run for run in runs if run.outcome == "errored"), None)


def _row(
    place: CasePlace,
    experiment_id: str,
    columns: Sequence[MatrixColumn],
    order: CaseOrder,
    cells: _Cells,
    runs: _Runs,
    worst: Mapping[str, TrialLine | None],
    findings: Mapping[str, StoredFailure],
    drawn: bool,
    begins: bool,
    planned: int | None,
) -> MatrixRow:
    case_id = place.case_id
    now = cells.get((experiment_id, order.agent, case_id))
    then = None if order.base is None else cells.get((*_key(order.base), case_id))
    change = None
    if now is not None and then is not None and now.rate is not None and then.rate is not None:
        change = now.rate - then.rate
    run = worst[case_id]
    why, pointer, errored = _why(run, findings, runs, experiment_id, case_id, order.agent)
    of_base = () if order.base is None else runs.get((*_key(order.base), case_id), ())
    own = runs.get((experiment_id, order.agent, case_id), ())
    return MatrixRow(
        case_id=case_id,
        href=address("experiments", experiment_id, "cases", case_id, agents=order.agent),
        tag=place.tag,
        begins=begins,
        cells=[_cell(column, cells, runs, case_id, drawn, planned) for column in columns],
        change=change,
        why=why,
        errored=errored,
        where=pointer,
        where_href=None if run is None or pointer is None else address("runs", run.run_id, at=pointer),
        compare=_pair(of_base, own),
    )


def _pair(base: Sequence[TrialLine], own: Sequence[TrialLine]) -> str | None:
    """A run of the base and one of the agent that ended otherwise: what one compares to see what changed; without a
    base, a trial that passed and one that failed."""
    for before, after in (("passed", "failed"), ("failed", "passed")):
        a = next((run for run in base if run.outcome == before), None)
        b = next((run for run in own if run.outcome == after), None)
        if a is not None and b is not None:
            return address("compare", "runs", a=a.run_id, b=b.run_id)
    if not base:
        a, b = (next((run for run in own if run.outcome == word), None) for word in ("passed", "failed"))
        if a is not None and b is not None:
            return address("compare", "runs", a=a.run_id, b=b.run_id)
    return None


def _cell(
    column: MatrixColumn, cells: _Cells, runs: _Runs, case_id: str, drawn: bool, planned: int | None
) -> MatrixCell | None:
    cell = cells.get((*_key(column), case_id))
    if cell is None:
        return None
    marks = runs.get((*_key(column), case_id), ()) if drawn else ()
    return MatrixCell(
        label=column.label,
        base=column.base,
        trials=[TrialMark(run.run_id, run.trial, run.outcome) for run in marks],
        passed=cell.passed,
        graded=cell.graded,
        errored=cell.errored,
        other=cell.other,
        lacking=max(0, (planned or 0) - cell.runs) if not column.base else 0,
        share=cell.rate,
    )


def _why(
    run: TrialLine | None,
    findings: Mapping[str, StoredFailure],
    runs: _Runs,
    experiment_id: str,
    case_id: str,
    agent: str,
) -> tuple[str, str | None, bool]:
    """Why the worst run did not pass, with the place, and whether it errored."""
    if run is None:
        return "", None, False
    whose = "" if run.agent == agent else f"{run.agent}: "
    found = findings[run.run_id]
    if run.outcome == "errored":
        alike = runs.get((experiment_id, run.agent, case_id), ())
        count = sum(each.outcome == "errored" and each.error_class == run.error_class for each in alike)
        times = f" {numbers.TIMES}{numbers.NBSP}{count}" if count > 1 and run.error_class else ""
        return f"{whose}errored: {found.words}{times}", None, True
    return f"{whose}{found.words}", found.place, False
